"""The span of a program's request, with what was tried again, up to its last byte. Imported only where it is wanted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from thinkback.observe import spans as names
from thinkback.observe.spans import Spans
from thinkback.proxy import tracing

if TYPE_CHECKING:
    from thinkback.adapters.transport.passage import Flow, Passage


def traced(spans: Spans, passage: Passage, flow: Flow) -> Flow:
    """``flow`` with a span around it, whose parent is the program's current one."""
    began, failure, is_bypassed = time.monotonic(), "", False
    operation = names.operation_of(passage.front)
    span = spans.begin(operation)
    try:
        yield from flow
    except GeneratorExit:  # the request goes on as the program wrote it
        is_bypassed = True
        raise
    except BaseException as error:
        failure = type(error).__name__
        raise
    finally:
        report, status = passage.report, passage.status
        failure = "" if is_bypassed else report.failure or failure or (str(status) if status >= 400 else "")
        tracing.tell(spans, span, report)
        attributes = {
            names.OPERATION: operation,
            names.REQUEST_STREAM: passage.streams,
            names.STATUS: status or None,
            "thinkback.bypassed": is_bypassed or None,
            names.FIRST_CHUNK: passage.answered_at - began if passage.answered_at else None,
            **names.server_of(report.plan),
            **tracing.facts_of(report),
        }
        spans.say(span, attributes, failure)
        span.end()
