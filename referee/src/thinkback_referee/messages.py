"""Lists of messages, and the rules that formats with them share: known members, calls and answers, plain thoughts.

A format whose thoughts are plain text reads its messages into ``Message``; what the house model sees, the words of the
prompt, and whether thoughts came back as they were minted then follow. Its template shows the model the thoughts of the
open turn alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from .jsons import as_objects, compact
from .persona import View, offered


class Thoughts:
    """Readable thoughts that were minted, by keys that a format makes of their messages: ids of calls, or text."""

    def __init__(self) -> None:
        self._by_key: dict[str, list[str]] = {}
        self._issued: dict[str, int] = {}

    def add(self, keys: Iterable[str], thought: str) -> None:
        """Note the thought of one message; an empty one is known to be empty."""
        for key in keys:
            self._by_key.setdefault(key, []).append(thought)
        self._issued[thought] = self._issued.get(thought, 0) + 1

    def of(self, keys: Iterable[str]) -> set[str]:
        """The thoughts of all messages that the keys fit; empty for a message that was never minted."""
        return {thought for key in keys for thought in self._by_key.get(key, ())}

    def issued(self, thought: str) -> int:
        """How many messages were minted with exactly this thought."""
        return self._issued.get(thought, 0)


@dataclass(frozen=True, slots=True)
class Message:
    """One message, read; ``raw`` is what arrived."""

    index: int
    role: str
    text: str
    thinking: str | None
    """Its thoughts, joined; None where there is no place with thoughts."""
    functions: tuple[Mapping[str, object], ...]
    """The functions that it calls, each with name and arguments."""
    keys: tuple[str, ...]
    """By what its thought is known: its calls, else its text."""
    raw: Mapping[str, object]


@dataclass(frozen=True)
class Conversation:
    """The messages of a request."""

    messages: tuple[Message, ...]

    @classmethod
    def read(cls, raws: object, message: Callable[[int, Mapping[str, object]], Message]) -> Conversation:
        """The conversation in ``raws``, each of which its format's ``message`` reads."""
        return cls(tuple(message(index, raw) for index, raw in enumerate(as_objects(raws))))

    @cached_property
    def opening(self) -> int:
        """The index of the last user message; -1 when there is none."""
        return max((message.index for message in self.messages if message.role == "user"), default=-1)

    @property
    def open_turn(self) -> Sequence[Message]:
        """What came after the last user message."""
        return self.messages[self.opening + 1 :]

    @property
    def assistants(self) -> list[Message]:
        """The assistant messages."""
        return [message for message in self.messages if message.role == "assistant"]

    @property
    def last_assistant(self) -> int:
        """The index of the last assistant message; 0 when there is none."""
        return max((message.index for message in self.assistants), default=0)

    def view(self, tools: object, *, thinks: bool, names: Sequence[str], choice: str = "") -> View:
        """The conversation for the house model; ``names``: the tools whose answers stand in the open turn."""
        made = [message for message in self.open_turn if message.role == "assistant"]
        answers = [message.text for message in self.open_turn if message.role == "tool"]
        readable = thinks and bool(made)
        return View(
            asked=self.messages[self.opening].text if self.opening >= 0 else "",
            turn=max(1, sum(message.role == "user" for message in self.messages)),
            steps=len(made),
            rounds=sum(bool(message.functions) for message in made),
            tools=tuple(offered(tool.get("function")) for tool in as_objects(tools)),
            choice=choice,
            thinks=thinks,
            results=tuple(zip(names, answers, strict=True)),
            notes=tuple(message.thinking for message in made if message.thinking) if readable else (),
            readable=readable,
            began=readable,
        )

    def words(self, tools: object) -> list[str]:
        """The prompt as words: tools first, then each message as the model sees it."""
        words = compact(tools).split() if as_objects(tools) else []
        for message in self.messages:
            thinking = message.thinking if message.index > self.opening else None
            words += [f"<{message.role}>", *(thinking or "").split(), *message.text.split()]
            words += [word for function in message.functions for word in compact(function).split()]
        return words

    def thought_faults(self, thoughts: Thoughts) -> Iterator[tuple[Literal["changed", "repeated"], int]]:
        """Thoughts that are not those that were minted with their messages, then those that repeat another's."""
        for message in self.assistants:
            minted = thoughts.of(message.keys)
            if message.thinking and minted and message.thinking not in minted:
                yield "changed", message.index
        seen: Counter[str] = Counter()
        for message in self.assistants:
            thinking = message.thinking or ""
            seen[thinking] += 1
            if thinking and seen[thinking] > max(1, thoughts.issued(thinking)):
                yield "repeated", message.index


def unknown_members(
    holders: Sequence[tuple[str, Mapping[str, object], frozenset[str]]],
) -> Iterator[tuple[str, str]]:
    """Place and name of each member that its holder (place, object, known members) does not have."""
    return ((place, name) for place, held, known in holders for name in held if name not in known)


@dataclass(frozen=True, slots=True)
class Unpaired:
    """The first fault: an answer without a call, an id that two calls of a message have, or calls without answers."""

    kind: Literal["stray", "duplicate", "unanswered"]
    index: int
    """Of the answer, else of the message that calls."""
    ids: Sequence[str] = ()


def unpaired_ids(messages: Iterable[tuple[int, bool, str | None, Sequence[str]]]) -> Unpaired | None:
    """The first fault among messages: (index, whether it is an answer, the call it answers, the calls it makes).

    None is no call's id.
    """
    waiting: list[str] = []
    owner = 0
    for index, answers, identifier, calls in messages:
        if answers:
            if identifier is None or identifier not in waiting:
                return Unpaired("stray", index)
            waiting.remove(identifier)
            continue
        if waiting:
            break
        owner, waiting = index, list(calls)
        if len(set(waiting)) < len(waiting):
            return Unpaired("duplicate", index)
    return Unpaired("unanswered", owner, waiting) if waiting else None
