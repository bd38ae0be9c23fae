"""Response writer of the ``gemini`` dialect: values of any dialect to a ``GenerateContentResponse`` or its chunks.

Promises: readable reasoning is in parts with ``thought``, counts are in Google's meaning (candidates without thoughts),
the gateway's state is the signature of the first call, else of what was said last: the last piece of a stream is held
back for it. Calls come whole and behind all else of a stream, each with an object: arguments that are none stand inside
one (``as_object``). A refused response ends in ``SAFETY``, its words are text. Must not: write what only another
dialect understands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, Unknown, is_shown
from thinkback.model.commits import Outcome, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, TextDelta
from thinkback.wire.gemini.blocks import signed, wire_object
from thinkback.wire.gemini.opaque import armoured
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, Shown, closing_tag, counts, problem_in

_END = b"\r\n\r\n"
_FINISHES: dict[Outcome, bytes] = {
    "max_tokens": b"MAX_TOKENS",
    "max_tokens_in_reasoning": b"MAX_TOKENS",
    "refused": b"SAFETY",
    "safety": b"SAFETY",
    "paused": b"CONTINUATION",
}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    413: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}
_OWN_STATUSES = frozenset({*_STATUSES.values(), "INTERNAL", "OUT_OF_RANGE", "ALREADY_EXISTS", "DATA_LOSS"})


class Writer:
    """A streamed response; see ``ResponseWriter``."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._text = b'data: {"candidates":[{"content":{"parts":[{"text":'
        self._text_end = b'}],"role":"model"},"index":0}]%b}' % _tail(shown) + _END
        self._thought_end = b',"thought":true' + self._text_end
        # The last piece so far, without what ends its part.
        self._held = b""
        self._held_end = b""

    def begin(self) -> bytes:
        """Nothing: a response begins with its first part."""
        return b""

    def show(self, deltas: Sequence[Delta]) -> bytes:
        """A chunk for each piece of text or reasoning."""
        events: list[bytes] = []
        for delta in deltas:
            text, end = "", self._text_end
            if isinstance(delta, TextDelta):
                text = delta.text
            elif isinstance(delta, ReasoningDelta):
                text, end = delta.text if self._shown.reasoning else "", self._thought_end
            elif isinstance(delta, Reclassified):
                text = closing_tag(delta, self._shown)
            if text:
                events += (self._held, self._held_end)
                self._held, self._held_end = self._text + canonical.string(text), end
        return b"".join(events)

    def end(self, result: ReadResult) -> bytes:
        """What was held back, calls and media; with the last of it the state, why it ended, and the usage."""
        problem = problem_in(result)
        if problem is not None:
            return self.fail(problem)
        blocks = [block for block in result.blocks if isinstance(block, ToolCall | Media)]
        parts, held = _parts(blocks, self._shown), b""
        if parts:
            held = self._held + self._held_end
        elif self._held:
            thought = b',"thought":true' if self._held_end is self._thought_end else b""
            parts = [b'{"text":%b%b}' % (self._held.removeprefix(self._text), thought)]
        usage = _usage(result.usage if self._shown.usage else None)
        signed_parts = _signed(parts, self._shown.state(result.blocks)) or [b'{"text":""}']
        return held + self._event(_candidate(signed_parts, _finish(result)), usage)

    def fail(self, problem: Problem) -> bytes:
        """What was held back, and the error in place of a further response."""
        return self._held + self._held_end + b"data: %b" % write_error(problem) + _END

    def _event(self, candidate: bytes, usage: bytes) -> bytes:
        return b'data: {"candidates":[%b]%b%b}' % (candidate, usage, _tail(self._shown)) + _END


def write_response(result: ReadResult, shown: Shown) -> bytes:
    """A whole response; the error where it is not whole."""
    problem = problem_in(result)
    if problem is not None:
        return write_error(problem)
    candidate = _candidate(_signed(_parts(result.blocks, shown), shown.state(result.blocks)), _finish(result))
    return b'{"candidates":[%b]%b%b}' % (candidate, _usage(result.usage), _tail(shown))


def write_error(problem: Problem) -> bytes:
    """The body of an error."""
    status = problem.type if problem.type in _OWN_STATUSES else _STATUSES.get(problem.status, "")
    error = {
        "code": problem.status,
        "message": problem.message,
        "status": status or ("INTERNAL" if problem.status >= 500 else "INVALID_ARGUMENT"),
    }
    return canonical.raw(canonical.source({"error": error}))


def _tail(shown: Shown) -> bytes:
    """What stands in every response of a stream."""
    return b',"modelVersion":%b,"responseId":%b' % (canonical.string(shown.model), canonical.string(shown.id))


def _candidate(parts: Iterable[bytes], finish: bytes = b"") -> bytes:
    reason = b'"finishReason":"%b",' % finish if finish else b""
    return b'{"content":{"parts":[%b],"role":"model"},%b"index":0}' % (b",".join(parts), reason)


def _parts(blocks: Iterable[Block], shown: Shown) -> list[bytes]:
    """The parts of blocks, each made from its values: neither its wire object nor what is opaque of it is written."""
    parts = []
    for block in blocks:
        if isinstance(block, Unknown) or (isinstance(block, Text) and not block.text):
            continue
        if isinstance(block, ThinkingBlock) and not (is_shown(block) and block.thought and shown.reasoning):
            continue
        try:
            parts.append(_one_line(wire_object(msgspec.structs.replace(block, wire="", carriers=()))))
        except UnsupportedContent:
            continue
    return parts


def _signed(parts: list[bytes], state: str) -> list[bytes]:
    """The parts with the state on the first call, else on the last part; a part for it alone where there is none."""
    if not state:
        return parts
    if not parts:
        parts = [b'{"text":""}']
    at = next((at for at, part in enumerate(parts) if part.startswith(b'{"functionCall":')), len(parts) - 1)
    return [*parts[:at], parts[at][:-1] + signed(armoured(state)) + b"}", *parts[at + 1 :]]


def _one_line(source: bytes) -> bytes:
    """JSON without line ends, which would end an event; in JSON they are white space only."""
    return source.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in source or b"\r" in source else source


def _finish(result: ReadResult) -> bytes:
    return _FINISHES.get(result.response.outcome, b"STOP")


def _usage(usage: Usage | None) -> bytes:
    """Counts as Google gives them, as a member behind others."""
    if usage is None:
        return b""
    found = counts(usage)
    told = {
        "promptTokenCount": found.input,
        "candidatesTokenCount": max(0, found.output - found.reasoning),
        "thoughtsTokenCount": usage.reasoning,
        "cachedContentTokenCount": usage.cached,
        "totalTokenCount": found.input + found.output,
    }
    return b',"usageMetadata":' + canonical.encode({name: value for name, value in told.items() if value is not None})
