"""Response writer of the ``anthropic`` dialect: a response of any dialect as a message, or as the events of one.

Promises: an event is written when its delta comes; a thinking block ends in the state of its block as signature. The
state of blocks that have no place for it goes into ``redacted_thinking``: in front of the next block of a stream if it
is known by then, in front of the last one of a whole message, and never at the end: clients read the last block as the
answer, and an API of this dialect takes no message that ends in reasoning. Arguments that are no JSON object, which an
input has to be, are put into one; those that broke off end in ``max_tokens``, and a whole message is without their
call, so that no tool runs with half of them. Must not: write an opaque value of the provider's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from thinkback.model import canonical
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Outcome, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.anthropic.blocks import NAME
from thinkback.wire.arguments import as_object, is_cut
from thinkback.wire.block_accumulator import join
from thinkback.wire.block_sequencer import Begun, BlockText, Ended, Kept, Kind, Order, Step
from thinkback.wire.result import ReadResult
from thinkback.wire.sources import members
from thinkback.wire.writing import Problem, Shown, call_id, counts, problem_in

_string = canonical.string
_STOP_REASONS: dict[Outcome, str] = {
    "tool_calls": "tool_use",
    "max_tokens": "max_tokens",
    "max_tokens_in_reasoning": "max_tokens",
    "refused": "refusal",
    "safety": "refusal",
    "paused": "pause_turn",
}
THREAD_NOT_FOUND = "thread_not_found"
_ERRORS: dict[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_ERROR_TYPES = frozenset({*_ERRORS.values(), "api_error"})
# Words that an upstream of this dialect has for more than others tell.
_OWN = frozenset({"stop_sequence", "model_context_window_exceeded"})
_TEXT = b'{"type":"text","text":%b}'
_THOUGHT = b'{"type":"thinking","thinking":%b,"signature":%b}'
_CALL = b'{"type":"tool_use","id":%b,"name":%b,"input":%b}'
_REDACTED = b'{"type":"redacted_thinking","data":%b}'
_PIECES: dict[Kind, bytes] = {
    "text": b'"type":"text_delta","text"',
    "thought": b'"type":"thinking_delta","thinking"',
    "call": b'"type":"input_json_delta","partial_json"',
}
_MESSAGE_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_NO_USAGE = b'{"input_tokens":0,"output_tokens":0}'


class Writer:
    """A message as a stream. Blocks are numbered as they begin, and a thought begins with its first text or state."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._order = Order(shown)
        self._count = 0
        # The open block: its kind, whether its first event was written, and what stands before a piece of it.
        self._kind: Kind = "text"
        self._has_begun = False
        self._prefix = b""
        # Arguments are shown once they begin like an object; others wait until all are there.
        self._is_object = False
        self._withheld: list[str] = []
        # The deltas that are a piece of the open block and nothing else: their class and index.
        self._grows: type[Delta] | None = None
        self._at = -1

    def begin(self) -> bytes:
        """``message_start``: how much was read is not known yet."""
        message = _message(self._shown, b"[]", (b"null", b"null"), _NO_USAGE)
        return b'event: message_start\ndata: {"type":"message_start","message":%b}\n\n' % message

    def show(self, deltas: Sequence[Delta]) -> bytes:
        """The events of ``deltas``."""
        events: list[bytes] = []
        for delta in deltas:
            # The fast paths: a piece of the block that is open.
            if type(delta) is TextDelta or type(delta) is ReasoningDelta:
                if type(delta) is self._grows and delta.index == self._at:
                    events.append(self._prefix + _string(delta.text) + b"}}\n\n")
                    continue
            elif (
                type(delta) is ToolCallDelta
                and type(delta) is self._grows
                and delta.index == self._at
                and delta.arguments  # what stands beside them comes once and was read
            ):
                self._order.pieces.append(delta.arguments)
                events.append(self._prefix + _string(delta.arguments) + b"}}\n\n")
                continue
            self._write(self._order.take(delta), events)
        return b"".join(events)

    def end(self, result: ReadResult) -> bytes:
        """What was not shown, why the model stopped, the usage, ``message_stop``; or the error it failed with."""
        problem = problem_in(result)
        if problem is not None:
            return self.fail(problem)
        events: list[bytes] = []
        self._write(self._order.end_of_stream(result.blocks), events)
        reason, sequence = _stop(result)
        usage = _usage(result.usage if self._shown.usage else None)
        delta = b'{"type":"message_delta","delta":{"stop_reason":%b,"stop_sequence":%b},"usage":%b}'
        events.append(b"event: message_delta\ndata: %b\n\n" % (delta % (reason, sequence, usage)))
        events.append(_MESSAGE_STOP)
        return b"".join(events)

    def fail(self, problem: Problem) -> bytes:
        """An ``error`` event."""
        return b"event: error\ndata: %b\n\n" % write_error(problem)

    def _write(self, steps: Sequence[Step], events: list[bytes]) -> None:
        for step in steps:
            match step:
                case Begun():
                    self._begin_block(step, events)
                case BlockText():
                    self._add(step.text, events)
                case Ended():
                    self._end_block(step.state, events)
                case Kept():
                    events.append(self._start(_REDACTED % _string(step.state)))
                    events.append(self._stop())
                case _:
                    assert_never(step)
        order = self._order
        self._at, self._grows = order.at, None if self._withheld or not self._has_begun else order.grows

    def _begin_block(self, step: Begun, events: list[bytes]) -> None:
        self._kind, self._has_begun, self._is_object = step.kind, False, False
        if step.kind == "call":
            id = _string(call_id(step.id, self._shown.id, step.at))
            self._open(_CALL % (id, _string(step.name), b"{}"), events)

    def _open(self, block: bytes, events: list[bytes]) -> None:
        events.append(self._start(block))
        delta = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{%b:'
        self._prefix = delta % (self._count, _PIECES[self._kind])
        self._has_begun = True

    def _add(self, text: str, events: list[bytes]) -> None:
        if not self._has_begun:
            self._open((_TEXT % b'""') if self._kind == "text" else _THOUGHT % (b'""', b'""'), events)
        if self._kind == "call" and not self._is_object:
            self._is_object = not self._withheld and text.lstrip().startswith("{")
            if not self._is_object:
                self._withheld.append(text)
                return
        events.append(self._prefix + _string(text) + b"}}\n\n")

    def _end_block(self, state: str, events: list[bytes]) -> None:
        if self._withheld:
            arguments = as_object(join(self._withheld)).decode()
            events.append(self._prefix + _string(arguments) + b"}}\n\n")
            self._withheld = []
        if state:
            if not self._has_begun:
                self._open(_THOUGHT % (b'""', b'""'), events)
            signature = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%b}\n\n'
            events.append(signature % (self._count, b'{"type":"signature_delta","signature":%b}' % _string(state)))
        if self._has_begun:
            events.append(self._stop())
        self._has_begun = False

    def _start(self, block: bytes) -> bytes:
        event = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
        return event % (self._count, block)

    def _stop(self) -> bytes:
        self._count += 1
        event = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
        return event % (self._count - 1)


def write_response(result: ReadResult, shown: Shown) -> bytes:
    """The message in one piece. A response that failed is its error."""
    problem = problem_in(result)
    if problem is not None:
        return write_error(problem)
    content: list[bytes] = []
    begun, text = Begun("text", -1, None), ""
    steps = Order(shown).end(result.blocks)
    for step in steps:
        match step:
            case Begun():
                begun, text = step, ""
            case BlockText():
                text = step.text
            case Ended() if begun.kind == "call" and is_cut(text):
                pass
            case Ended():
                content.append(_block(begun, text, step.state, shown))
            case Kept() if step is steps[-1] and content:
                content.insert(-1, _REDACTED % _string(step.state))
            case Kept():
                content.append(_REDACTED % _string(step.state))
            case _:
                assert_never(step)
    return _message(shown, b"[%b]" % b",".join(content), _stop(result), _usage(result.usage))


def _block(begun: Begun, text: str, state: str, shown: Shown) -> bytes:
    if begun.kind == "text":
        return _TEXT % _string(text)
    if begun.kind == "thought":
        return _THOUGHT % (_string(text), _string(state))
    return _CALL % (_string(call_id(begun.id, shown.id, begun.at)), _string(begun.name), as_object(text))


def write_error(problem: Problem) -> bytes:
    """The body of an error, by its status where the provider gave no word of this dialect."""
    kind = problem.type if problem.type in _ERROR_TYPES else _ERRORS.get(problem.status, "")
    if not kind:
        kind = "invalid_request_error" if 400 <= problem.status < 500 else "api_error"
    said = b'"type":%b,"message":%b' % (_string(kind), _string(problem.message))
    if problem.code == THREAD_NOT_FOUND:
        said += b',"details":{"error_code":%b}' % _string(problem.code)
    return b'{"type":"error","error":{%b}}' % said


def _message(shown: Shown, content: bytes, stop: tuple[bytes, bytes], usage: bytes) -> bytes:
    head = b'{"id":%b,"type":"message","role":"assistant","model":%b,' % (_string(shown.id), _string(shown.model))
    end = b'"content":%b,"stop_reason":%b,"stop_sequence":%b,"usage":%b}' % (content, *stop, usage)
    return head + end


def _stop(result: ReadResult) -> tuple[bytes, bytes]:
    """Why the model stopped, in the words of this dialect, and the text that stopped it."""
    response = result.response
    if response.outcome == "tool_calls" and any(
        isinstance(block, ToolCall) and is_cut(block.arguments) for block in result.blocks
    ):
        return _string("max_tokens"), b"null"
    if response.origin.dialect == NAME and response.finish in _OWN:
        sequence = members(response.envelope).get("stop_sequence", "null") if response.envelope else "null"
        return _string(response.finish), canonical.raw(sequence)
    return _string(_STOP_REASONS.get(response.outcome, "end_turn")), b"null"


def _usage(usage: Usage | None) -> bytes:
    """Token counts: what was cached stands beside the input, what was reasoned is inside the output."""
    if usage is None:
        return _NO_USAGE
    found = counts(usage)
    told = {"input_tokens": max(0, found.input - found.cached - found.cache_write)}
    if usage.cache_write is not None:
        told["cache_creation_input_tokens"] = found.cache_write
    if usage.cached is not None:
        told["cache_read_input_tokens"] = found.cached
    said: dict[str, object] = {**told, "output_tokens": found.output}
    if usage.reasoning is not None:
        said["output_tokens_details"] = {"thinking_tokens": found.reasoning}
    return canonical.source(said).encode()
