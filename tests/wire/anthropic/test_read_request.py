"""Requests as programs hold them, read into drafts and written again."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.wire.anthropic.feeding import adopt, merged, rewrite
from thinkback.errors import WireError
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.wire.anthropic.read_request import UNKNOWN_ORIGIN, read_messages, read_tool

MARK = {"cache_control": {"type": "ephemeral"}}
TEXT = {"type": "text", "text": "a"}
THINKING = {"type": "thinking", "thinking": "t", "signature": "S"}
REDACTED = {"type": "redacted_thinking", "data": "E1"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"b": 1.0, "a": []}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "4 °C"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
LINKED = {"type": "image", "source": {"type": "url", "url": "https://x/y"}}
FILED = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}, "title": "f"}
PLAIN = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é"}}
CITED = {**PLAIN, "citations": {"enabled": True}}
WRONG = {"type": "document", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
NONE = {"type": "image", "source": None}


def user(*blocks: Any, **more: Any) -> dict[str, Any]:
    """A user message with blocks."""
    return {"role": "user", "content": list(blocks), **more}


def said(*blocks: Any) -> dict[str, Any]:
    """An assistant message with blocks."""
    return {"role": "assistant", "content": list(blocks)}


BODIES: list[tuple[str, dict[str, Any]]] = [
    ("text", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 5}),
    ("blocks", {"messages": [user(TEXT, {**TEXT, **MARK}), {"role": "assistant", "content": "b"}, user(TEXT)]}),
    ("a message with a mark", {"messages": [user(TEXT, **MARK), {"role": "user", "content": "a", **MARK}]}),
    ("an empty message", {"messages": [user()]}),
    ("system text", {"system": "s", "messages": []}),
    ("system blocks", {"system": [TEXT, {**TEXT, **MARK}, {"type": "new", "x": 1.0}], "messages": []}),
    ("no system", {"system": "", "messages": []}),
    (
        "a system message later on",
        {
            "messages": [
                user(TEXT),
                {"role": "system", "content": [{"type": "tool_addition", "tool": {"name": "g"}}]},
                {"role": "system", "content": "from now on"},
                said(TEXT),
            ]
        },
    ),
    (
        "a tool loop",
        {
            "messages": [
                user(TEXT),
                said(THINKING, REDACTED, TEXT, CALL, {**CALL, "id": "toolu_2", "caller": {"type": "direct"}}),
                user(RESULT, {**RESULT, "tool_use_id": "toolu_2", "is_error": True}),
                said({"type": "thinking", "thinking": "", "signature": "T"}, {"type": "text", "text": "\n\n"}),
            ]
        },
    ),
    (
        "results of every kind",
        {
            "messages": [
                user(
                    {**RESULT, "is_error": False},
                    {**RESULT, "content": [TEXT, TEXT]},
                    {**RESULT, "content": [IMAGE]},
                    {**RESULT, **MARK},
                    {"type": "tool_result", "tool_use_id": "x"},
                    TEXT,
                    IMAGE,
                )
            ]
        },
    ),
    ("images", {"messages": [user(IMAGE, LINKED, FILED, {**IMAGE, **MARK}, NONE)]}),
    ("documents", {"messages": [user(PDF, PLAIN, CITED, WRONG)]}),
    (
        "tools that the provider runs",
        {"messages": [said({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"a": 1.0}})]},
    ),
    (
        "tools",
        {
            "tools": [
                {"name": "f", "description": "does", "input_schema": {"type": "object", "properties": {}}},
                {"name": "g", "input_schema": {"type": "object"}},
                {"name": "h", "input_schema": {}},
                {"name": "i", "description": "does", "input_schema": {"type": "object"}, **MARK},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            "messages": [],
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "high"},
        },
    ),
]


@pytest.mark.parametrize(("name", "body"), BODIES, ids=[case[0] for case in BODIES])
def test_a_request_that_was_read_is_written_again(name: str, body: dict[str, Any]) -> None:
    """The same JSON value, but that neighbouring user messages are one and a system text is a list."""
    request = {"model": "m", **body}
    expected = merged(request)
    if not body.get("system", "x"):
        del expected["system"]

    assert expected == merged(rewrite(adopt(request)))


def test_an_id_that_does_not_fit_is_changed_in_call_and_result_alike() -> None:
    """Hosts of the dialect have ids of their own; what was kept verbatim is no exception."""
    call, result = {**CALL, "id": "functions.f:0"}, {**RESULT, "tool_use_id": "functions.f:0"}
    messages = [said(call, {**call, **MARK}), user(result, {**result, "is_error": False})]

    written = rewrite(adopt({"model": "m", "messages": messages}))["messages"]

    ids = {block.get("id", block.get("tool_use_id")) for message in written for block in message["content"]}
    assert 1 == len(ids)
    assert [MARK["cache_control"], False] == [
        written[0]["content"][1]["cache_control"],
        written[1]["content"][1]["is_error"],
    ]


def test_drafts_say_what_was_understood() -> None:
    """Tools and system first, responses with their blocks, results with the names of their calls before other parts."""
    body = {
        "model": "m",
        "system": [TEXT],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [
            said({**THINKING, **MARK}, CALL),
            {"role": "assistant", "content": "b", "id": "msg_1"},
            user(TEXT, RESULT, PLAIN),
        ],
    }

    request = adopt(body)

    assert ("m", {}) == (request.model, request.params)
    assert (
        Draft("tools", Tools((Tool("f", "", '{"type":"object"}'),))),
        Draft("system", Message("a", (Text("a"),))),
        Draft("response", Response(UNKNOWN_ORIGIN, blocks=2), "r1"),
        Draft("reasoning", ThinkingBlock("t", source_field="thinking", signature="S"), "r1", 0),
        Draft("tool_call", ToolCall("toolu_1", "f", '{"b":1.0,"a":[]}'), "r1", 1),
        Draft("response", Response(UNKNOWN_ORIGIN, content="text", message='{"id":"msg_1"}', blocks=1), "r2"),
        Draft("assistant", Text("b"), "r2", 0),
        Draft("tool_result", ToolResult("toolu_1", "4 °C", "f")),
        Draft("user", Message("a", (Text("a"), Media("text/plain", data="w6k=")))),
    ) == request.drafts


def test_a_result_is_told_in_words_to_other_dialects() -> None:
    """Its texts joined, or the source of what is no text; the name is that of a call that came before."""
    before = [Draft("tool_call", ToolCall("toolu_1", "f", "{}"), "r1", 0)]
    contents: list[Any] = [[TEXT, TEXT], [TEXT, IMAGE], None]
    count = itertools.count()

    drafts = read_messages(
        [user(*({**RESULT, "content": content} for content in contents))], lambda: str(next(count)), after=before
    )

    results = [draft.value for draft in drafts if isinstance(draft.value, ToolResult)]
    expected = ["aa", json.dumps([TEXT, IMAGE], separators=(",", ":")), ""]
    assert expected == [result.content for result in results]
    assert {"f"} == {result.name for result in results}
    assert {"anthropic"} == {result.dialect for result in results}


def test_an_empty_answer_has_no_blocks() -> None:
    """And no message is written for it."""
    assert [Draft("response", Response(UNKNOWN_ORIGIN, content="text"), "r")] == read_messages(
        [{"role": "assistant", "content": ""}], lambda: "r"
    )


def test_unknown_parts_stay_verbatim() -> None:
    """Parts of a user message that are neither text nor media, and texts that are none."""
    parts = [{"type": "container_upload", "file_id": "file_1"}, {"type": "text", "text": None}]

    (draft,) = read_messages([user(*parts)], lambda: "r")

    sources = [json.dumps(part, separators=(",", ":")) for part in parts]
    assert Message("", tuple(map(Unknown, sources)), dialect="anthropic") == draft.value


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "bash_1"}, Tool("bash_1", wire='{"type":"bash_1"}', dialect="anthropic")),
        ("x", Tool("", wire='"x"', dialect="anthropic")),
        ({}, Tool("", wire="{}", dialect="anthropic")),
    ],
)
def test_a_tool_without_a_schema_is_kept_verbatim(tool: Any, expected: Tool) -> None:
    """The provider runs it, and knows what it is."""
    assert expected == read_tool(tool)


BAD: list[tuple[Any, str]] = [
    ({"messages": "x"}, "no list of messages"),
    ({}, "no list of messages"),
    ({"messages": [], "system": 5}, "system cannot be adopted"),
    ({"messages": [user(), "x"]}, "messages[1] cannot be adopted: role None"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0] cannot be adopted: role 'tool'"),
    ({"messages": [{"role": "user"}]}, "messages[0] cannot be adopted: its content"),
    ({"messages": [{"role": "assistant", "content": ["x"]}]}, "messages[0] cannot be adopted: its content"),
]


@pytest.mark.parametrize(("body", "says"), BAD)
def test_a_request_that_is_none_is_refused_with_its_place(body: Any, says: str) -> None:
    """The error names what cannot be read."""
    with pytest.raises(WireError) as refused:
        adopt(body)

    assert says in refused.value.message
