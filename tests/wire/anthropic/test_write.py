"""The request writer: blocks, messages, results, tools and bodies as bytes."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from tests.wire.anthropic.feeding import ORIGIN
from thinkback.errors import UnsupportedContent
from thinkback.model.blocks import Block, Carrier, Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Failure, Message, Response, Tool
from thinkback.model.plan import NOTHING
from thinkback.wire.anthropic import write
from thinkback.wire.anthropic.blocks import wire_object
from thinkback.wire.anthropic.events import read_failure
from thinkback.wire.anthropic.parameters import options
from thinkback.wire.result import WantedOptions

FOREIGN = Origin("openai-chat", "https://api.example.org/v1", "model")
SIGNED = ThinkingBlock("t", source_field="thinking", signature="S")
NOTED = '{"type": "text", "text": "n", "citations": [1.0]}'
ODD = "functions.f:0"

# name, dialect of the response, how its content stood, blocks, the message's content
ASSISTANT: list[tuple[str, Origin, Any, list[Block], str]] = [
    ("text", ORIGIN, "absent", [Text("a"), Text("b")], '[{"type":"text","text":"a"},{"type":"text","text":"b"}]'),
    ("a string as it was", ORIGIN, "text", [Text("a")], '"a"'),
    ("a string that was changed", ORIGIN, "text", [Text("a", wire=NOTED)], f"[{NOTED}]"),
    (
        "a string and more",
        ORIGIN,
        "text",
        [Text("a"), Unknown('{"x": 1.0}')],
        '[{"type":"text","text":"a"},{"x": 1.0}]',
    ),
    ("a string of another dialect", FOREIGN, "text", [Text("a")], '[{"type":"text","text":"a"}]'),
    (
        "signed thinking in its place",
        ORIGIN,
        "absent",
        [Text("\n\n"), SIGNED, Text("a")],
        '[{"type":"text","text":"\\n\\n"},{"type":"thinking","thinking":"t","signature":"S"},{"type":"text","text":"a"}]',
    ),
    (
        "empty signed thinking, and redacted",
        ORIGIN,
        "absent",
        [
            ThinkingBlock("", source_field="thinking", signature="S", kind="none"),
            ThinkingBlock("", source_field="redacted_thinking", kind="none", carriers=(Carrier("redacted", "E1"),)),
        ],
        '[{"type":"thinking","thinking":"","signature":"S"},{"type":"redacted_thinking","data":"E1"}]',
    ),
    (
        "thinking that was never signed",
        ORIGIN,
        "absent",
        [ThinkingBlock("t"), ThinkingBlock("u", source_field="thinking")],
        '[{"type":"thinking","thinking":"t"},{"type":"thinking","thinking":"u","signature":""}]',
    ),
    (
        "verbatim thinking",
        ORIGIN,
        "absent",
        [ThinkingBlock("t", wire='{"type": "thinking", "thinking": "t"}')],
        '[{"type": "thinking", "thinking": "t"}]',
    ),
    ("empty text goes", ORIGIN, "absent", [Text(""), Text("a")], '[{"type":"text","text":"a"}]'),
    ("blank text of others goes", FOREIGN, "text", [Text("\n"), Text("a")], '[{"type":"text","text":"a"}]'),
    (
        "a call, its input spliced",
        ORIGIN,
        "absent",
        [ToolCall("toolu_1", "f", '{"a":  1.0}')],
        '[{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":  1.0}}]',
    ),
    (
        "arguments that are no object",
        FOREIGN,
        "null",
        [ToolCall("c1", "f", " "), ToolCall("c2", "f", "[1]")],
        '[{"type":"tool_use","id":"c1","name":"f","input":{}},'
        '{"type":"tool_use","id":"c2","name":"f","input":{"arguments":"[1]"}}]',
    ),
    (
        "a verbatim call",
        ORIGIN,
        "absent",
        [ToolCall("c1", "f", "{}", wire='{"id": "c1", "caller": {"a": 1.0}}')],
        '[{"id": "c1", "caller": {"a": 1.0}}]',
    ),
    (
        "a verbatim call with an id that does not fit",
        ORIGIN,
        "absent",
        [ToolCall(ODD, "f", "{}", wire=f'{{"id": "{ODD}", "input": {{"a": 1.0}}}}')],
        f'[{{"id":"{write.call_id(ODD)}","input":{{"a": 1.0}}}}]',
    ),
    ("a verbatim picture", ORIGIN, "absent", [Media("image/png", wire='{"x":1}')], '[{"x":1}]'),
]


@pytest.mark.parametrize(
    ("name", "origin", "stood", "blocks", "expected"), ASSISTANT, ids=[case[0] for case in ASSISTANT]
)
def test_an_assistant_message_has_its_blocks_in_order(
    name: str, origin: Origin, stood: Any, blocks: list[Block], expected: str
) -> None:
    """Blocks verbatim or rebuilt; nothing is moved, merged or invented."""
    written = write.assistant(Response(origin, content=stood), blocks, NOTHING)

    assert [f'{{"role":"assistant","content":{expected}}}'] == [fragment.decode() for fragment in written]


@pytest.mark.parametrize("blocks", [[], [Text("")]])
def test_a_message_without_anything_to_say_is_none(blocks: list[Block]) -> None:
    """A message must not be empty."""
    assert () == write.assistant(Response(ORIGIN), blocks, NOTHING)


def test_a_picture_that_another_model_made_has_no_place_in_an_assistant_message() -> None:
    """It is refused before the network, with what to do."""
    with pytest.raises(UnsupportedContent, match="holds no media"):
        write.assistant(Response(FOREIGN), [Media("image/png", data="AA==")], NOTHING)


IMAGE = '{"type":"image","source":{"data":"AA==","media_type":"image/png","type":"base64"}}'
LINKED = '{"type":"image","source":{"type":"url","url":"https://x/y"}}'
PDF = '{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}'
NAMED = '{"type":"document","source":{"data":"AA==","media_type":"application/pdf","type":"base64"},"title":"f.pdf"}'
PLAIN = '{"type":"document","source":{"data":"é","media_type":"text/plain","type":"text"},"title":"n"}'
MESSAGES = [
    (Message("a"), '"a"'),
    (Message("", (Text("a"), Text(""))), '[{"type":"text","text":"a"}]'),
    (Message("", (Text("a", wire=NOTED), Unknown('{"x": 1.0}'))), f'[{NOTED},{{"x": 1.0}}]'),
    (Message("", (Media("image/png", data="AA=="),)), f"[{IMAGE}]"),
    (Message("", (Media("image/*", url="https://x/y"),)), f"[{LINKED}]"),
    (Message("", (Media("application/pdf", url="https://x/y.pdf"),)), f"[{PDF}]"),
    (Message("", (Media("application/pdf", data="AA==", name="f.pdf"),)), f"[{NAMED}]"),
    (Message("", (Media("text/csv", data=base64.b64encode("é".encode()).decode(), name="n"),)), f"[{PLAIN}]"),
    (Message("", (Media("image/*", wire='{"x":1}'),)), '[{"x":1}]'),
]


@pytest.mark.parametrize(("message", "content"), MESSAGES)
def test_a_user_message_has_text_or_parts(message: Message, content: str) -> None:
    """Parts as they came, images and documents as blocks of their own kind; an empty text is no part."""
    written = json.loads(write.message("user", message))

    assert {"role": "user", "content": json.loads(content)} == written


def test_verbatim_pieces_are_spliced() -> None:
    """Source text of messages and parts goes out to the byte."""
    assert b'{"role": "user", "x": 1.0}' == write.message("user", Message("", wire='{"role": "user", "x": 1.0}'))
    assert NOTED.encode() in write.message("user", Message("", (Text("n", wire=NOTED),)))


@pytest.mark.parametrize(
    ("media", "says"),
    [
        (Media("audio/wav", data="AA=="), "not audio/wav"),
        (Media("text/plain", url="https://x/y"), "as data, not by address"),
        (Media("image/png"), "no content"),
        (Media("application/pdf"), "no content"),
        (Media("text/plain", data="?"), "not UTF-8 in base64"),
        (Media("text/plain", data="/w=="), "not UTF-8 in base64"),
    ],
)
def test_media_without_a_place_is_refused(media: Media, says: str) -> None:
    """Before the network, with the type and what to do."""
    with pytest.raises(UnsupportedContent, match=re.escape(says)) as refused:
        write.message("user", Message("", (media,)))

    assert media.media_type == refused.value.details["media_type"]
    assert refused.value.next_actions


def test_system_messages_stand_on_top_or_later_in_the_conversation() -> None:
    """Each on top is a block of ``system``, one without text is none; a later one is a message."""
    messages = [Message("a"), Message("bc", (Text("b"), Text("c", wire=NOTED))), Message("")]

    body = json.loads(write.start + write.end("m", [], [write.top(message) for message in messages], {}))

    assert [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, json.loads(NOTED)] == body["system"]
    assert b'{"role":"system","content":"a"}' == write.message("system", Message("a"))


def test_all_results_of_a_response_are_one_user_message() -> None:
    """Parallel results stay together; an error is said; an id that does not fit becomes that of its call."""
    given = [
        ToolResult("toolu_1", "a"),
        ToolResult(ODD, "b", is_error=True),
        ToolResult("c", "", wire='{"type": "tool_result", "tool_use_id": "c"}', dialect="anthropic"),
    ]

    written = write.results(given)

    assert (
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"a"},'
        b'{"type":"tool_result","tool_use_id":"%b","content":"b","is_error":true},'
        b'{"type": "tool_result", "tool_use_id": "c"}]}' % write.call_id(ODD).encode(),
    ) == written
    assert () == write.results([])


@pytest.mark.parametrize("id", ["toolu_01A-b", "a" * 64])
def test_an_id_that_fits_stays(id: str) -> None:
    """Ids of the provider, and of others in its alphabet."""
    assert id == write.call_id(id)


@pytest.mark.parametrize("id", ["", "functions.f:0", "a" * 65, "é", "a\n", "\ud83d"])
def test_any_other_id_becomes_one_that_fits(id: str) -> None:
    """The same one each time, and another for another id."""
    fitting = write.call_id(id)

    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", fitting)
    assert fitting == write.call_id(id) != write.call_id(id + "x")


TOOLS = [
    (Tool("f", "does", '{"type": "object"}'), '{"name":"f","description":"does","input_schema":{"type": "object"}}'),
    (Tool("f"), '{"name":"f","input_schema":{"type":"object"}}'),
    (Tool("s", wire='{"type": "s_1", "name": "s"}', dialect="anthropic"), '{"type": "s_1", "name": "s"}'),
    (Tool("s", wire='{"name": "s"}'), '{"name": "s"}'),
]


@pytest.mark.parametrize(("tool", "expected"), TOOLS)
def test_a_tool_is_written_from_what_is_known_of_it(tool: Tool, expected: str) -> None:
    """Verbatim where it came so, else from name, description and schema."""
    assert (
        f'],"tools":[{expected}],"model":"m","max_tokens":5}}' == write.end("m", [tool], [], {"max_tokens": 5}).decode()
    )


def test_every_message_stands_for_itself() -> None:
    """Nothing stands between two messages but the separator."""
    assert (b"", 1) == write.turn_over("user", "user")


def test_options_are_those_of_the_dialect() -> None:
    """A stream has its usage anyway; a schema is a format of the output."""
    schema = {"type": "object"}

    assert {} == options(WantedOptions())
    assert {
        "stream": True,
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    } == options(WantedOptions(stream=True, schema=schema))


def test_what_is_no_content_block_has_no_object() -> None:
    """Media and unknown items go verbatim or not at all."""
    assert "null" == wire_object(Media("image/png"))


def test_a_value_of_another_dialect_is_no_part_of_a_thinking_block() -> None:
    """The object that is made anew has the words of the Messages API alone."""
    block = ThinkingBlock("Hm.", source_field="thinking", carriers=(Carrier("encrypted", "b3BhcXVl"),))
    assert {"type": "thinking", "thinking": "Hm.", "signature": ""} == json.loads(wire_object(block))


FAILURES: list[tuple[Any, Failure]] = [
    (
        {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}, "request_id": "r"},
        Failure("no", 400, "invalid_request_error"),
    ),
    ([{"error": {"code": 400, "message": "no", "status": "X"}}], Failure("no", 400, "X", "400")),
    ({"message": "no"}, Failure("no", 400)),
    ({"detail": [{"msg": "no"}]}, Failure('[{"msg":"no"}]', 400)),
    ({"error": "no"}, Failure("no", 400)),
    ({"error": {"x": 1}}, Failure('{"x":1}', 400)),
    ("no", Failure("no", 400)),
    (None, Failure("the provider answered with HTTP status 400", 400)),
    ([], Failure("[]", 400)),
]


@pytest.mark.parametrize(("body", "failure"), FAILURES)
def test_an_error_body_is_read_whatever_its_shape(body: Any, failure: Failure) -> None:
    """The provider's own words, its type and code."""
    assert failure == read_failure(400, body)


def test_a_model_in_the_address_is_not_in_the_body() -> None:
    """Vertex and Bedrock have it there, and refuse it here."""
    assert b'],"max_tokens":1}' == write.end("", (), (), {"max_tokens": 1})
