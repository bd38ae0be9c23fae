"""Reasoning that models put into the text as tags, and how it goes back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.bedrock.feeding import STOP, assistant, body, content, delta, feed, read, stop, stream
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.deltas import ReasoningDelta, Reclassified, TextDelta


def thought(text: str, opening: str = "<thinking>", closing: str = "</thinking>") -> ThinkingBlock:
    """Reasoning from tags."""
    return ThinkingBlock(text, source_field="content", opening=opening, closing=closing)


def part(text: str, place: str = "ends") -> Text:
    """Visible text that was one text with tagged reasoning."""
    return Text(text, source_field=f"text_{place}")


def alone(text: str) -> Text:
    """Visible text that is a content block."""
    return Text(text, source_field="text")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["<thinking>a</thinking>\nb"], [thought("a"), part("\nb")]),
        (["\n<thinking>a</thinking>b"], [part("\n", "begins"), thought("a"), part("b")]),
        (["<thinking>a</thinking>"], [thought("a")]),
        (["<thinking>a</thinking>", "b"], [thought("a"), alone("b")]),
        (["<thinking>a</thinking>", "<thinking>b</thinking>", "c"], [thought("a"), thought("b"), alone("c")]),
        (
            ["<thinking>a</thinking>b<thinking>c</thinking>d"],
            [thought("a"), part("b", "within"), thought("c"), part("d")],
        ),
        (
            ["<thinking>a</thinking>b", "<thinking>c</thinking>", "\n<thinking>d</thinking>e"],
            [thought("a"), part("b"), thought("c"), part("\n", "begins"), thought("d"), part("e")],
        ),
        (["a <thinking>b</thinking>"], [alone("a <thinking>b</thinking>")]),
        (["a", "<thinking>b</thinking>"], [alone("a"), alone("<thinking>b</thinking>")]),
        (["<thinking>a"], [thought("a", closing="")]),
        (["<thinking>"], [thought("", closing="")]),
        (["<thinking>a", "b</thinking>c"], [thought("a", closing=""), thought("b", opening=""), part("c")]),
        (["<thinking>a", "</thinking>"], [thought("a", closing=""), thought("", opening="")]),
        (["a</think>b"], [thought("a", "", "</think>"), part("b")]),
        (["a", "b</think>c"], [thought("a", "", ""), thought("b", "", "</think>"), part("c")]),
        (["</think>a"], [thought("", "", "</think>"), part("a")]),
        (["a<thin"], [alone("a<thin")]),
        (["a", ""], [alone("a"), alone("")]),
        (["<thinking>a", ""], [thought("a", closing=""), alone("")]),
    ],
)
def test_tags_are_found_streamed_and_whole(texts: list[str], expected: list[Any]) -> None:
    """The slices of a text block, joined, are its text; tags of one block end with it, what they began does not."""
    whole = read(body(*({"text": text} for text in texts)))
    events = [
        event for at, text in enumerate(texts) for event in (*(delta(at, text=c) for c in text or [""]), stop(at))
    ]

    assert expected == list(whole.blocks)
    assert expected == list(read(stream(*events, STOP)).blocks)
    assert [{"text": text} for text in texts] == content(whole)


def test_a_lone_closing_tag_makes_reasoning_of_what_was_shown() -> None:
    """What had been text is said to be reasoning, once."""
    deltas, _ = feed([stream(delta(0, text="a"), delta(0, text="</think>b"), STOP)])

    assert [TextDelta("a", 0, "r1"), Reclassified("a", 0, "r1"), TextDelta("b", 1, "r1")] == deltas


def test_beside_reasoning_of_its_own_a_lone_closing_tag_is_text() -> None:
    """A model whose reasoning comes in content blocks has slipped."""
    reasoning = {"reasoningContent": {"reasoningText": {"text": "r"}}}

    assert [alone("a</think>b")] == list(read(body(reasoning, {"text": "a</think>b"})).blocks[1:])


def test_citations_stay_with_the_text_they_are_of() -> None:
    """Tags around cited text do not move it."""
    cited = read(
        stream(
            delta(0, text="a"),
            delta(0, citation={"n": 1}),
            delta(0, text="</think>b"),
            delta(0, citation={"n": 2}),
            STOP,
        )
    )
    opened = read(stream(delta(0, citation={"n": 1}), delta(0, text="<thinking>a</thinking>"), STOP))
    inside = read(
        stream(delta(0, text="<thinking>a"), delta(0, citation={"n": 1}), delta(0, text="b</thinking>"), STOP)
    )

    first, tag, second = cited.blocks
    assert ["a", "b"] == [block.text for block in (first, second) if isinstance(block, Text)]
    assert thought("", "", "</think>") == tag
    assert ["citationsContent", "content"] == [block.source_field for block in opened.blocks]  # type: ignore[union-attr]
    assert ["a", "", "b"] == [getattr(block, "thought", "") for block in inside.blocks]


def test_reasoning_begins_with_its_tag() -> None:
    """Nothing of the tag is shown, wherever it was cut."""
    deltas, _ = feed([stream(*(delta(0, text=c) for c in "<thinking>a</thinking>b"), STOP)])

    assert [ReasoningDelta("a", 0, "r1"), TextDelta("b", 1, "r1")] == deltas


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([part("\n", "begins"), thought("a"), part("b")], [{"text": "\n<thinking>a</thinking>b"}]),
        ([part("\n", "begins"), part("b")], [{"text": "b"}]),
        ([part("b")], [{"text": "b"}]),
        ([alone("a"), thought("b")], [{"text": "a"}, {"text": "<thinking>b</thinking>"}]),
        ([Text("a"), Text("b")], [{"text": "a"}, {"text": "b"}]),
    ],
)
def test_slices_are_written_as_the_text_they_were(blocks: list[Any], expected: list[Any]) -> None:
    """Where reasoning was taken out, what is left stands for itself, and blank text is left out."""
    assert expected == assistant(*blocks)


def test_halves_of_a_character_around_a_tag_are_one_text() -> None:
    """Slices are joined as text, not as JSON."""
    assert [{"text": "<thinking>😀"}] == assistant(thought("\ud83d", closing=""), part("\ude00"))
