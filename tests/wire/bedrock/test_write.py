"""Requests in Converse's words: messages that alternate, content blocks of every kind, what surrounds them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import rewriting
from tests.wire.bedrock.feeding import ORIGIN, assistant
from thinkback.errors import UnsupportedContent
from thinkback.model.blocks import Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool
from thinkback.model.plan import NOTHING
from thinkback.wire.bedrock import write
from thinkback.wire.bedrock.parameters import options
from thinkback.wire.bedrock.write import call_id
from thinkback.wire.result import ReadRequest, WantedOptions

SIGNED = ThinkingBlock(" a \n", source_field="reasoningText", signature="Eq+/=")
REDACTED = ThinkingBlock("", source_field="redactedContent", kind="none", carriers=(Carrier("redacted", "UmVk"),))


def test_neighbours_of_one_role_are_one_message() -> None:
    """Results and what the user says next stand in one message, and so do two responses in a row."""
    drafts = [
        Draft("system", Message("Be brief.")),
        Draft("user", Message("a")),
        Draft("user", Message("b")),
        Draft("response", Response(ORIGIN), "r1"),
        Draft("tool_call", ToolCall("t1", "f", "{}"), "r1", 0),
        Draft("tool_result", ToolResult("t1", "4 °C")),
        Draft("user", Message("c")),
        Draft("response", Response(ORIGIN), "r2"),
        Draft("assistant", Text("d"), "r2", 0),
        Draft("response", Response(ORIGIN), "r3"),
        Draft("assistant", Text("e"), "r3", 0),
    ]

    assert {
        "messages": [
            {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}]},
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "4 °C"}]}}, {"text": "c"}],
            },
            {"role": "assistant", "content": [{"text": "d"}, {"text": "e"}]},
        ],
        "system": [{"text": "Be brief."}],
        "inferenceConfig": {"maxTokens": 5},
    } == rewriting.rewrite(write, ReadRequest("", tuple(drafts), {"inferenceConfig": {"maxTokens": 5}}))


@pytest.mark.parametrize(
    ("before", "role", "expected"),
    [
        ("", "user", (b"", 1)),
        ("", "assistant", (b']},{"role":"assistant","content":[', 2)),
        ("user", "tool", (b",", 0)),
        ("tool", "system", (b",", 0)),
        ("assistant", "assistant", (b",", 0)),
        ("user", "assistant", (b']},{"role":"assistant","content":[', 1)),
        ("assistant", "tool", (b']},{"role":"user","content":[', 1)),
    ],
)
def test_a_message_begins_where_the_role_turns(before: str, role: str, expected: tuple[bytes, int]) -> None:
    """Everything but the assistant's is the user's; the first message is opened by the start of the body."""
    assert expected == write.turn_over(before, role)


def test_a_body_without_messages_is_json() -> None:
    """It is refused by the provider and not by a parser."""
    assert {"messages": [{"role": "user", "content": []}]} == rewriting.rewrite(write, ReadRequest("", (), {}))


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (
            [SIGNED, REDACTED, Text("", source_field="text"), ToolCall("t", "f", '{"a": 1.50}')],
            [
                {"reasoningContent": {"reasoningText": {"text": " a \n", "signature": "Eq+/="}}},
                {"reasoningContent": {"redactedContent": "UmVk"}},
                {"text": ""},
                {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1.5}}},
            ],
        ),
        ([Text(" \n"), Text("a")], [{"text": "a"}]),
        ([Text("")], None),
        ([], None),
        ([ThinkingBlock("a")], [{"reasoningContent": {"reasoningText": {"text": "a"}}}]),
        ([Unknown('{"cachePoint":{"type":"default"}}')], [{"cachePoint": {"type": "default"}}]),
        ([Text(" ", wire='{"citationsContent":{}}')], [{"citationsContent": {}}]),
        ([Media("image/png", data="AA==")], [{"image": {"format": "png", "source": {"bytes": "AA=="}}}]),
        ([ToolCall("a", "f", "")], [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}]),
        ([ToolCall("a", "f", "x")], [{"toolUse": {"toolUseId": "a", "name": "f", "input": {"arguments": "x"}}}]),
        ([ToolCall("a|b", "f", "", wire='{"toolUse":{"toolUseId":"a|b"}}')], [{"toolUse": {"toolUseId": "a|b"}}]),
    ],
)
def test_a_response_is_written_as_its_content_blocks(blocks: list[Any], expected: list[Any] | None) -> None:
    """In their order, opaque values as they came; blank text only beside reasoning; nothing if nothing is left."""
    assert expected == assistant(*blocks)


def test_arguments_are_spliced_as_source_text() -> None:
    """Numbers and white space stay as the model wrote them."""
    found = write.assistant(Response(ORIGIN), [ToolCall("t", "f", '{"a": 1.50}')], NOTHING)

    assert (b'{"toolUse":{"toolUseId":"t","name":"f","input":{"a": 1.50}}}',) == found


def test_results_say_what_failed() -> None:
    """All results of a response stand together; one that was kept verbatim goes out so."""
    results = [
        ToolResult("t1", "a"),
        ToolResult("t2", "b", is_error=True),
        ToolResult("t3", "c", wire='{"toolResult":{"toolUseId":"t3","content":[{"json":1}]}}'),
        ToolResult("über", "d"),
    ]
    (fragment,) = write.results(results)

    assert [
        {"toolUseId": "t1", "content": [{"text": "a"}]},
        {"toolUseId": "t2", "content": [{"text": "b"}], "status": "error"},
        {"toolUseId": "t3", "content": [{"json": 1}]},
        {"toolUseId": call_id("über"), "content": [{"text": "d"}]},
    ] == [block["toolResult"] for block in json.loads(b"[%b]" % fragment)]
    assert () == write.results([])


@given(st.text())
def test_any_id_becomes_one_that_fits(id: str) -> None:
    """The same for a call and its result, and one that fits is itself."""
    found = call_id(id)

    assert re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", found)
    assert found == call_id(found)


def test_a_call_goes_out_under_the_id_of_its_result() -> None:
    """Other dialects' ids may not fit."""
    (fragment,) = write.assistant(Response(ORIGIN), [ToolCall("call|1" * 20, "f", "{}")], NOTHING)

    assert call_id("call|1" * 20) == json.loads(fragment)["toolUse"]["toolUseId"]
    assert "functions.get_weather:0" == call_id("functions.get_weather:0")


TOOL = Tool("f", "Does f", '{"type": "object"}')
SPEC = {"toolSpec": {"name": "f", "description": "Does f", "inputSchema": {"json": {"type": "object"}}}}


@pytest.mark.parametrize(
    ("tools", "params", "expected"),
    [
        ([TOOL], {}, {"toolConfig": {"tools": [SPEC]}}),
        (
            [TOOL],
            {"toolConfig": {"toolChoice": {"auto": {}}}},
            {"toolConfig": {"tools": [SPEC], "toolChoice": {"auto": {}}}},
        ),
        (
            [TOOL, Tool("cachePoint", wire='{"cachePoint":{}}')],
            {"toolConfig": {"tools": [{"systemTool": {"name": "x"}}]}},
            {"toolConfig": {"tools": [SPEC, {"cachePoint": {}}, {"systemTool": {"name": "x"}}]}},
        ),
        (
            [Tool("g")],
            {"toolConfig": 5},
            {"toolConfig": {"tools": [{"toolSpec": {"name": "g", "inputSchema": {"json": {}}}}]}},
        ),
        ([], {"toolConfig": {"tools": [SPEC]}}, {"toolConfig": {"tools": [SPEC]}}),
    ],
)
def test_tools_are_one_with_the_tool_config_that_was_given(tools: list[Tool], params: Any, expected: Any) -> None:
    """Choice and further tools of the caller stay; a description that is empty is left out."""
    found = json.loads(write.start + write.end("model", tools, [], params))
    del found["messages"]

    assert expected == found


@pytest.mark.parametrize(
    ("media", "expected"),
    [
        (Media("image/jpeg", data="AA=="), {"image": {"format": "jpeg", "source": {"bytes": "AA=="}}}),
        (
            Media("video/mp4", url="s3://b/k"),
            {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/k"}}}},
        ),
        (
            Media("application/pdf", data="AA==", name="My__report (v2).pdf"),
            {"document": {"format": "pdf", "source": {"bytes": "AA=="}, "name": "My report (v2) pdf"}},
        ),
        (
            Media("text/plain", data="AA=="),
            {"document": {"format": "txt", "source": {"bytes": "AA=="}, "name": "document"}},
        ),
    ],
)
def test_media_are_content_blocks(media: Media, expected: Any) -> None:
    """By their format; a document has a name that the service takes."""
    assert expected == json.loads(write.message("user", Message("", (media,))))


@pytest.mark.parametrize(
    "media",
    [
        Media("image/png", url="https://x/a.png"),
        Media("image/*", data="AA=="),
        Media("audio/wav", data="AA=="),
        Media("image/png"),
    ],
)
def test_media_without_a_place_are_refused(media: Media) -> None:
    """Before the network, with what to do instead."""
    with pytest.raises(UnsupportedContent) as caught:
        write.message("user", Message("", (media,)))

    assert "bedrock" == caught.value.details["dialect"]
    assert caught.value.next_actions


def test_system_messages_stand_on_top() -> None:
    """Each of their parts is a block of its own."""
    message = Message("a", (Text("a"), Unknown('{"cachePoint":{"type":"default"}}')))

    assert b'{"text":"a"},{"cachePoint":{"type":"default"}}' == write.top(message)
    assert b'{"text":"later"}' == write.message("system", Message("later"))


def test_only_a_schema_needs_a_parameter() -> None:
    """Streaming is in the address; the schema goes as source text, as Bedrock wants it."""
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}

    assert {} == options(WantedOptions(stream=True))
    assert {
        "type": "json_schema",
        "structure": {"jsonSchema": {"name": "city", "schema": '{"type":"object","properties":{"b":{},"a":{}}}'}},
    } == options(WantedOptions(schema=schema, schema_name="city"))["outputConfig"]["textFormat"]
