"""What the response writers of the front dialects share: a response as values to the bytes that a client expects.

A writer is fed what a reader of any dialect gives: deltas while they come, blocks as far as they have come, the result
at the end. Promises: reading what was written gives the same texts, calls and finish; nothing opaque of the provider's
is written as it is, only what ``state`` makes of it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from thinkback.model.blocks import Block
from thinkback.model.commits import Failure
from thinkback.model.deltas import Delta
from thinkback.wire.result import ReadResult


class Shown(msgspec.Struct, frozen=True):
    """How a response is shown to the client that asked.

    ``id`` is what the client may call it by, ``model`` the name it asked for, ``created`` seconds since 1970.
    ``reasoning``: readable reasoning is shown. ``usage``: token counts are shown in a stream. ``state`` gives the
    opaque value that a client may send back for ``blocks`` of the response, empty where there is nothing to keep;
    ``block`` is the block at an index as far as it has come.
    """

    id: str
    model: str
    created: int
    reasoning: bool = True
    usage: bool = True
    state: Callable[[Sequence[Block]], str] = lambda blocks: ""
    block: Callable[[int], Block | None] = lambda index: None


class Problem(msgspec.Struct, frozen=True):
    """What a client is told in place of a response, or behind the part that it has.

    ``status`` is that of HTTP; ``type`` and ``code`` are the words of the client's dialect where the provider gave
    them, else empty: a writer has a word of its own for each status.
    """

    status: int
    message: str
    type: str = ""
    code: str = ""
    param: str = ""


class ResponseWriter(Protocol):
    """A streamed response in one dialect. ``begin`` is called once, ``end`` or ``fail`` once."""

    def begin(self) -> bytes:
        """What stands before the first delta; may be nothing."""
        ...

    def show(self, deltas: Sequence[Delta]) -> bytes:
        """The events of ``deltas``; nothing for those that the dialect has no event for."""
        ...

    def end(self, result: ReadResult) -> bytes:
        """The rest of a response, up to the dialect's last event. An incomplete one ends in the dialect's error."""
        ...

    def fail(self, problem: Problem) -> bytes:
        """An error behind what was written."""
        ...


def problem_of(failure: Failure) -> Problem:
    """What a client is told of a failure that a response brought."""
    return Problem(failure.status or 502, failure.message, failure.type, failure.code)
