"""Whole requests and their media: read into drafts, written again; native parameters; responses put together again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.wire.feeding import body, read, stream
from thinkback.errors import UnsupportedContent, WireError
from thinkback.model.blocks import Media, Origin, ToolResult
from thinkback.model.commits import Message, Tool, Tools
from thinkback.model.think_tags import TAGS
from thinkback.wire.openai_chat import write
from thinkback.wire.openai_chat.parameters import options
from thinkback.wire.openai_chat.read import raw_response
from thinkback.wire.openai_chat.read_request import (
    UNKNOWN_ORIGIN,
    assistant_drafts,
    read_messages,
    read_request,
    read_tool,
)
from thinkback.wire.result import WantedOptions

FUNCTION = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


def test_a_request_is_its_tools_its_messages_and_the_rest() -> None:
    """The tools come first; model and parameters stand beside the drafts."""
    origin = Origin("openai-chat", "https://api.example.org", "m")
    request = read_request(
        {
            "model": "m",
            "messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}],
            "tools": [FUNCTION],
            "temperature": 1,
        },
        lambda: "r1",
        origin,
    )

    assert ("m", {"temperature": 1}) == (request.model, request.params)
    assert ["tools", "user", "response", "assistant"] == [draft.kind for draft in request.drafts]
    assert origin == request.drafts[2].value.origin  # type: ignore[union-attr]
    tools = request.drafts[0].value
    assert isinstance(tools, Tools)
    assert json.loads(write.end("m", tools.tools, (), {}).removeprefix(b"],").join([b"{", b""]))["tools"] == [FUNCTION]


ANY_FUNCTION = {"name": "f", "arguments": "{}"}
NAMES = st.sampled_from(["f", "", "\ud83d\ude00", "\ud83d", '{"a":1}', "{}", None, 1])
CALL = st.fixed_dictionaries(
    {
        "id": NAMES,
        "type": st.sampled_from(["function", "custom", None]),
        "function": st.one_of(
            st.fixed_dictionaries({"name": NAMES, "arguments": NAMES}, optional={"strict": st.booleans()}), st.none()
        ),
    },
    optional={"index": st.integers(0, 2), "custom": st.none()},
)


@pytest.mark.covers(True)
@given(
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={
            "content": st.sampled_from(["a", "", None, "<think>t</think>a", [], [{"type": "text", "text": "a"}], 0]),
            "tool_calls": st.one_of(st.lists(st.one_of(CALL, st.none()), max_size=3), st.none(), st.just({})),
        },
    )
)
@example({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": ANY_FUNCTION}]})
@example({"role": "assistant", "tool_calls": [{"id": None, "type": "function", "function": ANY_FUNCTION}]})
def test_usual_calls_read_as_those_that_are_put_together(message: dict[str, Any]) -> None:
    """Calls of any form and content of any kind give the drafts of the message with an empty field of reasoning."""
    origin = Origin("openai-chat", "https://api.example.org", "m")

    expected = assistant_drafts({**message, "reasoning_content": ""}, "r1", origin)

    assert expected == assistant_drafts(message, "r1", origin)


@given(st.lists(st.sampled_from([*(tag for pair in TAGS[:9] for tag in pair), "<", "`", "a", " ", "\ud83d", "\ude00"])))
def test_a_usual_answer_reads_as_one_that_is_put_together(pieces: list[str]) -> None:
    """A message of nothing but role and text gives the drafts of the same one with an empty field of reasoning."""
    usual = {"role": "assistant", "content": "".join(pieces)}
    origin = Origin("openai-chat", "https://api.example.org", "m")

    expected = assistant_drafts({**usual, "reasoning_content": ""}, "r1", origin)

    assert expected == assistant_drafts(usual, "r1", origin)


def test_results_without_ids_answer_the_calls_in_turn() -> None:
    """Each the first call that has no result yet, those of the messages before included; what is left over none."""
    function = {"type": "function", "function": ANY_FUNCTION}
    before = assistant_drafts({"role": "assistant", "tool_calls": [{"id": "a", **function}]}, "r0", UNKNOWN_ORIGIN)
    result = {"role": "tool", "content": "done"}
    calls = {"role": "assistant", "tool_calls": [{"id": "b", **function}, {"id": "c", **function}]}

    drafts = read_messages([calls, result, result, result, result], lambda: "r1", after=before)

    assert ["a", "b", "c", ""] == [draft.value.id for draft in drafts if isinstance(draft.value, ToolResult)]


@pytest.mark.parametrize("tools", [None, [], "tools"])
def test_a_request_without_tools_has_no_draft_of_them(tools: object) -> None:
    """Nor a model where none is named."""
    request = read_request({"messages": [], "tools": tools}, lambda: "r1")

    assert ("", (), {}) == (request.model, request.drafts, request.params)


@pytest.mark.parametrize("messages", [None, "text", 5])
def test_a_request_without_messages_is_refused(messages: object) -> None:
    """There is nothing to read."""
    with pytest.raises(WireError, match="no list of messages"):
        read_request({"messages": messages}, lambda: "r1")


TOOLS: list[tuple[Any, tuple[str, str, str]]] = [
    (FUNCTION, ("f", "d", '{"type":"object"}')),
    ({"type": "function", "function": {"name": "f"}}, ("f", "", "{}")),
    ({"type": "web_search"}, ("web_search", "", "{}")),
    ("odd", ("", "", "{}")),
]


@pytest.mark.parametrize(("wire", "expected"), TOOLS)
def test_a_tool_keeps_what_its_program_wrote(wire: Any, expected: tuple[str, str, str]) -> None:
    """Name, description and parameters where it is a function, else its type for a name."""
    assert Tool(*expected, wire=json.dumps(wire, separators=(",", ":")), dialect="openai-chat") == read_tool(wire)


PARTS: list[tuple[dict[str, Any], Media]] = [
    ({"type": "image_url", "image_url": {"url": "https://e.org/i"}}, Media("image/*", url="https://e.org/i")),
    ({"type": "image_url", "image_url": "https://e.org/i"}, Media("image/*", url="https://e.org/i")),
    ({"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}, Media("image/png", data="QQ==")),
    ({"type": "image_url", "image_url": {"url": "data:;base64,QQ=="}}, Media("image/*", data="QQ==")),
    (
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}},
        Media("image/*", url="data:image/svg+xml,<svg/>"),
    ),
    ({"type": "image_url", "image_url": 5}, Media("image/*")),
    ({"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}}, Media("audio/wav", data="QQ==")),
    ({"type": "input_audio", "input_audio": {"data": 5}}, Media("audio/*")),
    ({"type": "video_url", "video_url": {"url": "https://e.org/v"}}, Media("video/*", url="https://e.org/v")),
    (
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
        Media("application/pdf", data="QQ==", name="a.pdf"),
    ),
    ({"type": "file", "file": {"file_id": "f1"}}, Media("application/*")),
]


@pytest.mark.parametrize(("part", "expected"), PARTS)
def test_media_are_understood_and_kept_as_they_came(part: dict[str, Any], expected: Media) -> None:
    """Kind, data, address and name; the part itself goes out again verbatim."""
    [draft] = read_request({"messages": [{"role": "user", "content": [part]}]}, lambda: "r1").drafts
    assert isinstance(draft.value, Message)
    [media] = draft.value.parts
    assert isinstance(media, Media)

    assert expected == Media(media.media_type, media.data, media.url, media.name)
    assert part == json.loads(media.wire)
    assert "openai-chat" == draft.value.dialect


WRITTEN: list[tuple[Media, dict[str, Any]]] = [
    (Media("image/png", data="QQ=="), {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}),
    (Media("image/*", url="https://e.org/i"), {"type": "image_url", "image_url": {"url": "https://e.org/i"}}),
    (Media("video/mp4", url="https://e.org/v"), {"type": "video_url", "video_url": {"url": "https://e.org/v"}}),
    (Media("audio/wav", data="QQ=="), {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}}),
    (
        Media("application/pdf", data="QQ==", name="a.pdf"),
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
    ),
    (Media("text/plain", data="QQ=="), {"type": "file", "file": {"file_data": "data:text/plain;base64,QQ=="}}),
]


@pytest.mark.parametrize(("media", "expected"), WRITTEN)
def test_media_of_another_dialect_are_written_in_this_one(media: Media, expected: dict[str, Any]) -> None:
    """From data or address."""
    written = json.loads(write.message("user", Message("", (media,))))

    assert {"role": "user", "content": [expected]} == written


@pytest.mark.parametrize("media", [Media("audio/wav", url="https://e.org/a"), Media("image/png")])
def test_media_without_a_place_are_refused(media: Media) -> None:
    """The error names the kind and the way out."""
    with pytest.raises(UnsupportedContent) as refused:
        write.message("user", Message("", (media,)))

    assert {"media_type": media.media_type, "dialect": "openai-chat"} == refused.value.details


OPTIONS: list[tuple[WantedOptions, dict[str, Any]]] = [
    (WantedOptions(), {}),
    (WantedOptions(stream=True), {"stream": True, "stream_options": {"include_usage": True}}),
    (WantedOptions(stream=True, usage=False), {"stream": True}),
    (
        WantedOptions(schema={"type": "object"}, schema_name="x"),
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}},
    ),
]


@pytest.mark.parametrize(("wanted", "expected"), OPTIONS)
def test_options_are_native_parameters(wanted: WantedOptions, expected: dict[str, Any]) -> None:
    """Streaming with its usage, and the schema of the answer."""
    assert expected == options(wanted)


RESPONSES: list[dict[str, Any]] = [
    {"content": "a"},
    {"content": ""},
    {"content": None},
    {"refusal": "no", "content": None},
    {"reasoning": "t"},
    {"content": "a", "reasoning": "t", "reasoning_content": "t"},
    {"content": "<think>t</think>a"},
    {"content": "a", "reasoning_details": [{"type": "reasoning.text", "text": "t"}]},
    {"content": [{"type": "text", "text": "a"}, {"type": "x"}, {"type": "text", "text": "b", "n": 1}]},
    {
        "content": "a",
        "odd": 1,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}],
    },
]


@pytest.mark.parametrize("message", RESPONSES)
@pytest.mark.parametrize("top", [{}, {"usage": {"prompt_tokens": 1}, "created": 5}])
def test_a_response_can_be_put_together_again(message: dict[str, Any], top: dict[str, Any]) -> None:
    """Message, finish, usage and envelope are those of the wire."""
    raw = body({"role": "assistant", **message}, **top)

    assert json.loads(raw) == raw_response(read(raw))


def test_a_call_found_in_reasoning_is_not_said_again() -> None:
    """It stands in the text it was found in."""
    section = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_calls_section_end|>"
    )
    message = {"role": "assistant", "reasoning_content": f"t{section}", "content": "a"}

    assert message == raw_response(read(body(message)))["choices"][0]["message"]
    leaked = {"role": "assistant", "reasoning_content": f"t{section}"}
    assert leaked == raw_response(read(body(leaked), leaked="kimi"))["choices"][0]["message"]


def test_what_is_no_text_or_list_gives_way_to_what_is() -> None:
    """A stream that puts something else into the field of a text, or of the calls, is rebuilt from what was read."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    raw = stream({"content": "a"}, {"content": 1, "tool_calls": "x"}, {"tool_calls": [call]})

    (choice,) = raw_response(read(raw))["choices"]
    assert "a" == choice["message"]["content"]
    assert ["c1"] == [call["id"] for call in choice["message"]["tool_calls"]]
