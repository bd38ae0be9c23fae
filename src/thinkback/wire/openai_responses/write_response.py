"""Response writer of the ``openai-responses`` dialect: a response of any dialect as a response object, or its events.

Promises: an event is written when its delta comes; each block is an item, numbered as it begins. Reasoning is shown as
the summary of its item, whose ``encrypted_content`` is the state of the block. The state of blocks that have no place
for it goes into a reasoning item of its own: in front of the next item of a stream if it is known by then, in front of
the last one of a whole response, and never at the end: clients read the last item as the answer, and what ends in
reasoning is not taken back. Must not: write an opaque value of the provider's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from thinkback.model import canonical
from thinkback.model.blocks import Block, Text
from thinkback.model.commits import Outcome, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.block_accumulator import join
from thinkback.wire.block_sequencer import Begun, BlockText, Ended, Kept, Order, Step
from thinkback.wire.openai import write_error
from thinkback.wire.openai_responses.repeated import repeated
from thinkback.wire.openai_responses.shown_items import KEPT, Item, item_of, source_of
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, Shown, counts, problem_in

__all__ = ["Writer", "write_error", "write_response"]

_string = canonical.string
_INCOMPLETE: dict[Outcome, bytes] = {
    "max_tokens": b'{"reason":"max_output_tokens"}',
    "max_tokens_in_reasoning": b'{"reason":"max_output_tokens"}',
    # There is no word for a turn that its provider would go on with; what matters is that it is not whole.
    "paused": b'{"reason":"max_output_tokens"}',
    "safety": b'{"reason":"content_filter"}',
}
_CUT = ("max_tokens", "max_tokens_in_reasoning")
_FAILURES: dict[int, str] = {400: "invalid_prompt", 429: "rate_limit_exceeded"}


class Writer:
    """A response as a stream."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._order = Order(shown)
        self._repeated = repeated(shown.request)
        # The number of the next event.
        self._number = 0
        # Items that are done; the open one with its text so far, and what stands before a piece of it.
        self._items: list[bytes] = []
        self._item = item_of(Begun("text", -1, None), 0, shown)
        self._pieces: list[str] = []
        self._prefix = b""
        # The deltas that are a piece of the open item and nothing else: their class and index.
        self._grows: type[Delta] | None = None
        self._at = -1

    def begin(self) -> bytes:
        """``response.created`` and ``response.in_progress``."""
        response = self._response(b"in_progress")
        return self._event(b"response.created", response) + self._event(b"response.in_progress", response)

    def show(self, deltas: Sequence[Delta]) -> bytes:
        """The events of ``deltas``."""
        events: list[bytes] = []
        for delta in deltas:
            # The fast paths: a piece of the item that is open.
            if type(delta) is TextDelta or type(delta) is ReasoningDelta:
                if type(delta) is self._grows and delta.index == self._at:
                    events.append(self._piece(delta.text))
                    continue
            elif (
                type(delta) is ToolCallDelta
                and type(delta) is self._grows
                and delta.index == self._at
                and delta.arguments  # what stands beside them comes once and was read
            ):
                self._order.pieces.append(delta.arguments)
                events.append(self._piece(delta.arguments))
                continue
            self._write(self._order.take(delta), events)
        return b"".join(events)

    def end(self, result: ReadResult) -> bytes:
        """What was not shown, and the whole response; or the error it failed with."""
        problem = problem_in(result)
        if problem is not None:
            return self.fail(problem)
        events: list[bytes] = []
        self._write(self._order.end_of_stream(result.blocks), events, result.response.outcome in _CUT)
        status, details = _status(result)
        usage = _usage(result.usage if self._shown.usage else None)
        response = self._response(status, incomplete=details, usage=usage)
        events.append(self._event(b"response." + status, response))
        return b"".join(events)

    def fail(self, problem: Problem) -> bytes:
        """``response.failed``. An item that is open stays so: half a call must not look like one."""
        code = problem.code if problem.code in _FAILURES.values() else _FAILURES.get(problem.status, "server_error")
        error = b'{"code":%b,"message":%b}' % (_string(code), _string(problem.message))
        return self._event(b"response.failed", self._response(b"failed", error=error))

    def _write(self, steps: Sequence[Step], events: list[bytes], is_cut: bool = False) -> None:
        """The events of ``steps``. ``is_cut``: the last item that ends in them is not whole."""
        last = _last_end(steps) if is_cut else -1
        for at, step in enumerate(steps):
            match step:
                case Begun():
                    self._begin_item(item_of(step, len(self._items), self._shown), events)
                case BlockText():
                    self._begin_part(events)
                    events.append(self._piece(step.text))
                case Ended():
                    self._end_item(step.state, b"incomplete" if at == last else b"completed", events)
                case Kept():
                    self._begin_item(item_of(KEPT, len(self._items), self._shown), events)
                    self._end_item(step.state, b"completed", events)
                case _:
                    assert_never(step)
        self._at, self._grows = self._order.at, self._order.grows if self._pieces else None

    def _piece(self, text: str) -> bytes:
        self._pieces.append(text)
        self._number += 1
        return b'%b%b,"sequence_number":%d}\n\n' % (self._prefix, _string(text), self._number - 1)

    def _begin_item(self, item: Item, events: list[bytes]) -> None:
        self._item, self._pieces = item, []
        name = item.shape.events + b".delta"
        self._prefix = b'event: %b\ndata: {"type":"%b",%b%b"delta":' % (name, name, item.place, item.shape.beside)
        added = b'"output_index":%d,"item":%b' % (item.number, source_of(item, self._shown, b"in_progress"))
        events.append(self._event(b"response.output_item.added", added))

    def _begin_part(self, events: list[bytes]) -> None:
        """The part that holds the text, where there is one and it has not begun."""
        shape = self._item.shape
        if shape.part and not self._pieces:
            part = b'%b"part":%b' % (self._item.place, shape.part % b'""')
            events.append(self._event(shape.parts + b".added", part))

    def _end_item(self, state: str, status: bytes, events: list[bytes]) -> None:
        item, text = self._item, join(self._pieces)
        if item.kind == "call" and not text.strip():
            events.append(self._piece("{}"))
            text += "{}"
        if text:
            shape, source = item.shape, _string(text)
            whole = b'%b%b"%b":%b' % (item.place, shape.beside, shape.field, source)
            events.append(self._event(shape.events + b".done", whole))
            if shape.part:
                part = b'%b"part":%b' % (item.place, shape.part % source)
                events.append(self._event(shape.parts + b".done", part))
        done = source_of(item, self._shown, status, text, state)
        events.append(self._event(b"response.output_item.done", b'"output_index":%d,"item":%b' % (item.number, done)))
        self._items.append(done)
        self._pieces = []

    def _event(self, name: bytes, members: bytes) -> bytes:
        self._number += 1
        event = b'event: %b\ndata: {"type":"%b","sequence_number":%d,%b}\n\n'
        return event % (name, name, self._number - 1, members)

    def _response(
        self, status: bytes, *, incomplete: bytes = b"null", error: bytes = b"null", usage: bytes = b"null"
    ) -> bytes:
        ending = (status, error, incomplete, usage)
        return b'"response":' + _whole(self._shown, self._items, ending, self._repeated)


def write_response(result: ReadResult, shown: Shown) -> bytes:
    """The response in one piece. One that failed is its error."""
    problem = problem_in(result)
    if problem is not None:
        return write_error(problem)
    items: list[bytes] = []
    item, text = item_of(KEPT, 0, shown), ""
    steps = Order(shown).end(result.blocks)
    last = _last_end(steps) if result.response.outcome in _CUT else -1
    for at, step in enumerate(steps):
        match step:
            case Begun():
                item, text = item_of(step, len(items), shown), ""
            case BlockText():
                text = step.text
            case Ended():
                text = text if text.strip() or item.kind != "call" else "{}"
                items.append(source_of(item, shown, b"incomplete" if at == last else b"completed", text, step.state))
            case Kept():
                kept = source_of(item_of(KEPT, len(items), shown), shown, b"completed", "", step.state)
                items.insert(len(items) - 1 if items and step is steps[-1] else len(items), kept)
            case _:
                assert_never(step)
    status, details = _status(result)
    return _whole(shown, items, (status, b"null", details, _usage(result.usage)), repeated(shown.request))


def _last_end(steps: Sequence[Step]) -> int:
    return max((at for at, step in enumerate(steps) if isinstance(step, Ended)), default=-1)


def _whole(shown: Shown, items: Sequence[bytes], ending: tuple[bytes, bytes, bytes, bytes], told: bytes) -> bytes:
    """The response object; ``ending`` are its status, error, ``incomplete_details`` and usage, ``told`` is repeated."""
    status, error, incomplete, usage = ending
    completed = b"%d" % max(shown.created, shown.now()) if status == b"completed" else b"null"
    head = b'{"id":%b,"object":"response","created_at":%d,"completed_at":%b,"status":"%b",'
    said = head % (_string(shown.id), shown.created, completed, status)
    ends = b'"error":%b,"incomplete_details":%b,"model":%b,' % (error, incomplete, _string(shown.model))
    return b'%b%b"output":[%b],"usage":%b,%b}' % (said, ends, b",".join(items), usage, told)


def _status(result: ReadResult) -> tuple[bytes, bytes]:
    """``status`` and ``incomplete_details``. A refusal without words of refusal is told as that of a filter."""
    outcome = result.response.outcome
    if outcome == "refused" and not any(_refuses(block) for block in result.blocks):
        outcome = "safety"
    details = _INCOMPLETE.get(outcome)
    return (b"completed", b"null") if details is None else (b"incomplete", details)


def _refuses(block: Block) -> bool:
    return isinstance(block, Text) and block.source_field == "refusal" and bool(block.text)


def _usage(usage: Usage | None) -> bytes:
    """Token counts: what was cached is inside the input, what was reasoned inside the output."""
    if usage is None:
        return b"null"
    found = counts(usage)
    told = {
        "input_tokens": found.input,
        "input_tokens_details": {"cached_tokens": found.cached, "cache_write_tokens": found.cache_write},
        "output_tokens": found.output,
        "output_tokens_details": {"reasoning_tokens": found.reasoning},
        "total_tokens": found.input + found.output,
    }
    return canonical.source(told).encode()
