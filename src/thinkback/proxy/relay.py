"""From the upstream to the client, bytes in and bytes out: the same where both speak one dialect, else written anew.

Promises: a stream is passed on event by event, never a part of one; the last event of the dialect is held back until
the response is stored; a key that the upstream repeats is blotted out, unless
it is the asker's own. Must not: read what a response says.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkback.model.deltas import Delta
from thinkback.proxy import presentation
from thinkback.proxy.client_state import UNSIGNED, Keeper
from thinkback.proxy.request_view import View
from thinkback.turn.plan import Plan
from thinkback.wire.documents import PAGE
from thinkback.wire.framing import guess_framing
from thinkback.wire.registry import front
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, Shown, counted_as

STREAM = "text/event-stream"
_NOT_WHOLE = frozenset({"truncated", "network", "timeout", "interrupted", "strict"})


class Relay:
    """The way of one response to ``plan``, whose head has come with ``content_type``.

    ``keeper`` seals the opaque values of a response that ``passes``, whose own bytes the client gets, where they do not
    leave as they are; ``shown`` is how one is written that does not.
    """

    def __init__(self, view: View, plan: Plan, content_type: str, keeper: Keeper | None, shown: Shown) -> None:
        shape = front(view.received.front)
        is_stream = content_type.partition(";")[0].strip().lower() == STREAM
        self._front = shape
        self._plan = plan
        self._keeper = keeper
        self._shown = shown
        self._streams = view.facts.streams
        self._hides_counts = view.facts.hides_counts
        self._hides_report = bool(shape.reports) and shape.reports not in view.request.params
        self._verbatim, self._kind = view.received.verbatim, content_type
        # A stream can be passed on as it is only where the client expects one, or takes whatever comes.
        self.passes = presentation.is_native(view, plan) and (self._verbatim or is_stream == self._streams)
        # What comes, as far as it passes: events, or a document; ``None`` before its beginning tells.
        self._is_events = None if self._verbatim else self._streams
        secrets = [] if plan.course.credentials.are_the_askers else plan.secrets()
        self._secrets = [secret.encode() for secret in secrets]
        signs = self.passes and shape.signing is not None
        unsigned = keeper.unsigned if keeper is not None else _unsigned
        self._signing = shape.signing(unsigned) if signs and shape.signing is not None else None
        hides = self.passes and shape.hiding is not None and plan.unasked
        self._hiding = shape.hiding() if hides and shape.hiding is not None else None
        # Whether anything in an event may have to be another than the upstream's.
        self._seals = self._hides_report or any(each is not None for each in (keeper, self._signing, self._hiding))
        self._writer = shape.writer(shown) if self._streams and not self.passes else None
        # A writer numbers its events as it writes them; what it begins with goes out with the first of them.
        self._opening = self._writer.begin() if self._writer is not None else b""
        self._rest = Rest()
        self._held: list[bytes] = []

    def piece(self, data: bytes) -> bytes:
        """What goes out for a piece of the body: whole events. What is no event yet, and everything of a document,
        waits.
        """
        if not self.passes:
            return b""
        if self._is_events is None:
            self._is_events = guess_framing(self._kind, data) == "sse"
        if not self._is_events or self._held:
            self._held.append(data)
            return b""
        whole = self._rest.take(data)
        return self._ready(whole) if whole else b""

    def _ready(self, whole: bytes) -> bytes:
        """What of whole events may go out; the last one of the dialect is held back."""
        if self._secrets:
            whole = self._clean(whole)
        if self._hides_counts and self._front.without_counts is not None:
            whole = self._front.without_counts(whole)
        at = self._front.ends(whole)
        if at >= 0:
            self._held.append(whole[at:])
            whole = whole[:at]
        return self._sealed(whole) if whole and self._seals else whole

    def show(self, deltas: Sequence[Delta]) -> bytes:
        """What goes out for what was read of the body, in the client's dialect."""
        data = self._writer.show(deltas) if self._writer is not None else b""
        return self._behind_opening(data) if data else b""

    def _behind_opening(self, data: bytes) -> bytes:
        opening, self._opening = self._opening, b""
        return opening + data

    def has_document(self, result: ReadResult) -> bool:
        """True for a whole document in the client's own dialect, whatever it says of the response."""
        error = result.response.error
        arrived = error is None or (error.type not in _NOT_WHOLE and error.code != PAGE)
        is_object = any(self._held) and b"".join(self._held).lstrip().startswith(b"{")
        return self.passes and not self._is_events and not self._streams and arrived and is_object

    def end(self, result: ReadResult) -> bytes:
        """The rest of a response that is stored; all of it, of a document."""
        if self.passes and not self._is_events:
            document = self._clean(b"".join(self._held))
            document = document if self._hiding is None else self._hiding.document(document)
            document = self._kept(self._asked_for(document))
            return document if self._signing is None else self._signing.document(document)
        if self.passes:
            rest = self._clean(b"".join((*self._held, self._rest.left)))
            return self._sealed(rest if self._verbatim else self._closed(rest))
        counted = counted_as(result, self._plan.target.rule.reasoning_tokens)
        if self._writer is not None:
            return self._behind_opening(self._writer.end(counted))
        return self._front.write_response(counted, self._shown)

    def fail(self, problem: Problem, *, by_provider: bool) -> bytes:
        """An error in the client's dialect, behind what went out; of a provider that failed its own last event, where
        there is one.
        """
        own = self._sealed(_whole_events(self._clean(b"".join(self._held)))[0]) if self.passes and by_provider else b""
        return own or (self._writer or self._front.writer(self._shown)).fail(problem)

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
        events = self._rewritten(events if self._hiding is None else self._hiding.events(events))
        return events if self._signing is None else self._signing.events(events)

    def _rewritten(self, events: bytes) -> bytes:
        """Mostly there is nothing to change."""
        front = self._front
        has_values = self._keeper is not None and front.marked.search(events) is not None
        if not has_values and not self._has_report(events):
            return events
        lines = events.split(b"\n")
        for at, line in enumerate(lines):
            if line.startswith(b"data:"):
                start = 6 if line.startswith(b"data: ") else 5
                lines[at] = line[:start] + self._kept(self._asked_for(line[start:]))
        return b"\n".join(lines)

    def _kept(self, document: bytes) -> bytes:
        """``document`` with its opaque values sealed, where that is done at all."""
        return document if self._keeper is None else self._front.rewrite(document, self._keeper.value)

    def _has_report(self, data: bytes) -> bool:
        return self._hides_report and b'"%b"' % self._front.reports.encode() in data

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


def _unsigned() -> str:
    return UNSIGNED


class Rest:
    """Bytes of a stream from where its last whole event ended. Each is looked at once, however long an event is."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._seen = b""

    def take(self, data: bytes) -> bytes:
        """The events that ``data`` makes whole."""
        if not self._parts and data.endswith(b"\n\n"):  # mostly nothing is left of it
            return data
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
