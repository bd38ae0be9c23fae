"""The reader: thinking, content with tags, tool calls with their source text, endings and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.ollama.feeding import COUNTS, HEAD, ORIGIN, body, call, feed, last, line, ndjson, read, stream
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Failure, Usage
from thinkback.wire.framing import Framing
from thinkback.wire.ollama.lines import read_failure
from thinkback.wire.ollama.parameters import options
from thinkback.wire.ollama.read import Reader, raw_response
from thinkback.wire.result import WantedOptions


def thinking(thought: str) -> ThinkingBlock:
    """A block of the ``thinking`` field."""
    return ThinkingBlock(thought, source_field="thinking")


def tagged(thought: str, opening: str = "", closing: str = "") -> ThinkingBlock:
    """A block of tagged content."""
    return ThinkingBlock(thought, source_field="content", opening=opening, closing=closing)


# name, messages, blocks
STREAMS: list[tuple[str, list[Any], list[Block]]] = [
    (
        "thinking, then content",
        [{"thinking": "Let"}, {"thinking": " me"}, {"content": "4"}, {"content": "2"}],
        [thinking("Let me"), Text("42")],
    ),
    ("both in one line", [{"thinking": "t", "content": "a"}], [thinking("t"), Text("a")]),
    (
        "thinking again",
        [{"thinking": "t"}, {"content": "a"}, {"thinking": "u"}],
        [thinking("t"), Text("a"), thinking("u")],
    ),
    ("nothing", [{}, {"thinking": ""}], []),
    (
        "tags",
        [{"content": "<think>t</thi"}, {"content": "nk>\n\na"}],
        [tagged("t", "<think>", "</think>"), Text("\n\na")],
    ),
    ("an open tag", [{"content": "<think>t"}], [tagged("t", "<think>")]),
    ("half a tag at the end", [{"content": "a"}, {"content": "<thi"}], [Text("a<thi")]),
    (
        "a lone closing tag",
        [{"content": "Okay"}, {"content": ".</think>\n"}, {"content": "a"}],
        [tagged("Okay.", "", "</think>"), Text("\na")],
    ),
    ("a lone closing tag at once", [{"content": "</think>a"}], [tagged("", "", "</think>"), Text("a")]),
    (
        "a lone closing tag behind a call",
        [{"content": "a"}, {"tool_calls": [call({})]}, {"content": "b</think>c"}],
        [tagged("a"), ToolCall("call_1", "f", "{}"), tagged("b", "", "</think>"), Text("c")],
    ),
    (
        "a lone closing tag beside thinking",
        [{"thinking": "t"}, {"content": "a</think>b"}],
        [thinking("t"), Text("a</think>b")],
    ),
    (
        "a tag and thinking",
        [{"thinking": "t"}, {"content": "<think>t</think>a"}],
        [thinking("t"), tagged("t", "<think>", "</think>"), Text("a")],
    ),
    ("a surrogate pair in two pieces", [{"content": "\ud83d"}, {"content": "\ude00"}], [Text("\U0001f600")]),
    (
        "calls",
        [
            {"tool_calls": [call({"a": 1.0}, index=0)]},
            {"tool_calls": [call({}, "", "g", index=0), call({}, "c", "g", index=1)]},
        ],
        [ToolCall("call_1", "f", '{"a": 1.0}'), ToolCall("", "g", "{}"), ToolCall("c", "g", "{}")],
    ),
    (
        "a call with more",
        [{"tool_calls": [{"type": "function", **call({"a": 1}, index=0, n=2)}]}],
        [
            ToolCall(
                "call_1",
                "f",
                '{"a": 1}',
                wire='{"type":"function","id":"call_1","function":{"n":2,"name":"f","arguments":{"a":1}}}',
            )
        ],
    ),
    (
        "arguments as text",
        [{"tool_calls": [call('{"a":1}')]}],
        [ToolCall("call_1", "f", '{"a":1}', wire='{"id":"call_1","function":{"name":"f","arguments":"{\\"a\\":1}"}}')],
    ),
    (
        "no arguments",
        [{"tool_calls": [call(None)]}],
        [ToolCall("call_1", "f", "{}", wire='{"id":"call_1","function":{"name":"f","arguments":null}}')],
    ),
    ("no function", [{"tool_calls": [{"id": "c"}]}], [ToolCall("c", "", "{}", wire='{"id":"c"}')]),
    ("an image", [{"images": ["QQ=="]}], [Media("image/*", data="QQ==")]),
]


@pytest.mark.parametrize(("name", "messages", "expected"), STREAMS, ids=[case[0] for case in STREAMS])
def test_a_stream_is_read_into_blocks(name: str, messages: list[Any], expected: list[Block]) -> None:
    """Reasoning and answer in order; every call is one of its own."""
    result = read(stream(*messages))

    assert tuple(expected) == result.blocks
    assert result.response.complete


BODIES: list[tuple[str, dict[str, Any], list[Block]]] = [
    ("an answer", {"content": "a"}, [Text("a")]),
    ("nothing", {"content": ""}, []),
    ("no content", {"thinking": "t"}, [thinking("t")]),
    ("null", {"content": None}, []),
    ("thinking and content", {"content": "a", "thinking": "t"}, [thinking("t"), Text("a")]),
    ("tags", {"content": "t</think>\n\na"}, [tagged("t", "", "</think>"), Text("\n\na")]),
    (
        "calls",
        {"content": "", "tool_calls": [call({"b": 1.0}), call({}, "", "g"), {"x": 1, **call({})}]},
        [
            ToolCall("call_1", "f", '{"b": 1.0}'),
            ToolCall("", "g", "{}"),
            ToolCall("call_1", "f", "{}", wire='{"x":1,"id":"call_1","function":{"name":"f","arguments":{}}}'),
        ],
    ),
    (
        "images",
        {"content": "a", "images": ["QQ==", "Qg=="]},
        [Text("a"), Media("image/*", data="QQ=="), Media("image/*", data="Qg==")],
    ),
    ("odd fields", {"content": "a", "images": [5], "tool_calls": [5], "thinking": 5, "odd": 1}, [Text("a")]),
    ("content of another kind", {"content": [5]}, []),
]


@pytest.mark.parametrize(("name", "message", "expected"), BODIES, ids=[case[0] for case in BODIES])
def test_a_body_is_read_into_blocks(name: str, message: dict[str, Any], expected: list[Block]) -> None:
    """And can be put together again."""
    raw = body(message)
    result = read(raw, "json")

    assert tuple(expected) == result.blocks
    assert json.loads(raw) == raw_response(result)


def test_arguments_keep_their_source_text() -> None:
    """White space, number formats and the order of keys are those of the wire; beside a lone surrogate the value is."""
    source = '{ "b": 1.50, "a" : 1e2 }'
    raw = json.dumps(line({"content": "x", "tool_calls": [call("@")]})).replace('"@"', source).encode()
    odd = raw.replace(b'"x"', rb'"\ud83d"')

    assert [source] == [b.arguments for b in read(ndjson(raw, last())).blocks if isinstance(b, ToolCall)]
    assert ['{"b":1.5,"a":100.0}'] == [b.arguments for b in read(ndjson(odd, last())).blocks if isinstance(b, ToolCall)]


def test_response_fields_are_kept() -> None:
    """Served model, finish, usage with its durations, envelope, log probabilities, unknown fields."""
    raw = ndjson(
        line({"content": "a"}),
        line({"content": "b", "odd": 1}, logprobs=[{"token": "b"}], new=1),
        last(logprobs=[{"token": "c"}]),
    )
    result = read(raw)
    response = result.response

    assert ("served", "stop", "text", "") == (
        response.origin.served_model,
        response.finish,
        response.content,
        response.id,
    )
    assert {**HEAD, "done": True, "new": 1, "logprobs": [{"token": "b"}, {"token": "c"}]} == json.loads(
        response.envelope
    )
    assert '{"odd":1}' == response.message
    assert (3, 4, None) == (
        (result.usage or Usage()).input,
        (result.usage or Usage()).output,
        (result.usage or Usage()).reasoning,
    )
    assert COUNTS == json.loads((result.usage or Usage()).wire)
    assert {**COUNTS, "done_reason": "stop", "message": {"role": "assistant", "content": "ab", "odd": 1}} == {
        key: value for key, value in raw_response(result).items() if key not in json.loads(response.envelope)
    }


def test_usage_may_be_missing_or_odd() -> None:
    """What is no count is not reported."""
    bare = {"message": {"content": "a"}, "done": True}

    assert read(ndjson(bare)).usage is None
    assert Usage(wire='{"eval_count":true}', invalid=("output",)) == read(ndjson({**bare, "eval_count": True})).usage


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("stop", {"content": "a"}, "answered"),
        ("stop", {"tool_calls": [call({})]}, "tool_calls"),
        ("stop", {"thinking": "t"}, "reasoning_only"),
        ("length", {"content": "a"}, "max_tokens"),
        ("length", {"thinking": "t"}, "max_tokens_in_reasoning"),
        ("load", {}, "empty"),
        (None, {"content": "a"}, "answered"),
    ],
)
def test_the_outcome_says_how_a_response_came_out(reason: str | None, message: Any, expected: str) -> None:
    """From ``done_reason`` and what came; older servers give no reason."""
    streamed, whole = read(stream(message, reason=reason)).response, read(body(message, reason), "json").response

    assert (expected, reason, True) == (streamed.outcome, streamed.finish, streamed.complete)
    assert (expected, reason, True) == (whole.outcome, whole.finish, whole.complete)


def test_a_last_line_with_usual_keys_only_ends_the_stream() -> None:
    """Some servers give no counts."""
    assert read(ndjson(line({"content": "a"}, done=True))).response.complete


ERRORS: list[tuple[str, bytes, Framing, tuple[str, str, str]]] = [
    ("cut", ndjson(line({"content": "a"})), "ndjson", ("truncated", "cut", "ended before")),
    (
        "cut inside a line",
        ndjson(line({"content": "a"})) + b'{"mess',
        "ndjson",
        ("truncated", "cut", "middle of a line"),
    ),
    ("no JSON", ndjson(line({"content": "a"}), b"{nonsense"), "ndjson", ("malformed", "failed", "not JSON")),
    ("no object", ndjson(b"[1]"), "ndjson", ("malformed", "failed", "not a JSON object")),
    ("no JSON at all", b"{nonsense", "json", ("malformed", "failed", "not JSON")),
    ("no message", b'{"done":true}', "json", ("malformed", "failed", "no message")),
    ("nothing", b"", "json", ("truncated", "cut", "ended before")),
    (
        "an error line",
        ndjson(line({"content": "a"}), {"error": "model runner has stopped"}),
        "ndjson",
        ("", "failed", "model runner has stopped"),
    ),
    ("an error body", b'{"error":"no such model"}', "json", ("", "failed", "no such model")),
]


@pytest.mark.parametrize(("name", "raw", "framing", "expected"), ERRORS, ids=[case[0] for case in ERRORS])
def test_what_goes_wrong_is_an_error_of_the_response(
    name: str, raw: bytes, framing: Framing, expected: tuple[str, str, str]
) -> None:
    """Never an exception, and never a whole response; what arrived stays."""
    _, result = feed([raw], framing)
    error = result.response.error

    assert error is not None
    assert expected[:2] == (error.type, result.response.outcome)
    assert expected[2] in error.message
    assert not result.response.complete


def test_after_an_error_nothing_is_read() -> None:
    """The stream has ended; the first failure stays."""
    reader = Reader(ORIGIN)
    reader.feed(ndjson({"error": "e"}))
    reader.fail(Failure("gone", type="network"))

    assert [] == reader.feed(ndjson(line({"content": "a"})))
    assert [] == reader.close()
    assert ("e", None) == ((reader.result().response.error or Failure("")).message, reader.finish)


FAILURES: list[tuple[Any, Failure]] = [
    ({"error": '"m" does not support thinking'}, Failure('"m" does not support thinking', 400)),
    ({"error": {"message": "m", "type": "t", "code": 5}}, Failure("m", 400, "t", "5")),
    ({"error": {"message": "m", "type": None, "code": None}}, Failure("m", 400)),
    ({"StatusCode": 401}, Failure('{"StatusCode":401}', 400)),
    ("text", Failure("text", 400)),
    (None, Failure("null", 400)),
]


@pytest.mark.parametrize(("wire", "expected"), FAILURES)
def test_a_failure_is_in_the_servers_own_words(wire: Any, expected: Failure) -> None:
    """Text, or the object of its cloud."""
    assert expected == read_failure(400, wire)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (WantedOptions(), {"stream": False}),
        (WantedOptions(stream=True), {"stream": True}),
        (WantedOptions(schema={"type": "object"}), {"stream": False, "format": {"type": "object"}}),
    ],
)
def test_options_are_native_parameters(wanted: WantedOptions, expected: dict[str, Any]) -> None:
    """Streaming is said in any case: the server streams unless told not to."""
    assert expected == options(wanted)


def test_a_wire_object_is_the_field_or_call_that_a_block_came_from() -> None:
    """Joined by key they are the message."""
    result = read(body({"content": "<think>t</think>a", "tool_calls": [call({"a": 1})]}), "json")

    assert {"role": "assistant", "content": "<think>t</think>a", "tool_calls": [call({"a": 1})]} == raw_response(
        result
    )["message"]
    assert "" == "".join(block.wire for block in result.blocks)
    assert canonical.encode(result.blocks)


def test_null_takes_no_text_back() -> None:
    """A line whose content is null after one that had some: the content was a text."""
    result = read(stream({"content": "a"}, {"content": None}))

    assert ("text", "a") == (result.response.content, raw_response(result)["message"]["content"])
