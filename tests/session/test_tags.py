"""Reasoning between tags, from a response to the next request."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.wire.test_tags import stream
from thinkback import open as open_log
from thinkback import thinking_to_reasoning_field
from thinkback.errors import SettingError
from thinkback.model.blocks import ThinkingBlock
from thinkback.session.session import Session
from thinkback.turn.plan import Plan

PLACES = {
    "mistral": ("mistral", "mistral-large-latest"),
    "anthropic": ("anthropic", "claude-opus-4-6"),
    "openai-responses": ("openai", "gpt-5.4"),
    "cohere": ("cohere", "command-a-reasoning-08-2025"),
    "gemini": ("gemini", "gemini-2.5-pro"),
    "gemini-interactions": ("gemini-interactions", "gemini-2.5-pro"),
}


def answered(session: Session, name: str, texts: list[str]) -> Plan:
    """The plan of a second question, behind an answer in ``texts``."""
    session.wire.plan("one?")
    session.wire.ingest([stream(name, texts)], 200, {"content-type": "text/event-stream"})
    return session.wire.plan("two?")


def texts_of(plan: Plan) -> str:
    return bytes(plan).decode()


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("include", ["true", "false"])
def test_tags_go_back_as_tags_or_not_at_all(name: str, include: str) -> None:
    """The reply tells them apart; the next request has the text as it came, or without them."""
    endpoint, model = PLACES[name]
    with open_log(":memory:") as log:
        session = log.session("s", endpoint=endpoint, model=model, api_key="key")
        session.set("reasoning.includeInContext", include)
        session.wire.plan("one?")
        texts = ["<think>", "why", "</think>", "\n\nHi"]
        reply = session.wire.ingest([stream(name, texts)], 200, {"content-type": "text/event-stream"})
        assert ("Hi", "why") == (reply.text.strip(), reply.reasoning)
        plan = session.wire.plan("two?")
        body = texts_of(plan)
        (action,) = {decision.action for decision in plan.decisions if decision.what == "reasoning"}
        sent = "<think>why</think>\\n\\nHi" in body
        assert ("tags" if sent else "drop") == action
        assert sent or ('"Hi"' in body and "why" not in body)
        # Interactions demand all reasoning back, whatever is set.
        assert include == "true" or not sent or name == "gemini-interactions"


@pytest.mark.parametrize(
    ("endpoint", "model", "name"),
    [("anthropic", "claude-3-5-sonnet-20241022", "anthropic"), ("mistral", "open-mistral-nemo", "mistral")],
)
def test_a_model_that_takes_no_reasoning_gets_the_text_without_tags(endpoint: str, model: str, name: str) -> None:
    """One text, without the white space behind the tags."""
    with open_log(":memory:") as log:
        session = log.session("s", endpoint=endpoint, model=model, api_key="key")
        sent = texts_of(answered(session, name, ["<think>why</think>", " Hi", "<think>or</think>", " there"]))

        assert '"Hi there"' in sent
        assert "why" not in sent


def test_the_thoughts_of_one_response_stand_apart() -> None:
    """Where a program reads them; each is a block of its own in the log."""
    with open_log(":memory:") as log:
        session = log.session("s", endpoint="anthropic", model="claude-opus-4-6", api_key="key")
        session.wire.plan("one?")
        body = stream("anthropic", ["<think>First thought.</think>Well.<think>Second thought.</think>Done."])
        reply = session.wire.ingest([body], 200, {"content-type": "text/event-stream"})
        told = [commit.value for commit in session.log() if commit.kind == "reasoning"]

        assert "First thought.\n\nSecond thought." == reply.reasoning
        assert ["First thought.", "Second thought."] == [
            value.thought for value in told if isinstance(value, ThinkingBlock)
        ]
        assert "First thought.\nSecond thought." == thinking_to_reasoning_field(
            [value for value in told if isinstance(value, ThinkingBlock)]
        )


@pytest.mark.parametrize("name", ["mistral", "anthropic", "cohere", "gemini", "openai-chat", "ollama"])
def test_a_thought_that_is_tagged_token_by_token_is_one(name: str) -> None:
    """One commit and one paragraph; what goes back is what came, byte for byte."""
    endpoint, model = BY_TOKEN[name]
    texts = [*(f"<think>{token}</think>" for token in ("Let", " me", " see.")), "\n\n<think>Yes.</think>\n", "Hi"]
    with open_log(":memory:") as log:
        session = log.session("s", endpoint=endpoint, base_url="http://127.0.0.1:9/v1", model=model, api_key="key")
        session.set("reasoning.includeInContext", "true")
        session.set("reasoning.tags", "start")
        session.wire.plan("one?")
        kind = "application/x-ndjson" if name == "ollama" else "text/event-stream"
        reply = session.wire.ingest([stream(name, texts)], 200, {"content-type": kind})
        thoughts = [commit.value for commit in session.log() if isinstance(commit.value, ThinkingBlock)]

        assert (["Let me see.\n\nYes."], "Let me see.\n\nYes.") == ([one.thought for one in thoughts], reply.reasoning)
        assert "Hi" == reply.text.strip()
        assert json.dumps("".join(texts))[1:-1] in texts_of(session.wire.plan("two?"))


BY_TOKEN = {**PLACES, "openai-chat": ("unknown", "m"), "ollama": ("ollama-native", "m")}


@pytest.mark.parametrize("where", ["start", "anywhere", "off"])
def test_a_setting_says_where_tags_count(where: str) -> None:
    """It beats the rule."""
    with open_log(":memory:") as log:
        session = log.session("s", endpoint="mistral", model="mistral-large-latest", api_key="key")
        session.set("reasoning.tags", where)
        session.wire.plan("one?")
        body = stream("mistral", ["Hello <think>x</think> world"])
        reply = session.wire.ingest([body], 200, {"content-type": "text/event-stream"})

        assert ("x" if where == "anywhere" else None) == reply.reasoning
        assert ("Hello  world" if where == "anywhere" else "Hello <think>x</think> world") == reply.text


@pytest.mark.parametrize("text", ["why", [{"type": "text", "text": "w"}, {"type": "text", "text": "hy"}]])
@pytest.mark.parametrize("streams", [False, True])
def test_a_thinking_part_of_a_content_list_is_reasoning(text: object, streams: bool) -> None:
    """At any host of chat completions, whole and streamed; it goes back as the part that it was, or not at all."""
    part = {"type": "thinking", "thinking": text, "signature": "c2ln"}
    content = [part, {"type": "text", "text": "Hi"}]
    kind = "text/event-stream" if streams else "application/json"
    if streams:
        body = _chunks(*({"content": [one]} for one in content))
    else:
        message = {"role": "assistant", "content": content}
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    with open_log(":memory:") as log:
        session = log.session("s", base_url="http://127.0.0.1:9/v1", model="m", api_key="key")
        for include in (True, False):
            session.set("reasoning.includeInContext", include)
            session.wire.plan("one?")
            reply = session.wire.ingest([body], 200, {"content-type": kind})
            assert ("Hi", "why") == (reply.text, reply.reasoning)
            sent = texts_of(session.wire.plan("two?"))
            assert include == ('"signature":"c2ln"' in sent) == ('"thinking":' in sent)


def _chunks(*deltas: Mapping[str, object]) -> bytes:
    """A stream of chat completions."""
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    said = [*map(json.dumps, [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]), "[DONE]"]
    return b"".join(b"data: " + one.encode() + b"\n\n" for one in said)


@pytest.mark.parametrize(
    ("endpoint", "model"),
    [
        ("unknown", "m"),
        ("lmstudio", "m"),
        ("kimi", "kimi-k2-thinking"),
        ("xai-chat", "grok-4.5"),
        ("fireworks", "accounts/fireworks/models/glm-4.6"),
    ],
)
@pytest.mark.parametrize("include", [True, False])
def test_tags_never_go_back_in_a_field(endpoint: str, model: str, include: bool) -> None:
    """A host that never used the field gets them as they came, or not at all."""
    with open_log(":memory:") as log:
        session = log.session("s", endpoint=endpoint, base_url="http://127.0.0.1:9/v1", model=model, api_key="key")
        session.set("reasoning.includeInContext", include)
        sent = texts_of(answered(session, "openai-chat", ["<think>why</think>Hi"]))

        assert "reasoning" not in sent.partition('"model"')[0]
        assert include == ("<think>why</think>Hi" in sent)
        assert include == ("why" in sent)


def test_a_field_that_is_demanded_gets_its_stand_in_beside_tags() -> None:
    """Kimi refuses calls without it, and its thoughts in tags are none of the field."""
    call = {"index": 0, "id": "f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    with open_log(":memory:") as log:
        session = log.session("s", endpoint="kimi", model="kimi-k2-thinking", api_key="key")
        session.wire.plan("one?")
        body = _chunks({"content": "<think>why</think>"}, {"tool_calls": [call]})
        session.wire.ingest([body], 200, {"content-type": "text/event-stream"})
        sent = texts_of(session.wire.plan(tool_results={"f:0": "done"}))

        assert '"content":"<think>why</think>","reasoning_content":" "' in sent


@pytest.mark.parametrize("streams", [False, True])
def test_one_field_is_read_and_written(streams: bool) -> None:
    """The setting names it for both ways, and no other is tried."""
    fields = {"thought": "why", "reasoning": "not this"}
    if streams:
        body = _chunks(fields, {"content": "Hi"})
    else:
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hi", **fields}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice]}).encode()
    with open_log(":memory:") as log:
        session = log.session("s", endpoint="vllm", base_url="http://127.0.0.1:9/v1", model="m", api_key="key")
        session.set("reasoning.fieldName", "thought")
        session.set("reasoning.includeInContext", True)
        session.wire.plan("one?")
        kind = "text/event-stream" if streams else "application/json"
        reply = session.wire.ingest([body], 200, {"content-type": kind})
        sent = texts_of(session.wire.plan("two?"))

        assert ("Hi", "why") == (reply.text, reply.reasoning)
        assert '"thought":"why"' in sent
        assert '"reasoning":' not in sent


@pytest.mark.parametrize("name", ["content", "role", "tool_calls", "refusal", "name", ""])
def test_a_field_of_something_else_is_no_field_of_reasoning(name: str) -> None:
    """A message would say it twice, or not at all."""
    with open_log(":memory:") as log, pytest.raises(SettingError):
        log.session("s", endpoint="vllm", model="m", api_key="key").set("reasoning.fieldName", name)
