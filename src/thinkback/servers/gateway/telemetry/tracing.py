"""The span of a request, out of what is known of it once it is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from thinkback.servers.gateway.config.schema import Telemetry
from thinkback.servers.gateway.incoming import Incoming, Notes
from thinkback.wire.registry import front

if TYPE_CHECKING:
    from thinkback.observe.spans import Spans


class Response(Protocol):
    """A response, as far as it came: who ended it early, and what is known of it."""

    notes: Notes
    status: int
    streams: bool
    ended: bool
    gone: str


def spans_of(telemetry: Telemetry) -> Spans | None:
    """Who makes spans; ``None`` where none are wanted, and OpenTelemetry is not imported then."""
    if not telemetry.spans:
        return None
    from thinkback.observe.spans import Spans

    return Spans(content=telemetry.content)


@contextmanager
def traced(spans: Spans, incoming: Incoming, response: Response) -> Iterator[None]:
    """A span around the answer to ``incoming``. What was said is on it only for keys that record everything."""
    from thinkback.observe import spans as names
    from thinkback.proxy import tracing

    operation = front(incoming.request.front).operation
    with spans.request(operation, incoming.request.headers) as span:
        failure = ""
        try:
            yield
        except BaseException as error:
            failure = type(error).__name__
            raise
        finally:
            notes, report = response.notes, response.notes.report
            ended = "" if response.ended else response.gone
            failure = report.failure or failure or ended or (str(response.status) if response.status >= 400 else "")
            attributes = {
                names.OPERATION: operation,
                names.REQUEST_STREAM: response.streams,
                names.FIRST_CHUNK: notes.phases.get("first_byte"),
                names.STATUS: response.status or None,
                **tracing.facts_of(report),
                "thinkback.front": incoming.request.front,
                "thinkback.request.id": incoming.id,
                "thinkback.key": incoming.grant.key,
                "thinkback.degraded": notes.degraded,
            }
            if incoming.grant.recording == "full":
                tracing.tell(spans, span, report)
            spans.say(span, attributes, failure)
