"""Deltas in a row of blocks: what begins and ends when, what waits, and whose state is given where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.model.blocks import Block, Carrier, Origin, Text, ThinkingBlock, ToolCall, Unknown, carriers_of
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, Status, TextDelta, ToolCallDelta
from thinkback.wire.block_sequencer import Begun, BlockText, Ended, Kept, Order, Step
from thinkback.wire.writing import Shown

SIGNED = (Carrier("thought_signature", "theirs"),)


class Playbook:
    """An order, what its reader has of the blocks, and the blocks whose state was asked for."""

    def __init__(self, *blocks: Block | None, **fields: Any) -> None:
        self.blocks: list[Block | None] = list(blocks)
        self.stated: list[Block] = []
        self.order = Order(Shown("r", "m", 7, state=self._state, block=self._block, **fields))

    def _block(self, index: int) -> Block | None:
        return self.blocks[index] if index < len(self.blocks) else None

    def _state(self, blocks: Sequence[Block]) -> str:
        held = [block for block in blocks if carriers_of(block)]
        self.stated += held
        return "+".join(type(block).__name__ for block in held)

    def take(self, *deltas: Delta) -> list[Any]:
        """What the deltas lead to, in short."""
        return [short(step) for delta in deltas for step in self.order.take(delta)]

    def end(self, *blocks: Block) -> list[Any]:
        """What the end leads to."""
        return [short(step) for step in self.order.end(blocks)]


def short(step: Step) -> Any:
    """A step as a test reads it: its kind and index, its text, its state."""
    match step:
        case Begun():
            return (step.kind, step.at, *((step.id, step.name) if step.kind == "call" else ()))
        case BlockText():
            return step.text
        case Ended():
            return ["end", step.state]
        case Kept():
            return ["kept", step.state]


END = ["end", ""]


def test_a_block_ends_when_the_next_begins() -> None:
    """Its state is that of the block as it is then, and is not given again."""
    thought = ThinkingBlock("a plan", signature="theirs")
    book = Playbook(thought)

    assert [("thought", 0), "a ", "plan"] == book.take(ReasoningDelta("a ", 0), ReasoningDelta("plan", 0))
    assert [["end", "ThinkingBlock"], ("text", 1), "hi"] == book.take(TextDelta("hi", 1))
    origin = Origin("openai-chat", "https://api.example.org", "m")
    final = ThinkingBlock("a plan", signature="theirs", origin=origin)
    assert [END] == book.end(final, Text("hi"))


def test_what_comes_late_is_given_by_itself() -> None:
    """A signature behind the block that it is on, a block that nothing was shown of, reasoning that is hidden."""
    book = Playbook(ThinkingBlock("a plan"))
    book.take(ReasoningDelta("a plan", 0), TextDelta("hi", 1))

    assert [END, ["kept", "ThinkingBlock+ThinkingBlock+Unknown+Text"]] == book.end(
        ThinkingBlock("a plan", signature="theirs"),
        Text("hi"),
        ThinkingBlock("again", is_hidden=True, signature="theirs"),
        Unknown("{}", SIGNED),
        Text("", carriers=SIGNED),
    )


def test_reasoning_without_text_has_its_place() -> None:
    """A thought that is only a state stands where its block does, one that has none nowhere."""
    kept = ThinkingBlock("", signature="theirs", kind="none")
    book = Playbook(kept, ThinkingBlock("", kind="none"), None, Unknown("{}", SIGNED), Text("hi"))

    assert [
        ("thought", 0),
        ["end", "ThinkingBlock"],
        ["kept", "Unknown"],
        ("text", 4),
        "hi",
    ] == book.take(TextDelta("hi", 4))
    assert [END, ["kept", "ThinkingBlock"]] == book.end(*(block or Text("") for block in book.blocks), kept)


def test_a_block_that_comes_again_begins_again() -> None:
    """More of a block that has ended is a block of its own, and its state is given once more."""
    book = Playbook(ThinkingBlock("a", signature="theirs"))
    book.take(ReasoningDelta("a", 0), TextDelta("hi", 1))
    book.blocks[0] = ThinkingBlock("ab", signature="theirs")

    assert [END, ("thought", 0), "b", ["end", "ThinkingBlock"], ("text", 1), "!"] == book.take(
        ReasoningDelta("b", 0), TextDelta("!", 1)
    )


def test_a_call_begins_with_its_first_argument() -> None:
    """Its name may come in pieces; the state of one that came whole stands in front of it."""
    whole = ToolCall("c", "fg", "{}", carriers=SIGNED)
    book = Playbook(Text("hi", carriers=SIGNED), whole)
    head = [ToolCallDelta(1, name="f"), ToolCallDelta(1, "c", "g")]

    assert [("text", 0), "hi", END, ["kept", "Text+ToolCall"]] == book.take(TextDelta("hi", 0), *head)
    assert book.order.grows is None
    assert [("call", 1, "c", "fg"), "{}"] == book.take(ToolCallDelta(1, arguments="{}"))
    assert book.order.grows is ToolCallDelta
    assert [END] == book.end(Text("hi", carriers=SIGNED), whole)


def test_a_call_that_is_not_whole_keeps_the_others_waiting() -> None:
    """Arguments that take turns are told one call after the other; what cannot belong to a call is left out."""
    book = Playbook()

    assert [("call", 0, "a", "f"), '{"x"'] == book.take(
        ToolCallDelta(0, "a", "f", '{"x"'), ToolCallDelta(1, "b", "g", "{"), ToolCallDelta(2, "c", "h", "{}")
    )
    assert book.order.grows is None
    assert [":1"] == book.take(ToolCallDelta(0, arguments=":1"))
    assert ["}", END, ("call", 1, "b", "g"), "{"] == book.take(ToolCallDelta(0, arguments="}"))
    assert [] == book.take(ToolCallDelta(0, arguments="}"), Status("sending"), TextDelta("", 3))
    assert ["}", END, ("call", 2, "c", "h"), "{}", END, ("text", 3), "hi"] == book.take(
        ToolCallDelta(1, arguments="}"), TextDelta("hi", 3)
    )
    assert [END, ("call", 4, "d", "i"), END] == book.end(*[Text("")] * 4, ToolCall("d", "i", ""))


def test_the_end_takes_what_waits() -> None:
    """Calls without arguments, and with some that are no object, do not hold the others for ever."""
    book = Playbook()
    book.take(ToolCallDelta(0, "a", "f"), ToolCallDelta(1, "b", "g", "{]}"), TextDelta("hi", 2))

    assert [("call", 0, "a", "f"), END, ("call", 1, "b", "g"), "{]}", END, ("text", 2), "hi", END] == book.end(
        ToolCall("a", "f", ""), ToolCall("b", "g", "{]}"), Text("hi")
    )


@pytest.mark.parametrize("opens", [True, False])
def test_text_that_was_reasoning_gets_its_tag(opens: bool) -> None:
    """The tag is a piece of the text, which has the state of the thought that it was."""
    thought = ThinkingBlock("a plan", closing="</t>", signature="theirs")
    book = Playbook(thought)
    book.take(TextDelta("a plan", 0), *([] if opens else [TextDelta("hi", 1)]))

    begun = [] if opens else [END, ("text", 0)]
    assert [*begun, "</t>"] == book.take(Reclassified("a plan", 0))
    kept = [["kept", "ThinkingBlock"]] if opens else []
    assert [END, *kept, ("text", 1), "hi"] == book.take(TextDelta("hi", 1))


def test_reasoning_that_is_not_shown_has_a_beginning_and_an_end() -> None:
    """Its pieces are left out, and with them what has neither text nor state."""
    book = Playbook(ThinkingBlock("a plan", signature="theirs"), reasoning=False)

    assert [("thought", 0)] == book.take(ReasoningDelta("a ", 0), ReasoningDelta("plan", 0))
    assert book.order.grows is None
    assert [["end", "ThinkingBlock"]] == book.end(book.blocks[0] or Text(""), ThinkingBlock("more"))


BLOCKS = st.lists(
    st.builds(Text, st.sampled_from(["", "ab"]), carriers=st.sampled_from([(), SIGNED]))
    | st.builds(ThinkingBlock, st.sampled_from(["", "ab"]), st.booleans(), signature=st.sampled_from(["", "theirs"]))
    | st.builds(ToolCall, st.just("c"), st.just("f"), st.sampled_from(["", "{}", "ab"]), carriers=st.just(SIGNED))
    | st.just(Unknown("{}", SIGNED)),
    max_size=5,
)


@given(BLOCKS, st.data())
def test_every_state_is_given_once(blocks: list[Block], data: st.DataObject) -> None:
    """However the stream takes turns and wherever it ends, nothing opaque is left out or told twice."""
    deltas: list[Delta] = []
    for at, block in enumerate(blocks):
        match block:
            case Text():
                deltas += [TextDelta(letter, at) for letter in block.text]
            case ThinkingBlock(is_hidden=False):
                deltas += [ReasoningDelta(letter, at) for letter in block.thought]
            case ToolCall():
                deltas += [ToolCallDelta(at, block.id, block.name)]
                deltas += [ToolCallDelta(at, arguments=letter) for letter in block.arguments]
    if data.draw(st.booleans()):
        deltas = data.draw(st.permutations(deltas))
    book = Playbook(*blocks)
    steps = book.take(*deltas[: data.draw(st.integers(0, len(deltas)))]) + book.end(*blocks)

    held = sorted(repr(block) for block in blocks if carriers_of(block))
    assert held == sorted(map(repr, book.stated))
    opened = 0
    for step in steps:
        opened += isinstance(step, tuple)
        opened -= isinstance(step, list) and step[0] == "end"
        assert opened in (0, 1)
    assert 0 == opened


def test_a_stream_does_not_end_in_a_state() -> None:
    """What is known only behind the last block is left to the record, unless there is nothing else to show."""
    late = Text("hi", carriers=SIGNED)
    book = Playbook(None)
    book.take(TextDelta("hi", 0))

    assert [Ended("")] == book.order.end_of_stream([late])
    assert [Kept("ThinkingBlock")] == Playbook(None).order.end_of_stream(
        [ThinkingBlock("", signature="s", is_hidden=True)]
    )


def test_calls_wait_for_what_comes_before_them_where_nothing_is_recorded() -> None:
    """A call begins once it is whole, behind the state of all that stands before it."""
    call, other = ToolCall("c", "f", "{}"), ToolCall("d", "g", "{}")
    book = Playbook(Text("hi"), call, recorded=False)

    assert [("text", 0), "hi"] == book.take(TextDelta("hi", 0), ToolCallDelta(1, "c", "f", "{}"))
    assert [END, ("call", 1, "c", "f"), "{}", END, ("text", 2), "so"] == book.take(TextDelta("so", 2))
    signed = Text("hi", carriers=SIGNED)
    assert [END, ["kept", "Text"], ("call", 3, "d", "g"), "{}", END] == book.end(signed, call, Text("so"), other)
