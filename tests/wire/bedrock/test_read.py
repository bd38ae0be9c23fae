"""What a Converse response brings, streamed and whole: every kind of content block, delta and event."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.wire import event_stream
from tests.wire.bedrock.feeding import STOP, USAGE, body, content, delta, feed, read, start, stop, stream
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.commits import Usage
from thinkback.model.deltas import ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.bedrock.read import raw_response

THOUGHT = ThinkingBlock("I should look.", source_field="reasoningText", signature="EqQB+/=")
REDACTED = ThinkingBlock("", source_field="redactedContent", kind="none", carriers=(Carrier("redacted", "UmVk"),))
SAID = Text("Let me look.", source_field="text")
CALL = ToolCall("tooluse_1", "get_weather", '{"city": "Oslo", "n": 1.50}')
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n12").decode()

CONTENT = [
    {"reasoningContent": {"reasoningText": {"text": "I should look.", "signature": "EqQB+/="}}},
    {"reasoningContent": {"redactedContent": "UmVk"}},
    {"text": "Let me look."},
    {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Oslo", "n": 1.50}}},
]
STREAM = stream(
    {"messageStart": {"role": "assistant", "p": "abc"}},
    delta(0, reasoningContent={"text": "I should "}),
    delta(0, reasoningContent={"text": "look."}),
    delta(0, reasoningContent={"text": ""}),
    delta(0, reasoningContent={"signature": "EqQB+/="}),
    stop(0),
    delta(1, reasoningContent={"redactedContent": "UmVk"}),
    stop(1),
    delta(2, text="Let me "),
    delta(2, text="look."),
    stop(2),
    start(3, toolUse={"toolUseId": "tooluse_1", "name": "get_weather"}),
    delta(3, toolUse={"input": ""}),
    delta(3, toolUse={"input": '{"city": "Oslo",'}),
    delta(3, toolUse={"input": ' "n": 1.50}'}),
    stop(3),
    {"messageStop": {"stopReason": "tool_use", "additionalModelResponseFields": {"a": 1}}},
    {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 7}}},
)


def test_a_stream_and_a_body_give_the_same_response() -> None:
    """Blocks, opaque values, arguments as source text, usage and what else came are equal."""
    raw = json.dumps(
        {
            "output": {"message": {"role": "assistant", "content": CONTENT}},
            "stopReason": "tool_use",
            "additionalModelResponseFields": {"a": 1},
            "usage": USAGE,
            "metrics": {"latencyMs": 7},
        }
    ).replace("1.5}", "1.50}")
    streamed, whole = read(STREAM), read(raw.encode())

    assert (THOUGHT, REDACTED, SAID, CALL) == streamed.blocks
    assert streamed == whole
    assert Usage(3, 5, counted=("cache_beside_input",), wire=json.dumps(USAGE, separators=(",", ":"))) == whole.usage
    assert ("tool_use", "tool_calls", True) == (whole.response.finish, whole.response.outcome, whole.response.complete)
    assert json.loads(raw) == raw_response(streamed) == raw_response(whole)


def test_deltas_come_as_the_stream_does() -> None:
    """Each piece is shown when it arrives, under the index that its block has in the end."""
    deltas, _ = feed([STREAM])

    assert [
        ReasoningDelta("I should ", 0, "r1"),
        ReasoningDelta("look.", 0, "r1"),
        TextDelta("Let me ", 2, "r1"),
        TextDelta("look.", 2, "r1"),
        ToolCallDelta(3, "tooluse_1", "get_weather", response="r1"),
        ToolCallDelta(3, arguments='{"city": "Oslo",', response="r1"),
        ToolCallDelta(3, arguments=' "n": 1.50}', response="r1"),
    ] == deltas


def test_events_are_read_whatever_frames_them() -> None:
    """Proxies send the same events as lines or server-sent events."""
    events = [delta(0, text="Hi"), STOP, {"metadata": {"usage": USAGE}}]
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)

    assert feed([stream(*events)]) == feed([lines], "ndjson")


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["UmVkYWN0ZWQ="], "UmVkYWN0ZWQ="),
        (["UmVk", "YWN0ZWQ="], "UmVkYWN0ZWQ="),
        (["UmU=", "ZGFjdGVk"], base64.b64encode(b"Redacted").decode()),
        (["Um", "VkYWN0ZWQ="], "UmVkYWN0ZWQ="),
        (["!!==", "UmVk"], "!!==UmVk"),
    ],
    ids=["one", "end to end", "each encoded for itself", "cut inside a group", "not base64"],
)
def test_redacted_reasoning_in_pieces_is_the_data_in_pieces(pieces: list[str], expected: str) -> None:
    """Chunks of binary data are joined as data; a single one stays as it came, to the byte."""
    result = read(stream(*(delta(0, reasoningContent={"redactedContent": piece}) for piece in pieces), STOP))

    assert [(Carrier("redacted", expected),)] == [block.carriers for block in result.blocks]


def test_the_last_signature_counts() -> None:
    """A signature that is said again replaces the first."""
    result = read(
        stream(delta(0, reasoningContent={"signature": "a"}), delta(0, reasoningContent={"signature": "b"}), STOP)
    )

    assert (ThinkingBlock("", source_field="reasoningText", signature="b", kind="none"),) == result.blocks
    assert [{"reasoningContent": {"reasoningText": {"text": "", "signature": "b"}}}] == content(result)


def test_an_empty_text_block_is_a_block() -> None:
    """It has to go back next to reasoning, and it comes where it came."""
    result = read(stream(delta(0, text=""), stop(0), delta(1, reasoningContent={"text": "a"}), stop(1), STOP))

    assert [Text("", source_field="text"), ThinkingBlock("a", source_field="reasoningText")] == list(result.blocks)


def test_blocks_are_told_apart_by_their_index() -> None:
    """Deltas of several blocks may come in turns."""
    result = read(
        stream(
            start(1, toolUse={"toolUseId": "a", "name": "f"}),
            start(2, toolUse={"toolUseId": "b", "name": "g"}),
            delta(2, toolUse={"input": '{"x"'}),
            delta(1, toolUse={"input": "{}"}),
            delta(2, toolUse={"input": ":1}"}),
            delta(3, text="one "),
            delta(4, text="two "),
            delta(3, text="one"),
            STOP,
        )
    )

    texts = [Text("one one", source_field="text"), Text("two ", source_field="text")]
    assert [ToolCall("a", "f", "{}"), ToolCall("b", "g", '{"x":1}'), *texts] == list(result.blocks)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([delta(0, toolUse={"input": "{}"})], [ToolCall("", "", "{}")]),
        ([delta(0, toolUse={"input": {"a": 1}})], [ToolCall("", "", '{"a":1}')]),
        ([delta(0, text="a"), delta(0, reasoningContent={"text": "b"})], [Text("a", "text"), "b"]),
        ([delta(0, reasoningContent={"text": "a"}), delta(0, text="b")], ["a", Text("b", "text")]),
        ([delta(0, reasoningContent={"text": "a", "signature": "s"}), delta(0, reasoningContent={})], ["a"]),
        ([start(0), delta(0, text="a")], [Text("a", "text")]),
        ([{"contentBlockDelta": {"delta": {"text": "a"}}}], [Text("a", "text")]),
        ([{"contentBlockDelta": {"contentBlockIndex": "x", "delta": {"text": "a"}}}], [Text("a", "text")]),
        ([{"contentBlockDelta": {"contentBlockIndex": 0, "new": 1, "delta": {"text": "a"}}}], [Text("a", "text")]),
        ([{"contentBlockDelta": {"new": 1, "delta": {"reasoningContent": {"text": "a"}}}}], ["a"]),
        ([{"contentBlockDelta": 5}, {"contentBlockStart": {"start": 5}}, {"contentBlockDelta": {"delta": 5}}], []),
    ],
)
def test_a_stream_that_is_not_quite_right_is_read_as_far_as_it_goes(events: list[Any], expected: list[Any]) -> None:
    """What is missing is empty, and another kind under a used index is another block."""
    result = read(stream(*events, STOP))

    assert expected == [block.thought if isinstance(block, ThinkingBlock) else block for block in result.blocks]
    assert result.response.complete


CITED = {"content": [{"text": "It is "}, {"text": "4 °C."}], "citations": [{"title": "Weather"}]}
SERVER_CALL = {"toolUse": {"toolUseId": "s1", "name": "nova_grounding", "type": "server_tool_use", "input": {"a": 1}}}
SERVER_RESULT = {"toolResult": {"toolUseId": "s1", "status": "success", "content": [{"text": "a"}, {"text": "b"}]}}
IMAGE = {"image": {"format": "png", "source": {"bytes": PNG}}}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (IMAGE, Media("image/png", data=PNG)),
        ({"image": {"format": "tiff", "source": {"bytes": PNG}}}, Media),
        ({"image": 5}, Media),
        ({"citationsContent": CITED}, Text),
        ({"citationsContent": {"content": [{"text": 5}]}}, Unknown),
        ({"citationsContent": {}}, Unknown),
        ({"guardContent": {"text": {"text": "x"}}}, Unknown),
        (SERVER_CALL, Unknown),
        (SERVER_RESULT, Unknown),
        ({"toolUse": 5}, Unknown),
        ({"toolUse": {"toolUseId": "a", "name": "f", "input": {}, "more": 1}}, ToolCall),
        ({"toolUse": {"toolUseId": "a", "name": "f"}}, ToolCall),
        ({"reasoningContent": {"reasoningText": {"text": "a", "signature": "b", "new": 1}}}, ThinkingBlock),
        ({"reasoningContent": {"reasoningText": {"text": "a"}, "new": 1}}, ThinkingBlock),
        ({"reasoningContent": {"reasoningText": {"signature": "b"}}}, Unknown),
        ({"reasoningContent": {"redactedContent": 5}}, Unknown),
        ({"reasoningContent": 5}, Unknown),
        ({"text": 5}, Unknown),
        ({"text": "a", "more": 1}, Unknown),
        ({"a": "\ud83d", "b": [1]}, Unknown),
        ("text", Unknown),
    ],
)
def test_a_content_block_of_any_kind_is_kept(block: Any, expected: Any) -> None:
    """What is known is read, what is not stays as it came, and the response can be put together again."""
    result = read(body(block))

    if isinstance(expected, type):
        assert [expected] == [type(found) for found in result.blocks]
    else:
        assert [expected] == list(result.blocks)
    if block != {"toolUse": {"toolUseId": "a", "name": "f"}}:
        assert [block] == content(result)


def test_text_with_citations_is_text() -> None:
    """A person reads it like any other; the citations stay with it, streamed or not."""
    streamed = read(
        stream(
            delta(0, text="It is "),
            delta(0, text="4 °C."),
            delta(0, citation={"title": "Weather"}),
            stop(0),
            delta(1, citation={"title": "Other"}),
            STOP,
        )
    )
    first, second = streamed.blocks
    whole = read(body({"citationsContent": CITED}))

    assert isinstance(first, Text)
    assert first.text == whole.blocks[0].text == "It is 4 °C."  # type: ignore[union-attr]
    assert {"content": [{"text": "It is 4 °C."}], "citations": [{"title": "Weather"}]} == json.loads(first.wire)[
        "citationsContent"
    ]
    assert [{"title": "Other"}] == json.loads(second.wire)["citationsContent"]["citations"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (
            [
                start(0, toolUse={"toolUseId": "s1", "name": "nova_grounding", "type": "server_tool_use"}),
                delta(0, toolUse={"input": '{"a"'}),
                delta(0, toolUse={"input": ":1}"}),
            ],
            SERVER_CALL,
        ),
        (
            [
                start(0, toolResult={"toolUseId": "s1", "status": "success"}),
                delta(0, toolResult=[{"text": "a"}]),
                delta(0, toolResult=[{"text": "b"}]),
            ],
            SERVER_RESULT,
        ),
        (
            [
                start(0, image={"format": "png"}),
                delta(0, image={"source": {"bytes": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()}}),
                delta(0, image={"source": {"bytes": base64.b64encode(b"12").decode()}}),
            ],
            IMAGE,
        ),
        (
            [delta(0, new={"a": "x", "n": 1}), delta(0, new={"a": "y", "n": 2, "b": []})],
            {"new": {"a": "xy", "n": 2, "b": []}},
        ),
        ([delta(0, new=[1])], {"new": {"content": [1]}}),
        ([delta(0, reasoningContent={"new": "x"})], {"reasoningContent": {"new": "x"}}),
        ([delta(0, reasoningContent="\ud83d")], {"reasoningContent": "\ud83d"}),
        ([delta(0, reasoningContent={"\ud83d": "x"})], {"reasoningContent": {"\ud83d": "x"}}),
        ([start(0, toolUse=5)], {"toolUse": 5}),
    ],
    ids=[
        "server call",
        "server result",
        "image",
        "new",
        "a list",
        "new reasoning",
        "half a character",
        "half a character as a key",
        "no call",
    ],
)
def test_blocks_of_other_kinds_are_put_together_from_their_events(events: list[Any], expected: Any) -> None:
    """The start with its deltas is what the response would have had that is not streamed."""
    result = read(stream(*events, stop(0), STOP))

    assert [expected] == content(result)
    assert not any(isinstance(block, ToolCall) for block in result.blocks)


def test_what_no_block_owns_is_kept() -> None:
    """Fields of the message and of the response, and events of a kind that is not known."""
    raw = json.dumps(
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "a"}], "x": 1}},
            "trace": {},
            "stopReason": "end_turn",
        }
    ).encode()
    streamed = read(stream(delta(0, text="a"), {"newEvent": {"a": 1}}, STOP))

    assert json.loads(raw) == raw_response(read(raw))
    assert '{"newEvent":{"a":1}}' == streamed.response.envelope


def test_a_lone_surrogate_survives() -> None:
    """Halves of a character that come in two events are one; a lone one stays, also beside a call."""
    halves = stream(
        event_stream.message(
            {":event-type": "contentBlockDelta", ":message-type": "event"},
            b'{"contentBlockIndex":0,"delta":{"text":"\\ud83d"}}',
        ),
        event_stream.message(
            {":event-type": "contentBlockDelta", ":message-type": "event"},
            b'{"contentBlockIndex":0,"delta":{"text":"\\ude00"}}',
        ),
        STOP,
    )
    lone = read(body({"text": "\ud83d"}, {"toolUse": {"toolUseId": "a", "name": "f", "input": {"b": "\ud83d"}}}))

    assert [Text("😀", source_field="text")] == list(read(halves).blocks)
    assert [Text("\ud83d", source_field="text"), ToolCall("a", "f", '{"b":"\\ud83d"}')] == list(lone.blocks)


def test_opaque_values_are_not_shown() -> None:
    """Neither signature nor redacted data stands in the representation of a carrier."""
    blocks: list[Block] = [block for block in read(STREAM).blocks if isinstance(block, ThinkingBlock)]

    assert all("UmVk" not in repr(carrier) for block in blocks for carrier in block.carriers)


def test_reasoning_that_is_not_shown_is_complete() -> None:
    """Empty text with a signature comes back as it was."""
    block = {"reasoningContent": {"reasoningText": {"text": "", "signature": "Eq+/="}}}
    result = read(body(block))

    assert (ThinkingBlock("", source_field="reasoningText", signature="Eq+/=", kind="none"),) == result.blocks
    assert [block] == content(result)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"inputTokens": 1, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 3}, (1, None, 2, 3)),
        ({"inputTokens": True, "outputTokens": "5"}, (None, None, None, None)),
    ],
)
def test_usage_is_read_as_reported(usage: dict[str, Any], expected: tuple[int | None, ...]) -> None:
    """What was not said, or is no count, is unknown; cached tokens are not among the input."""
    found = read(body({"text": "a"}, usage=usage)).usage

    assert found is not None
    assert expected == (found.input, found.output, found.cached, found.cache_write)
    assert ("cache_beside_input",) == found.counted
    assert found.reasoning is None


@pytest.mark.parametrize("usage", [{}, [], 5])
def test_usage_that_is_none_is_none(usage: Any) -> None:
    """An empty object says nothing."""
    assert read(body({"text": "a"}, usage=usage)).usage is None
