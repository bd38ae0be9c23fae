"""What the response writers of the front dialects share: a response as values to the bytes that a client expects.

A writer is fed what a reader of any dialect gives: deltas while they come, blocks as far as they have come, the result
at the end. Promises: reading what was written gives the same texts, calls and finish; nothing opaque of the provider's
is written as it is, only what ``state`` makes of it. Text that was shown before it turned out to be reasoning
(``Reclassified``) cannot be taken back: it stays, and the closing tag is written behind it as the provider did. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from thinkback.model.blocks import Block, ThinkingBlock
from thinkback.model.commits import Failure, Usage
from thinkback.model.deltas import Delta, Reclassified
from thinkback.wire.result import ReadResult


class Shown(msgspec.Struct, frozen=True):
    """How a response is shown to the client that asked.

    ``id`` is what the client may call it by, ``model`` the name it asked for, ``created`` seconds since 1970; ``now``
    gives those of the moment, for what says when it was completed.
    ``reasoning``: readable reasoning is shown. ``usage``: token counts are shown in a stream. ``state`` gives the
    opaque value that a client may send back for ``blocks`` of the response, empty where there is nothing to keep;
    ``block`` is the block at an index as far as it has come. ``request`` has the members of the client's request that a
    response of its dialect repeats, and may have others. ``recorded``: what the client is not given is kept elsewhere.
    """

    id: str
    model: str
    created: int
    reasoning: bool = True
    usage: bool = True
    state: Callable[[Sequence[Block]], str] = lambda blocks: ""
    block: Callable[[int], Block | None] = lambda index: None
    request: Mapping[str, object] = {}
    now: Callable[[], int] = lambda: 0
    recorded: bool = True


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


class Counts(NamedTuple):
    """Token counts in one meaning: ``input`` with what was cached, ``output`` with what was reasoned."""

    input: int
    output: int
    reasoning: int
    cached: int
    cache_write: int


def counts(usage: Usage) -> Counts:
    """The counts of ``usage``, which says in ``counted`` what they leave out; what was not reported is nothing."""
    given, cached, written = usage.input or 0, usage.cached or 0, usage.cache_write or 0
    output, reasoning = usage.output or 0, usage.reasoning or 0
    if "cache_beside_input" in usage.counted:
        given += cached + written
    if "reasoning_beside_output" in usage.counted:
        output += reasoning
    return Counts(given, max(output, reasoning), reasoning, cached, written)


def counted_as(result: ReadResult, reasoning_tokens: str) -> ReadResult:
    """``result`` with what a rule says of its counts: ``added`` reasoning is not in the number for output."""
    usage = result.usage
    if usage is None or reasoning_tokens != "added" or "reasoning_beside_output" in usage.counted:
        return result
    usage = msgspec.structs.replace(usage, counted=(*usage.counted, "reasoning_beside_output"))
    return msgspec.structs.replace(result, usage=usage)


def call_id(id: str, response: str, index: int) -> str:
    """The id of the call at ``index`` among the blocks of a ``response``, or one where its provider gives none.

    Providers take no longer ones than 40 characters, so the response is named by its end.
    """
    return id or f"call_{response[-24:]}_{index}"


def problem_of(failure: Failure) -> Problem:
    """What a client is told of a failure that a response brought; one inside a response that began well is a 502."""
    return Problem(failure.status if failure.status >= 400 else 502, failure.message, failure.type, failure.code)


def problem_in(result: ReadResult) -> Problem | None:
    """What a response ends in where it is not whole; one that was stopped by a filter ends with a word for that."""
    response = result.response
    if response.error is None or response.outcome == "safety":
        return None
    return problem_of(response.error)


def closing_tag(delta: Reclassified, shown: Shown) -> str:
    """The tag behind text that was shown before it turned out to be reasoning; nothing where there is no such text."""
    if not delta.text:
        return ""
    block = shown.block(delta.index)
    return block.closing if isinstance(block, ThinkingBlock) else "</think>"
