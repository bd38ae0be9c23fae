"""OpenTelemetry spans of requests to models, by the conventions for generative AI.

Owns the names of attributes, which are still in development there: these are those of the conventions as of 2026-06
(version 1.42). Promises: ``opentelemetry`` is imported only by who makes ``Spans``, its API alone; what was said is
on a span only where that is asked for, carriers never are; a span that cannot be made stops nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from thinkback.errors import MissingPackageError, install_hint
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Message
from thinkback.rules import packaged

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

SCHEMA = "https://opentelemetry.io/schemas/1.42.0"
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
CONVERSATION = "gen_ai.conversation.id"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
SYSTEM = "gen_ai.system_instructions"
ERROR = "error.type"
STATUS = "http.response.status_code"

Attribute = str | int | float | bool


class Spans:
    """Makes spans. ``content``: with what was said. ``provider``: who keeps them, if not the process's own."""

    def __init__(self, *, content: bool = False, provider: TracerProvider | None = None) -> None:
        try:
            from opentelemetry import trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError as error:
            raise MissingPackageError(
                "spans need the package opentelemetry-api, which is not installed",
                details={"package": "opentelemetry-api", "extra": "otel"},
                next_actions=(install_hint("otel"), "or leave telemetry.spans out"),
            ) from error
        self.content = content
        self._trace = trace
        self._context = TraceContextTextMapPropagator()
        self._tracer = trace.get_tracer("thinkback", tracer_provider=provider, schema_url=SCHEMA)

    @contextmanager
    def request(self, operation: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """The span of one request, whose parent is what ``headers`` say; it is current meanwhile."""
        parent = self._context.extract(headers)
        kind = self._trace.SpanKind.SERVER
        span = self._tracer.start_span(operation, parent, kind, {OPERATION: operation})
        try:
            with self._trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
                yield span
        finally:
            span.end()

    def say(self, span: Span, attributes: Mapping[str, Attribute | None], failure: str = "") -> None:
        """Put ``attributes`` that are known on ``span``, which failed where ``failure`` names a kind of error."""
        for name, value in attributes.items():
            if value is not None and value != "":
                span.set_attribute(name, value)
        model = attributes.get(REQUEST_MODEL)
        if model:
            span.update_name(f"{attributes.get(OPERATION) or 'chat'} {model}")
        if failure:
            span.set_attribute(ERROR, failure)
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))

    def tell(self, span: Span, asked: Sequence[Draft], answered: Sequence[Block], finish: str) -> None:
        """Put what was said on ``span``, if that is asked for."""
        if not self.content or not span.is_recording():
            return
        system, messages = messages_of(asked)
        if system:
            span.set_attribute(SYSTEM, _json(system))
        span.set_attribute(INPUT_MESSAGES, _json(messages))
        if answered:
            parts = [part for block in answered for part in parts_of(block)]
            span.set_attribute(OUTPUT_MESSAGES, _json([{"role": "assistant", "parts": parts, "finish_reason": finish}]))


def provider_of(endpoint: str) -> str:
    """What the conventions call the provider behind ``endpoint``."""
    return packaged.providers().get(endpoint, endpoint)


def messages_of(drafts: Sequence[Draft]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The system's instructions and the messages that ``drafts`` are, as the conventions write them."""
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for draft in drafts:
        parts = _parts(draft)
        if not parts:
            continue
        if draft.kind == "system":
            system += parts
            continue
        role = _role(draft)
        if messages and messages[-1]["role"] == role == "assistant":
            messages[-1]["parts"] += parts
        else:
            messages.append({"role": role, "parts": parts})
    return system, messages


def parts_of(block: Block) -> list[dict[str, Any]]:
    """``block`` as parts of a message; none of what is hidden or not understood."""
    match block:
        case Text():
            return [{"type": "text", "content": block.text}]
        case ThinkingBlock():
            return [{"type": "reasoning", "content": block.thought}] if block.thought and not block.marker else []
        case ToolCall():
            return [{"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.arguments}]
        case ToolResult():
            return [{"type": "tool_call_response", "id": block.id, "response": block.content}]
        case Media():
            return [{"type": "file", "mime_type": block.media_type}]
        case _:
            return []


def _parts(draft: Draft) -> list[dict[str, Any]]:
    value = draft.value
    if isinstance(value, Message):
        inside = [part for each in value.parts for part in parts_of(each)]
        return inside or ([{"type": "text", "content": value.text}] if value.text else [])
    return parts_of(value) if isinstance(value, Text | ThinkingBlock | ToolCall | ToolResult | Media) else []


def _role(draft: Draft) -> str:
    return {"user": "user", "tool_result": "tool"}.get(draft.kind, "assistant")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
