"""Output items: one block each, whole or in pieces, with everything that has to go back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.wire.openai_responses.feeding import (
    added,
    call,
    completed,
    custom,
    delta,
    done,
    event,
    message,
    raw_thought,
    read,
    read_body,
    read_deltas,
    reasoning,
    response,
    sse,
)
from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.deltas import ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.openai_responses.blocks import wire_object
from thinkback.wire.openai_responses.read import raw_response

RS = Carrier("item_id", "rs_1")
MSG = Carrier("item_id", "msg_1")
ENCRYPTED = Carrier("encrypted", "gAAA==")
NAMELESS: dict[str, Any] = {"type": "reasoning", "summary": [], "content": []}

# name, item, block without its wire, whether the item is kept verbatim
ITEMS: list[tuple[str, Any, Block, bool]] = [
    (
        "a summary",
        reasoning("**A**\n\nb", content=[], encrypted_content="gAAA=="),
        ThinkingBlock("**A**\n\nb", source_field="reasoning", kind="summary", carriers=(RS, ENCRYPTED)),
        False,
    ),
    (
        "parts with titles",
        reasoning("**A**\n\nb", "**C**\n\nd", content=[]),
        ThinkingBlock("**A**\n\nb\n\n**C**\n\nd", source_field="reasoning", kind="summary", carriers=(RS,)),
        False,
    ),
    (
        "a part with two titles",
        reasoning("**A**\n\n**C**", content=[]),
        ThinkingBlock("**A**\n\n**C**", source_field="reasoning", kind="summary", carriers=(RS,)),
        True,
    ),
    (
        "no content",
        reasoning("s"),
        ThinkingBlock("s", source_field="reasoning", kind="summary", carriers=(RS,)),
        True,
    ),
    (
        "a summary of several parts",
        reasoning("a", "b"),
        ThinkingBlock("a\n\nb", source_field="reasoning", kind="summary", carriers=(RS,)),
        True,
    ),
    (
        "nothing readable",
        reasoning(content=[], encrypted_content="gAAA=="),
        ThinkingBlock("", source_field="reasoning", kind="none", carriers=(RS, ENCRYPTED)),
        False,
    ),
    (
        "nothing at all",
        NAMELESS,
        ThinkingBlock("", source_field="reasoning", kind="none"),
        False,
    ),
    (
        "an empty part",
        reasoning("", "b"),
        ThinkingBlock("b", source_field="reasoning", kind="summary", carriers=(RS,)),
        True,
    ),
    (
        "the raw thought",
        reasoning(status="completed", content=raw_thought("t")),
        ThinkingBlock("t", source_field="reasoning", kind="raw", carriers=(RS,)),
        False,
    ),
    (
        "the raw thought in parts of another type",
        reasoning(content=[{"type": "output_text", "text": "t"}, {"type": "output_text", "text": "u"}]),
        ThinkingBlock("t\n\nu", source_field="reasoning", kind="raw", carriers=(RS,)),
        True,
    ),
    (
        "raw thought and summary",
        reasoning("s", content=raw_thought("t")),
        ThinkingBlock("t", source_field="reasoning", kind="raw", carriers=(RS,)),
        True,
    ),
    (
        "a signature",
        reasoning(signature="sig", format="anthropic-claude-v1"),
        ThinkingBlock("", source_field="reasoning", signature="sig", kind="none", carriers=(RS,)),
        True,
    ),
    (
        "fields that are none",
        {"type": "reasoning", "id": 1, "summary": None, "content": [1], "encrypted_content": None, "signature": 2},
        ThinkingBlock("", source_field="reasoning", kind="none"),
        True,
    ),
    ("a message", message("a"), Text("a", carriers=(MSG,)), False),
    (
        "a message with its phase",
        message("a", phase="commentary"),
        Text("a", carriers=(MSG, Carrier("phase", "commentary"))),
        False,
    ),
    ("a message of two parts", message("a", "b"), Text("ab", carriers=(MSG,)), True),
    ("an empty phase", message("a", phase=None), Text("a", carriers=(MSG,)), True),
    (
        "a refusal",
        message(content=[{"type": "refusal", "refusal": "no"}]),
        Text("no", source_field="refusal", carriers=(MSG,)),
        False,
    ),
    (
        "parts that say nothing",
        message(
            content=[{"type": "reasoning_text", "text": "x"}, {"type": "output_audio"}, 1, {"type": 2, "text": "a"}]
        ),
        Text("a", carriers=(MSG,)),
        True,
    ),
    ("content that is a string", message(content="a"), Text("a", carriers=(MSG,)), True),
    ("content that is none", message(content=None), Text("", carriers=(MSG,)), True),
    (
        "a call",
        call('{"a": 1.0}'),
        ToolCall("call_1", "f", '{"a": 1.0}', carriers=(Carrier("item_id", "fc_1"),)),
        False,
    ),
    (
        "a call with more",
        call(namespace="n"),
        ToolCall("call_1", "f", "{}", carriers=(Carrier("item_id", "fc_1"),)),
        True,
    ),
    (
        "arguments that are an object",
        call({"b": 1, "a": 2}),
        ToolCall("call_1", "f", '{"b":1,"a":2}', carriers=(Carrier("item_id", "fc_1"),)),
        True,
    ),
    (
        "a call of nothing",
        {"type": "function_call", "call_id": None},
        ToolCall("", "", ""),
        True,
    ),
    (
        "a custom call",
        custom("ls"),
        ToolCall("call_2", "shell", "ls", source_field="custom_tool_call", carriers=(Carrier("item_id", "ctc_1"),)),
        False,
    ),
]


@pytest.mark.parametrize(("name", "item", "block", "verbatim"), ITEMS, ids=[case[0] for case in ITEMS])
def test_an_item_is_one_block_and_can_be_had_back(name: str, item: Any, block: Block, verbatim: bool) -> None:
    """Streamed or not the block is the same; its wire object is the item, kept only where it cannot be rebuilt."""
    whole, streamed = read_body(response(item)), read(done(item), completed())

    (found,) = whole.blocks
    assert whole.blocks == streamed.blocks
    assert item == json.loads(wire_object(found))
    assert verbatim == bool(getattr(found, "wire", ""))
    assert block == msgspec.structs.replace(found, wire="")
    assert response(item) == raw_response(whole)


@pytest.mark.parametrize(
    ("item", "carriers"),
    [
        (
            {"type": "web_search_call", "id": "ws_1", "action": {"n": 12345678901234567890123}},
            (Carrier("item_id", "ws_1"),),
        ),
        (
            {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA=="},
            (Carrier("item_id", "cmp_1"), ENCRYPTED),
        ),
        ({"type": 1}, ()),
        ({}, ()),
    ],
    ids=str,
)
def test_an_item_of_another_kind_is_kept_verbatim(item: Any, carriers: Any) -> None:
    """Server tools, compactions and what nobody knows pass through, number for number."""
    source = json.dumps(item)

    assert (Unknown(source, carriers),) == read(done(item), completed()).blocks == read_body(response(item)).blocks


def test_an_output_entry_that_is_no_object_is_kept() -> None:
    """A host that puts a text into the output gets it back."""
    assert (Unknown('"x"'),) == read_body(response("x")).blocks


def test_what_done_says_counts_and_not_what_the_end_repeats() -> None:
    """Ciphertexts of the start and of the closing event are others; ids rotate; pieces are matched by their index."""
    result = read(
        added(reasoning(encrypted_content="part")),
        done(reasoning(encrypted_content="gAAA==", id="rs_2")),
        added(message(id="msg_0"), 1),
        delta("output_text", "a", 1),
        done(message("a"), 1),
        done(message("b"), 1),
        completed(reasoning(encrypted_content="other"), message("a")),
    )

    assert [(Carrier("item_id", "rs_2"), ENCRYPTED), (MSG,)] == [block.carriers for block in result.blocks]


def test_an_end_with_empty_output_takes_nothing_away() -> None:
    """The Codex backend closes with an empty list."""
    assert (Text("a", carriers=(MSG,)),) == read(done(message("a")), completed()).blocks


def test_the_end_brings_items_that_did_not_come_whole_or_not_at_all() -> None:
    """Items without ``done`` are completed by the closing event, further ones are added, and all of it is shown."""
    events = sse(added(message()), delta("output_text", "a"), completed(message("abc"), call(), message("d")))
    deltas, result = read_deltas(events)

    assert ["abc", "d"] == [block.text for block in result.blocks if isinstance(block, Text)]
    assert [
        TextDelta("a", 0, "r1"),
        TextDelta("bc", 0, "r1"),
        ToolCallDelta(1, "call_1", "f", response="r1"),
        ToolCallDelta(1, arguments="{}", response="r1"),
        TextDelta("d", 2, "r1"),
    ] == deltas


def test_an_end_with_other_items_is_not_mixed_in() -> None:
    """Where the closing event tells another story than the stream, the stream stands."""
    result = read(done(message("a")), completed(reasoning("s"), message("a")))

    assert (Text("a", carriers=(MSG,)),) == result.blocks


def test_items_with_one_index_are_several() -> None:
    """A gateway that gives each item the index 0 still sends several."""
    result = read(added(reasoning()), done(reasoning("s")), added(message()), done(message("a")), completed())

    assert [ThinkingBlock, Text] == [type(block) for block in result.blocks]


def test_pieces_without_an_index_belong_to_the_last_item() -> None:
    """Hosts that leave ``output_index`` out are understood, with or without a beginning."""
    piece = {"type": "response.output_text.delta", "delta": "a"}
    begun = read(
        added(message()), piece, piece, {"type": "response.output_item.done", "item": message("aa")}, completed()
    )
    sudden = read(piece, piece, completed())

    assert (Text("aa", carriers=(MSG,)),) == begun.blocks
    assert ["aa"] == [block.text for block in sudden.blocks if isinstance(block, Text)]


def test_summary_parts_are_paragraphs() -> None:
    """Parts of a summary are shown with a blank line between them, as they stand in the block."""
    deltas, result = read_deltas(
        sse(
            added(reasoning()),
            event(
                "reasoning_summary_part.added",
                output_index=0,
                summary_index=0,
                part={"type": "summary_text", "text": ""},
            ),
            delta("reasoning_summary_text", "a"),
            delta("reasoning_summary_text", "b"),
            delta("reasoning_summary_text", "c", part=1),
            done(reasoning("ab", "c")),
            completed(),
        )
    )

    assert [ReasoningDelta(text, 0, "r1") for text in ("a", "b", "\n\nc")] == deltas
    assert ["ab\n\nc"] == [block.thought for block in result.blocks if isinstance(block, ThinkingBlock)]


@pytest.mark.parametrize("name", ["reasoning_text", "reasoning", "output_text"])
def test_raw_reasoning_is_shown_once(name: str) -> None:
    """Where raw text comes, under whatever name, a summary of it is not shown as well."""
    deltas, result = read_deltas(
        sse(
            added(reasoning()),
            delta(name, "t"),
            delta("reasoning_summary_text", "s"),
            delta(name, "u", part=1),
            done(reasoning("s", content=raw_thought("t", "u"))),
            completed(),
        )
    )

    assert [ReasoningDelta("t", 0, "r1"), ReasoningDelta("\n\nu", 0, "r1")] == deltas
    assert ["raw"] == [block.kind for block in result.blocks if isinstance(block, ThinkingBlock)]


def test_a_summary_that_was_shown_first_is_not_followed_by_the_raw_text() -> None:
    """One of them is shown; the block has the raw text all the same."""
    deltas, result = read_deltas(
        sse(
            added(reasoning()),
            delta("reasoning_summary_text", "s"),
            delta("reasoning_text", "t"),
            done(reasoning("s", content=raw_thought("t"))),
            completed(),
        ),
        lawful=False,
    )

    assert [ReasoningDelta("s", 0, "r1")] == deltas
    assert ["t"] == [block.thought for block in result.blocks if isinstance(block, ThinkingBlock)]


def test_done_counts_where_it_says_something_else_than_was_shown() -> None:
    """What was shown cannot be taken back, but the block is what will be replayed."""
    deltas, result = read_deltas(
        sse(added(message()), delta("output_text", " a"), done(message("a")), completed()), lawful=False
    )
    other, _ = read_deltas(sse(delta("reasoning_text", "t"), done(message("a")), completed()), lawful=False)

    assert [TextDelta(" a", 0, "r1")] == deltas
    assert (Text("a", carriers=(MSG,)),) == result.blocks
    assert [ReasoningDelta("t", 0, "r1"), TextDelta("a", 0, "r1")] == other


def test_calls_are_streamed_by_name_then_by_arguments() -> None:
    """Id and name come once, arguments in fragments, those of the beginning first; a custom call has input."""
    deltas, result = read_deltas(
        sse(
            added(call('{"a"')),
            delta("function_call_arguments", ": 1}"),
            done(call('{"a": 1}')),
            delta("function_call_arguments", "late"),
            delta("custom_tool_call_input", "l", 1),
            done(custom("ls"), 1),
            completed(),
        )
    )

    assert [
        ToolCallDelta(0, "call_1", "f", response="r1"),
        ToolCallDelta(0, arguments='{"a"', response="r1"),
        ToolCallDelta(0, arguments=": 1}", response="r1"),
        ToolCallDelta(1, arguments="l", response="r1"),
        ToolCallDelta(1, "call_2", "shell", response="r1"),
        ToolCallDelta(1, arguments="s", response="r1"),
    ] == deltas
    assert ['{"a": 1}', "ls"] == [block.arguments for block in result.blocks if isinstance(block, ToolCall)]


CUT: list[tuple[str, list[Any], list[Any]]] = [
    (
        "text and refusal",
        [
            added(message()),
            event(
                "content_part.added", output_index=0, content_index=0, part={"type": "output_text", "text": "a", "x": 1}
            ),
            delta("output_text", "b"),
            delta("refusal", "no", part=1),
        ],
        [message(content=[{"type": "output_text", "text": "ab", "x": 1}, {"type": "refusal", "refusal": "no"}])],
    ),
    (
        "reasoning without what is not final",
        [
            added(reasoning(encrypted_content="part")),
            delta("reasoning_summary_text", "a"),
            delta("reasoning_summary_text", "b", part=1),
        ],
        [reasoning("a", "b")],
    ),
    ("a call", [added(call("")), delta("function_call_arguments", '{"a')], [call('{"a')]),
    (
        "a part without text",
        [added(message(content=[{"type": "output_audio"}, 1]))],
        [message(content=[{"type": "output_audio"}])],
    ),
    (
        "an unknown item",
        [added({"type": "web_search_call"}), delta("output_text", "x")],
        [{"type": "web_search_call", "content": [{"type": "output_text", "text": "x"}]}],
    ),
    (
        "reasoning inside a message",
        [added(message()), delta("reasoning_text", "x")],
        [message(content=raw_thought("x"))],
    ),
    (
        "a part said whole",
        [added(reasoning(content=raw_thought("x"))), added(message(content=raw_thought("y")), 1)],
        [reasoning(content=raw_thought("x")), message(content=raw_thought("y"))],
    ),
    (
        "pieces of another kind",
        [added(call()), delta("output_text", "x"), added(reasoning(), 1), delta("custom_tool_call_input", "y", 1)],
        [call(content=[{"type": "output_text", "text": "x"}]), reasoning(input="y")],
    ),
    (
        "pieces of nothing",
        [
            event("content_part.added", output_index=7, part={"type": "output_text", "text": "x"}),
            delta("output_text", ""),
        ],
        [{"type": "message"}],
    ),
    (
        "parts and items that are none",
        [added(message()), event("content_part.added", output_index=0, part=None), added(None, 1), done(None, 1)],
        [message()],
    ),
]


@pytest.mark.parametrize(("name", "events", "items"), CUT, ids=[case[0] for case in CUT])
def test_a_stream_that_is_cut_keeps_what_arrived(name: str, events: list[Any], items: list[Any]) -> None:
    """The start object with its texts as long as they became, and the response says that it is not whole."""
    result = read(*events)

    assert items == [json.loads(wire_object(block)) for block in result.blocks]
    assert result.response.error is not None
    assert (False, "truncated", "cut") == (
        result.response.complete,
        result.response.error.type,
        result.response.outcome,
    )


def test_half_characters_become_whole() -> None:
    """A surrogate pair that comes in two pieces is one character, and a lone one survives."""
    pieces = [delta("output_text", "\ud83d"), delta("output_text", "\ude00")]

    assert ["😀"] == [block.text for block in read(*pieces, completed()).blocks if isinstance(block, Text)]
    assert ["\ud83d"] == [
        block.text for block in read(done(message("\ud83d")), completed()).blocks if isinstance(block, Text)
    ]
    assert ["\ud83d"] == [
        block.text for block in read_body(response(message("\ud83d"))).blocks if isinstance(block, Text)
    ]
