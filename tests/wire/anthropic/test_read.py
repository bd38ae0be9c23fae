"""What the reader makes of streams and bodies: blocks, carriers, usage, endings and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.anthropic.feeding import (
    ORIGIN,
    START,
    STOP,
    body,
    ending,
    feed,
    fragment,
    opens,
    piece,
    read,
    signature,
    sse,
    stops,
    stream,
    text,
    thought,
)
from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.commits import Failure, Usage
from thinkback.model.deltas import ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.anthropic.blocks import wire_object
from thinkback.wire.anthropic.read import Reader, raw_response
from thinkback.wire.result import ReadResult

EMPTY: dict[str, Any] = {"type": "text", "text": ""}
OPEN_THOUGHT = opens({"type": "thinking", "thinking": "", "signature": ""})
CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
SERVER_CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted_content": "Eo8"}]}
COMPACTION = {"type": "compaction", "content": None, "encrypted_content": "", "signature": "s0"}
CITATION = {"type": "char_location", "cited_text": "x"}


def thinking(thought: str, signature: str = "", **more: Any) -> ThinkingBlock:
    """A thinking block as it is read."""
    return ThinkingBlock(
        thought, source_field="thinking", signature=signature, kind="raw" if thought else "none", **more
    )


def redacted(data: str, **more: Any) -> ThinkingBlock:
    """A redacted block as it is read."""
    return ThinkingBlock(
        "", source_field="redacted_thinking", kind="none", carriers=(Carrier("redacted", data),), **more
    )


# name, events between start and end, blocks, their objects as an unstreamed response has them
STREAMS: list[tuple[str, list[Any], list[Block], list[Any]]] = [
    ("nothing", [], [], []),
    (
        "text",
        [opens(EMPTY), text("a"), {"type": "ping"}, text(""), text("b"), stops()],
        [Text("ab")],
        [{"type": "text", "text": "ab"}],
    ),
    (
        "text that begins in the start event",
        [opens({"type": "text", "text": "a"}), text("b"), stops()],
        [Text("ab")],
        [{"type": "text", "text": "ab"}],
    ),
    (
        "a character in two pieces",
        [opens(EMPTY), text("\ud83d"), text("\ude00"), stops()],
        [Text("😀")],
        [{"type": "text", "text": "😀"}],
    ),
    (
        "thinking, its signature, and a text",
        [OPEN_THOUGHT, thought("a"), thought("b"), signature("S"), stops(), opens(EMPTY, 1), text("c", 1), stops(1)],
        [thinking("ab", "S"), Text("c")],
        [{"type": "thinking", "thinking": "ab", "signature": "S"}, {"type": "text", "text": "c"}],
    ),
    (
        "of several signatures the last one",
        [OPEN_THOUGHT, signature("S"), signature("T"), stops()],
        [thinking("", "T")],
        [{"type": "thinking", "thinking": "", "signature": "T"}],
    ),
    (
        "an empty signature takes none away",
        [OPEN_THOUGHT, signature("S"), signature(""), stops()],
        [thinking("", "S")],
        [{"type": "thinking", "thinking": "", "signature": "S"}],
    ),
    (
        "estimated tokens belong to the frame",
        [
            OPEN_THOUGHT,
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "thinking_delta", "thinking": "", "estimated_tokens": 50},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "thinking_delta", "thinking": "a", "new": 1, "newer": "x"},
            },
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "", "new": 1}},
            signature("S"),
        ],
        [thinking("a", "S")],
        [{"type": "thinking", "thinking": "a", "signature": "S"}],
    ),
    (
        "thinking of hosts that sign nothing",
        [opens({"type": "thinking", "thinking": ""}), thought("a"), stops()],
        [thinking("a", wire='{"type":"thinking","thinking":"a"}')],
        [{"type": "thinking", "thinking": "a"}],
    ),
    (
        "redacted thinking twice",
        [opens({"type": "redacted_thinking", "data": "E1"}), opens({"type": "redacted_thinking", "data": "E2"}, 1)],
        [redacted("E1"), redacted("E2")],
        [{"type": "redacted_thinking", "data": "E1"}, {"type": "redacted_thinking", "data": "E2"}],
    ),
    (
        "redacted thinking with something new",
        [opens({"type": "redacted_thinking", "data": "E1", "x": 1})],
        [redacted("E1", wire='{"type": "redacted_thinking", "data": "E1", "x": 1}')],
        [{"type": "redacted_thinking", "data": "E1", "x": 1}],
    ),
    (
        "redacted thinking without data",
        [opens({"type": "redacted_thinking", "data": 1})],
        [Unknown('{"type": "redacted_thinking", "data": 1}')],
        [{"type": "redacted_thinking", "data": 1}],
    ),
    (
        "a call, its input as source text",
        [opens(CALL), fragment(""), fragment('{"a": '), fragment("1.0}"), stops()],
        [ToolCall("toolu_1", "f", '{"a": 1.0}')],
        [{**CALL, "input": {"a": 1.0}}],
    ),
    ("a call without input", [opens(CALL), fragment(""), stops()], [ToolCall("toolu_1", "f", "{}")], [CALL]),
    (
        "a call whose input stands in the start event",
        [opens({**CALL, "input": {"a": 1.0}}), stops()],
        [ToolCall("toolu_1", "f", '{"a": 1.0}')],
        [{**CALL, "input": {"a": 1.0}}],
    ),
    (
        "a call whose input is text",
        [opens({**CALL, "input": '{"a":1}'}), stops()],
        [ToolCall("toolu_1", "f", '{"a":1}')],
        [{**CALL, "input": {"a": 1}}],
    ),
    (
        "a call that says who made it",
        [opens({**CALL, "caller": {"type": "direct"}}), fragment('{"a":1.0}'), stops()],
        [
            ToolCall(
                "toolu_1",
                "f",
                '{"a":1.0}',
                wire='{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1.0},"caller":{"type": "direct"}}',
            )
        ],
        [{**CALL, "input": {"a": 1.0}, "caller": {"type": "direct"}}],
    ),
    (
        "two calls side by side, told apart by index",
        [opens(CALL, 1), opens({**CALL, "id": "toolu_2"}, 2), fragment("{}", 2), fragment('{"a":1}', 1)],
        [ToolCall("toolu_1", "f", '{"a":1}'), ToolCall("toolu_2", "f", "{}")],
        [{**CALL, "input": {"a": 1}}, {**CALL, "id": "toolu_2"}],
    ),
    (
        "a tool that the provider runs, and its result",
        [opens(SERVER_CALL), fragment('{"query": "x"}'), stops(), opens(RESULT, 1), stops(1)],
        [
            Unknown('{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "x"}}'),
            Unknown(json.dumps(RESULT)),
        ],
        [{**SERVER_CALL, "input": {"query": "x"}}, RESULT],
    ),
    (
        "text with citations",
        [opens({**EMPTY, "citations": []}), text("a"), piece("citations_delta", "citation", CITATION), stops()],
        [
            Text(
                "a",
                wire='{"type":"text","text":"a","citations":[{"type":"char_location","cited_text":"x"}]}',
            )
        ],
        [{"type": "text", "text": "a", "citations": [CITATION]}],
    ),
    (
        "several citations where none were announced",
        [opens(EMPTY), piece("citations_delta", "citation", 1), piece("citations_delta", "citation", 2)],
        [Text("", wire='{"type":"text","text":"","citations":[1,2]}')],
        [{"type": "text", "text": "", "citations": [1, 2]}],
    ),
    (
        "a compaction: opaque values are replaced, text grows, anything else is taken over",
        [
            opens(COMPACTION),
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "compaction_delta", "content": "a", "encrypted_content": "E1", "tool_changes": [1]},
            },
            {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": "b"}},
        ],
        [
            Unknown(
                '{"type":"compaction","content":"ab","encrypted_content":"E1","signature":"s0","tool_changes":[1]}',
                (Carrier("signature", "s0"), Carrier("encrypted", "E1")),
                text="ab",
            )
        ],
        [{**COMPACTION, "content": "ab", "encrypted_content": "E1", "tool_changes": [1]}],
    ),
    (
        "deltas of blocks that were never opened",
        [text("a", 0), thought("b", 1), signature("S", 2), fragment("{}", 3), piece("citations_delta", "citation", 1)],
        [
            Text("a", wire='{"type":"text","text":"a","citations":[1]}'),
            thinking("b", wire='{"type":"thinking","thinking":"b"}'),
            thinking("", "S", wire='{"type":"thinking","signature":"S"}'),
            ToolCall("", "", "{}", wire='{"type":"tool_use","input":{}}'),
        ],
        [
            {"type": "text", "text": "a", "citations": [1]},
            {"type": "thinking", "thinking": "b"},
            {"type": "thinking", "signature": "S"},
            {"type": "tool_use", "input": {}},
        ],
    ),
    (
        "a delta that belongs to another kind of block",
        [opens(EMPTY), thought("a"), text("b")],
        [Text("b", wire='{"type":"text","text":"b","thinking":"a"}')],
        [{"type": "text", "text": "b", "thinking": "a"}],
    ),
    (
        "what is none",
        [
            opens(None),
            {"type": "content_block_delta", "index": 7, "delta": {"type": "new_delta"}},
            {"type": "content_block_delta", "index": 7, "delta": "x"},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
            stops(9),
            {"type": "message_start", "message": None},
            {"type": "message_delta"},
            {"type": "new_event"},
            b"",
            b"[DONE]",
        ],
        [Text("a")],
        [{"type": "text", "text": "a"}],
    ),
]


@pytest.mark.parametrize(("name", "events", "blocks", "objects"), STREAMS, ids=[case[0] for case in STREAMS])
def test_a_stream_gives_the_blocks_of_the_unstreamed_response(
    name: str, events: list[Any], blocks: list[Block], objects: list[Any]
) -> None:
    """Each content block is a block, and its own object is that of the unstreamed response."""
    result = read(stream(*events))

    assert blocks == list(result.blocks)
    assert objects == raw_response(result)["content"]
    assert objects == [json.loads(wire_object(block)) for block in result.blocks]
    assert (True, None) == (result.response.complete, result.response.error)


# name, content, blocks
BODIES: list[tuple[str, list[Any], list[Block]]] = [
    ("empty signed thinking", [{"type": "thinking", "thinking": "", "signature": "S"}], [thinking("", "S")]),
    ("unsigned thinking", [{"type": "thinking", "thinking": "a", "signature": ""}], [thinking("a")]),
    (
        "thinking without signature",
        [{"type": "thinking", "thinking": "a", "signature": None}],
        [thinking("a", wire='{"type": "thinking", "thinking": "a", "signature": null}')],
    ),
    ("blank text", [{"type": "text", "text": "\n\n"}], [Text("\n\n")]),
    (
        "text with citations",
        [{"type": "text", "text": "a", "citations": None}],
        [Text("a", wire='{"type": "text", "text": "a", "citations": null}')],
    ),
    ("text that is none", [{"type": "text", "text": 5}], [Text("", wire='{"type": "text", "text": 5}')]),
    ("numbers as they were", [{**CALL, "input": {"a": 1.0}}], [ToolCall("toolu_1", "f", '{"a": 1.0}')]),
    ("a block of no type", [{"x": 1.0}], [Unknown('{"x": 1.0}')]),
]


@pytest.mark.parametrize(("name", "content", "blocks"), BODIES, ids=[case[0] for case in BODIES])
def test_a_body_gives_blocks_that_can_be_put_together_again(name: str, content: list[Any], blocks: list[Block]) -> None:
    """Blocks of a whole body, the source text of their parts kept, and the body again from them."""
    raw = body(*content, usage={"input_tokens": 1}, container=None)

    result = read(raw)

    assert blocks == list(result.blocks)
    assert json.loads(raw) == raw_response(result)
    assert ("msg_1", "served", "end_turn") == (
        result.response.id,
        result.response.origin.served_model,
        result.response.finish,
    )


def test_deltas_are_tagged_with_response_and_block() -> None:
    """Reasoning, text and calls are shown as they arrive; a call without fragments gets its input when it ends."""
    events = [OPEN_THOUGHT, thought("a"), signature("S"), stops(), opens(EMPTY, 1), text("b", 1), opens(CALL, 2)]

    deltas, _ = feed([stream(*events, stops(2))])

    assert [
        ReasoningDelta("a", 0, "r1"),
        TextDelta("b", 1, "r1"),
        ToolCallDelta(2, "toolu_1", "f", "", "r1"),
        ToolCallDelta(2, "", "", "{}", "r1"),
    ] == deltas


def test_input_that_is_no_object_is_kept_inside_one() -> None:
    """Fine-grained input of a cut response may be no JSON; its text is kept, and its object is JSON all the same."""
    result = read(stream(opens(CALL), fragment('{"a'), stops(), opens(SERVER_CALL, 1), fragment("[", 1)))

    assert ToolCall("toolu_1", "f", '{"a') == result.blocks[0]
    assert {**CALL, "input": {"arguments": '{"a'}} == json.loads(wire_object(result.blocks[0]))
    assert {**SERVER_CALL, "input": {"arguments": "["}} == json.loads(result.blocks[1].wire)


def test_lone_surrogates_and_broken_sources_are_read() -> None:
    """Half a character anywhere: input is then re-encoded, and so are the blocks of such a message."""
    half = json.dumps({**CALL, "input": {"b": "\ud83d", "a": 1}})
    result = read(b'{"type":"message","content":[' + half.encode() + b"]}")

    assert {"b": "\ud83d", "a": 1} == json.loads(result.blocks[0].arguments)  # type: ignore[union-attr]
    assert "" == result.blocks[0].wire


def test_usage_of_the_last_event_lies_over_that_of_the_first() -> None:
    """Counts are cumulative; null takes nothing back; the cache is counted beside the input."""
    first = {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 1, "cache_creation": {"a": 1}}
    last = {
        "input_tokens": None,
        "cache_creation_input_tokens": 4,
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 6},
        "server_tool_use": None,
    }
    head = {**START, "message": {**START["message"], "usage": first}}  # type: ignore[dict-item]

    usage = read(sse(head, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last})).usage

    assert usage is not None
    wire = {**first, **last, "input_tokens": 5}
    assert wire == json.loads(usage.wire)
    assert Usage(5, 9, 6, 3, 4, ("cache_beside_input",), usage.wire) == usage


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (body(), None),
        (body(usage={"input_tokens": True, "output_tokens": "x"}), (None, None, None)),
        (body(usage={"input_tokens": 1, "output_tokens_details": 3}), (1, None, None)),
        (body(usage=[]), None),
    ],
)
def test_counts_that_are_none_are_not_reported(raw: bytes, expected: Any) -> None:
    """``None`` is not zero."""
    usage = read(raw).usage

    assert expected == (usage and (usage.input, usage.output, usage.reasoning))


def test_the_envelope_holds_what_no_block_owns() -> None:
    """Context edits, stop details, container and the final input transformations, in the order they came."""
    head = {**START, "message": {**START["message"], "input_transformations": [1], "container": {"id": "c"}}}  # type: ignore[dict-item]
    delta = {"stop_reason": "refusal", "stop_details": {"category": "cyber"}, "container": None}
    top = {"context_management": {"applied_edits": []}, "input_transformations": [2], "usage": {}}

    response = read(sse(head, {"type": "message_delta", "delta": delta, **top}, STOP)).response

    assert {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "stop_reason": "refusal",
        "input_transformations": [2],
        "container": {"id": "c"},
        "context_management": {"applied_edits": []},
        "stop_details": {"category": "cyber"},
    } == json.loads(response.envelope)


SAYS = [opens(EMPTY), text("a"), stops()]
REASONS = [OPEN_THOUGHT, thought("a"), signature("S"), stops()]
CALLS = [opens(CALL), stops()]
OUTCOMES = [
    ("end_turn", SAYS, "answered", True),
    ("stop_sequence", SAYS, "answered", True),
    ("tool_use", CALLS, "tool_calls", True),
    ("max_tokens", SAYS, "max_tokens", True),
    ("max_tokens", REASONS, "max_tokens_in_reasoning", True),
    ("model_context_window_exceeded", SAYS, "max_tokens", True),
    ("pause_turn", [opens(SERVER_CALL), stops()], "paused", True),
    ("refusal", SAYS, "refused", False),
    ("end_turn", REASONS, "reasoning_only", True),
    ("end_turn", [], "empty", True),
    ("a new word", SAYS, "answered", True),
    (None, SAYS, "answered", True),
]


@pytest.mark.parametrize(("reason", "events", "outcome", "complete"), OUTCOMES)
def test_an_outcome_for_each_reason_to_stop(
    reason: str | None, events: list[Any], outcome: str, complete: bool
) -> None:
    """A refused response is withheld from replay; a paused or capped one is not."""
    response = read(stream(*events, reason=reason)).response

    assert (reason, outcome, complete) == (response.finish, response.outcome, response.complete)


CUT = "the stream ended before the response was finished"
# name, stream, message, blocks
CUTS: list[tuple[str, bytes, str, list[Block]]] = [
    ("nothing at all", b"", CUT, []),
    ("before the signature", sse(START, OPEN_THOUGHT, thought("a")), CUT, [thinking("a")]),
    ("before the input", sse(START, opens(CALL)), CUT, [ToolCall("toolu_1", "f", "")]),
    ("before the end", sse(START, *SAYS), CUT, [Text("a")]),
    ("in an event", sse(START, *SAYS)[:-20], "the stream ended in the middle of an event", [Text("a")]),
    (
        "a host that says at the start how it will end",
        sse({**START, "message": {**START["message"], "stop_reason": "end_turn"}}, *SAYS),  # type: ignore[dict-item]
        CUT,
        [Text("a")],
    ),
]


@pytest.mark.parametrize(("name", "raw", "message", "blocks"), CUTS, ids=[case[0] for case in CUTS])
def test_a_stream_that_breaks_off_is_not_complete(name: str, raw: bytes, message: str, blocks: list[Block]) -> None:
    """What arrived is kept, unsigned and without input as it is; the response says that it was cut."""
    result = read(raw)

    assert blocks == list(result.blocks)
    assert Failure(message, type="truncated") == result.response.error
    assert (False, "cut") == (result.response.complete, result.response.outcome)
    assert raw_response(result)["content"] == [json.loads(wire_object(block)) for block in blocks]


def test_a_stream_that_has_said_why_it_stopped_needs_no_last_event() -> None:
    """``message_stop`` brings nothing more."""
    assert read(sse(START, *SAYS, ending()[0])).response.complete


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
FAILURES: list[tuple[str, bytes, Failure]] = [
    ("an error event", sse(START, *SAYS, OVERLOADED, *ending()), Failure("Overloaded", 200, "overloaded_error")),
    ("an error body", json.dumps(OVERLOADED).encode(), Failure("Overloaded", 200, "overloaded_error")),
    ("an error without type", sse(START, {"error": {"message": "no"}}), Failure("no", 200)),
    ("a message alone", b'{"message":"no"}', Failure("no", 200)),
    ("a detail alone", b'{"detail":"no"}', Failure("no", 200)),
    ("no content", b'{"id":"x"}', Failure("the response body has no content", type="malformed")),
    (
        "no object",
        sse(START, b"[]"),
        Failure("a part of the response is not a JSON object of usual depth", type="malformed"),
    ),
]


@pytest.mark.parametrize(("name", "raw", "failure"), FAILURES, ids=[case[0] for case in FAILURES])
def test_an_error_inside_a_good_status(name: str, raw: bytes, failure: Failure) -> None:
    """The provider's own words; the response is not complete, and what arrived before is kept."""
    response = read(raw).response

    assert (failure, False, "failed") == (response.error, response.complete, response.outcome)


@pytest.mark.parametrize("raw", [b'{"content": [', sse(START, b'{"type":', STOP), b"data: \xff\n\ndata: {}\n\n"])
def test_a_body_that_is_no_json_is_an_error(raw: bytes) -> None:
    """Malformed, whole or in part."""
    error = read(raw).response.error

    assert error is not None
    assert "malformed" == error.type


def test_nothing_is_read_after_a_failure() -> None:
    """The first failure stays, whoever tells of it."""
    reader = Reader(ORIGIN)
    reader.feed(sse(START, OVERLOADED))
    assert [] == reader.feed(sse(*SAYS))
    reader.fail(Failure("interrupted", type="interrupted"))
    assert [] == reader.close()

    result: ReadResult = reader.result()

    assert Failure("Overloaded", 200, "overloaded_error") == result.response.error
    assert () == result.blocks


def test_a_broken_connection_is_told_to_the_reader() -> None:
    """What arrived is kept, and the failure is the caller's."""
    reader = Reader(ORIGIN)
    reader.feed(sse(START, *SAYS))
    reader.fail(Failure("reset", type="network"))
    reader.close()

    assert (Failure("reset", type="network"), "cut") == (
        reader.result().response.error,
        reader.result().response.outcome,
    )


def test_a_message_in_a_stream_is_read_like_one_alone() -> None:
    """A gateway may send the whole message at once, also in the first event."""
    message = json.loads(body({"type": "text", "text": "a"}, CALL))

    assert [Text("a"), ToolCall("toolu_1", "f", "{}")] == list(read(sse(message)).blocks)
    assert [Text("a"), ToolCall("toolu_1", "f", "{}")] == list(
        read(sse({"type": "message_start", "message": message}, *ending())).blocks
    )


def test_what_is_no_block_in_a_body_is_no_block() -> None:
    """Content that is no list of objects brings nothing, and raises nothing."""
    assert [Text("a")] == list(read(body(1, {"type": "text", "text": "a"}, None)).blocks)
    assert [] == list(read(b'{"type":"message","content":"a"}').blocks)
