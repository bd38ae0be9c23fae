"""Who keeps the spans of tests, and files of them as exporters write them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Kept:
    """Spans of one test, and who keeps them."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = provider or TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def all(self) -> Sequence[ReadableSpan]:
        """As they ended."""
        return self.exporter.get_finished_spans()

    @property
    def one(self) -> ReadableSpan:
        """The only one."""
        (span,) = self.all
        return span


_everywhere: list[Kept] = []


@pytest.fixture
def spans_here() -> Iterator[Kept]:
    """The spans that this process makes, as with an SDK that a program has set up; it can be set up only once."""
    if not _everywhere:
        _everywhere.append(Kept())
        trace.set_tracer_provider(_everywhere[0].provider)
    _everywhere[0].exporter.clear()
    yield _everywhere[0]
    _everywhere[0].exporter.clear()


def console(spans: Sequence[ReadableSpan]) -> bytes:
    """As the SDK's own console exporter writes them, a line each."""
    return b"".join(span.to_json(indent=None).encode() + b"\n" for span in spans)


def otlp(spans: Sequence[ReadableSpan]) -> bytes:
    """As OTLP in JSON has them: one request a line."""
    lines = [
        {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [_otlp(span)]}]}]} for span in spans
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _otlp(span: ReadableSpan) -> dict[str, Any]:
    assert span.context is not None
    return {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "name": span.name,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": [{"key": key, "value": _any(value)} for key, value in (span.attributes or {}).items()],
    }


def _any(value: object) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
    return {"arrayValue": {"values": [_any(each) for each in value]}}  # type: ignore[attr-defined]
