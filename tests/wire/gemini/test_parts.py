"""Parts of candidate 0, streamed and whole, as blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.gemini.feeding import body, chunk, feed, read, sse, stream
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.deltas import ToolCallDelta
from thinkback.wire.gemini.blocks import wire_object
from thinkback.wire.gemini.read import raw_response

SIGNED = (Carrier("thought_signature", "c2ln"),)
CALL = {"functionCall": {"id": "f1", "name": "look", "args": {"a": 1}}}
PARTS: list[tuple[dict[str, Any], Block]] = [
    ({"text": "hi"}, Text("hi")),
    ({"text": "hi", "thoughtSignature": "c2ln"}, Text("hi", carriers=SIGNED)),
    ({"text": "", "thoughtSignature": "c2ln"}, Text("", carriers=SIGNED)),
    ({"text": "why", "thought": True}, ThinkingBlock("why", source_field="thought", kind="summary")),
    (
        {"text": "why", "thought": True, "thoughtSignature": "c2ln"},
        ThinkingBlock("why", source_field="thought", kind="summary", carriers=SIGNED),
    ),
    (
        {"thought": True, "thoughtSignature": "c2ln"},
        ThinkingBlock(
            "",
            source_field="thought",
            kind="none",
            carriers=SIGNED,
            wire='{"thought":true,"thoughtSignature":"c2ln"}',
        ),
    ),
    (
        {"text": "hi", "thought_signature": "c2ln"},
        Text("hi", carriers=SIGNED, wire='{"text":"hi","thought_signature":"c2ln"}'),
    ),
    ({"text": "hi", "thoughtSignature": ""}, Text("hi", wire='{"text":"hi","thoughtSignature":""}')),
    ({"text": "hi", "x": 1}, Text("hi", wire='{"text":"hi","x":1}')),
    (CALL, ToolCall("f1", "look", '{"a": 1}')),
    ({**CALL, "thoughtSignature": "c2ln"}, ToolCall("f1", "look", '{"a": 1}', carriers=SIGNED)),
    ({"functionCall": {"name": "look"}}, ToolCall("", "look", "{}", wire='{"functionCall":{"name":"look"}}')),
    (
        {"function_call": {"name": "look", "args": {"a": 1}}},
        ToolCall("", "look", '{"a": 1}', wire='{"function_call":{"name":"look","args":{"a":1}}}'),
    ),
    (
        {"functionCall": {"name": "look", "args": [1]}},
        ToolCall("", "look", "[1]", wire='{"functionCall":{"name":"look","args":[1]}}'),
    ),
    ({"inlineData": {"mimeType": "image/png", "data": "aGk="}}, Media("image/png", data="aGk=")),
    (
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "c2ln"},
        Media("image/png", data="aGk=", carriers=SIGNED),
    ),
    ({"inlineData": {"mimeType": "image/png"}}, Unknown('{"inlineData":{"mimeType":"image/png"}}')),
    ({"fileData": {"fileUri": "gs://b/c", "mimeType": "video/mp4"}}, Media("video/mp4", url="gs://b/c")),
    ({"fileData": {"fileUri": "gs://b/c"}}, Media("*/*", url="gs://b/c")),
    ({"fileData": {}}, Unknown('{"fileData":{}}')),
    ({"inlineData": {"data": "aGk="}}, Unknown('{"inlineData":{"data":"aGk="}}')),
    (
        {"executableCode": {"code": "1"}, "thoughtSignature": "c2ln"},
        Unknown('{"executableCode":{"code":"1"},"thoughtSignature":"c2ln"}', carriers=SIGNED),
    ),
    ({"toolCall": {"id": "t"}}, Unknown('{"toolCall":{"id":"t"}}')),
    ({}, Unknown("{}")),
]


@pytest.mark.parametrize(("part", "block"), PARTS)
def test_a_part_is_a_block_and_comes_back_as_it_was(part: dict[str, Any], block: Block) -> None:
    """Each part becomes the same block streamed and whole, and its wire object is the part."""
    streamed, whole = read(stream(part)), read(body(part))

    assert (block,) == streamed.blocks
    assert (block,) == whole.blocks
    assert part == json.loads(wire_object(block))
    assert json.loads(body(part)) == raw_response(whole)


def test_unsigned_neighbours_are_one_block_and_signed_parts_stand_alone() -> None:
    """Pieces of one kind are joined; a signature stays on its part, and an empty unsigned part says nothing."""
    parts = [
        {"text": "a", "thought": True},
        {"text": "b", "thought": True},
        {"text": "c"},
        {"text": ""},
        {"text": "d", "thought": False},
        {"text": "e", "thoughtSignature": "c2ln"},
        {"text": "f", "thoughtSignature": "c2ln"},
        {"text": "g"},
    ]

    expected = (
        ThinkingBlock("ab", source_field="thought", kind="summary"),
        Text("cd"),
        Text("e", carriers=SIGNED),
        Text("f", carriers=SIGNED),
        Text("g"),
    )
    assert expected == read(stream(*parts)).blocks
    assert expected == read(sse(chunk(*parts, finish="STOP"))).blocks


def test_parts_of_a_whole_body_stay_apart() -> None:
    """What the wire kept apart is not merged."""
    assert (Text("a"), Text(""), Text("b")) == read(body({"text": "a"}, {"text": ""}, {"text": "b"})).blocks


def test_arguments_are_source_text() -> None:
    """White space, order and digits of the arguments are those of the body."""
    source = '{"b" : 1.0, "a":12345678901234567890123}'
    raw = b'{"candidates":[{"content":{"parts":[{"text":"x"},{"functionCall":{"name":"f","args":%b}}]}}]}'

    assert ToolCall("", "f", source) == read(raw % source.encode()).blocks[1]


@pytest.mark.parametrize("args", ['{"a":"\\ud83d"}', "null"])
def test_arguments_that_cannot_be_sliced_are_read_all_the_same(args: str) -> None:
    """A lone surrogate is kept; no arguments are an empty object."""
    raw = b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":%b}}]}}]}' % args.encode()
    (call,) = read(raw).blocks

    assert isinstance(call, ToolCall)
    assert (json.loads(args) or {}) == json.loads(call.arguments)


def piece(jsonPath: str, *, more: bool = False, **value: Any) -> dict[str, Any]:
    """A further piece of a call, with one argument."""
    entry = {"jsonPath": jsonPath, **value, **({"willContinue": True} if more else {})}
    return {"functionCall": {"partialArgs": [entry], "willContinue": True}}


def called(*pieces: dict[str, Any], **more: Any) -> tuple[dict[str, Any], ...]:
    """A call that comes in pieces, with its begin and end."""
    begin = {"functionCall": {"name": "f", "willContinue": True, **more}, "thoughtSignature": "c2ln"}
    return begin, *pieces, {"functionCall": {}}


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        ((), {}),
        (
            (
                piece("$.a", stringValue="x", more=True),
                piece("$.a", stringValue="y"),
                piece("$.b", numberValue=1.5),
                piece("$.a", stringValue="z"),
            ),
            {"a": "xyz", "b": 1.5},
        ),
        ((piece("$.a", boolValue=False), piece("$.b", nullValue="NULL_VALUE")), {"a": False, "b": None}),
        (
            (
                piece("$.a[0].b", stringValue="x"),
                {"functionCall": {"willContinue": True}},
                piece("$.a[1].b", stringValue="\ud83d"),
                piece("$.a[1].b", stringValue="\ude00"),
                piece("$.a[0].c", stringValue="z"),
            ),
            {"a": [{"b": "x", "c": "z"}, {"b": "\U0001f600"}]},
        ),
        ((piece("$['a b'][\"c\"]", stringValue="x"),), {"a b": {"c": "x"}}),
        ((piece("$.a", stringValue="x"), piece("$.a.b", stringValue="y")), {"a": {"b": "y"}}),
        ((piece("$.a.b", stringValue="y"), piece("$.a", stringValue="x")), {"a": "x"}),
        ((piece("a", stringValue="x"), piece("$.", stringValue="y"), piece("$", boolValue=True)), None),
        ((piece("$" + ".a" * 200, stringValue="x"), piece("$[99999999999]", stringValue="y")), None),
        (({"functionCall": {"partialArgs": [1, {"jsonPath": 2}], "willContinue": True}},), {}),
        (({"functionCall": {"partialArgs": 1, "willContinue": True}},), {}),
    ],
)
def test_a_call_in_pieces_is_one_call(pieces: tuple[dict[str, Any], ...], arguments: Any) -> None:
    """Its arguments are laid at their paths; a path that cannot be followed is a name, so that nothing is lost."""
    (call,) = read(stream(*called(*pieces))).blocks

    assert isinstance(call, ToolCall)
    assert ("", "f", SIGNED, "") == (call.id, call.name, call.carriers, call.wire)
    found = json.loads(call.arguments)
    if arguments is None:
        paths = [each["functionCall"]["partialArgs"][0]["jsonPath"] for each in pieces]
        arguments = dict(zip(paths, found.values(), strict=True))
    assert arguments == found


def test_calls_in_pieces_follow_each_other() -> None:
    """A new name ends the call before; an id said later belongs to the call; what was begun with stays."""
    events = stream(
        *called(piece("$.a", stringValue="x"), args={"z": 1})[:-1],
        {"functionCall": {"id": "f2", "name": "g", "willContinue": True}},
        {"text": "between"},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.b", "boolValue": True}]}},
        {"functionCall": {}},
        {"functionCall": 1},
    )
    deltas, result = feed([events])

    assert result == read(events)
    assert [
        ToolCall("", "f", '{"z":1,"a":"x"}', carriers=SIGNED),
        ToolCall("f2", "g", '{"b":true}'),
        Text("between"),
        Unknown('{"functionCall":{}}'),
        Unknown('{"functionCall":1}'),
    ] == list(result.blocks)
    shown = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert [(0, "", "f"), (1, "f2", "g")] == [(delta.index, delta.id, delta.name) for delta in shown]


def test_a_call_cut_in_the_middle_is_shown_as_far_as_it_came() -> None:
    """The arguments that arrived are in the block; the response is not complete."""
    result = read(sse(*(chunk(part) for part in called(piece("$.a", stringValue="x"))[:-1])))

    assert (ToolCall("", "f", '{"a":"x"}', carriers=SIGNED),) == result.blocks
    assert not result.response.complete


def test_only_candidate_0_is_read_and_the_others_are_kept() -> None:
    """A second candidate stands in the envelope."""
    two = chunk({"text": "a"}, finish="STOP")
    two["candidates"].append({**two["candidates"][0], "index": 1})
    raw = json.dumps(two).encode()

    assert (Text("a"),) == read(raw).blocks
    assert two == raw_response(read(raw))
    assert (Text("aa"),) == read(sse(chunk({"text": "a"}), two)).blocks


def test_what_belongs_to_no_part_is_in_the_envelope() -> None:
    """Candidate fields and top-level fields come back; of a field that comes again the last one stays."""
    first, last = chunk({"text": "a"}, createTime="1", x=1), chunk({"text": "b"}, finish="STOP", createTime="2")
    last["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["q"]}
    result = read(sse(first, chunk(finish="STOP"), last))
    raw = raw_response(result)

    assert ("2", 1, "served") == (raw["createTime"], raw["x"], raw["modelVersion"])
    assert {"webSearchQueries": ["q"]} == raw["candidates"][0]["groundingMetadata"]
    assert [{"text": "ab"}] == raw["candidates"][0]["content"]["parts"]


def test_repr_of_a_block_hides_the_signature() -> None:
    """A signature is in no repr."""
    (block,) = read(stream({"text": "", "thoughtSignature": "c2VjcmV0"})).blocks

    assert "c2VjcmV0" not in repr(block)
