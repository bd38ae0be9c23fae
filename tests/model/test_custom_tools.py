"""Custom tools in the words of both dialects that have them, and as functions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.feeding import ORIGIN
from thinkback.model import custom_tools
from thinkback.model.blocks import CUSTOM_CALL, Block, ToolCall
from thinkback.model.commits import Response, Tool
from thinkback.model.deltas import ToolCallDelta
from thinkback.model.plan import NOTHING
from thinkback.wire.openai_chat import write as chat
from thinkback.wire.openai_chat.read_request import read_tool
from thinkback.wire.openai_chat.write_response import Writer, write_response
from thinkback.wire.openai_responses import write as responses
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Shown

FLAT = {
    "type": "custom",
    "name": "sql",
    "description": "Asks.",
    "format": {"type": "grammar", "definition": "a", "syntax": "lark"},
}
GRAMMAR = {"type": "grammar", "grammar": {"definition": "a", "syntax": "lark"}}
NESTED = {"type": "custom", "custom": {"name": "sql", "description": "Asks.", "format": GRAMMAR}}
CUSTOM = ToolCall("c", "sql", "SELECT 1", source_field=CUSTOM_CALL)


def tool(written: Any, **fields: Any) -> Tool:
    """A tool of this wire object."""
    return Tool("", wire=json.dumps(written), **fields)


def test_a_definition_has_the_words_of_either_dialect() -> None:
    """There and back; what says nothing of a format has none."""
    assert FLAT == json.loads(custom_tools.flat_source(tool(NESTED)))
    assert NESTED == json.loads(custom_tools.nested_source(tool(FLAT)))
    bare = {"type": "custom", "name": "sql"}
    assert {"type": "custom", "custom": {"name": "sql"}} == json.loads(custom_tools.nested_source(tool(bare)))
    assert [FLAT] == _tools(responses.end("m", [tool(NESTED)], [], {}))
    assert [NESTED] == _tools(chat.end("m", [tool(FLAT)], [], {}))


def _tools(end: bytes) -> Any:
    """The tools in the end of a body."""
    return json.loads(b"{" + end[1:].lstrip(b","))["tools"]


@pytest.mark.parametrize(
    "written",
    [
        {"type": "function", "function": {"name": "custom"}},
        ["custom"],
        {"type": "custom"},
        {"type": "custom", "custom": "sql"},
    ],
)
def test_what_is_no_custom_tool_is_none(written: Any) -> None:
    """Any other tool, and what only looks like one."""
    assert custom_tools.definition_of(tool(written)) is None
    assert custom_tools.read_custom(written, "openai-chat") is None


def test_a_program_s_custom_tool_is_known_by_its_name() -> None:
    """Its wire object stays."""
    read = read_tool(NESTED)
    assert ("sql", "Asks.", "openai-chat", NESTED) == (read.name, read.description, read.dialect, json.loads(read.wire))


def test_a_function_tells_the_grammar() -> None:
    """In its description, behind what stands there."""
    told = "The input is text of this grammar (lark):\na"
    assert f"Asks.\n\n{told}" == custom_tools.as_function(tool(FLAT)).description
    plain = {key: value for key, value in FLAT.items() if key != "description"}
    assert told == custom_tools.as_function(tool(plain)).description
    assert "" == custom_tools.as_function(tool({"type": "custom", "name": "sql"})).description


@given(st.text())
def test_the_text_is_the_same_there_and_back(text: str) -> None:
    """Whatever stands in it."""
    call = ToolCall("c", "sql", text, source_field=CUSTOM_CALL)
    assert call == custom_tools.call_from_function(custom_tools.call_for(call, takes_custom=False))


@pytest.mark.parametrize("arguments", ["SELECT 1", '{"sql":"SELECT 1"}', '{"input":1}', '{"input":"a","b":1}', "[]"])
def test_other_arguments_go_to_the_tool_as_they_are(arguments: str) -> None:
    """A model may write anything."""
    assert arguments == custom_tools.call_from_function(ToolCall("c", "sql", arguments)).arguments


def test_a_verbatim_object_stays_where_it_is_of_the_kind() -> None:
    """A function's where functions are, a custom one's where those are."""
    function = ToolCall("c", "sql", "a", source_field=CUSTOM_CALL, wire='{"type":"function"}')
    own = ToolCall("c", "sql", "a", source_field=CUSTOM_CALL, wire='{"type":"custom"}')
    bare = ToolCall("c", "sql", "a", source_field=CUSTOM_CALL)
    told = ToolCall("c", "sql", '{"input":"a"}')
    assert (bare, function) == tuple(custom_tools.call_for(function, takes_custom=takes) for takes in (True, False))
    assert (own, told) == tuple(custom_tools.call_for(own, takes_custom=takes) for takes in (True, False))
    assert (bare, told) == tuple(custom_tools.call_for(bare, takes_custom=takes) for takes in (True, False))


@pytest.mark.parametrize(
    ("choice", "custom", "function"),
    [
        ("auto", "auto", "auto"),
        ({"type": "auto"}, {"type": "auto"}, {"type": "auto"}),
        ({"type": "function", "name": "ls"}, {"type": "function", "name": "ls"}, {"type": "function", "name": "ls"}),
        ({"type": "custom", "name": "sql"}, {"type": "custom", "name": "sql"}, {"type": "function", "name": "sql"}),
        (
            {"type": "custom", "custom": {"name": "sql"}},
            {"type": "custom", "custom": {"name": "sql"}},
            {"type": "function", "function": {"name": "sql"}},
        ),
        ({"type": "custom", "custom": 1}, {"type": "custom", "custom": 1}, {"type": "custom", "custom": 1}),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "sql"}]},
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "sql"}]},
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "sql"}]},
        ),
        (
            {"type": "allowed_tools", "allowed_tools": {"tools": [{"type": "custom", "custom": {"name": "sql"}}]}},
            {"type": "allowed_tools", "allowed_tools": {"tools": [{"type": "custom", "custom": {"name": "sql"}}]}},
            {"type": "allowed_tools", "allowed_tools": {"tools": [{"type": "function", "function": {"name": "sql"}}]}},
        ),
    ],
)
def test_a_choice_names_a_tool_as_it_is_offered(choice: Any, custom: Any, function: Any) -> None:
    """One, several, or in words."""
    found = [custom_tools.choice_for(choice, {"sql"}, takes_custom=takes) for takes in (True, False)]
    assert [custom, function] == found


def test_chat_completions_have_custom_calls() -> None:
    """In requests, in whole responses and in streams, with and without a text."""
    written = json.loads(chat.assistant(Response(ORIGIN), [CUSTOM], NOTHING)[0])
    expected = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    assert [expected] == written["tool_calls"]
    blocks: list[Block] = [CUSTOM, ToolCall("d", "sql", "", source_field=CUSTOM_CALL)]
    shown = Shown("r", "m", 7, block=blocks.__getitem__)
    result = ReadResult(Response(ORIGIN, outcome="tool_calls"), tuple(blocks), None)
    message = json.loads(write_response(result, shown))["choices"][0]["message"]
    assert ["SELECT 1", ""] == [call["custom"]["input"] for call in message["tool_calls"]]
    writer = Writer(shown)
    stream = writer.begin() + writer.show([ToolCallDelta(0, "c", "sql"), ToolCallDelta(0, arguments="SELECT 1")])
    events = (stream + writer.end(result)).split(b"\n\n")
    calls = [call for event in events if b"tool_calls" in event and b'"delta":{"' in event for call in _calls(event)]
    assert ["custom", None, "custom", None] == [call.get("type") for call in calls]
    assert ["", "SELECT 1", "", ""] == [call["custom"]["input"] for call in calls]


def _calls(event: bytes) -> list[Any]:
    return list(json.loads(event[6:])["choices"][0]["delta"].get("tool_calls", ()))
