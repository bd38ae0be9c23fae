"""A well-formed Messages request as the judge and the scripted model see it: blocks, turns, how it thinks.

Built only from bodies that passed the shape check. Indices are positions in the request's ``messages``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..jsons import JsonObject, as_list, as_object, as_text
from .profiles import BETWEEN, BINDING_BETA, DISABLED, INTERLEAVED_BETA, MANUAL, Host, Profile

THINKING = frozenset({"thinking", "redacted_thinking"})
CLEARING = "clear_thinking_20251015"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the account is the organisation of the key, the cloud project or the AWS account."""

    host: Host
    account: str = ""
    betas: frozenset[str] = frozenset()
    is_early: bool = False
    """The account is from before 2026-08-31, when preserved thinking was not yet enforced by all models."""


@dataclass(frozen=True, slots=True)
class Block:
    """One content block and its place."""

    message: int
    index: int
    raw: Mapping[str, object]

    @property
    def kind(self) -> str:
        """Its type."""
        return as_text(self.raw.get("type"))

    @property
    def path(self) -> str:
        """Its place, as errors name it."""
        return f"messages.{self.message}.content.{self.index}"

    @property
    def opaque(self) -> str:
        """The signature or the redacted data."""
        return as_text(self.raw.get("data" if self.kind == "redacted_thinking" else "signature"))

    @property
    def text(self) -> str:
        """The readable text, or thought."""
        return as_text(self.raw.get(self.kind))


@dataclass(frozen=True, slots=True)
class Message:
    """One message; ``turn`` counts from 1."""

    index: int
    role: str
    turn: int
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The joined text blocks."""
        return "".join(block.text for block in self.blocks if block.kind == "text")

    @property
    def thinking(self) -> tuple[Block, ...]:
        """The thinking blocks, redacted ones included."""
        return tuple(block for block in self.blocks if block.kind in THINKING)

    @property
    def calls(self) -> tuple[str, ...]:
        """The ids of the calls it makes."""
        return tuple(as_text(block.raw.get("id")) for block in self.blocks if block.kind == "tool_use")

    @property
    def results(self) -> tuple[str, ...]:
        """The ids of the calls it answers."""
        return tuple(as_text(block.raw.get("tool_use_id")) for block in self.blocks if block.kind == "tool_result")


@dataclass(frozen=True)
class Request:
    """A parsed request to one model by one caller."""

    profile: Profile
    body: JsonObject
    caller: Caller

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return tuple(_read_messages(as_list(self.body.get("messages"))))

    @cached_property
    def assistants(self) -> tuple[Message, ...]:
        """The assistant messages."""
        return tuple(message for message in self.messages if message.role == "assistant")

    @cached_property
    def open_turn(self) -> tuple[Message, ...]:
        """The assistant messages of the turn under way; none when a user has just spoken."""
        last = self.messages[-1].turn
        return tuple(message for message in self.assistants if message.turn == last)

    @property
    def user(self) -> str:
        """The end user that the request names."""
        return as_text(as_object(self.body.get("metadata")).get("user_id"))

    @property
    def config(self) -> Mapping[str, object]:
        """The thinking parameter."""
        return as_object(self.body.get("thinking"))

    @property
    def mode(self) -> str:
        """The type of thinking that holds for this request."""
        return as_text(self.config.get("type")) or self.profile.default

    @property
    def display(self) -> str:
        """Whether thoughts are shown, summarised or omitted."""
        return as_text(self.config.get("display")) or self.profile.display

    @property
    def drops(self) -> bool:
        """Whether bound blocks that do not fit are to be dropped."""
        binding = as_object(self.config.get("block_binding"))
        return binding.get("prefix_mismatch_behavior") == "drop_block"

    @property
    def enforces_prefix(self) -> bool:
        """Whether a block of another conversation is refused or dropped, and not shown all the same."""
        is_asked_for = "prefix_mismatch_behavior" in as_object(self.config.get("block_binding"))
        return not self.caller.is_early or self.profile.always_enforced or is_asked_for

    @property
    def reports(self) -> bool:
        """Whether the response tells what was dropped."""
        return BINDING_BETA in self.caller.betas

    @property
    def thinking_on(self) -> bool:
        """Whether thinking blocks of the history matter at all."""
        return self.mode != DISABLED

    @property
    def thinks(self) -> bool:
        """Whether the next response begins with a thought."""
        if self.mode == BETWEEN:
            return bool(self.open_turn)
        # Without the beta, manual mode thinks once per turn.
        waits = self.caller.host.signed and self.mode == MANUAL and INTERLEAVED_BETA not in self.caller.betas
        return self.thinking_on and not (waits and self.open_turn)

    @cached_property
    def clearing(self) -> int | None:
        """How many turns an edit of the request leaves their thinking; None without such an edit."""
        edits = as_list(as_object(self.body.get("context_management")).get("edits"))
        edit = next((as_object(edit) for edit in edits if as_object(edit).get("type") == CLEARING), None)
        if edit is None:
            return None
        keep = edit.get("keep")
        value = as_object(keep).get("value")
        if isinstance(value, int):
            return value
        return None if keep == "all" or as_object(keep).get("type") == "all" else 1

    @cached_property
    def thinking_turns(self) -> tuple[int, ...]:
        """The turns in which thinking came back, oldest first."""
        return tuple(dict.fromkeys(message.turn for message in self.assistants if message.thinking))

    @cached_property
    def visible_turns(self) -> frozenset[int]:
        """The turns whose thinking the model gets to see."""
        if not self.thinking_on:
            return frozenset()
        keeps = self.profile.keeps if self.clearing is None else self.clearing
        turns = tuple(dict.fromkeys(message.turn for message in self.assistants))
        return frozenset(turns[max(0, len(turns) - keeps) :])


def blocks_of(message: int, content: object) -> tuple[Block, ...]:
    """The blocks of a content value; a string is one text block."""
    if isinstance(content, str):
        return (Block(message, 0, {"type": "text", "text": content}),)
    return tuple(Block(message, index, as_object(raw)) for index, raw in enumerate(as_list(content)))


def _read_messages(messages: object) -> Iterator[Message]:
    turn, answering = 0, False
    for index, value in enumerate(as_list(messages)):
        role = as_text(as_object(value).get("role"))
        blocks = blocks_of(index, as_object(value).get("content"))
        if role == "user":
            # What follows results directly is one message with them to the provider, and opens no turn.
            answering = answering or any(block.kind == "tool_result" for block in blocks)
            turn += not answering
        elif role == "assistant":
            answering = False
        yield Message(index, role, max(turn, 1), blocks)
