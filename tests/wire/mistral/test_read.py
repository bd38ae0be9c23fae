"""The reader: content that is a string or a list of chunks, thinking among them, and tool calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.feeding import sse
from tests.wire.mistral.feeding import HEAD, ORIGIN, body, call, chunk, feed, read, said, stream, think
from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.commits import Failure, Usage
from thinkback.wire.framing import Framing
from thinkback.wire.mistral.read import Reader, raw_response

REFERENCE = {"type": "reference", "reference_ids": [1]}


def thinking(thought: str, wire: Any = None, signature: str = "") -> ThinkingBlock:
    """A block of thinking."""
    source = canonical.source(wire) if wire is not None else ""
    return ThinkingBlock(thought, source_field="thinking", signature=signature, wire=source)


# name, deltas, blocks
STREAMS: list[tuple[str, list[Any], list[Block]]] = [
    (
        "a string, lists of thinking, both in one delta, strings again",
        [
            {"role": "assistant", "content": ""},
            {"content": [think("The ")]},
            {"content": [think("user", closed=True)]},
            {"content": [think(".", closed=True), said("1")]},
            {"content": "44"},
            {"content": [said("!")]},
        ],
        [thinking("The user."), Text("144!")],
    ),
    ("no closed at all", [{"content": [think("t")]}, {"content": "a"}], [thinking("t", think("t")), Text("a")]),
    (
        "thinking between texts",
        [{"content": "a"}, {"content": [think("t", closed=True)]}, {"content": "b"}],
        [Text("a"), thinking("t"), Text("b")],
    ),
    (
        "a signature at the end",
        [{"content": [think("t")]}, {"content": [think("", signature="s+/=", closed=True)]}],
        [thinking("t", signature="s+/=")],
    ),
    (
        "a signature after the text",
        [{"content": [think("t", closed=True)]}, {"content": "a"}, {"content": [think(signature="s")]}],
        [thinking("t", signature="s"), Text("a")],
    ),
    (
        "a signature in pieces and again",
        [
            {"content": [think("t", closed=True, signature="s")]},
            {"content": [think(signature="u")]},
            {"content": [think(signature="su")]},
            {"content": [think(signature=None)]},
        ],
        [thinking("t", signature="su")],
    ),
    (
        "a null signature",
        [{"content": [think("t", closed=True, signature=None)]}],
        [thinking("t", think("t", closed=True, signature=None))],
    ),
    (
        "signed thinking is over",
        [{"content": [think("t", closed=True, signature="s")]}, {"content": [think("u", closed=True)]}],
        [thinking("t", signature="s"), thinking("u")],
    ),
    ("a signature alone", [{"content": [think(signature="s")]}], [thinking("", think(signature="s"), "s")]),
    ("thinking that says nothing", [{"content": [think()]}, {"content": "a"}], [Text("a")]),
    ("thinking that says nothing, with more", [{"content": [think(x=1)]}, {"content": "a"}], [Text("a")]),
    (
        "references inside",
        [{"content": [{"type": "thinking", "thinking": [said("a"), REFERENCE, said("b")]}]}, {"content": [think("c")]}],
        [thinking("abc", {"type": "thinking", "thinking": [said("a"), REFERENCE, said("bc")]})],
    ),
    (
        "text with more inside",
        [{"content": [{"type": "thinking", "thinking": [said("a", n=1)], "odd": 5, "signature": 7}]}],
        [thinking("a", {"type": "thinking", "thinking": [said("a", n=1)], "odd": 5, "signature": 7})],
    ),
    (
        "other chunks",
        [{"content": [said("a"), REFERENCE, said("b"), "odd", {"type": "thinking", "thinking": "t"}]}],
        [
            Text("a"),
            Unknown(canonical.source(REFERENCE)),
            Text("b"),
            Unknown('"odd"'),
            Unknown('{"type":"thinking","thinking":"t"}'),
        ],
    ),
    (
        "thinking with odd things inside",
        [{"content": [{"type": "thinking", "thinking": [5]}]}],
        [Unknown('{"type":"thinking","thinking":[5]}')],
    ),
    (
        "a text with more",
        [{"content": [said("a", n=1)]}, {"content": "b"}],
        [Text("a", wire='{"type":"text","text":"a","n":1}'), Text("b")],
    ),
    ("a surrogate pair in two pieces", [{"content": "\ud83d"}, {"content": "\ude00"}], [Text("\U0001f600")]),
    ("a call", [{"content": "", "tool_calls": [call('{"a":1.0}', 0)]}], [ToolCall("abcDEF123", "f", '{"a":1.0}')]),
    (
        "calls in pieces",
        [
            {"tool_calls": [call('{"a', 0), call("{", 1, "xyzXYZ789", "g")]},
            {"tool_calls": [call('":1}', 0, None, ""), call("}", 1, "null", "g")]},
        ],
        [ToolCall("abcDEF123", "f", '{"a":1}'), ToolCall("xyzXYZ789", "g", "{}")],
    ),
    (
        "calls that share an index",
        [{"tool_calls": [call("{}", 0), call("{}", 0, "xyzXYZ789", "g")]}],
        [ToolCall("abcDEF123", "f", "{}"), ToolCall("xyzXYZ789", "g", "{}")],
    ),
    (
        "calls without index or id",
        [{"tool_calls": [call("{", None, None), call("}", None, None, ""), call("{}", None, None, "f")]}],
        [ToolCall("", "f", "{}"), ToolCall("", "f", "{}")],
    ),
    (
        "arguments as an object, and more",
        [
            {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "abcDEF123",
                        "type": "function",
                        "function": {"name": "f", "arguments": {"a": 1}, "n": 2},
                    },
                    5,
                ]
            }
        ],
        [
            ToolCall(
                "abcDEF123",
                "f",
                '{"a":1}',
                wire='{"id":"abcDEF123","function":{"name":"f","arguments":{"a":1},"n":2},"type":"function"}',
            )
        ],
    ),
    ("a call that is none", [{"tool_calls": [{"index": 0, "function": 5}]}], [ToolCall("", "", "")]),
]


@pytest.mark.parametrize(("name", "deltas", "expected"), STREAMS, ids=[case[0] for case in STREAMS])
def test_a_stream_is_read_into_blocks(name: str, deltas: list[Any], expected: list[Block]) -> None:
    """Chunks keep their order; fragments of one block are one."""
    result = read(stream(*deltas))

    assert [as_value(block) for block in expected] == [as_value(block) for block in result.blocks]
    assert result.response.complete


def as_value(block: Block) -> tuple[Block, Any]:
    """A block and the value of its wire object."""
    wire = json.loads(block.wire) if block.wire else None
    return type(block)(**{**fields_of(block), "wire": ""}), wire


def fields_of(block: Block) -> dict[str, Any]:
    """The fields of a block by name."""
    return {name: getattr(block, name) for name in block.__struct_fields__}


# name, message, blocks
BODIES: list[tuple[str, Any, list[Block]]] = [
    ("a string", {"content": "a"}, [Text("a")]),
    ("an empty string", {"content": ""}, []),
    ("null", {"content": None}, []),
    ("nothing", {}, []),
    ("a number", {"content": 5}, []),
    ("thinking and text", {"content": [think("t", closed=True), said("a")]}, [thinking("t"), Text("a")]),
    ("without closed", {"content": [think("t"), said("a")]}, [thinking("t", think("t")), Text("a")]),
    (
        "signed",
        {"content": [think("t", closed=True, signature="s"), said("a")]},
        [thinking("t", signature="s"), Text("a")],
    ),
    (
        "texts alone",
        {"content": [said("a"), said("b")]},
        [Text("a", wire='{"type":"text","text":"a"}'), Text("b", wire='{"type":"text","text":"b"}')],
    ),
    (
        "neighbours stay several",
        {"content": [think("t", closed=True), think("u", closed=True), said("a"), said("b")]},
        [thinking("t"), thinking("u"), Text("a"), Text("b")],
    ),
    ("several texts inside", {"content": [think("t", "u")]}, [thinking("tu", think("t", "u"))]),
    ("nothing inside", {"content": [think()]}, [thinking("", think())]),
    (
        "calls",
        {"content": "", "tool_calls": [call("{}", 0), call("{}", 1, "xyzXYZ789")]},
        [ToolCall("abcDEF123", "f", "{}"), ToolCall("xyzXYZ789", "f", "{}")],
    ),
    ("no calls", {"content": "a", "tool_calls": None}, [Text("a")]),
    ("calls that are none", {"content": "a", "tool_calls": "x"}, [Text("a")]),
]


@pytest.mark.parametrize(("name", "message", "expected"), BODIES, ids=[case[0] for case in BODIES])
def test_a_body_is_read_into_blocks(name: str, message: Any, expected: list[Block]) -> None:
    """What the wire keeps apart stays apart, and the message can be put together again."""
    result = read(body(message))
    whole = raw_response(result)["choices"][0]["message"]
    plain = {
        key: value for key, value in message.items() if not (key == "tool_calls" and (value is None or value == "x"))
    }
    if "tool_calls" in plain:
        plain["tool_calls"] = [
            {key: value for key, value in call.items() if key != "index"} for call in plain["tool_calls"]
        ]

    assert [as_value(block) for block in expected] == [as_value(block) for block in result.blocks]
    assert {"role": "assistant", **plain} == whole


def test_response_fields_are_kept() -> None:
    """Id, served model, finish, usage, envelope and unknown fields of choice and message."""
    usage = {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    raw = sse(
        chunk({"content": "a"}, p="pad"),
        {**HEAD, "choices": [{"index": 0, "delta": {"content": "b", "prefix": True}, "odd": 1}], "new": 2},
        chunk({}, "stop", usage=usage),
    )
    result = read(raw)
    response = result.response

    assert ("c1", "served", "stop", "text") == (
        response.id,
        response.origin.served_model,
        response.finish,
        response.content,
    )
    assert {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "served",
        "new": 2,
        "choice": {"odd": 1},
    } == json.loads(response.envelope)
    assert '{"prefix":true}' == response.message
    assert Usage(3, 4, 2, 1, wire=canonical.source(usage)) == result.usage
    assert {
        "message": {"role": "assistant", "content": "ab", "prefix": True},
        "index": 0,
        "finish_reason": "stop",
        "odd": 1,
    } == raw_response(result)["choices"][0]
    assert usage == raw_response(result)["usage"]


def test_usage_may_hold_anything() -> None:
    """What is no count is not reported; the object is kept."""
    usage = {"prompt_tokens": True, "prompt_tokens_details": 5, "other": [1]}

    assert Usage(wire=canonical.source(usage), invalid=("input",)) == read(body({"content": "a"}, usage=usage)).usage
    assert read(body({"content": "a"}, usage={})).usage is None


@pytest.mark.parametrize(
    ("finish", "message", "expected"),
    [
        ("stop", {"content": "a"}, "answered"),
        ("new", {"content": "a"}, "answered"),
        ("length", {"content": "a"}, "max_tokens"),
        ("model_length", {"content": [think("t")]}, "max_tokens_in_reasoning"),
        ("tool_calls", {"content": "", "tool_calls": [call("{}")]}, "tool_calls"),
        ("stop", {"content": [think("t")]}, "reasoning_only"),
        ("stop", {"content": ""}, "empty"),
        ("content_filter", {"content": "a"}, "safety"),
        ("error", {"content": "a"}, "failed"),
        (None, {"content": "a"}, "answered"),
    ],
)
def test_the_outcome_says_how_a_response_came_out(finish: str | None, message: Any, expected: str) -> None:
    """From the word of the provider and what came."""
    response = read(body(message, finish)).response

    assert (expected, finish) == (response.outcome, response.finish)
    assert (expected not in ("safety", "failed")) == response.complete


ERRORS: list[tuple[str, bytes, Framing, tuple[str, str]]] = [
    ("cut", sse(chunk({"content": "a"}), done=False), "sse", ("truncated", "cut")),
    ("cut inside an event", sse(chunk({"content": "a"}), done=False) + b'data: {"choices', "sse", ("truncated", "cut")),
    ("no JSON", sse(chunk({"content": "a"}), b"{nonsense"), "sse", ("malformed", "failed")),
    ("no object", sse(chunk({"content": "a"}), b"[1]"), "sse", ("malformed", "failed")),
    ("no JSON at all", b"{nonsense", "json", ("malformed", "failed")),
    ("no choices", b"{}", "json", ("malformed", "failed")),
    ("nothing", b"", "json", ("truncated", "cut")),
    (
        "an error in the stream",
        sse(chunk({"content": "a"}), {"object": "error", "message": "m", "type": "t"}),
        "sse",
        ("t", "failed"),
    ),
    (
        "an error beside choices",
        sse(chunk({"content": "a"}, error={"message": "m", "type": "t"})),
        "sse",
        ("t", "failed"),
    ),
    ("refused fields", sse({"detail": [{"loc": ["body", 0], "msg": "m", "type": "t"}]}), "sse", ("t", "failed")),
]


@pytest.mark.parametrize(("name", "raw", "framing", "expected"), ERRORS, ids=[case[0] for case in ERRORS])
def test_what_goes_wrong_is_an_error_of_the_response(
    name: str, raw: bytes, framing: Framing, expected: tuple[str, str]
) -> None:
    """Never an exception, and never a whole response."""
    _, result = feed([raw], framing)
    error = result.response.error

    assert error is not None
    assert expected == (error.type, result.response.outcome)
    assert not result.response.complete


def test_after_an_error_nothing_is_read() -> None:
    """The stream has ended."""
    reader = Reader(ORIGIN)
    reader.feed(sse({"object": "error", "message": "m"}))

    assert [] == reader.feed(sse(chunk({"content": "a"})))
    assert [] == reader.close()
    assert () == reader.result().blocks


def test_a_failure_of_the_connection_is_the_error_unless_there_was_one() -> None:
    """The first failure stays."""
    reader = Reader(ORIGIN)
    reader.feed(sse(chunk({"content": "a"}), done=False))
    reader.fail(Failure("gone", type="network"))
    reader.fail(Failure("later", type="timeout"))
    reader.close()

    assert "network" == (reader.result().response.error or Failure("")).type
    assert reader.finish is None


def test_lines_that_say_nothing_and_other_choices_are_passed_over() -> None:
    """Empty events, keep-alives, other choices of either reading, choices that are none."""
    other = {"index": 1, "delta": {"content": "x"}, "finish_reason": None}
    raw = sse(
        b" ",
        {**HEAD, "choices": [other]},
        {**HEAD, "choices": [{**other, "odd": 1}, 5, {"index": 0}, {"index": 0, "odd": 1}]},
        {**HEAD, "choices": None},
        chunk({"content": "a"}),
        chunk(None, "stop"),
        {"choices": [{"index": 0, "finish_reason": "stop"}]},
    )

    assert (Text("a"),) == read(raw).blocks


def test_the_origin_gets_the_served_model() -> None:
    """The rest of it is the caller's."""
    result = read(body({"content": "a"}))

    assert Origin("mistral", "https://api.example.org/v1", "model", "served") == result.response.origin
