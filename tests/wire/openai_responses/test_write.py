"""Requests: items in the order of their response, opaque values as they came, nothing that only a response may have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.openai_responses.feeding import (
    ORIGIN,
    call,
    custom,
    message,
    raw_thought,
    read_body,
    reasoning,
    response,
)
from thinkback.errors import UnsupportedContent
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import NOTHING
from thinkback.wire.openai_responses import write
from thinkback.wire.openai_responses.parameters import options
from thinkback.wire.result import WantedOptions

OPAQUE = "gAAA/+=="

# name, output item, input item
ITEMS: list[tuple[str, Any, Any]] = [
    ("what is hidden", reasoning(content=[], encrypted_content=OPAQUE), reasoning(encrypted_content=OPAQUE)),
    ("titles", reasoning("**a**\n\nb", "**c**", content=[]), reasoning("**a**\n\nb", "**c**")),
    ("a summary", reasoning("s", encrypted_content=OPAQUE), reasoning("s", encrypted_content=OPAQUE)),
    ("a status", reasoning("s", status="completed"), reasoning("s")),
    ("nulls", reasoning(content=None, encrypted_content=None), reasoning()),
    ("no summary", {"type": "reasoning", "id": "rs_1", "summary": None}, reasoning()),
    ("raw thought", reasoning(status="completed", content=raw_thought("t")), reasoning(content=raw_thought("t"))),
    ("several parts", reasoning("a", "b", x=1.50), reasoning("a", "b", x=1.5)),
    (
        "a message",
        message("a", phase="commentary"),
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a", "annotations": []}],
            "phase": "commentary",
        },
    ),
    (
        "a message verbatim",
        message(content=[{"type": "output_text", "text": "a", "annotations": [{"n": 1}]}]),
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a", "annotations": [{"n": 1}]}],
        },
    ),
    (
        "a refusal",
        message(content=[{"type": "refusal", "refusal": "no"}]),
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ),
    (
        "a call",
        call('{"a": 1.0}'),
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a": 1.0}'},
    ),
    (
        "a call with a namespace",
        call(namespace="n"),
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "f",
            "arguments": "{}",
            "namespace": "n",
        },
    ),
    (
        "a custom call",
        custom("ls"),
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "shell", "input": "ls"},
    ),
    (
        "an unknown item",
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ),
]


@pytest.mark.parametrize(("name", "output", "item"), ITEMS, ids=[case[0] for case in ITEMS])
def test_an_output_item_goes_back_as_an_input_item(name: str, output: Any, item: Any) -> None:
    """The same item without what only a response may have."""
    found = read_body(response(output))

    assert [item] == [json.loads(fragment) for fragment in write.assistant(found.response, found.blocks, NOTHING)]


# name, block without id and wire, input item
BARE: list[tuple[str, Block, Any]] = [
    ("text", Text("a"), {"role": "assistant", "content": "a"}),
    (
        "text with its phase",
        Text("a", carriers=(Carrier("phase", "final_answer"),)),
        {"role": "assistant", "content": "a", "phase": "final_answer"},
    ),
    ("a refusal", Text("no", source_field="refusal"), {"role": "assistant", "content": "no"}),
    ("no text", Text(""), None),
    (
        "reasoning without its id",
        ThinkingBlock("s", kind="summary", carriers=(Carrier("encrypted", OPAQUE),)),
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": OPAQUE},
    ),
    ("readable reasoning", ThinkingBlock("t"), {"type": "reasoning", "summary": [], "content": raw_thought("t")}),
    ("no reasoning", ThinkingBlock("", kind="none"), None),
    ("a call", ToolCall("c1", "f", "x"), {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "x"}),
    (
        "a custom call",
        ToolCall("c1", "f", "x", source_field="custom_tool_call"),
        {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "x"},
    ),
    ("an image of this dialect", Media("image/*", wire='{"x":1}'), {"x": 1}),
]


@pytest.mark.parametrize(("name", "block", "item"), BARE, ids=[case[0] for case in BARE])
def test_a_block_without_its_ties_is_told_plainly(name: str, block: Block, item: Any) -> None:
    """What is left is written in the short form; what says nothing is not written."""
    written = write.assistant(Response(ORIGIN), [block], NOTHING)

    assert ([] if item is None else [item]) == [json.loads(fragment) for fragment in written]


def test_nested_source_text_is_spliced() -> None:
    """A number or an escape inside a verbatim item is not written in another way."""
    wire = '{"type":"reasoning","status":"x","summary":[],"encrypted_content":"a\\/b","n":1.50}'
    block = ThinkingBlock("", kind="none", wire=wire)

    assert b'{"type":"reasoning","summary":[],"encrypted_content":"a\\/b","n":1.50}' == write.write_item(block)
    assert b'{"n":12345678901234567890123}' == write.write_item(Unknown('{"n":12345678901234567890123}'))


def test_ids_that_do_not_fit_are_replaced_alike_in_calls_and_results() -> None:
    """Too long or of other characters: the same substitute everywhere, verbatim items included; others stay."""
    fits, colon, odd, long = "call_a-B", "resp_1:call_0", "functions.f:0", "x" * 65
    assert (fits, colon) == (write.call_id(fits), write.call_id(colon))
    for id in (odd, long, ""):
        given = write.call_id(id)
        assert given == write.call_id(given)
        wire = json.dumps({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
        output = json.dumps({"type": "function_call_output", "call_id": id, "output": "o", "x": 1})
        calls = [ToolCall(id, "f", "{}"), ToolCall(id, "f", "{}", wire=wire)]
        answers = [ToolResult(id, "o"), ToolResult(id, "o", wire=output)]
        written = [*write.assistant(Response(ORIGIN), calls, NOTHING), *write.results(answers)]
        assert [given] * 4 == [json.loads(fragment)["call_id"] for fragment in written]
    assert write.call_id(odd) != write.call_id(long)


def test_results_are_items() -> None:
    """One per call, verbatim where it was adopted."""
    wire = '{"type":"custom_tool_call_output","call_id":"c2","output":"o"}'

    assert (
        b'{"type":"function_call_output","call_id":"c1","output":"o"}',
        wire.encode(),
    ) == write.results([ToolResult("c1", "o"), ToolResult("c2", "o", wire=wire)])


# parts, content
PARTS: list[tuple[Any, Any]] = [
    (Text("a"), {"type": "input_text", "text": "a"}),
    (Text("a", wire='{"x":1}'), {"x": 1}),
    (Unknown('{"x":1}'), {"x": 1}),
    (Media("image/*", wire='{"x":1}'), {"x": 1}),
    (Media("image/png", data="aa"), {"type": "input_image", "image_url": "data:image/png;base64,aa"}),
    (Media("image/*", url="https://x"), {"type": "input_image", "image_url": "https://x"}),
    (Media("audio/mp3", data="aa"), {"type": "input_audio", "input_audio": {"data": "aa", "format": "mp3"}}),
    (
        Media("application/pdf", data="aa", name="n"),
        {"type": "input_file", "file_data": "data:application/pdf;base64,aa", "filename": "n"},
    ),
    (Media("text/csv", data="aa"), {"type": "input_file", "file_data": "data:text/csv;base64,aa"}),
    (Media("application/pdf", url="https://x"), {"type": "input_file", "file_url": "https://x"}),
]


@pytest.mark.parametrize(("part", "written"), PARTS)
def test_a_user_says_text_and_media(part: Any, written: Any) -> None:
    """Each part in the words of this dialect."""
    found = json.loads(write.message("user", Message("", (part, Text("b")))))

    assert {"role": "user", "content": [written, {"type": "input_text", "text": "b"}]} == found


@pytest.mark.parametrize(
    "media",
    [
        Media("video/mp4", data="aa"),
        Media("video/*", url="https://x"),
        Media("audio/mp3", url="https://x"),
        Media("image/*"),
        Media("application/*"),
    ],
)
def test_media_without_a_place_is_refused_before_the_network(media: Media) -> None:
    """The type is named, in a message as in a response."""
    with pytest.raises(UnsupportedContent, match=f"takes no {media.media_type[:5]}"):
        write.message("user", Message("", (media,)))
    with pytest.raises(UnsupportedContent):
        write.assistant(Response(ORIGIN), [media], NOTHING)


def test_the_body_begins_with_its_input() -> None:
    """Input, instructions, tools, model, parameters."""
    tools = [
        Tool("f", "d", '{"type": "object"}'),
        Tool("web_search", wire='{"type":"web_search"}', dialect="openai-responses"),
        Tool("own", wire='{"type":"custom","name":"own"}'),
        Tool("g", "d", "{}", wire='{"type":"function","function":{"name":"g"}}'),
    ]
    system = [write.top(Message("a")), write.top(Message("b"))]
    messages = [write.message("system", Message("s")), write.message("user", Message("u", wire='{"role":"user"}'))]
    body = write.start + write.separator.join(messages) + write.end("m", tools, system, {"store": False})

    def plain(name: str) -> str:
        return '{"type":"function","name":"' + name + '","description":"d","parameters":{}}'

    assert (
        '{"input":[{"role":"system","content":"s"},{"role":"user"}],"instructions":"a\\n\\nb","tools":['
        '{"type":"function","name":"f","description":"d","parameters":{"type": "object"}},'
        '{"type":"web_search"},{"type":"custom","name":"own"},'
        f'{plain("g")}],"model":"m","store":false}}'
    ) == body.decode()
    assert b'],"model":"m"}' == write.end("m", [], [], {})
    assert (b"", 1) == write.turn_over("user", "user")


def test_what_a_caller_wants_is_said_in_native_parameters() -> None:
    """A stream brings its usage unasked; a schema has a name."""
    assert {} == options(WantedOptions())
    assert {"stream": True, "text": {"format": {"type": "json_schema", "name": "n", "schema": {"a": 1}}}} == options(
        WantedOptions(stream=True, schema={"a": 1}, schema_name="n")
    )
