"""Requests in Cohere's words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.cohere.feeding import ORIGIN, assistant
from thinkback.errors import UnsupportedContent
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Message, Response, Tool
from thinkback.wire.cohere import write
from thinkback.wire.cohere.parameters import options
from thinkback.wire.result import WantedOptions

THOUGHT = ThinkingBlock("a", source_field="thinking")
PLAN = ThinkingBlock("b", source_field="tool_plan")
CALL = ToolCall("f_1", "f", '{"a": 1.50}')
ITEM = {"type": "thinking", "thinking": "a"}
WIRE = {"id": "f_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.50}'}}


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([THOUGHT, Text("b")], {"content": [ITEM, {"type": "text", "text": "b"}]}),
        ([THOUGHT, PLAN, CALL], {"content": [ITEM], "tool_plan": "b", "tool_calls": [WIRE]}),
        ([CALL], {"tool_calls": [WIRE]}),
        (
            [ToolCall("a", "f", "")],
            {"tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        ),
        (
            [Text("a", wire='{"type":"text","text":"a","more":1}')],
            {"content": [{"type": "text", "text": "a", "more": 1}]},
        ),
        ([Unknown('{"type":"new"}')], {"content": [{"type": "new"}]}),
        (
            [Media("image/png", data="AA==")],
            {"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
        ),
        ([THOUGHT], None),
        ([PLAN], None),
        ([], None),
    ],
)
def test_a_response_is_one_message(blocks: list[Any], expected: Any) -> None:
    """Content items in their order, then plan and calls; reasoning alone is no message."""
    assert (expected and {"role": "assistant", **expected}) == assistant(*blocks)


def test_content_that_was_a_string_is_one() -> None:
    """Unless there is more to it than text."""
    plain = Response(ORIGIN, content="text")

    assert {"role": "assistant", "content": "ab"} == assistant(Text("a"), Text("b"), response=plain)
    assert {"role": "assistant", "tool_calls": [WIRE]} == assistant(CALL, response=plain)
    assert isinstance(assistant(THOUGHT, Text("a"), response=plain)["content"], list)


def test_messages_and_results_stand_for_themselves() -> None:
    """Strings where text is all there is; system messages among the others."""
    image = Media("image/*", url="https://x/a.png")
    parts = Message("a", (Text("a"), image, Unknown('{"type":"new"}')), dialect="cohere")

    assert {"role": "system", "content": "a"} == json.loads(write.message("system", Message("a")))
    assert write.top(Message("a")) == write.message("system", Message("a"))
    assert [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
        {"type": "new"},
    ] == json.loads(write.message("user", parts))["content"]
    assert b'{"as":"held"}' == write.message("user", Message("a", wire='{"as":"held"}'))
    assert (b'{"role":"tool","tool_call_id":"f_1","content":"4"}', b"{}") == write.results(
        [ToolResult("f_1", "4"), ToolResult("g_1", "5", wire="{}")]
    )
    assert (b"", 1) == write.turn_over("user", "user")


@pytest.mark.parametrize(
    "media", [Media("application/pdf", data="AA=="), Media("image/png"), Media("audio/wav", url="https://x")]
)
def test_media_without_a_place_are_refused(media: Media) -> None:
    """Before the network, with what to do instead."""
    with pytest.raises(UnsupportedContent) as caught:
        write.message("user", Message("", (media,)))

    assert "cohere" == caught.value.details["dialect"]
    assert caught.value.next_actions


def test_what_follows_the_messages() -> None:
    """Tools, the model and parameters; a description that is empty is left out."""
    tools = [Tool("f", "Does f", '{"type": "object"}'), Tool("g"), Tool("x", wire='{"type":"x"}')]

    assert {
        "messages": [],
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "Does f", "parameters": {"type": "object"}}},
            {"type": "function", "function": {"name": "g", "parameters": {}}},
            {"type": "x"},
        ],
        "model": "m",
        "thinking": {"type": "disabled"},
    } == json.loads(write.start + write.end("m", tools, [], {"thinking": {"type": "disabled"}}))
    assert b'],"model":"m"}' == write.end("m", [], [], {})


def test_options_are_native_parameters() -> None:
    """A schema has no name here, and usage always comes."""
    assert {} == options(WantedOptions())
    assert {
        "stream": True,
        "response_format": {"type": "json_object", "json_schema": {"type": "object"}},
    } == options(WantedOptions(stream=True, schema={"type": "object"}))
