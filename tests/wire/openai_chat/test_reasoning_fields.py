"""Reasoning in fields of the message: which is read, which only repeats, and what the details become."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.feeding import body, feed, read, reasoning, sse, stream, thoughts, visible
from thinkback.model.blocks import Carrier, carriers_of
from thinkback.model.deltas import ReasoningDelta
from thinkback.wire.openai_chat.message import MessageBuilder
from thinkback.wire.result import ReadResult


def entry(text: str | None = None, **more: Any) -> dict[str, Any]:
    """A details entry as most hosts send it."""
    return {"type": "reasoning.text", **({} if text is None else {"text": text}), "format": "f", "index": 0, **more}


def details(result: ReadResult) -> list[dict[str, Any]]:
    """The verbatim entries."""
    found = [block for block in thoughts(result) if block.source_field == "reasoning_details"]
    return [json.loads(block.wire) for block in found]


def fields(result: ReadResult) -> list[tuple[str, str]]:
    """(field, text) of what is not hidden."""
    return [(block.source_field, block.thought) for block in thoughts(result) if not block.is_hidden]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text"])
def test_each_field_is_read_streamed_and_whole(name: str) -> None:
    """The three names hold reasoning, white space exactly kept, empty and null ignored."""
    streamed = stream({"role": "assistant", name: ""}, {name: " \n"}, {name: "a "}, {name: None}, {"content": "b"})
    whole = body({"role": "assistant", name: " \na ", "content": "b"})

    for result in (read(streamed), read(whole)):
        assert [(name, " \na ")] == fields(result)
        assert "b" == visible(result.blocks)
        assert () == result.response.repeats


def test_a_list_of_parts_in_a_field_is_its_text() -> None:
    """A few gateways send the field as a list; what is no text is kept as an unknown field."""
    parts = [{"type": "text", "text": "a"}, "b"]

    assert [("reasoning", "ab")] == fields(read(body({"reasoning": parts})))
    for odd in ([{"type": "image"}], [1], [], {"text": "a"}, 7, True):
        result = read(body({"reasoning": odd}))
        assert ([], {"reasoning": odd}) == (thoughts(result), json.loads(result.response.message))


SEVERAL = [
    (
        "one repeats the other",
        [{"reasoning": "a", "reasoning_content": "a"}],
        [("reasoning_content", "a")],
        ("reasoning",),
    ),
    (
        "all three",
        [{"reasoning_text": "a", "reasoning": "a", "reasoning_content": "a"}],
        [("reasoning_content", "a")],
        ("reasoning", "reasoning_text"),
    ),
    (
        "piece by piece",
        [{"reasoning": "a", "reasoning_content": "a"}, {"reasoning": "b", "reasoning_content": "b"}],
        [("reasoning_content", "ab")],
        ("reasoning",),
    ),
    (
        "in other pieces",
        [{"reasoning": "ab"}, {"reasoning_content": "a"}, {"reasoning_content": "b"}],
        [("reasoning", "ab")],
        ("reasoning_content",),
    ),
    (
        "with details",
        [{"reasoning": "a", "reasoning_details": [entry("a")]}, {"reasoning": "b", "reasoning_details": [entry("b")]}],
        [("reasoning_details", "ab")],
        ("reasoning",),
    ),
    (
        "two strings with details",
        [{"reasoning": "a", "reasoning_content": "a", "reasoning_details": [entry("a")]}],
        [("reasoning_details", "a")],
        ("reasoning", "reasoning_content"),
    ),
    (
        "details first, the string late",
        [{"reasoning_details": [entry("a")]}, {"reasoning_details": [entry("b")]}, {"reasoning": "ab"}],
        [("reasoning_details", "ab")],
        ("reasoning",),
    ),
    (
        "the string stops, the details go on",
        [
            {"reasoning": "a", "reasoning_details": [entry("a")]},
            {"reasoning_details": [entry("b")]},
            {"reasoning": "b"},
        ],
        [("reasoning_details", "ab")],
        ("reasoning",),
    ),
    (
        "the string first, details late",
        [{"reasoning": "a"}, {"reasoning": "b"}, {"reasoning_details": [entry("ab", signature="s")]}],
        [("reasoning", "ab"), ("reasoning_details", "")],
        (),
    ),
    (
        "the string says more",
        [
            {"reasoning": "a", "reasoning_details": [entry("a")]},
            {"reasoning": "-"},
            {"reasoning": "b", "reasoning_details": [entry("b")]},
        ],
        [("reasoning_details", ""), ("reasoning", "a-b")],
        (),
    ),
    (
        "they differ from the start",
        [{"reasoning": "a", "reasoning_details": [entry("A")]}],
        [("reasoning_details", ""), ("reasoning", "a")],
        (),
    ),
    (
        "encrypted beside a string",
        [{"reasoning": "a", "reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]}],
        [("reasoning_details", ""), ("reasoning", "a")],
        (),
    ),
]


@pytest.mark.parametrize(("name", "deltas", "expected", "repeats"), SEVERAL, ids=[case[0] for case in SEVERAL])
def test_several_fields_say_one_thought(
    name: str, deltas: list[dict[str, Any]], expected: list[tuple[str, str]], repeats: tuple[str, ...]
) -> None:
    """The thought is read once, the fields that repeat it are named, and no entry of the details is lost."""
    result = read(stream(*deltas))
    sent = "".join(part.get("text", "") for delta in deltas for part in delta.get("reasoning_details", []))

    assert expected == fields(result)
    assert repeats == tuple(sorted(result.response.repeats))
    assert sent == "".join(part.get("text", "") for part in details(result))


def test_a_second_field_that_says_something_else_is_kept_and_not_read() -> None:
    """Two names are never joined: what differs stays in the log, hidden."""
    result = read(stream({"reasoning_content": "a"}, {"reasoning": "b"}, {"reasoning": "c"}))

    assert [("reasoning_content", "a")] == fields(result)
    assert ("reasoning", "bc", True) == (
        thoughts(result)[1].source_field,
        thoughts(result)[1].thought,
        thoughts(result)[1].is_hidden,
    )


@pytest.mark.parametrize("raw", [stream, body], ids=["streamed", "whole"])
def test_an_explicit_field_name_is_the_only_one_read(raw: Any) -> None:
    """With a configured name no other field is a fallback; the others are kept as they are."""
    message = {"content": "x", "reasoning": "a", "reasoning_content": "b", "reasoning_details": [entry("c")]}

    assert [("reasoning", "a")] == fields(read(raw(message), "reasoning"))
    assert [("reasoning_details", "c")] == fields(read(raw(message), "reasoning_details"))
    result = read(raw({**message, "thinking": "d"}), "thinking")
    assert [("thinking", "d")] == fields(result)
    assert {"reasoning": "a", "reasoning_content": "b", "reasoning_details": [entry("c")]} == json.loads(
        result.response.message
    )
    assert [] == fields(read(raw(message), "other"))


def test_a_field_that_is_not_read_is_kept_whole_over_a_stream() -> None:
    """The pieces of a field that nothing reads are joined."""
    result = read(stream({"reasoning": "a"}, {"reasoning": "b"}, {"content": "c"}), "thinking")

    assert ({"reasoning": "ab"}, "c") == (json.loads(result.response.message), visible(result.blocks))


MERGES = [
    ("text grows", [entry("a"), entry("b")], [entry("ab")]),
    ("a late signature", [entry("a"), entry(signature="s")], [entry("a", signature="s")]),
    ("a late signature with empty text", [entry("a"), entry("", signature="s")], [entry("a", signature="s")]),
    ("the signature first", [entry(signature="s")], [entry(signature="s")]),
    ("text after an empty start", [entry(), entry("a")], [{**entry(), "text": "a"}]),
    ("an empty text stays", [entry("", signature="s")], [entry("", signature="s")]),
    ("the signature in pieces", [entry("a"), entry(signature="s"), entry(signature="t")], [entry("a", signature="st")]),
    ("the signature again", [entry("a", signature="s"), entry(signature="s")], [entry("a", signature="s")]),
    ("the signature so far", [entry("a", signature="s"), entry(signature="st")], [entry("a", signature="st")]),
    ("less of the signature", [entry("a", signature="st"), entry(signature="s")], [entry("a", signature="st")]),
    (
        "the signature in every piece",
        [entry("a", signature="s"), entry("b", signature="s")],
        [entry("ab", signature="s")],
    ),
    ("text after the signature", [entry("a", signature="s"), entry("b")], [entry("a", signature="s"), entry("b")]),
    ("other indexes", [entry("a"), entry("b", index=1), entry("c")], [entry("ac"), entry("b", index=1)]),
    ("no index", [entry("a", index=None), entry("b", index=None)], [entry("ab", index=None)]),
    (
        "other types at one index",
        [entry("a"), {"type": "reasoning.encrypted", "data": "d", "index": 0}],
        [entry("a"), {"type": "reasoning.encrypted", "data": "d", "index": 0}],
    ),
    (
        "other ids at one index",
        [entry("a", id="1"), entry("b", id="2"), entry("c", id="1")],
        [entry("ac", id="1"), entry("b", id="2")],
    ),
    ("an id that comes later", [entry("a"), entry("b", id="1"), entry("c")], [{**entry("abc"), "id": "1"}]),
    (
        "summaries",
        [{"type": "reasoning.summary", "summary": "a"}, {"type": "reasoning.summary", "summary": "b"}],
        [{"type": "reasoning.summary", "summary": "ab"}],
    ),
    (
        "the same data twice",
        [{"type": "reasoning.encrypted", "data": "d"}, {"type": "reasoning.encrypted", "data": "d"}],
        [{"type": "reasoning.encrypted", "data": "d"}],
    ),
    (
        "other data",
        [{"type": "reasoning.encrypted", "data": "d"}, {"type": "reasoning.encrypted", "data": "e"}],
        [{"type": "reasoning.encrypted", "data": "d"}, {"type": "reasoning.encrypted", "data": "e"}],
    ),
    (
        "data that comes later",
        [{"type": "reasoning.encrypted", "id": "1"}, {"type": "reasoning.encrypted", "data": "e"}],
        [{"type": "reasoning.encrypted", "id": "1", "data": "e"}],
    ),
    (
        "a tool of the server",
        [
            {"type": "reasoning.server_tool_call", "tool_name": "t", "arguments": "{"},
            {"type": "reasoning.server_tool_call", "tool_name": "t", "arguments": "}"},
        ],
        [{"type": "reasoning.server_tool_call", "tool_name": "t", "arguments": "{}"}],
    ),
    ("null takes nothing back", [entry("a", signature="s"), entry(None, signature=None)], [entry("a", signature="s")]),
    (
        "the text so far each time",
        [entry("The"), entry("The user"), entry("The user"), entry("The user asks")],
        [entry("The user asks")],
    ),
    ("the text so far, then a piece", [entry("The"), entry("The user"), entry(" asks")], [entry("The user asks")]),
    ("equal pieces", [entry("ha"), entry("ha"), entry("ha!")], [entry("hahaha!")]),
    ("an unknown type", [{"type": "new", "x": [1, {"y": 1.5}]}], [{"type": "new", "x": [1, {"y": 1.5}]}]),
    ("no type", [{"text": "a"}, {"text": "b"}], [{"text": "ab"}]),
]


@pytest.mark.parametrize(("name", "pieces", "expected"), MERGES, ids=[case[0] for case in MERGES])
def test_details_are_merged_by_type_index_and_id(
    name: str, pieces: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    """Fragments of an entry become one, opaque values are never mixed, and the keys keep their order."""
    result = read(stream(*({"reasoning_details": [piece]} for piece in pieces), {"content": "x"}))

    assert expected == details(result)
    assert [list(wanted) for wanted in expected] == [list(found) for found in details(result)]


def test_entries_of_a_whole_message_are_never_merged() -> None:
    """What comes complete is complete, whatever its index says."""
    entries = [entry("a", signature="s"), entry("b", signature="t"), entry("c")]

    assert entries == details(read(body({"reasoning_details": entries})))


def test_a_signature_that_comes_after_the_answer_has_begun_belongs_to_its_entry() -> None:
    """The late fragment changes neither the order of blocks nor the text that goes on."""
    result = read(
        stream(
            {"content": "", "reasoning_details": [entry("think")]},
            {"content": "Hel"},
            {"content": "", "reasoning_details": [entry(signature="sig")]},
            {"content": "lo"},
        )
    )

    assert [("signature", "sig")] == [(c.kind, c.value) for c in carriers_of(result.blocks[0])]
    assert ["think", "Hello"] == [reasoning(result.blocks[:1]), visible(result.blocks[1:])]
    assert 2 == len(result.blocks)


def test_opaque_values_and_kinds_of_entries() -> None:
    """Data becomes a carrier, summaries say so, and an entry without readable text is one of kind none."""
    result = read(
        stream(
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "a"}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": ""}]},
            {"reasoning_details": [entry("b", signature=5)]},
        )
    )

    assert ["summary", "none", "raw"] == [block.kind for block in thoughts(result)]
    assert [(), (Carrier("encrypted", "d"),), ()] == [carriers_of(block) for block in thoughts(result)]


@pytest.mark.parametrize("raw", [stream({"reasoning_details": []}, {"content": "x"}), body({"reasoning_details": []})])
def test_an_empty_list_of_details_is_kept(raw: bytes) -> None:
    """An empty list must go back as an empty list, so the message remembers it."""
    assert '{"reasoning_details":[]}' == read(raw).response.message


def test_an_empty_list_beside_entries_says_nothing() -> None:
    """Hosts that send an empty list in some chunks and entries in others mean the entries."""
    raw = stream({"reasoning_details": []}, {"reasoning_details": [entry("a")]}, {"reasoning_details": []})

    assert ("", [entry("a")]) == (read(raw).response.message, details(read(raw)))


def test_entries_that_are_no_objects_are_kept() -> None:
    """Odd members of the list stay in the message; the others are read."""
    result = read(stream({"reasoning_details": [entry("a"), "odd", 1]}))

    assert [entry("a")] == details(result)
    assert {"reasoning_details": ["odd", 1]} == json.loads(result.response.message)


@pytest.mark.parametrize("text", ["Thinking...", " Thinking…\n", "[REDACTED]", "[Some reasoning content is encrypted]"])
def test_placeholder_texts_are_markers(text: str) -> None:
    """Where a host hides its reasoning, what it shows instead is marked; real reasoning is not."""
    for message in ({"reasoning": text}, {"reasoning_details": [entry(text)]}, {"content": f"<think>{text}</think>"}):
        assert [True] == [block.marker for block in thoughts(read(body(message)))]
    for message in ({"reasoning": f"{text} hm"}, {"reasoning_details": [entry(text, signature="s")]}):
        assert [False] == [block.marker for block in thoughts(read(body(message)))]


def test_reasoning_between_answers_stays_where_it_was() -> None:
    """Blocks follow the order of arrival, each piece of reasoning for itself."""
    result = read(stream({"reasoning": "a"}, {"content": "b"}, {"reasoning": "c"}, {"content": "d"}))

    assert ["a", "b", "c", "d"] == [reasoning([b]) or visible([b]) for b in result.blocks]


def test_reasoning_is_shown_with_the_event_that_brings_it() -> None:
    """Each event gives its delta at once, tagged with response and block."""
    first = sse({"choices": [{"delta": {"reasoning": "a"}}]}, {"choices": [{"delta": {"reasoning": "b"}}]}, done=False)
    deltas, _ = feed([first])

    assert [ReasoningDelta("a", 0, "r1"), ReasoningDelta("b", 0, "r1")] == deltas


def test_a_builder_that_is_closed_twice_says_the_same() -> None:
    """Closing again adds nothing and forgets nothing."""
    builder = MessageBuilder("r1")
    builder.add_object({"reasoning": "a", "reasoning_content": "a", "content": "<thi"}, complete=True)
    builder.close()
    once = (builder.blocks(), builder.repeats, builder.extra)
    builder.close()

    assert once == (builder.blocks(), builder.repeats, builder.extra)
    assert ("reasoning",) == builder.repeats
