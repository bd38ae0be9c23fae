"""A request to the router: a chat request, what it says about reasoning and brings back of it, and what was minted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..chat.request import Message
from ..chat.request import Request as ChatRequest
from ..jsons import JsonObject, as_list, as_object, as_text
from .profiles import Row


@dataclass(frozen=True, slots=True)
class Mint:
    """The details of one response, and what they stand for."""

    model: str
    account: str
    carriers: tuple[str, ...]
    thought: str
    calls: tuple[str, ...]


class Ledger:
    """Mints by carrier, and by readable thought."""

    def __init__(self) -> None:
        self._by_carrier: dict[str, Mint] = {}
        self._by_thought: dict[str, Mint] = {}

    def add(self, mint: Mint) -> None:
        """Note a mint."""
        for carrier in mint.carriers:
            self._by_carrier[carrier] = mint
        self._by_thought[mint.thought] = mint

    def carried(self, carrier: str) -> Mint | None:
        """The mint that an opaque value belongs to."""
        return self._by_carrier.get(carrier)

    def thought(self, text: str) -> Mint | None:
        """The last mint with exactly this thought."""
        return self._by_thought.get(text)


def carrier_of(entry: Mapping[str, object]) -> str:
    """The opaque value of an entry: its data or its signature."""
    return as_text(entry.get("data")) or as_text(entry.get("signature"))


def text_of(entry: Mapping[str, object]) -> str:
    """The readable text of an entry."""
    return as_text(entry.get("text")) or as_text(entry.get("summary"))


@dataclass(frozen=True, slots=True)
class Returned:
    """An assistant message that came back with its details."""

    message: Message
    entries: tuple[Mapping[str, object], ...]

    @property
    def carriers(self) -> tuple[str, ...]:
        """The opaque values, in order."""
        return tuple(carrier for entry in self.entries if (carrier := carrier_of(entry)))

    @property
    def text(self) -> str:
        """The readable text: of the details, else the plain field."""
        return "".join(map(text_of, self.entries)) or as_text(self.message.raw.get("reasoning"))


@dataclass(frozen=True)
class Request:
    """A parsed request of one account to one model."""

    row: Row
    body: JsonObject
    account: str
    ledger: Ledger

    @cached_property
    def chat(self) -> ChatRequest:
        """The request without its reasoning."""
        return ChatRequest(self.row.chat, self.body)

    @cached_property
    def reasoning(self) -> Mapping[str, object]:
        """The ``reasoning`` parameter."""
        return as_object(self.body.get("reasoning"))

    @property
    def effort(self) -> str:
        """The effort that is asked for, under either name."""
        return as_text(self.reasoning.get("effort")) or as_text(self.body.get("reasoning_effort"))

    @property
    def thinks(self) -> bool:
        """Whether the model reasons."""
        if self.effort == "none" or self.reasoning.get("enabled") is False:
            return False
        asked = self.effort or self.reasoning.get("max_tokens") or self.reasoning.get("enabled")
        return bool(asked) or self.row.thinks

    @property
    def shows(self) -> bool:
        """Whether the response may show reasoning."""
        return self.reasoning.get("exclude") is not True and self.body.get("include_reasoning") is not False

    @cached_property
    def returned(self) -> tuple[Returned, ...]:
        """The assistant messages with their details."""
        return tuple(
            Returned(message, tuple(as_object(entry) for entry in as_list(message.raw.get("reasoning_details"))))
            for message in self.chat.assistants
        )

    def minted(self, back: Returned) -> Mint | None:
        """What the details of a message were minted as, by its first carrier, else by its text."""
        if back.carriers:
            return self.ledger.carried(back.carriers[0])
        return None if self.row.family.carrier else self.ledger.thought(back.text)
