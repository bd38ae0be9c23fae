"""Is every call answered once, directly after? For formats whose answers are messages that name a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal


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
