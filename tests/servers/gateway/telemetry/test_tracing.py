"""The span of a request through the gateway: what is known of it, and what was said only for keys that record it."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import msgspec
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.commits import Draft, Message
from thinkback.observe.spans import Spans
from thinkback.proxy.problems import Refused
from thinkback.proxy.report import Report
from thinkback.servers.gateway.config.schema import Telemetry
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.http.response_stream import ResponseSink
from thinkback.servers.gateway.incoming import Incoming
from thinkback.servers.gateway.telemetry.tracing import spans_of, traced


async def _send(message: MutableMapping[str, Any]) -> None:
    return None


def trace(grant: Grant, *, content: bool, fails: bool = False) -> ReadableSpan:
    """The span of one request that was answered, or refused."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Spans(content=content, provider=provider)

    async def run() -> None:
        sink = ResponseSink(_send, [], 60)
        with traced(spans, Incoming.of("openai-chat", b"{}", {}, grant, "req_1"), sink):
            sink.notes.report = Report(
                model="fast",
                upstream="deepseek/deepseek-v4-pro",
                session="s1",
                input_tokens=10,
                output_tokens=9,
                reasoning_tokens=7,
                asked=(Draft("user", Message("Hi.")),),
                answered=(ThinkingBlock("Hm."), Text("Hello.")),
            )
            if fails:
                raise Refused(429, "too_many", "a client may read this")
            await sink.start(200, {"content-type": "application/json"})
            await sink.end(b"{}")

    try:
        asyncio.run(run())
    except Refused:
        assert fails
    (span,) = exporter.get_finished_spans()
    provider.shutdown()
    return span


def test_a_span_has_the_use_and_the_conversation() -> None:
    """Reasoning tokens beside the others, the session as conversation."""
    attributes = trace(Grant("k"), content=False).attributes or {}

    assert {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "deepseek",
        "gen_ai.request.model": "fast",
        "gen_ai.response.model": "deepseek-v4-pro",
        "gen_ai.conversation.id": "s1",
        "gen_ai.request.stream": False,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.usage.reasoning.output_tokens": 7,
        "http.response.status_code": 200,
        "thinkback.front": "openai-chat",
        "thinkback.request.id": "req_1",
        "thinkback.key": "k",
        "thinkback.attempts": 0,
        "openinference.span.kind": "LLM",
        "llm.provider": "deepseek",
        "llm.model_name": "fast",
        "session.id": "s1",
        "llm.token_count.prompt": 10,
        "llm.token_count.completion": 9,
        "llm.token_count.completion_details.reasoning": 7,
        "llm.token_count.total": 19,
    } == dict(attributes)


def test_a_refusal_is_an_error_of_its_span() -> None:
    """By its kind."""
    span = trace(Grant("k"), content=False, fails=True)

    assert ("Refused", False) == ((span.attributes or {})["error.type"], span.status.is_ok)


def test_what_was_said_is_there_only_for_keys_that_record_it() -> None:
    """The configuration asks for it, and the key has to allow it."""
    full = trace(Grant("k"), content=True).to_json()
    less = trace(msgspec.structs.replace(Grant("k"), recording="metadata"), content=True).to_json()

    assert "Hello." in full
    assert "reasoning" in full
    assert "Hello." not in less


def test_without_telemetry_there_are_no_spans() -> None:
    """Off by default."""
    assert spans_of(Telemetry()) is None
    assert spans_of(Telemetry(spans=True)) is not None
