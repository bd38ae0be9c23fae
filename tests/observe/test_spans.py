"""Spans by the conventions for generative AI: names, parents, failures, and what was said only where it may be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions

from tests.observe.keeping import Kept
from thinkback.model.blocks import Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message
from thinkback.observe import spans
from thinkback.observe.spans import Spans
from thinkback.rules import packaged

REASONED = "llm.token_count.completion_details.reasoning"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def kept() -> Iterator[Kept]:
    """A keeper of spans."""
    made = Kept()
    yield made
    made.provider.shutdown()


ASKED = (
    Draft("system", Message("Be brief.")),
    Draft("user", Message("Look.", parts=(Text("Look."), Media("image/png", data="aGk=")))),
    Draft("reasoning", ThinkingBlock("Hm.", signature="opaque", carriers=(Carrier("signature", "opaque"),))),
    Draft("tool_call", ToolCall("c1", "look", "{}")),
    Draft("tool_result", ToolResult("c1", "a cat")),
    Draft("other", Unknown("{}")),
    Draft("user", Message("And?")),
)
ANSWERED = (
    ThinkingBlock("A cat."),
    ThinkingBlock("", is_hidden=True, signature="opaque"),
    ThinkingBlock("Thinking...", marker=True),
    Text("A cat."),
)


def test_names_are_those_of_the_conventions() -> None:
    """Ours are copies, so that no package is needed for them; they equal the published ones."""
    ours = {
        name: value for name, value in vars(spans).items() if isinstance(value, str) and value.startswith("gen_ai.")
    }

    assert set() == set(ours.values()) - {
        value for name, value in vars(conventions).items() if name.startswith("GEN_AI_")
    }


def test_a_span_says_what_was_used(kept: Kept) -> None:
    """Attributes that are not known are not there; the name is the operation and the model."""
    made = Spans(provider=kept.provider)
    with made.request("chat", {}) as span:
        made.say(
            span, {spans.OPERATION: "chat", spans.REQUEST_MODEL: "m", spans.REASONING_TOKENS: 0, spans.ERROR: None}
        )

    attributes = dict(kept.one.attributes or {})
    ours = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", spans.REASONING_TOKENS: 0}
    theirs = {"openinference.span.kind": "LLM", "llm.model_name": "m", REASONED: 0}
    assert {**ours, **theirs} == attributes
    assert "chat m" == kept.one.name


def test_a_span_has_the_parent_that_the_client_says(kept: Kept) -> None:
    """Trace context comes in ``traceparent``."""
    with Spans(provider=kept.provider).request("chat", {"traceparent": PARENT}):
        pass

    assert kept.one.parent is not None
    assert "0af7651916cd43dd8448eb211c80319c" == f"{kept.one.context.trace_id:032x}"
    assert "b7ad6b7169203331" == f"{kept.one.parent.span_id:016x}"


def test_a_failure_is_a_kind_without_words(kept: Kept) -> None:
    """What an exception says stays out of spans."""
    made = Spans(provider=kept.provider)

    def fail() -> None:
        with made.request("chat", {}) as span:
            made.say(span, {}, "timeout")
            raise ValueError("a secret")

    with pytest.raises(ValueError, match="a secret"):
        fail()

    assert "timeout" == (kept.one.attributes or {})[spans.ERROR]
    assert not kept.one.status.is_ok
    assert "secret" not in kept.one.to_json()


def test_what_was_said_is_on_a_span_where_it_is_wanted(kept: Kept) -> None:
    """Reasoning is a part of its own kind, with its signature; keys are blotted out."""
    made = Spans(content=True, provider=kept.provider)
    with made.request("chat", {}) as span:
        made.tell(span, ASKED, ANSWERED, "answered", mask=lambda text: text.replace("A cat", "***"))

    attributes = kept.one.attributes or {}
    asked, answered = (json.loads(str(attributes[name])) for name in (spans.INPUT_MESSAGES, spans.OUTPUT_MESSAGES))
    assert [{"type": "text", "content": "Be brief."}] == json.loads(str(attributes[spans.SYSTEM]))
    assert ["user", "assistant", "tool", "assistant", "user"] == [message["role"] for message in asked]
    reasoning, call = asked[1]["parts"]
    assert ("reasoning", "Hm.", "opaque") == (reasoning["type"], reasoning["content"], reasoning["signature"])
    assert {"type": "tool_call", "id": "c1", "name": "look", "arguments": "{}"} == call
    assert ["***.", "", "", "***."] == [part["content"] for part in answered[0]["parts"]]
    assert ("assistant", "answered", "opaque") == (
        *(answered[0]["role"], answered[0]["finish_reason"]),
        answered[0]["parts"][1]["signature"],
    )
    assert "A cat." not in kept.one.to_json()


def test_openinference_says_the_same(kept: Kept) -> None:
    """A member an attribute, by its names."""
    made = Spans(content=True, provider=kept.provider)
    with made.request("chat", {}) as span:
        made.tell(span, ASKED, ANSWERED, "answered")

    said = dict(kept.one.attributes or {})
    first, call = "llm.input_messages.1.message.contents.0.message_content", "llm.input_messages.1.message.tool_calls.0"
    assert ("reasoning", "Hm.", "opaque") == (said[f"{first}.type"], said[f"{first}.text"], said[f"{first}.signature"])
    assert "look" == said[f"{call}.tool_call.function.name"]
    assert ("a cat", "c1") == tuple(
        said[f"llm.input_messages.2.message.{name}"] for name in ("content", "tool_call_id")
    )
    assert "And?" == said["llm.input_messages.4.message.content"]
    assert "A cat." == said["llm.output_messages.0.message.contents.3.message_content.text"]


def test_where_a_span_holds_little_the_oldest_messages_go(kept: Kept) -> None:
    """By default an SDK keeps 128 attributes: what was used and the whole conversation are among them."""
    made = Spans(content=True, provider=kept.provider)
    with made.request("chat", {}) as span:
        made.tell(span, [Draft("user", Message(str(at))) for at in range(500)], ANSWERED, "answered")
        made.say(span, {spans.OPERATION: "chat", spans.REQUEST_MODEL: "m"})

    said = dict(kept.one.attributes or {})
    assert {spans.REQUEST_MODEL, spans.OPERATION, "llm.model_name", "llm.output_messages.0.message.role"} <= said.keys()
    assert 500 == len(json.loads(str(said[spans.INPUT_MESSAGES])))
    assert "llm.input_messages.499.message.content" in said


def test_nothing_that_was_said_is_on_a_span_by_default(kept: Kept) -> None:
    """It has to be asked for."""
    made = Spans(provider=kept.provider)
    with made.request("chat", {}) as span:
        made.tell(span, ASKED, ANSWERED, "answered")

    assert {"gen_ai.operation.name": "chat"} == dict(kept.one.attributes or {})


def test_endpoints_are_called_as_the_conventions_call_them() -> None:
    """Others keep their own names."""
    assert ("gcp.gemini", "moonshot_ai", "house") == tuple(map(spans.provider_of, ("gemini", "kimi", "house")))
    assert packaged.providers().keys() <= {endpoint.id for endpoint in packaged.endpoints()}


def test_opentelemetry_is_imported_only_by_who_makes_spans() -> None:
    """The module alone costs nothing."""
    program = "import sys, thinkback.observe.spans; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "False\n" == done.stdout
