"""Traces: what every span repeats is read once, by both conventions, and nothing of a block is lost on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.samples import (
    CALLED,
    GAVE,
    OTLP,
    QUESTION,
    SPAN,
    drafts,
    jsonl,
    kinds,
    only,
    paths,
    read,
    say,
    span,
    spans,
    words,
)
from thinkback.formats.genai import block_of, part_of
from thinkback.formats.history import Left
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Message, Response, Usage

BLOCKS: tuple[Block, ...] = (
    Text("Hi.", carriers=(Carrier("item_id", "msg_1"), Carrier("phase", "final"))),
    Text("Hi.", carriers=(Carrier("thought_signature", "s"),)),
    Text("No.", source_field="refusal", wire='{"type":"refusal"}'),
    ThinkingBlock("Hm.", source_field="thinking", signature="s"),
    ThinkingBlock("", kind="none", carriers=(Carrier("redacted", "d"),)),
    ThinkingBlock("Sum.", kind="summary", carriers=(Carrier("item_id", "rs_1"), Carrier("encrypted", "gAAAA"))),
    ThinkingBlock("Again.", is_hidden=True, source_field="reasoning"),
    ThinkingBlock("In tags.", opening="<think>", closing="</think>", source_field="content"),
    ToolCall("c", "ls", '{"path": "."}', carriers=(Carrier("thought_signature", "s"),)),
    ToolCall("c", "ls", "{}", source_field="custom_tool_call", carriers=(Carrier("item_id", "fc_1"),)),
    Unknown('{"type":"web_search_call"}', carriers=(Carrier("item_id", "ws_1"),)),
)


@pytest.mark.parametrize("block", BLOCKS, ids=repr)
def test_a_part_says_all_of_a_block(block: Block) -> None:
    """What the members that others know do not say stands in one of ours."""
    assert block == block_of(json.loads(json.dumps(part_of(block))))


def test_members_are_those_that_others_read() -> None:
    """Signatures and sealed values by the names of OpenInference; what is hidden shows no text; data stays away."""
    parts = [part_of(block) for block in BLOCKS]
    assert {
        "type": "reasoning",
        "content": "Hm.",
        "signature": "s",
        "thinkback": {"source_field": "thinking"},
    } == parts[3]
    assert ("d", "gAAAA", "rs_1") == (parts[4]["data"], parts[5]["encrypted_content"], parts[5]["id"])
    assert ("", "s") == (parts[6]["content"], parts[8]["reasoning_signature"])
    result = ToolResult("c", "no", name="ls", is_error=True)
    assert {"id": "c", "name": "ls", "is_error": True, "response": "no", "type": "tool_call_response"} == part_of(
        result
    )
    assert {"type": "blob", "mime_type": "image/png", "modality": "image"} == part_of(Media("image/png", "aGk="))
    assert "https://a" == part_of(Media("image/*", url="https://a"))["uri"]


def test_what_a_part_says_of_itself_is_of_its_types() -> None:
    """A member of ours of another type is none, and none says who made a block."""
    text = {"type": "text", "content": "Hi.", "thinkback": {"origin": {"dialect": "x"}, "text": "Ho."}}
    assert Text("Ho.") == block_of(text)
    assert Text("Hi.") == block_of({**text, "thinkback": {"carriers": [{"kind": "key", "value": "x"}]}})
    assert isinstance(block_of({"type": "novel", "content": 5}), Unknown)


def test_what_spans_repeat_is_read_once() -> None:
    """A question, a response with its call, the result, the answer; the system's text stands beside them."""
    found = read("otlp", jsonl(*OTLP))
    (history,) = found.sessions
    expected = ["content", "user", "response", "reasoning", "tool_call", "provider_usage", "tool_result"]
    assert [*expected, "response", "assistant", "turn_ended"] == kinds(history)
    assert ("conv", history.entries[-1].id) == (history.id, history.tip)
    assert 1795313518741000 == history.created == history.entries[0].time
    assert (Left("a span that is no request", 1, 1),) == found.left
    thought, used, said = (drafts(history, kind)[0].value for kind in ("reasoning", "provider_usage", "user"))
    assert ThinkingBlock("I list them.", source_field="reasoning", signature="c2lnbmF0dXJl") == thought
    assert (Usage(input=9), Message("Which file?")) == (used, said)
    (first, _) = [draft.value for draft in drafts(history, "response")]
    assert isinstance(first, Response)
    assert ("anthropic", "https://api.example:443") == (first.origin.dialect, first.origin.endpoint)


def test_the_order_of_spans_does_not_matter() -> None:
    """What a span was answered with wins over what a later one repeats, which may have lost its reasoning."""
    bare = say("assistant", CALLED["parts"][1])
    later = span(3, {**SPAN, "gen_ai.input.messages": json.dumps([QUESTION, bare, GAVE])})
    first = OTLP[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    forwards, backwards = (only("otlp", jsonl(spans(*order))) for order in ((first, later), (later, first)))
    assert {entry.id for entry in forwards.entries} == {entry.id for entry in backwards.entries}
    assert ["reasoning"] == [kind for kind in kinds(backwards) if kind == "reasoning"]
    assert forwards.tip == backwards.tip


def test_another_context_is_a_branch() -> None:
    """A question that was asked in other words."""
    other = say("user", words("Which folder?"))
    asked = {**SPAN, "gen_ai.input.messages": json.dumps([other]), "gen_ai.output.messages": json.dumps([CALLED])}
    lines = paths(only("otlp", jsonl(*OTLP, spans(span(4, asked)))))
    assert [4, 2] == [len(line) for line in lines]


def flat(prefix: str, **members: Any) -> dict[str, Any]:
    """Attributes of a message by OpenInference; ``__`` stands for a dot."""
    return {f"{prefix}.message.{name.replace('__', '.')}": value for name, value in members.items()}


INFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-5.6",
    "llm.provider": "openai",
    "session.id": "s",
    "llm.token_count.prompt": 9,
    **flat("llm.input_messages.0", role="system", content="Be kind"),
    **flat(
        "llm.input_messages.1",
        role="user",
        contents__0__message_content__text="Which?",
        contents__1__message_content__type="image",
        contents__1__message_content__image__image__url="data:image/png;base64,aGk=",
        contents__2__message_content__type="image",
        contents__2__message_content__image__image__url="https://a",
        contents__3__message_content__type="audio",
    ),
    **flat(
        "llm.output_messages.0",
        role="assistant",
        content="Let me look.",
        contents__0__message_content__type="reasoning",
        contents__0__message_content__id="rs_1",
        contents__0__message_content__encrypted_content="gAAAA",
        contents__1__message_content__type="tool_use",
        contents__1__tool_call__id="c1",
        contents__1__tool_call__function__name="ls",
        tool_calls__0__tool_call__id="c1",
        tool_calls__1__tool_call__id="c2",
        tool_calls__1__tool_call__function__name="ls",
        tool_calls__1__tool_call__function__arguments='{"path":"."}',
        tool_calls__1__tool_call__reasoning_signature="s",
        tool_calls__x__tool_call__id="c3",
    ),
    "llm.output_messages": "",
}
CONSOLE = {
    "name": "chat",
    "context": {"trace_id": "0x5b", "span_id": "0x1"},
    "start_time": "2026-11-22T02:11:57Z",
    "attributes": INFERENCE,
}


@pytest.mark.parametrize("line", [CONSOLE, {"data": [CONSOLE]}, spans(span(1, INFERENCE))])
def test_openinference_is_read_as_well(line: dict[str, Any]) -> None:
    """As the console exporter, Phoenix and OTLP have it; a reasoning item with its id and sealed value."""
    history = only("otlp", jsonl(line))
    assert ["content", "content", "user", "response", "reasoning", "tool_call", "assistant", "tool_call"] == kinds(
        history
    )[:8]
    thought, message = drafts(history, "reasoning")[0].value, drafts(history, "user")[0].value
    assert isinstance(thought, ThinkingBlock)
    assert isinstance(message, Message)
    assert (Carrier("item_id", "rs_1"), Carrier("encrypted", "gAAAA")) == thought.carriers
    assert (Text("Which?"), Media("image/png", "aGk="), Media("image/*", url="https://a")) == message.parts
    assert ("Which?", "s", "openai-responses") == (
        message.text,
        history.id,
        dialect_of(history.entries[-1].drafts[0].value),
    )
    calls = [draft.value for draft in drafts(history, "tool_call")]
    assert [
        ToolCall("c1", "ls", "{}"),
        ToolCall("c2", "ls", '{"path":"."}', carriers=(Carrier("thought_signature", "s"),)),
    ] == calls


def dialect_of(value: object) -> str:
    """The dialect of a response."""
    assert isinstance(value, Response)
    return value.origin.dialect


def test_attributes_in_attributes_and_results() -> None:
    """Phoenix keeps objects in objects; a result names its call."""
    messages = [
        {"message": {"role": "user", "content": "Which file?"}},
        {"message": {"role": "tool", "content": "notes.txt", "tool_call_id": "c1", "name": "ls"}},
    ]
    line = {"attributes": {"llm": {"input_messages": messages, "model_name": "m", "empty": {}}}, "trace_id": "t"}
    history = only("otlp", jsonl(line))
    assert ("t", ["user", "tool_result"], 0) == (history.id, kinds(history), history.created)
    assert ToolResult("c1", "notes.txt", "ls") == drafts(history, "tool_result")[0].value


def test_what_our_own_traces_say_of_a_response() -> None:
    """How its content stood, and who made it; a header that is none is left alone."""
    own = {"thinkback.dialect": "openai-chat", "thinkback.base_url": "https://API.example/v1"}
    upstream = {**own, "gen_ai.request.model": "fast", "thinkback.upstream": "house/qwen/qwen-4"}
    said = [say("assistant", words("a"), thinkback={"content": "text", "repeats": ["reasoning"]})]
    more = [QUESTION, say("model", words("b"), thinkback={"content": 5}), say("user", words("c"))]
    line = spans(span(1, {**upstream, "gen_ai.input.messages": more, "gen_ai.output.messages": said}))
    old, new = (draft.value for draft in drafts(only("otlp", jsonl(line)), "response"))
    assert isinstance(old, Response)
    assert isinstance(new, Response)
    assert ("absent", "text", ("reasoning",)) == (old.content, new.content, new.repeats)
    assert ("openai-chat", "https://api.example:443") == (new.origin.dialect, new.origin.endpoint)
    assert "qwen/qwen-4" == new.origin.requested_model


def test_nobody_knows_where_it_is_from() -> None:
    """Of a provider that our data does not have, and names no server, nothing goes anywhere."""
    said = {"gen_ai.provider.name": "house", "gen_ai.output.messages": json.dumps([CALLED])}
    for more, expected in (({}, ("", "")), ({"server.address": "a", "server.port": 8080}, ("", "https://a:8080"))):
        value = drafts(only("otlp", jsonl(spans(span(1, {**said, **more})))), "response")[0].value
        assert isinstance(value, Response)
        assert expected == (value.origin.dialect, value.origin.endpoint)


def test_what_is_left_out_is_named() -> None:
    """Requests without messages, further choices, media without data, messages of others; what is no span."""
    odd = [
        say("user", {"type": "blob", "mime_type": "image/png"}, {"type": "novel"}, {"type": "blob", "content": "aGk="}),
        say("critic", words("Hm")),
        say("", {"type": "uri", "modality": "video", "uri": "https://a"}),
        say("user"),
        {"role": "user", "content": "Plain"},
        say("developer", words("Be brief")),
        say("system"),
    ]
    two = [say("assistant", words("a")), say("assistant", words("b"))]
    events = [
        {"name": "other"},
        {"name": "gen_ai.client.inference.operation.details"},
        {
            "name": "gen_ai.client.inference.operation.details",
            "attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps(odd)}}],
        },
    ]
    lines: tuple[dict[str, Any], ...] = (
        spans(span(1, {"gen_ai.request.model": "m"}), 5),  # type: ignore[arg-type]
        spans(span(2, {"gen_ai.output.messages": two}, events=events, startTimeUnixNano=-5, endTimeUnixNano=True)),
        {"resource_spans": [{"scope_spans": [{"spans": []}]}]},
        {"metrics": 1},
    )
    found = read("otlp", jsonl(*lines))
    assert [
        *(("a request without its messages", 1), ("a span that is no request", 1), ("media without its data", 1)),
        *(("message of critic", 1), ("message of nobody", 1), ("another choice", 1), ("a line without spans", 1)),
    ] == [(left.what, left.count) for left in found.left]
    (history,) = found.sessions
    assert ["content", "user", "content", "user", "response", "assistant", "turn_ended"] == kinds(history)
    assert "5b8efff798038103d269b633813fc60c" == history.id


def test_values_of_any_type() -> None:
    """A value of no type is none; lists and objects are read in both spellings."""
    values = [{"kvlist_value": {"values": [None]}}, {"array_value": {"values": [{"string_value": "x"}]}}]
    pair = {"key": "gen_ai.output.messages", "value": {"arrayValue": {"values": values}}}
    found = read(
        "otlp", jsonl(spans({"attributes": [pair, {"key": "x", "value": {}}]}), {"attributes": {"a": {"b": 1}}})
    )
    assert ["another choice", "a span that is no request"] == [left.what for left in found.left]
