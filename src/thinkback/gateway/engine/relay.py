"""From the upstream to the client: the same bytes where both speak one dialect, a written response where not.

Promises: a stream is passed on event by event, never a part of one; the last event of the dialect is held back until
the response is stored; a key that the upstream repeats is blotted out; whatever goes wrong, the client reads an error
of its own dialect. Must not: read what a response says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from thinkback.gateway.engine.apart import Apart
from thinkback.gateway.incoming import Sink
from thinkback.model.deltas import Delta
from thinkback.turn.plan import Plan
from thinkback.wire.front import Front, Signing
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, ResponseWriter, Shown, counted_as

_STREAM = "text/event-stream"
_DOCUMENT = "application/json"


class Relay:
    """The way of one response.

    ``streams`` and ``hides_counts`` (token counts that only the gateway asked for) are to be set once they are known.
    ``native`` says whether the client can be given the upstream's own bytes, ``seal`` what becomes of an opaque value
    in them, ``sign`` what reasoning without a signature gets for one, ``shown`` how a response is written otherwise.
    ``headers`` are the gateway's own, asked for when the first
    byte goes out.
    """

    def __init__(
        self,
        sink: Sink,
        front: Front,
        *,
        native: Callable[[Plan], bool],
        shown: Callable[[Plan], Shown],
        seal: Callable[[Plan], Callable[[str], str]],
        sign: Callable[[Plan], Callable[[], str]],
        headers: Callable[[], Mapping[str, str]],
        apart: Apart,
    ) -> None:
        self.started = False
        self.hides_counts = False
        self.hides_report = False
        self._sink = sink
        self._front = front
        self.streams = False
        self._native = native
        self._shown = shown
        self._seal = seal
        self._sign = sign
        self._headers = headers
        self._apart = apart
        self._took = 0
        self._plan: Plan | None = None
        self._passes = False
        self._change: Callable[[str], str] = str
        self._signing: Signing | None = None
        self._secrets: list[bytes] = []
        self._writer: ResponseWriter | None = None
        self._opening = b""
        self._rest = Rest()
        self._held: list[bytes] = []

    def head(self, plan: Plan, status: int, content_type: str) -> None:
        """A response begins; a stream can be passed on as it is only where the client expects one."""
        self._plan = plan
        is_stream = content_type.partition(";")[0].strip().lower() == _STREAM
        self._passes = self._native(plan) and is_stream == self.streams
        self._took, self._rest, self._held, self._writer = 0, Rest(), [], None
        self._secrets = [secret.encode() for secret in plan.secrets()]
        if self._passes:
            self._change = self._seal(plan)
            self._signing = self._front.signing(self._sign(plan)) if self._front.signing is not None else None
        elif self.streams:
            self._writer = self._front.writer(self._shown(plan))
            # A writer numbers its events as it writes them.
            self._opening = self._writer.begin()

    async def piece(self, data: bytes) -> None:
        """Whole events go out; what is no event yet, and everything of a document, waits."""
        self._took += len(data)
        if not self._passes:
            return
        if not self.streams or self._held:
            self._held.append(data)
            return
        whole = self._rest.take(data)
        if whole:
            ready = await self._apart(len(whole), partial(self._ready, whole))
            if ready:
                await self._write(ready)

    def _ready(self, whole: bytes) -> bytes:
        """What of whole events may go out; the last one of the dialect is held back."""
        whole = self._clean(whole)
        if self.hides_counts and self._front.without_counts is not None:
            whole = self._front.without_counts(whole)
        at = self._front.ends(whole)
        if at >= 0:
            self._held.append(whole[at:])
            whole = whole[:at]
        return self._sealed(whole) if whole else b""

    async def deltas(self, deltas: Sequence[Delta], size: int = 0) -> None:
        """What was read, out of ``size`` bytes, is written in the client's dialect."""
        writer = self._writer
        if writer is None:
            return
        data = await self._apart(size, partial(writer.show, deltas))
        if data:
            await self._write(data if self.started else self._opening + data)

    async def end(self, result: ReadResult) -> None:
        """The response is stored: the rest goes out."""
        data = await self._apart(self._took, partial(self._last, result))
        if self.streams:
            await self._finish(data)
        else:
            await self.document(200, data)

    def _last(self, result: ReadResult) -> bytes:
        """What is still to be written of a response that is stored."""
        if self._passes and not self.streams:
            document = self._front.rewrite(self._asked_for(self._clean(b"".join(self._held))), self._change)
            return document if self._signing is None else self._signing.document(document)
        if self._passes:
            return self._sealed(self._closed(self._clean(b"".join((*self._held, self._rest.left)))))
        if self._writer is not None:
            rest = self._writer.end(self._counted(result))
            return rest if self.started else self._opening + rest
        assert self._plan is not None
        return self._front.write_response(self._counted(result), self._shown(self._plan))

    async def fail(self, problem: Problem, retry_after: float | None = None, *, is_told: bool = False) -> None:
        """No response, or not all of one: the client is told in its dialect.

        ``is_told``: the provider failed, so that its own last event says it already, where there is one.
        """
        if not self.started:
            more = {"retry-after": str(max(1, round(retry_after)))} if retry_after is not None else {}
            await self.document(problem.status, self._front.write_error(problem), more)
            return
        writer = self._writer
        if writer is None:
            assert self._plan is not None
            writer = self._front.writer(self._shown(self._plan))
        own = b""
        if self._passes and is_told:
            own = await self._apart(self._took, self._own_end)
        await self._finish(own or writer.fail(problem))

    def _own_end(self) -> bytes:
        """The events that were held back."""
        return self._sealed(_whole_events(self._clean(b"".join(self._held)))[0])

    def _counted(self, result: ReadResult) -> ReadResult:
        """``result`` with what the upstream's rule says of its counts."""
        assert self._plan is not None
        return counted_as(result, self._plan.target.rule.reasoning_tokens)

    async def _write(self, data: bytes) -> None:
        if not self.started:
            await self._start(200, {"content-type": f"{_STREAM}; charset=utf-8"})
        await self._sink.write(data)

    async def _finish(self, data: bytes) -> None:
        if not self.started:
            await self._start(200, {"content-type": f"{_STREAM}; charset=utf-8"})
        await self._sink.end(data)

    async def document(self, status: int, body: bytes, more: Mapping[str, str] | None = None) -> None:
        """A whole response of this status."""
        headers = {"content-type": _DOCUMENT, **(more or {})}
        await self._start(status, headers)
        await self._sink.end(body)

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.started = True
        await self._sink.start(status, {**headers, **self._headers()})

    def _closed(self, events: bytes) -> bytes:
        """``events``, the last of a response that is whole, as the dialect ends: an upstream may have left it out."""
        whole, rest = _whole_events(events)
        if _is_event(rest):
            whole += rest.rstrip(b"\r\n") + b"\n\n"
        return whole if self._front.ends(whole) >= 0 else whole + self._front.closing

    def _clean(self, data: bytes) -> bytes:
        """``data`` without the upstream's key, should it repeat it."""
        for secret in self._secrets:
            data = data.replace(secret, b"***")
        return data

    def _sealed(self, events: bytes) -> bytes:
        """``events`` with their opaque values sealed and their reasoning signed, without what nobody asked for."""
        events = self._rewritten(events)
        return events if self._signing is None else self._signing.events(events)

    def _rewritten(self, events: bytes) -> bytes:
        """Mostly there is nothing to change."""
        front = self._front
        if front.marked.search(events) is None and not self._has_report(events):
            return events
        lines = events.split(b"\n")
        for at, line in enumerate(lines):
            if line.startswith(b"data:"):
                start = 6 if line.startswith(b"data: ") else 5
                lines[at] = line[:start] + front.rewrite(self._asked_for(line[start:]), self._change)
        return b"\n".join(lines)

    def _has_report(self, data: bytes) -> bool:
        return self.hides_report and b'"%b"' % self._front.reports.encode() in data

    def _asked_for(self, document: bytes) -> bytes:
        """``document`` without the report on a parameter that the gateway set, and the client did not."""
        if not self._has_report(document):
            return document
        try:
            members = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return document
        members.pop(self._front.reports, None)
        return msgspec.json.encode(members)


class Rest:
    """Bytes of a stream from where its last whole event ended. Each is looked at once, however long an event is."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._seen = b""

    def take(self, data: bytes) -> bytes:
        """The events that ``data`` makes whole."""
        at = _end(self._seen + data) - len(self._seen)
        if at <= 0:
            self._parts.append(data)
            self._seen = (self._seen + data)[-3:]
            return b""
        whole, rest = b"".join((*self._parts, data[:at])), data[at:]
        self._parts, self._seen = [rest] if rest else [], rest[-3:]
        return whole

    @property
    def left(self) -> bytes:
        """The beginning of an event that is not whole."""
        return b"".join(self._parts)


def _end(data: bytes) -> int:
    """Where the last event that is whole ends, 0 where none is."""
    ends = [data.rfind(mark) + len(mark) for mark in (b"\n\n", b"\r\n\r\n") if mark in data]
    return max(ends, default=0)


def _whole_events(data: bytes) -> tuple[bytes, bytes]:
    """(events that are whole, the beginning of the next one)."""
    at = _end(data)
    return data[:at], data[at:]


def _is_event(rest: bytes) -> bool:
    """Whether what stands behind the last blank line is an event that lacks its own alone."""
    said = [line[5:].strip() for line in rest.splitlines() if line.startswith(b"data:")]
    try:
        return bool(said) and all(line == b"[DONE]" or msgspec.json.decode(line) is not None for line in said)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
