"""Requests to Cohere as programs hold them, adopted and written again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.cohere.feeding import ORIGIN, reread, rewritten
from thinkback.errors import WireError
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.wire.cohere.read_request import read_messages

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CALL = {"id": "f_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.50}'}}
MESSAGES: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "I look."}, {"type": "text", "text": "Let me look."}],
        "tool_plan": "Look.",
        "tool_calls": [CALL],
    },
    {"role": "tool", "tool_call_id": "f_1", "content": "4 °C"},
    {"role": "tool", "tool_call_id": "f_2", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "tool", "tool_call_id": "f_3", "content": [{"type": "document", "document": {"data": "x"}}]},
    {"role": "tool", "content": []},
    {"role": "assistant", "content": "4 °C."},
    {"role": "user", "content": [{"type": "text", "text": "And this?"}, IMAGE, {"type": "new"}, "surprise"]},
    {"role": "user", "content": [{"type": "text", "text": "a", "more": 1}], "name": "x"},
    {"role": "user", "content": []},
    {"role": "user", "content": "a", "name": "x"},
]
TOOLS = [
    {"type": "function", "function": {"name": "f", "description": "Does f", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "g", "parameters": {}}},
    {"type": "function", "function": {"name": "h", "parameters": {}, "strict": True}},
    {"type": "function", "function": {"name": "i"}},
    {"type": "new"},
    "surprise",
]
REQUEST = {"model": "m", "messages": MESSAGES, "tools": TOOLS, "documents": [], "thinking": {"type": "enabled"}}


def test_a_request_is_written_as_it_was_read() -> None:
    """Messages, tools and parameters are the same values."""
    assert REQUEST == rewritten(REQUEST)
    assert {"model": "", "messages": []} == rewritten({"messages": []})


def test_citations_are_output() -> None:
    """They are kept and not sent."""
    cited = {"role": "assistant", "content": "a", "citations": [{"start": 0}]}
    found = rewritten({"messages": [cited]})
    header = reread({"messages": [cited]}).drafts[0].value

    assert [{"role": "assistant", "content": "a"}] == found["messages"]
    assert isinstance(header, Response)
    assert '{"citations":[{"start":0}]}' == header.message


def test_what_was_understood() -> None:
    """Blocks of a response, results with the names of their calls, messages around them."""
    found = reread(REQUEST)
    values = [draft.value for draft in found.drafts]

    assert ["tools", "system", "user", "response", "reasoning", "assistant", "reasoning", "tool_call"] == [
        draft.kind for draft in found.drafts[:8]
    ]
    assert [Message("Be brief."), Message("Weather?"), Response(ORIGIN, blocks=4)] == values[1:4]
    assert ThinkingBlock("I look.", source_field="thinking") == values[4]
    assert ThinkingBlock("Look.", source_field="tool_plan") == values[6]
    assert ToolCall("f_1", "f", '{"a": 1.50}') == values[7]
    results = [value for value in values if isinstance(value, ToolResult)]
    assert ToolResult("f_1", "4 °C", name="f") == results[0]
    assert ["ab", '[{"type":"document","document":{"data":"x"}}]', "[]"] == [result.content for result in results[1:]]
    assert Response(ORIGIN, content="text", blocks=1) in values
    parts = (Text("And this?"), Media("image/png", data="AA=="), Unknown('{"type":"new"}'), Unknown('"surprise"'))
    assert Message("And this?", parts, dialect="cohere") in values
    assert {"documents": [], "thinking": {"type": "enabled"}} == found.params


def test_tools_are_understood_or_kept() -> None:
    """A function has what any dialect can say; what else there is stays as it was written."""
    tools = reread(REQUEST).drafts[0].value

    assert isinstance(tools, Tools)
    assert Tool("f", "Does f", '{"type":"object"}') == tools.tools[0]
    assert ["f", "g", "h", "i", "new", ""] == [tool.name for tool in tools.tools]
    assert [False, False, True, True, True, True] == [tool.wire != "" for tool in tools.tools]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (IMAGE, Media("image/png", data="AA==")),
        ({"type": "image_url", "image_url": {"url": "https://x/a.png"}}, Media("image/*", url="https://x/a.png")),
        (
            {"type": "image_url", "image_url": "https://x/a.png"},
            Media("image/*", url="https://x/a.png", wire='{"type":"image_url","image_url":"https://x/a.png"}'),
        ),
        ({"type": "image_url", "image_url": {}}, Media("image/*", wire='{"type":"image_url","image_url":{}}')),
        ({"type": "image_url", "image_url": 5}, Media("image/*", wire='{"type":"image_url","image_url":5}')),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png,x"}},
            Media("image/*", url="data:image/png,x"),
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:;base64,AA=="}},
            Media("", data="AA==", wire='{"type":"image_url","image_url":{"url":"data:;base64,AA=="}}'),
        ),
    ],
)
def test_images_are_media(part: Any, expected: Media) -> None:
    """Data or address; what says more than was understood is kept as it was."""
    message = reread({"messages": [{"role": "user", "content": [part]}]}).drafts[0].value

    assert isinstance(message, Message)
    assert (expected,) == message.parts
    assert [part] == rewritten({"messages": [{"role": "user", "content": [part]}]})["messages"][0]["content"]


def test_what_came_before_names_the_results() -> None:
    """A call of an earlier part of the history is answered by name."""
    after = [Draft("tool_call", ToolCall("f_1", "f", "{}"), "r0", 0)]
    (result,) = read_messages(MESSAGES[3:4], lambda: "r1", after=after)

    assert ToolResult("f_1", "4 °C", name="f") == result.value


@pytest.mark.parametrize("message", [{"role": "developer", "content": "a"}, {"content": "a"}, "a", None])
def test_what_is_no_message_is_refused_by_its_place(message: Any) -> None:
    """The error names the entry."""
    with pytest.raises(WireError, match=r"messages\[1\]"):
        read_messages([MESSAGES[0], message], lambda: "r1")


@pytest.mark.parametrize("body", [{}, {"messages": "a"}, {"messages": 5}])
def test_a_request_without_messages_is_refused(body: Any) -> None:
    """There is nothing to adopt."""
    with pytest.raises(WireError):
        reread(body)
