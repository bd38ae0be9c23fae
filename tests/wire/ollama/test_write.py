"""The writer: messages and bodies as bytes, and histories read and written again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.ollama.feeding import ORIGIN, answer, body, call, read, rewritten
from thinkback.errors import UnsupportedContent, WireError
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import NOTHING, Carry
from thinkback.wire.ollama import write
from thinkback.wire.ollama.read_request import read_messages, read_request, read_tool

THOUGHT = ThinkingBlock("t", source_field="thinking")
CALL = ToolCall("c1", "f", '{"a" : 1.0}')
PLAIN = '{"id":"c1","function":{"name":"f","arguments":{"a" : 1.0}}}'

# name, content on the wire, blocks, carry, what follows the role; nothing: no message
ASSISTANT: list[tuple[str, str, list[Block], Carry, str]] = [
    ("plain text", "text", [Text("a"), Text("b")], NOTHING, '"content":"ab"'),
    ("nothing", "text", [], NOTHING, ""),
    ("thinking", "text", [THOUGHT, Text("a")], NOTHING, '"content":"a","thinking":"t"'),
    ("thinking alone", "absent", [THOUGHT], NOTHING, '"content":"","thinking":"t"'),
    (
        "thinking from elsewhere",
        "text",
        [THOUGHT, Text("a")],
        Carry(fields=("thinking",), text="u"),
        '"content":"a","thinking":"u"',
    ),
    (
        "tags where they stood",
        "text",
        [ThinkingBlock("t", source_field="content", closing="</think>"), Text("\n\na")],
        NOTHING,
        '"content":"t</think>\\n\\na"',
    ),
    ("a call", "absent", [CALL], NOTHING, f'"tool_calls":[{PLAIN}]'),
    ("a call, content null", "null", [CALL], NOTHING, f'"content":null,"tool_calls":[{PLAIN}]'),
    ("a call, content empty", "text", [THOUGHT, CALL], NOTHING, f'"content":"","thinking":"t","tool_calls":[{PLAIN}]'),
    ("a call verbatim", "absent", [ToolCall("c", "f", "{}", wire='{"x":1}')], NOTHING, '"tool_calls":[{"x":1}]'),
    (
        "arguments that are no object",
        "absent",
        [ToolCall("", "f", " "), ToolCall("", "f", "[1]"), ToolCall("", "f", "{a")],
        NOTHING,
        '"tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"f","arguments":{"arguments":"[1]"}}},'
        '{"function":{"name":"f","arguments":{"arguments":"{a"}}}]',
    ),
    ("an image", "absent", [Media("image/png", data="QQ==")], NOTHING, '"images":["QQ=="]'),
]


@pytest.mark.parametrize(
    ("name", "stood", "blocks", "carry", "expected"), ASSISTANT, ids=[case[0] for case in ASSISTANT]
)
def test_an_assistant_message_is_its_fields(
    name: str, stood: Any, blocks: list[Block], carry: Carry, expected: str
) -> None:
    """Content, reasoning where it stood, images, calls with their arguments as an object."""
    fragments = write.assistant(Response(ORIGIN, content=stood), blocks, carry)

    assert ([f'{{"role":"assistant",{expected}}}'] if expected else []) == [part.decode() for part in fragments]


OTHERS: list[tuple[bytes, str]] = [
    (write.top(Message("s")), '{"role":"system","content":"s"}'),
    (write.message("user", Message("x", wire='{"b":1}')), '{"b":1}'),
    (
        write.message("user", Message("ab", (Text("a"), Media("image/png", data="QQ=="), Text("b")))),
        '{"role":"user","content":"ab","images":["QQ=="]}',
    ),
    (
        b"|".join(
            write.results([ToolResult("c1", "r", "f"), ToolResult("", "r"), ToolResult("c", "", wire='{"x":1}')])
        ),
        '{"role":"tool","content":"r","tool_name":"f","tool_call_id":"c1"}|{"role":"tool","content":"r"}|{"x":1}',
    ),
    (write.end("m", (), (), {}), '],"model":"m"}'),
    (
        write.end(
            "m",
            (
                Tool("f", "d", '{"type": "object"}'),
                Tool("g", wire='{"g":1}'),
                Tool("h", "d"),
            ),
            (),
            {"options": {"y": 1, "x": 2}},
        ),
        '],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type": "object"}}},'
        '{"g":1},{"type":"function","function":{"name":"h","description":"d","parameters":{}}}],'
        '"model":"m","options":{"x":2,"y":1}}',
    ),
]


@pytest.mark.parametrize(("written", "expected"), OTHERS)
def test_other_messages_and_the_end_of_a_body(written: bytes, expected: str) -> None:
    """Source text goes out as it came; other tools are written from what is known."""
    assert expected == written.decode()


def test_every_message_stands_for_itself() -> None:
    """Nothing stands between two of them but a comma."""
    assert (b"", 1) == write.turn_over("tool", "user")
    assert b"," == write.separator


@pytest.mark.parametrize(
    ("part", "media_type"),
    [
        (Media("image/png", url="https://e.org/i"), "image/png"),
        (Media("audio/wav", data="QQ=="), "audio/wav"),
        (Media("image/png"), "image/png"),
        (Unknown("{}"), ""),
    ],
)
def test_parts_without_a_place_are_refused(part: Any, media_type: str) -> None:
    """Only images as data have one; the error says so."""
    with pytest.raises(UnsupportedContent, match="takes images as data") as refused:
        write.message("user", Message("", (part,)))

    assert {"media_type": media_type, "dialect": "ollama"} == refused.value.details


FUNCTION = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
TYPED = {"type": "function", **call({"a": 1}, "", index=0)}
HISTORY: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u", "images": ["QQ=="]},
        {"role": "user", "content": "u", "images": []},
        {"role": "user", "content": "u", "images": ["QQ==", 5]},
        {"role": "user", "images": ["QQ=="]},
        {"role": "assistant", "content": "", "thinking": "t", "tool_calls": [call({"b": 1.5}, "c1")]},
        {"role": "tool", "content": "r", "tool_name": "f", "tool_call_id": "c1"},
        {"role": "assistant", "content": "", "tool_calls": [TYPED, call({}, "", "g")]},
        {"role": "tool", "content": "r", "tool_name": "g"},
        {"role": "tool", "content": "r"},
        {"role": "assistant", "tool_calls": [call({}, "c2")]},
        {"role": "tool", "content": [1], "name": "f"},
        {"role": "tool", "content": "r", "tool_call_id": "c9"},
        {"role": "assistant", "content": "<think>t</think>a"},
    ],
    "tools": [FUNCTION, {"type": "new"}],
    "model": "m",
    "think": True,
    "options": {"temperature": 0.5},
    "stream": False,
}


def test_a_request_that_is_read_and_written_is_the_same() -> None:
    """Messages, tools and parameters."""
    assert HISTORY == rewritten(HISTORY)


def test_a_request_is_read_into_drafts_and_results_find_their_calls() -> None:
    """By id, by tool, or in order; each is tied to the response whose call it answers."""
    request = read_request(HISTORY, iter(["r1", "r2", "r3", "r4"]).__next__)
    results = [
        (draft.response, draft.value.id, draft.value.name)
        for draft in request.drafts
        if isinstance(draft.value, ToolResult)
    ]

    assert ["tools", "system", "user", "user"] == [draft.kind for draft in request.drafts[:4]]
    assert ("m", {"think": True, "options": {"temperature": 0.5}, "stream": False}) == (request.model, request.params)
    assert [("r1", "c1", "f"), ("r2", "", "g"), ("r2", "", "f"), ("r3", "c2", "f"), ("", "c9", "")] == results


def test_images_of_a_message_are_media() -> None:
    """Data in base64, of a kind that is not said."""
    [draft] = read_messages([HISTORY["messages"][1]], lambda: "r1")

    assert Message("u", (Text("u"), Media("image/*", data="QQ=="))) == draft.value


def test_results_find_the_calls_of_what_came_before() -> None:
    """Those that have no result yet."""
    after = read_messages(
        [
            {"role": "assistant", "content": "", "tool_calls": [call({}, "c1"), call({}, "c2")]},
            {"role": "tool", "content": "r", "tool_call_id": "c1"},
            {"role": "tool", "content": "r", "tool_call_id": "c7"},
        ],
        lambda: "r1",
    )
    [found] = read_messages([{"role": "tool", "content": "r", "tool_name": "f"}], lambda: "r2", after=after)

    assert ("r1", "c2") == (found.response, found.value.id)  # type: ignore[union-attr]


@pytest.mark.parametrize("message", [{"role": "developer"}, {}, "text", None])
def test_a_message_that_is_none_is_refused_by_its_place(message: object) -> None:
    """The error names the message and the roles there are."""
    with pytest.raises(WireError, match=r"messages\[1\]") as refused:
        read_messages([{"role": "user", "content": "u"}, message], lambda: "r1")

    assert {"message": 1} == refused.value.details


@pytest.mark.parametrize("messages", [None, "text"])
def test_a_request_without_messages_is_refused(messages: object) -> None:
    """There is nothing to read."""
    with pytest.raises(WireError, match="no list of messages"):
        read_request({"messages": messages, "tools": []}, lambda: "r1")


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (FUNCTION, ("f", "d", '{"type":"object"}')),
        ({"function": {}}, ("", "", "{}")),
        ({"type": "new"}, ("new", "", "{}")),
        ("odd", ("", "", "{}")),
    ],
)
def test_a_tool_keeps_what_its_program_wrote(wire: Any, expected: tuple[str, str, str]) -> None:
    """Name, description and parameters where it is a function, else its type for a name."""
    assert Tool(*expected, wire=json.dumps(wire, separators=(",", ":")), dialect="ollama") == read_tool(wire)


CALLS = st.lists(
    st.builds(
        call, st.dictionaries(st.text(max_size=3), st.integers(-9, 9) | st.text(max_size=3)), st.text(max_size=3)
    ),
    max_size=2,
)


@given(st.text(), st.text(min_size=1), CALLS)
def test_a_message_that_is_read_goes_back_as_it_was(content: str, thinking: str, calls: list[Any]) -> None:
    """Content with whatever tags, thinking and calls."""
    message = {"content": content, "thinking": thinking, **({"tool_calls": calls} if calls else {})}

    assert {"role": "assistant", **message} == answer(read(body(message), "json"))
