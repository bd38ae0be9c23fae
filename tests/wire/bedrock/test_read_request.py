"""Converse requests as programs hold them, adopted and written again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.bedrock.feeding import ORIGIN, reread, rewritten
from thinkback.errors import WireError
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.wire.bedrock.read_request import read_messages

ASK = {"role": "user", "content": [{"text": "Weather?"}]}
ANSWER = {
    "role": "assistant",
    "content": [
        {"reasoningContent": {"reasoningText": {"text": "I look.", "signature": "Eq+/="}}},
        {"reasoningContent": {"redactedContent": "UmVk"}},
        {"text": "<thinking>a</thinking>b"},
        {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}},
        {"cachePoint": {"type": "default"}},
    ],
}
TOLD = {
    "role": "user",
    "content": [
        {"text": "Here:"},
        {"toolResult": {"toolUseId": "t1", "content": [{"text": "4 °C"}]}},
        {"toolResult": {"toolUseId": "t2", "content": [{"text": "no"}], "status": "error"}},
        {"toolResult": {"toolUseId": "t3", "content": [{"json": {"n": 1}}], "status": "success"}},
        {"toolResult": {"toolUseId": "t4", "content": [{"text": "a"}, {"text": "b"}]}},
        {"toolResult": {"toolUseId": "t5"}},
        {"text": "And:"},
        {"image": {"format": "png", "source": {"bytes": "AA=="}}},
        {"guardContent": {"text": {"text": "x"}}},
    ],
}
TOOLS = [
    {"toolSpec": {"name": "f", "description": "Does f", "inputSchema": {"json": {"type": "object"}}}},
    {"toolSpec": {"name": "g", "inputSchema": {"json": {}}}},
    {"toolSpec": {"name": "h", "description": "", "inputSchema": {"json": {}}}},
    {"toolSpec": {"name": "i", "inputSchema": {}, "strict": True}},
    {"toolSpec": {"name": "j"}},
    {"cachePoint": {"type": "default"}},
    "surprise",
]
REQUEST = {
    "messages": [ASK, ANSWER, TOLD],
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
    "toolConfig": {"tools": TOOLS, "toolChoice": {"auto": {}}},
    "inferenceConfig": {"maxTokens": 5},
}


def test_a_request_is_written_as_it_was_read() -> None:
    """Messages, system, tools and parameters are the same values."""
    assert REQUEST == rewritten(REQUEST)
    assert {"messages": [ASK]} == rewritten({"messages": [ASK], "system": [], "modelId": "m"})


def test_what_was_understood() -> None:
    """Blocks of a response, results with the names of their calls, messages around them."""
    found = reread(REQUEST)
    drafts = found.drafts

    assert ["tools", "system", "user", "response", "reasoning", "reasoning", "reasoning", "assistant"] == [
        draft.kind for draft in drafts[:8]
    ]
    assert Draft("user", Message("Weather?")) == drafts[2]
    assert Draft("response", Response(ORIGIN, blocks=6), "r1") == drafts[3]
    assert ThinkingBlock("I look.", source_field="reasoningText", signature="Eq+/=") == drafts[4].value
    assert ToolCall("t1", "f", '{"a":1}') == drafts[8].value
    assert Unknown('{"cachePoint":{"type":"default"}}') == drafts[9].value
    results = [draft.value for draft in drafts if isinstance(draft.value, ToolResult)]
    assert ToolResult("t1", "4 °C", name="f") == results[0]
    assert ToolResult("t2", "no", is_error=True) == results[1]
    assert ['[{"json":{"n":1}}]', "ab", "null"] == [result.content for result in results[2:]]
    assert all(result.wire and result.dialect == "bedrock" for result in results[2:])
    media = (Text("And:"), Media("image/png", data="AA=="), Unknown('{"guardContent":{"text":{"text":"x"}}}'))
    assert Message("And:", media, dialect="bedrock") == drafts[-1].value
    assert {"toolConfig": {"toolChoice": {"auto": {}}}, "inferenceConfig": {"maxTokens": 5}} == found.params


def test_tools_are_understood_or_kept() -> None:
    """A function has what any dialect can say; what else there is stays as it was written."""
    tools = reread(REQUEST).drafts[0].value

    assert isinstance(tools, Tools)
    assert Tool("f", "Does f", '{"type":"object"}') == tools.tools[0]
    assert ["f", "g", "h", "i", "toolSpec", "cachePoint", ""] == [tool.name for tool in tools.tools]
    assert [False, False, True, True, True, True, True] == [tool.wire != "" for tool in tools.tools]


def test_a_tool_config_of_tools_alone_leaves_no_parameter() -> None:
    """What remains of it does."""
    assert {} == reread({"messages": [], "toolConfig": {"tools": TOOLS}}).params
    assert {"toolConfig": {}} == reread({"messages": [], "toolConfig": {}}).params


def test_binary_data_that_a_program_holds_is_base64() -> None:
    """boto3 gives bytes where JSON has text."""
    held = [
        {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"\x00"}}}]},
        {"role": "assistant", "content": ({"reasoningContent": {"redactedContent": b"Red"}},)},
    ]
    user, _, block = read_messages(held, lambda: "r2")

    assert isinstance(user.value, Message)
    assert (Media("image/png", data="AA=="),) == user.value.parts
    assert isinstance(block.value, ThinkingBlock)
    assert ["UmVk"] == [carrier.value for carrier in block.value.carriers]


def test_what_came_before_names_the_results() -> None:
    """A call of an earlier part of the history is answered by name."""
    after = [Draft("tool_call", ToolCall("t1", "f", "{}"), "r1", 0)]
    (result,) = read_messages([{"role": "user", "content": TOLD["content"][1:2]}], lambda: "r2", after=after)

    assert ToolResult("t1", "4 °C", name="f") == result.value


def test_an_empty_message_is_a_message() -> None:
    """Nothing was said, and nothing was answered."""
    assert [Draft("user", Message("", dialect="bedrock"))] == read_messages([{"role": "user", "content": []}], str)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": [{"text": "a"}]},
        {"role": "user", "content": "a"},
        {"role": "user"},
        {"content": []},
        "a",
        None,
        {"role": "user", "content": [{"a": object()}]},
    ],
)
def test_what_is_no_message_is_refused_by_its_place(message: Any) -> None:
    """The error names the entry."""
    with pytest.raises(WireError, match=r"messages\[1\]"):
        read_messages([ASK, message], lambda: "r2")


@pytest.mark.parametrize("body", [{}, {"messages": "a"}, {"messages": 5}])
def test_a_request_without_messages_is_refused(body: Any) -> None:
    """There is nothing to adopt."""
    with pytest.raises(WireError):
        reread(body)


def test_the_model_is_taken_where_it_stands() -> None:
    """boto3 has it among the parameters, the wire in the address."""
    assert "m" == reread({"messages": [], "modelId": "m"}).model
    assert "" == reread({"messages": []}).model


def test_json_of_a_program_is_not_changed() -> None:
    """The request that was read is still the caller's."""
    before = json.dumps(REQUEST)
    reread(REQUEST)

    assert before == json.dumps(REQUEST)
