"""Request writer and request reader of the dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.gemini_interactions.feeding import adopt, rewrite
from thinkback.errors import UnsupportedContent, WireError
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.model.plan import NOTHING
from thinkback.wire.gemini_interactions import write
from thinkback.wire.gemini_interactions.read_request import UNKNOWN_ORIGIN, read_messages

HEADER = Response(UNKNOWN_ORIGIN)


def said(*blocks: Block) -> list[Any]:
    """The steps of the response that ``blocks`` are."""
    return [json.loads(step) for step in write.assistant(HEADER, blocks, NOTHING)]


def ended(*, tools: tuple[Tool, ...] = (), system: tuple[bytes, ...] = (), **params: Any) -> dict[str, Any]:
    """What stands in the body beside the steps."""
    found: dict[str, Any] = json.loads(write.start + write.end("m", tools, system, params))
    assert ([], "m") == (found.pop("input"), found.pop("model"))
    return found


def test_a_foreign_response_is_written_in_this_dialect() -> None:
    """Texts and media of other dialects become one output, calls steps; arguments are an object."""
    blocks = (Text("hi"), Media("image/png", data="aGk="), Text(""), ToolCall("call_1", "f", ""), Text("bye"))

    assert [
        {
            "type": "model_output",
            "content": [{"type": "text", "text": "hi"}, {"type": "image", "data": "aGk=", "mime_type": "image/png"}],
        },
        {"type": "function_call", "id": "call_1", "name": "f", "arguments": {}},
        {"type": "model_output", "content": [{"type": "text", "text": "bye"}]},
    ] == said(*blocks)
    assert [] == said() == said(Text(""))


def test_own_steps_go_back_in_place() -> None:
    """Thoughts, signed calls, whole outputs and unknown steps stand where they stood."""
    signed = (Carrier("signature", "c2ln"),)
    output = '{"type":"model_output","id":"o","content":[]}'
    blocks = (
        ThinkingBlock("why", source_field="thought", signature="c2ln"),
        Unknown('{"type":"google_search_call"}'),
        ToolCall("f1", "f", "{}", carriers=signed),
        Text("", wire=output),
    )

    assert [
        {"type": "thought", "summary": [{"type": "text", "text": "why"}], "signature": "c2ln"},
        {"type": "google_search_call"},
        {"type": "function_call", "id": "f1", "name": "f", "arguments": {}, "signature": "c2ln"},
        json.loads(output),
    ] == said(*blocks)


def test_results_are_a_step_each() -> None:
    """With the name where it is known, and a word where the tool failed."""
    results = (
        ToolResult("a", "4 °C", "f"),
        ToolResult("b", "no", is_error=True),
        ToolResult("c", "", wire='{"type":"function_result","call_id":"c","result":{"x":1}}'),
    )

    assert [
        {"type": "function_result", "call_id": "a", "name": "f", "result": "4 °C"},
        {"type": "function_result", "call_id": "b", "result": "no", "is_error": True},
        {"type": "function_result", "call_id": "c", "result": {"x": 1}},
    ] == [json.loads(step) for step in write.results(results)]


def test_user_messages_hold_text_and_media() -> None:
    """Each kind of media has its content."""
    parts = (
        Media("application/pdf", data="aGk="),
        Media("audio/wav", url="https://example.org/a"),
        Media("image/*", url="https://example.org/i"),
        Unknown('{"type":"novel"}'),
    )

    assert [
        {"type": "document", "data": "aGk=", "mime_type": "application/pdf"},
        {"type": "audio", "uri": "https://example.org/a", "mime_type": "audio/wav"},
        {"type": "image", "uri": "https://example.org/i"},
        {"type": "novel"},
    ] == json.loads(write.message("user", Message("", parts)))["content"]
    assert (b"", 1) == write.turn_over("user", "user")


@pytest.mark.parametrize("media", [Media("image/*", data="aGk="), Media("image/png"), Media("", data="aGk=")])
def test_media_that_has_no_place_is_refused(media: Media) -> None:
    """Without content or type, and in a system message."""
    with pytest.raises(UnsupportedContent):
        write.message("user", Message("", (media,)))
    with pytest.raises(UnsupportedContent):
        write.top(Message("", (media,)))


def test_system_tools_and_parameters_stand_behind_the_steps() -> None:
    """Several system messages are one text; own tools go out as they were."""
    tools = (
        Tool("f", "does f", '{"type": "object"}'),
        Tool("g"),
        Tool("google_search", wire='{"type":"google_search"}', dialect="gemini-interactions"),
    )
    one, two = write.top(Message("be")), write.top(Message("brief"))

    assert {
        "system_instruction": "be\n\nbrief",
        "tools": [
            {"type": "function", "name": "f", "description": "does f", "parameters": {"type": "object"}},
            {"type": "function", "name": "g", "parameters": {}},
            {"type": "google_search"},
        ],
        "store": False,
    } == ended(tools=tools, system=(one, two), store=False)
    assert b"]}" == write.end("", (), (), {})


REQUEST: dict[str, Any] = {
    "model": "m",
    "store": False,
    "system_instruction": "be brief",
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "google_search"}],
    "input": [
        {"type": "user_input", "content": [{"type": "text", "text": "Weather?"}]},
        {"type": "thought", "signature": "c2ln"},
        {"type": "function_call", "id": "a", "name": "f", "arguments": {"c": "Oslo"}},
        {"type": "function_result", "call_id": "a", "name": "f", "result": "4 °C"},
        {"type": "function_call", "id": "b", "name": "f", "arguments": {}, "signature": ""},
        {"type": "user_input", "content": [{"type": "function_result", "call_id": "b", "result": {"x": 1}}]},
        {"type": "model_output", "content": [{"type": "text", "text": "4"}]},
        {
            "type": "user_input",
            "content": [
                {"type": "image", "data": "aGk=", "mime_type": "image/png"},
                {"type": "text", "text": "and", "x": 1},
                {"type": "novel"},
            ],
        },
        {"type": "user_input", "content": "a text"},
        {"type": "user_input", "content": {"type": "text", "text": "alone"}},
        {"type": "user_input", "content": ["a text", 1]},
        {"type": "user_input"},
    ],
}


def test_a_request_is_read_and_written_as_it_was() -> None:
    """Steps, system instruction, tools and parameters are the same JSON value, signatures byte for byte."""
    request = adopt(REQUEST)
    kinds = [draft.kind for draft in request.drafts]

    assert REQUEST == rewrite(request)
    assert ["tools", "system", "user", "response", "reasoning", "tool_call", "tool_result"] == kinds[:7]
    assert ["response", "tool_call", "tool_result", "response", "assistant", *["user"] * 5] == kinds[7:]
    results = [draft.value for draft in request.drafts if isinstance(draft.value, ToolResult)]
    assert [("a", "f", "4 °C"), ("b", "f", '{"x":1}')] == [(r.id, r.name, r.content) for r in results]


@pytest.mark.parametrize(
    "given",
    ["hello", ["hello"], {"type": "text", "text": "hello"}, [{"type": "text", "text": "hello"}]],
)
def test_an_input_may_be_a_text_or_contents(given: Any) -> None:
    """It is one message of the user."""
    (draft,) = adopt({"input": given}).drafts

    assert Message("hello") == draft.value


def test_results_beside_other_contents_are_taken_out() -> None:
    """Each is a result of its own; the rest is a message. Names come from the calls before."""
    after = [Draft("tool_call", ToolCall("a", "f", "{}"))]
    result = {"type": "function_result", "call_id": "a", "result": "4", "is_error": True}
    step = {"type": "user_input", "content": [result, {"type": "text", "text": "and"}, {**result, "call_id": "b"}]}
    first, second, message = (draft.value for draft in read_messages([step], str, after=after))

    assert isinstance(first, ToolResult)
    assert ("a", "f", "4", True) == (first.id, first.name, first.content, first.is_error)
    assert {"type": "user_input", "content": [result]} == json.loads(first.wire)
    assert isinstance(second, ToolResult)
    assert ("b", "") == (second.id, second.name)
    assert Message("and") == message


@pytest.mark.parametrize("given", [None, 1, [1], [{}], [{"type": 1}], [{"type": "text", "text": "a"}, None]])
def test_an_input_that_is_none_is_refused(given: Any) -> None:
    """The error names the place."""
    with pytest.raises(WireError):
        adopt({"input": given})


def test_tools_that_are_none_have_no_name() -> None:
    """They are kept as they came."""
    (draft,) = adopt({"input": [], "tools": [1, {"type": "google_search"}]}).drafts

    assert isinstance(draft.value, Tools)
    assert ["", "google_search"] == [tool.name for tool in draft.value.tools]
    assert () == adopt({"input": [], "tools": "x"}).drafts
