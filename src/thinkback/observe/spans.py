"""OpenTelemetry spans of requests to models, by its conventions for generative AI and by OpenInference's together.

Owns the names of attributes, which are still in development there: these are those of OpenTelemetry's conventions as of
2026-06 (version 1.42), and OpenInference's of 2026-11. Promises: ``opentelemetry`` is imported only by who makes
``Spans``, its API alone; what was said, and with it signatures and sealed values, is on a span only where that is asked
for; no key of a request ever is; a span that cannot be made stops nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from thinkback.errors import MissingPackageError, install_hint
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response
from thinkback.rules import packaged
from thinkback.wire.registry import FRONTS, front

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

    from thinkback.turn.plan import Plan

SCHEMA = "https://opentelemetry.io/schemas/1.42.0"
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
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
SERVER = "server.address"
PORT = "server.port"
COMMIT = "thinkback.commit"
DECISIONS = "thinkback.decisions"

_KIND = "openinference.span.kind"
_SAME = {
    REQUEST_MODEL: "llm.model_name",
    PROVIDER: "llm.provider",
    CONVERSATION: "session.id",
    INPUT_TOKENS: "llm.token_count.prompt",
    OUTPUT_TOKENS: "llm.token_count.completion",
    REASONING_TOKENS: "llm.token_count.completion_details.reasoning",
    CACHED_TOKENS: "llm.token_count.prompt_details.cache_read",
}
"""What OpenInference calls the same."""
_TOTAL = "llm.token_count.total"
_SEALED = ("signature", "encrypted_content", "data", "id")

Attribute = str | int | float | bool | Sequence[str]


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
        """The span of one request to us, whose parent is what ``headers`` say; it is current meanwhile."""
        parent = self._context.extract(headers)
        kind = self._trace.SpanKind.SERVER
        span = self._tracer.start_span(operation, parent, kind, {OPERATION: operation})
        try:
            with self._trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
                yield span
        finally:
            span.end()

    def begin(self, operation: str) -> Span:
        """The span of one request of ours, whose parent is the current one; who begins it ends it."""
        return self._tracer.start_span(operation, kind=self._trace.SpanKind.CLIENT, attributes={OPERATION: operation})

    def say(self, span: Span, attributes: Mapping[str, Attribute | None], failure: str = "") -> None:
        """Put ``attributes`` that are known on ``span``, which failed where ``failure`` names a kind of error.

        To be called after ``tell``: where a span may have only so many attributes, the first ones go.
        """
        known = {name: value for name, value in attributes.items() if value is not None and value not in ("", ())}
        known |= {_SAME[name]: value for name, value in known.items() if name in _SAME}
        used = [known.get(name) for name in (INPUT_TOKENS, OUTPUT_TOKENS)]
        if all(isinstance(count, int) for count in used):
            known[_TOTAL] = sum(used)  # type: ignore[arg-type]
        span.set_attributes({_KIND: "LLM", **known})
        model = attributes.get(REQUEST_MODEL)
        if model:
            span.update_name(f"{attributes.get(OPERATION) or 'chat'} {model}")
        if failure:
            span.set_attribute(ERROR, failure)
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))

    def tell(
        self,
        span: Span,
        asked: Sequence[Draft],
        answered: Sequence[Block],
        finish: str,
        header: Response | None = None,
        mask: Callable[[str], str] = str,
    ) -> None:
        """Put what was said on ``span``, if that is asked for; ``mask`` blots out what is nobody's to read."""
        if not self.content or not span.is_recording():
            return
        system, messages = messages_of(asked)
        said = [_answer(answered, finish, header)] if answered else []
        values: dict[str, Any] = {**spread("llm.input_messages", messages), **spread("llm.output_messages", said)}
        values |= {SYSTEM: _json(system)} if system else {}
        values[INPUT_MESSAGES] = _json(messages)
        values |= {OUTPUT_MESSAGES: _json(said)} if said else {}
        span.set_attributes({name: _storable(mask(value)) for name, value in values.items()})


def facts_of(plan: Plan | None, commit: str = "") -> dict[str, Attribute | None]:
    """What is known of a request that was built: where it went, what became of earlier reasoning, and its record.

    ``thinkback why`` explains the ``commit``.
    """
    if plan is None:
        return {}
    target = plan.target
    made = Counter(f"{each.action} {each.what}: {each.rule}" for each in plan.decisions)
    return {
        COMMIT: commit,
        DECISIONS: tuple(f"{count} x {said}" for said, count in made.items()),
        "thinkback.upstream": f"{target.endpoint.id}/{target.model}",
        "thinkback.dialect": target.endpoint.dialect,
        "thinkback.base_url": target.base_url,
    }


def server_of(plan: Plan | None) -> dict[str, Attribute | None]:
    """The server that a request of ours goes to."""
    if plan is None:
        return {}
    place = urlsplit(plan.target.base_url)
    return {SERVER: place.hostname, PORT: place.port}


def operation_of(dialect: str) -> str:
    """What the conventions call a request of this dialect."""
    return front(dialect).operation if dialect in FRONTS else "chat"


def provider_of(endpoint: str) -> str:
    """What the conventions call the provider behind ``endpoint``."""
    return packaged.providers().get(endpoint, endpoint)


def messages_of(drafts: Sequence[Draft]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The system's instructions and the messages that ``drafts`` are, as the conventions write them."""
    from thinkback.formats.genai import part_of

    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    response = ""
    for draft in drafts:
        parts = [part_of(block) for block in _blocks(draft)]
        if not parts:
            continue
        if draft.kind == "system":
            system += parts
            continue
        role = {"user": "user", "tool_result": "tool"}.get(draft.kind, "assistant")
        if messages and messages[-1]["role"] == role == "assistant" and draft.response == response:
            messages[-1]["parts"] += parts
        else:
            messages.append({"role": role, "parts": parts})
        response = draft.response
    return system, messages


def spread(name: str, messages: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Messages as OpenInference writes them: an attribute for each member."""
    found: dict[str, str] = {}
    for at, message in enumerate(messages):
        own, parts = f"{name}.{at}.message", message["parts"]
        found[f"{own}.role"] = message["role"]
        calls = [part for part in parts if part["type"] == "tool_call"]
        rest = [part for part in parts if part["type"] != "tool_call"]
        for part in parts:
            if part["type"] == "tool_call_response":
                found |= {f"{own}.content": part["response"], f"{own}.tool_call_id": part["id"]}
                found |= {f"{own}.name": part["name"]} if "name" in part else {}
        if len(parts) == 1 and parts[0].keys() == {"type", "content"} and parts[0]["type"] == "text":
            found[f"{own}.content"] = parts[0]["content"]
        elif message["role"] != "tool":
            for index, part in enumerate(rest):
                found |= {f"{own}.contents.{index}.message_content.{key}": value for key, value in _content(part)}
        for index, part in enumerate(calls):
            call = f"{own}.tool_calls.{index}.tool_call"
            found |= {f"{call}.id": part["id"], f"{call}.function.name": part["name"]}
            found[f"{call}.function.arguments"] = part["arguments"]
            if "reasoning_signature" in part:
                found[f"{call}.reasoning_signature"] = part["reasoning_signature"]
    return found


def _content(part: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "type", "image" if part["type"] in ("uri", "blob") else part["type"]
    if part.get("content"):
        yield "text", part["content"]
    if "uri" in part:
        yield "image.image.url", part["uri"]
    yield from ((name, part[name]) for name in _SEALED if name in part)


def _answer(blocks: Sequence[Block], finish: str, header: Response | None) -> dict[str, Any]:
    """A message of the model, with what of its header bears on how it goes back."""
    from thinkback.formats.genai import OURS, part_of

    said: dict[str, Any] = {"role": "assistant", "parts": [part_of(block) for block in blocks], "finish_reason": finish}
    if header is None:
        return said
    own = {"content": header.content, "message": header.message, "repeats": header.repeats}
    more = {name: value for name, value in own.items() if value not in ("absent", "", ())}
    return {**said, OURS: more} if more else said


def _blocks(draft: Draft) -> Sequence[Block]:
    value = draft.value
    if isinstance(value, Message):
        return value.parts or ((Text(value.text),) if value.text else ())
    known = isinstance(value, Text | ThinkingBlock | ToolCall | ToolResult | Media | Unknown)
    return (value,) if known else ()  # type: ignore[return-value]


def _json(value: object) -> str:
    return canonical.source(value)


def _storable(text: str) -> str:
    """A text that every exporter can encode."""
    return text.encode("utf-8", "replace").decode()
