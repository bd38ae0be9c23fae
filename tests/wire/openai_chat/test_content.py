"""``content``: text, tagged reasoning with its raw slices, lists of parts, refusals."""

from __future__ import annotations

import json

import pytest

from tests.wire.feeding import body, content, feed, read, reasoning, sse, stream, thoughts, visible
from thinkback.model.blocks import Text, ThinkingBlock, Unknown, content_slice
from thinkback.model.deltas import ReasoningDelta, Reclassified, TextDelta

SPLITS = [
    ("block at the start", ["<think>\na\n</think>\n\nb"], ["<think>\na\n</think>", "\n\nb"]),
    ("tags in pieces", ["<th", "ink>a", "b</thi", "nk>", "c"], ["<think>ab</think>", "c"]),
    ("no opening tag", ["a ", "b</think>", "c"], ["a b</think>", "c"]),
    ("only a closing tag", ["</think>c"], ["</think>", "c"]),
    ("no closing tag", ["<think>a"], ["<think>a"]),
    ("ends inside the closing tag", ["<think>a</thi"], ["<think>a</thi"]),
    ("interleaved", ["<think>a</think>b", "<think>c</think>d"], ["<think>a</think>", "b", "<think>c</think>", "d"]),
    ("token by token", ["<think>a</think>", " <think>b</think>"], ["<think>a</think> <think>b</think>"]),
    ("a fence", ["```\n<think>\n```\n"], ["```\n<think>\n```\n"]),
    ("empty", ["<think>\n\n</think>\n\n", "b"], ["<think>\n\n</think>", "\n\nb"]),
    ("attributes", ['<think signature="s">a</think>b'], ['<think signature="s">a</think>', "b"]),
]


@pytest.mark.parametrize(("name", "pieces", "slices"), SPLITS, ids=[case[0] for case in SPLITS])
def test_each_block_keeps_its_raw_slice(name: str, pieces: list[str], slices: list[str]) -> None:
    """Tags and white space stay with their block; joined, the slices are ``content`` again."""
    for raw in (stream(*({"content": piece} for piece in pieces)), body({"content": "".join(pieces)})):
        result = read(raw)
        found = [block for block in result.blocks if isinstance(block, Text | ThinkingBlock)]

        assert slices == [content_slice(block) for block in found]
        assert "".join(pieces) == content(result.blocks)
        assert "text" == result.response.content


def test_tagged_reasoning_is_shown_before_its_closing_tag() -> None:
    """Nothing waits for the end of the block; only what may be a tag is held back."""
    events = [{"choices": [{"delta": {"content": text}}]} for text in ("<think>", "a", " b<", "c</thi", "nk>", "d")]
    deltas, _ = feed([sse(*events)])

    shown = [ReasoningDelta("a", 0, "r1"), ReasoningDelta(" b", 0, "r1"), ReasoningDelta("<c", 0, "r1")]
    assert [*shown, TextDelta("d", 1, "r1")] == deltas


def test_a_lone_closing_tag_reclassifies_what_was_shown() -> None:
    """Text is shown as it comes; the closing tag says that it was reasoning."""
    events = [{"choices": [{"delta": {"content": text}}]} for text in ("a", "b", "</think>c")]
    deltas, result = feed([sse(*events)])

    texts = [TextDelta("a", 0, "r1"), TextDelta("b", 0, "r1")]
    assert [*texts, Reclassified("ab", 0, "r1"), TextDelta("c", 1, "r1")] == deltas
    assert ThinkingBlock("ab", source_field="content", closing="</think>") == result.blocks[0]


def test_every_text_before_a_lone_closing_tag_is_reclassified() -> None:
    """Text that a tool call interrupts is reasoning on both sides; a refusal is not."""
    call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}
    result = read(stream({"content": "a"}, call, {"refusal": "no"}, {"content": "b</think>c"}))

    assert ["a", "b"] == [block.thought for block in thoughts(result)]
    assert "noc" == visible(result.blocks)
    assert "ab</think>c" == content(result.blocks)


@pytest.mark.parametrize("message", [{"reasoning": "a"}, {"reasoning_details": [{"type": "reasoning.encrypted"}]}])
def test_where_a_field_holds_the_reasoning_a_stray_tag_is_text(message: dict[str, object]) -> None:
    """A closing tag in the answer of a host that separates reasoning reclassifies nothing."""
    result = read(stream(message, {"content": "b</think>c"}))

    assert "b</think>c" == visible(result.blocks)


DUPLICATES = [
    ("whole", "ab", ["<think>ab</think>c"]),
    ("white space around", "\nab\n", ["<think>\n ab\n\n", "</think>c"]),
    ("in pieces", "ab", ["<think>", "a", "b", "</think>c"]),
    ("never closed", "ab", ["<think>a", "b"]),
]


@pytest.mark.parametrize(("name", "field", "pieces"), DUPLICATES, ids=[case[0] for case in DUPLICATES])
def test_tags_that_repeat_a_field_are_kept_and_not_shown(name: str, field: str, pieces: list[str]) -> None:
    """Reasoning that comes in a field and again in tags is read and shown once, and its slice is kept."""
    deltas, result = feed(
        [stream({"reasoning_content": field[:1]}, {"reasoning_content": field[1:]}, *({"content": p} for p in pieces))]
    )
    read(stream({"reasoning_content": field}, *({"content": piece} for piece in pieces)))

    assert [False, True] == [block.is_hidden for block in thoughts(result)]
    assert field == "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert "".join(pieces) == content(result.blocks)


def test_a_field_that_repeats_the_tags_before_it_hides_them() -> None:
    """Also where the tags come first, one of the two is read."""
    _, result = feed([stream({"content": "<think>ab</think>c"}, {"reasoning": "ab"})])

    assert ["ab"] == [block.thought for block in thoughts(result) if not block.is_hidden]


DIFFERENT = [
    ("from the start", "ab", ["<think>x", "y</think>c"]),
    ("further on", "ab", ["<think>a", "x</think>c"]),
    ("more", "ab", ["<think>ab", "x</think>c"]),
    ("more after white space", "ab", ["<think>ab", " ", "x</think>c"]),
    ("less", "ab", ["<think>a", "</think>c"]),
    ("less, never closed", "ab", ["<think>", "a"]),
    ("white space in between", "ab", ["<think> ", " ", "a", " b</think>"]),
]


@pytest.mark.parametrize(("name", "field", "pieces"), DIFFERENT, ids=[case[0] for case in DIFFERENT])
def test_tags_that_say_something_else_are_shown(name: str, field: str, pieces: list[str]) -> None:
    """Tagged text that departs from the field, at whatever point, is shown whole."""
    result = read(stream({"reasoning_content": field}, *({"content": piece} for piece in pieces)))
    tagged = "".join(pieces).removeprefix("<think>").partition("</think>")[0]

    assert field + tagged == reasoning(result.blocks)


def test_a_tag_stays_open_while_a_field_speaks() -> None:
    """Tagged text that another field interrupts goes on in its own block."""
    result = read(stream({"content": "<think>a"}, {"reasoning": "x"}, {"content": "b</think>c"}))

    assert [("content", "ab"), ("reasoning", "x")] == [(b.source_field, b.thought) for b in thoughts(result)]
    assert "c" == visible(result.blocks)


def test_content_as_a_list_of_parts() -> None:
    """Texts are read and joined, a text with more to it keeps its object, other parts stay as they are."""
    image, noted = {"type": "image_url", "image_url": {"url": "u"}}, {"type": "text", "text": "d", "note": 1}
    parts = [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
        image,
        {"type": "text", "text": "c"},
        noted,
        5,
    ]
    result = read(body({"content": parts}))

    assert [
        Text("ab"),
        Unknown(json.dumps(image, separators=(",", ":"))),
        Text("c"),
        Text("d", wire=json.dumps(noted, separators=(",", ":"))),
        Unknown("5"),
    ] == list(result.blocks)
    assert "ab" == visible(read(stream({"content": parts[:1]}, {"content": parts[1:2]})).blocks)


def test_a_part_of_a_list_that_is_held_back_or_all_reasoning_has_no_object() -> None:
    """Only visible text can carry the object of its part."""
    parts = [{"type": "text", "text": "<think>a", "note": 1}, {"type": "text", "text": "</think>b", "note": 2}]
    result = read(body({"content": parts}))

    assert ["a", "b"] == [reasoning(result.blocks), visible(result.blocks)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [({}, "absent"), ({"content": None}, "null"), ({"content": ""}, "text"), ({"content": []}, "text")],
)
def test_how_the_content_field_stood(message: dict[str, object], expected: str) -> None:
    """Absent, null and empty are three things."""
    assert expected == read(body(message)).response.content


def test_content_in_a_stream_is_text_once_it_came() -> None:
    """A null beside other fields, which many hosts send in every chunk, says nothing."""
    assert "text" == read(stream({"content": ""}, {"content": None, "odd": 1})).response.content
    assert "absent" == read(stream({"content": None}, {"content": None, "odd": 1})).response.content
    assert "text" == read(stream({"content": None, "odd": 1}, {"content": "a"})).response.content


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text"])
def test_what_stands_beside_reasoning_is_not_lost(name: str) -> None:
    """Empty content, a channel, an empty list of details or a refusal in the same chunk count like anywhere else."""
    assert "text" == read(stream({name: "a", "content": ""})).response.content
    others: list[dict[str, object]] = [{"channel": "analysis"}, {"reasoning_details": []}]
    for more in others:
        assert more == json.loads(read(stream({name: "a", **more})).response.message)
    assert "no" == visible(read(stream({name: "a", "refusal": "no"})).blocks)


def test_content_of_another_shape_is_kept() -> None:
    """A content that is neither text nor list stays in the message."""
    assert {"content": {"a": 1}} == json.loads(read(body({"content": {"a": 1}})).response.message)


@pytest.mark.parametrize("raw", [stream({"refusal": "I "}, {"refusal": "won't"}), body({"refusal": "I won't"})])
def test_a_refusal_is_text_of_its_own_field(raw: bytes) -> None:
    """A refusal can be read and says where it came from; an empty one is none."""
    assert (Text("I won't", source_field="refusal"),) == read(raw).blocks
    assert () == read(stream({"refusal": None}, {"refusal": "", "odd": 1})).blocks


def test_unknown_fields_of_a_message_are_kept() -> None:
    """Texts in pieces are joined, lists too, what is said again in each chunk is kept once."""
    result = read(
        stream(
            {"channel": "analysis", "content": "a"},
            {"channel": "final", "content": "b"},
            {"opaque": "x", "list": [1], "table": {"a": "b", "n": 1}, "same": "s", "flag": False, "nothing": None},
            {"opaque": "y", "list": [2], "table": {"a": "c", "n": 2}, "same": "s", "flag": True},
            {"opaque": "y", "list": [1, 2], "table": {"a": {}}, "same": 1},
            {"refusal": {"odd": 1}, "tool_calls": {"odd": 2}, "function_call": {"name": "f", "arguments": "{"}},
            {"function_call": {"arguments": "}"}},
        )
    )

    assert {
        "channel": "final",
        "opaque": "xyy",
        "list": [1, 2],
        "table": {"a": {}, "n": 2},
        "same": 1,
        "flag": True,
        "refusal": {"odd": 1},
        "tool_calls": {"odd": 2},
        "function_call": {"name": "f", "arguments": "{}"},
    } == json.loads(result.response.message)
    assert "ab" == visible(result.blocks)


def test_lone_surrogates_survive_and_halves_of_a_pair_meet() -> None:
    """A lone surrogate is kept; a character cut in two by the stream is whole again in its block."""
    result = read(
        stream(
            {"reasoning": "a\ud83d"},
            {"reasoning": "\ude00b\udc00"},
            {"content": "<think>\ud800</think>\ud83d"},
            {"content": "\ude00"},
        )
    )

    assert ["a😀b\udc00", "\ud800", "😀"] == [
        block.thought if isinstance(block, ThinkingBlock) else visible([block]) for block in result.blocks
    ]


def test_a_thinking_part_comes_in_fragments() -> None:
    """Its texts are joined, whatever else is in it stays, and the signature is that of the whole."""
    reference = {"type": "reference", "ids": [1]}
    raw = stream(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": ""}, reference]}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "b"}], "signature": "s"}]},
        {"content": "x"},
    )
    thought, answer = read(raw).blocks

    assert isinstance(thought, ThinkingBlock)
    assert ("ab", "s", Text("x")) == (thought.thought, thought.signature, answer)
    said = [{"type": "text", "text": "ab"}, reference]
    assert {"type": "thinking", "thinking": said, "signature": "s"} == json.loads(thought.wire)
