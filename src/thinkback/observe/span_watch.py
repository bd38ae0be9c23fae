"""The spans of a session's requests: one for each, with its repetitions and repairs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from thinkback.errors import ThinkbackError
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Origin, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.commits import Draft, Response, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta
from thinkback.observe import spans as names
from thinkback.observe.spans import Spans
from thinkback.turn import events
from thinkback.turn.usage import token_use
from thinkback.wire.registry import dialect

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from thinkback.turn.plan import Plan


_BLOCKS = Text | ThinkingBlock | ToolCall | Media | Unknown


class SpanWatch:
    """One turn, as its agenda tells of it. ``session`` is the id of its session; ``clock`` gives nanoseconds."""

    def __init__(self, spans: Spans, session: str, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._spans, self._session, self._clock = spans, session, clock
        self._span: Span | None = None
        self._sent: events.Send | None = None
        self._began = self._first = self._attempts = self._status = 0
        self._failure = ""
        self.waits = False

    def sent(self, command: events.Send) -> None:
        """A request goes out, the first time or again."""
        if self._span is None:
            self._span = self._spans.begin(names.operation_of(command.plan.target.endpoint.dialect))
            self._began, self._attempts, self._first = self._clock(), 0, 0
        self._sent, self._status, self._failure = command, 0, ""
        self._attempts += 1
        self.waits = True

    def shown(self, deltas: Sequence[Delta]) -> None:
        """Pieces of the stream, while ``waits``."""
        if any(isinstance(delta, ReasoningDelta | TextDelta) for delta in deltas):
            self._first, self.waits = self._first or self._clock(), False

    def notify(self, event: events.Event) -> None:
        """What happened to the request."""
        sent = self._sent
        if sent is None:
            return
        match event:
            case events.Head():
                self._status = event.status
            case events.NetError():
                self._failure = event.phase
            case events.Interrupt():
                self._failure = "interrupted"
            case events.Appended() if any(commit.response == sent.id for commit in event.commits):
                own = [commit for commit in event.commits if commit.response == sent.id]
                record = next((commit.hash for commit in own if commit.kind == "request"), "")
                self._end(sent, record, [commit.value for commit in own])
            case _:
                pass

    def over(self) -> None:
        """The turn is over: a request that brought nothing ends."""
        if self._sent is not None:
            self._end(self._sent, "", ())

    def _end(self, sent: events.Send, commit: str, values: Sequence[object]) -> None:
        span, plan = self._span, sent.plan
        self._span, self._sent, self.waits = None, None, False
        if span is None:
            return
        header = next((value for value in values if isinstance(value, Response)), None)
        usage = next((value for value in values if isinstance(value, Usage)), None)
        blocks: list[Block] = [value for value in values if isinstance(value, _BLOCKS)]
        error = header.error if header is not None else None
        failure = self._failure or (error.type or "failed" if error is not None else "")
        failure = failure or (str(self._status) if self._status >= 400 else "")
        try:
            if self._spans.content and span.is_recording():
                finish = (header.finish or header.outcome) if header is not None else ""
                self._spans.tell(span, asked_of(plan), blocks, finish, header, plan.without_key)
            used = token_use(usage, blocks, plan.target.rule.reasoning_tokens)
            attributes = {
                names.OPERATION: names.operation_of(plan.target.endpoint.dialect),
                names.PROVIDER: names.provider_of(plan.target.endpoint.id),
                names.REQUEST_MODEL: plan.target.model,
                names.RESPONSE_MODEL: header.origin.served_model if header is not None else "",
                names.RESPONSE_ID: header.id if header is not None else "",
                names.FINISH_REASONS: (header.finish,) if header is not None and header.finish else (),
                names.CONVERSATION: self._session,
                names.REQUEST_STREAM: plan.streams,
                names.FIRST_CHUNK: (self._first - self._began) / 1e9 if self._first else None,
                names.STATUS: self._status or None,
                names.INPUT_TOKENS: used.input,
                names.OUTPUT_TOKENS: used.output,
                names.REASONING_TOKENS: None if used.estimated else used.reasoning,
                names.CACHED_TOKENS: used.cached,
                "thinkback.response": sent.id if header is not None else "",
                "thinkback.attempts": self._attempts,
                **names.server_of(plan),
                **names.facts_of(plan, commit),
            }
            self._spans.say(span, attributes, failure)
        finally:
            span.end()


def asked_of(plan: Plan) -> Sequence[Draft]:
    """What a request says, read back from its body: that is what was sent. Nothing where it cannot be read."""
    name = plan.target.endpoint.dialect
    try:
        body = canonical.decode(bytes(plan))
        return dialect(name).read_request(body, str, Origin(name, "", "")).drafts
    except ThinkbackError:
        return ()
