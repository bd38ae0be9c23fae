"""Texts that stand where a host hides its reasoning: marked, never shown, and sent back where they have to be."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import feeding
from tests.wire.openai_responses import feeding as items
from tests.wire.test_tags import DIALECTS, read, stream
from thinkback.model import canonical
from thinkback.model.blocks import ThinkingBlock, wire_object
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta
from thinkback.model.plan import NOTHING
from thinkback.wire.openai_chat import write
from thinkback.wire.openai_chat.read import raw_response
from thinkback.wire.openai_responses import write as write_items
from thinkback.wire.registry import dialect
from thinkback.wire.result import ReadResult

PLACEHOLDERS = ("Thinking...", "Thinking…", "[REDACTED]", "[Some reasoning content is encrypted]")
ITEM = {"id": "rs_1", "encrypted_content": "ZW5j+/="}


def parts(body: bytes) -> list[bytes]:
    """A body as a network brings it: less than an event at once, or more."""
    return [body[at : at + 150] for at in range(0, len(body), 150)]


def chat(pieces: Sequence[str], field: str = "reasoning_content") -> tuple[list[Delta], ReadResult]:
    """A response whose reasoning came in ``pieces``, with an answer behind it."""
    opening, closing = ("<think>", "</think>") if field == "content" else ("", "")
    texts = [{field: text} for text in ([opening] if opening else []) + list(pieces) + ([closing] if closing else [])]
    return feeding.feed(parts(feeding.stream(*texts, {"content": "Hi"})))


def responses(pieces: Sequence[str], item: dict[str, Any] = ITEM) -> tuple[list[Delta], ReadResult]:
    """The same as items."""
    whole = {"type": "reasoning", **item, "summary": [{"type": "summary_text", "text": "".join(pieces)}]}
    begun = {"type": "reasoning", "summary": []}
    answer = items.message("Hi")
    events = [items.added(begun), *(items.delta("reasoning_summary_text", text) for text in pieces), items.done(whole)]
    return items.feed(parts(items.sse(*events, items.done(answer, 1), items.completed(whole, answer))))


def told(found: tuple[list[Delta], ReadResult]) -> tuple[str, ThinkingBlock]:
    """What was shown of the reasoning while it came, and its block; the answer is behind it."""
    deltas, result = found
    live = [delta.text for delta in deltas if isinstance(delta, ReasoningDelta)]
    assert ["Hi"] == [delta.text for delta in deltas[len(live) :]]  # type: ignore[union-attr]
    (block,) = feeding.thoughts(result)
    return "".join(live), block


def cut(text: str, at: Sequence[int]) -> list[str]:
    """``text`` in pieces."""
    places = [0, *sorted(place % (len(text) + 1) for place in at), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places) if start != end]


@given(
    st.sampled_from(["", " ", "\n\n"]),
    st.lists(st.sampled_from([f"{text}{space}" for text in PLACEHOLDERS for space in ("", " ", "\n\n")]), max_size=3),
    st.sampled_from(["", "So", "T", "Thinking", "Thinks. Thinking...", "[RED", "a [REDACTED]"]),
    st.lists(st.integers(0, 200), max_size=6),
)
def test_placeholders_are_not_shown_at_any_cut(
    space: str, placeholders: list[str], thought: str, at: list[int]
) -> None:
    """What follows them is, whatever pieces it all came in; white space in front of them is theirs."""
    text = space + "".join(placeholders) + thought
    thought = thought if placeholders else text
    if not text:
        return
    for reads in (chat, responses, lambda pieces: chat(pieces, "content")):
        live, block = told(reads(cut(text, at)))

        assert thought == live
        assert block.marker or thought == block.thought
        assert text in block.opening + block.thought or block.marker or text in wire_object(block)


@pytest.mark.parametrize("text", ["Thinking...", "Thinking...Thinking... ", "Thinking... so"])
def test_an_item_goes_back_as_it_came(text: str) -> None:
    """Its encrypted content is what counts; the text in front of it stays the provider's."""
    _, result = responses([text])
    said = {"type": "reasoning", **ITEM, "summary": [{"type": "summary_text", "text": text}]}
    (item, _) = write_items.assistant(result.response, result.blocks, NOTHING)

    assert not feeding.thoughts(result)[0].marker
    assert said == canonical.decode(item)


@pytest.mark.parametrize("thought", ["", "so"])
@pytest.mark.parametrize("space", ["", "\n"])
@pytest.mark.parametrize("name", DIALECTS)
def test_placeholders_between_tags_are_marked_in_every_dialect(name: str, space: str, thought: str) -> None:
    """Whole and letter by letter; the provider's own document has them as they came."""
    text = f"<think>{space}Thinking... Thinking...{thought}</think>Hi"
    for pieces in ([text], list(text)):
        body = stream(name, pieces)
        deltas, result = read(name, [body])
        (block,) = feeding.thoughts(result)

        assert thought == "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
        assert (not thought, thought or block.thought) == (block.marker, block.thought)
        assert dialect(name).raw_response(read(name, [body], "off")[1]) == dialect(name).raw_response(result)


@pytest.mark.parametrize("name", DIALECTS)
def test_what_began_like_a_placeholder_is_shown_before_what_follows(name: str) -> None:
    """A thought that ends there was one."""
    deltas, result = read(name, [stream(name, ["<think>Think", "</think>Hi"])])

    assert ["Think", "Hi"] == [delta.text for delta in deltas if isinstance(delta, ReasoningDelta | TextDelta)]
    assert ["Think"] == [block.thought for block in feeding.thoughts(result)]


def test_an_item_that_carries_nothing_is_a_marker() -> None:
    """There is nothing that anybody could want back."""
    _, block = told(responses(["Thinking...", "Thinking..."], {}))

    assert block.marker


def test_a_message_can_be_put_together_again() -> None:
    """Placeholders stand in front of the thought they were said before."""
    _, result = chat(["Thinking... ", "Thinking... ", "so"])

    assert "Thinking... Thinking... so" == raw_response(result)["choices"][0]["message"]["reasoning_content"]
    assert b"Hi" in write.assistant(result.response, result.blocks, NOTHING)[0]


def test_thoughts_that_arrive_side_by_side_are_told_apart() -> None:
    """What one block holds back does not keep another waiting, and is shown before what follows it."""
    events = [
        items.delta("reasoning_summary_text", "Thinking.", 0),
        items.delta("reasoning_summary_text", "Thinking... a", 1),
        items.delta("output_text", "Hi", 2),
        items.delta("reasoning_summary_text", "..", 0),
    ]
    deltas, _ = items.feed([items.sse(*events)])

    assert [("Thinking.", 0), ("a", 1), ("Hi", 2), ("..", 0)] == [(d.text, d.index) for d in deltas]  # type: ignore[union-attr]


def test_a_part_of_a_content_list_goes_back_whole() -> None:
    """Its object is the provider's own."""
    part = {"type": "thinking", "thinking": "Thinking... so"}
    deltas, result = feeding.feed([feeding.stream({"content": [part]}, {"content": "Hi"})])
    live, block = told((deltas, result))

    assert ("so", "so") == (live, block.thought)
    assert part == canonical.decode(wire_object(block))
