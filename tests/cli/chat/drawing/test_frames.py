"""Text in frames: what is drawn when, told by the waits of whoever reads it."""

from __future__ import annotations

from contextlib import suppress

from thinkback.cli.chat.drawing.frames import SECONDS, frames
from thinkback.drive.resting import REST
from thinkback.model.deltas import Delta, ReasoningDelta, Status, TextDelta


def rest() -> None:
    """What a transport does before it waits."""
    hook = REST.get()
    assert hook is not None
    hook()


def test_what_comes_after_a_pause_is_drawn_before_more_is_waited_for() -> None:
    """The first piece at once, later ones once a frame and in one piece; nothing rests while nothing arrives."""
    drawn, slept = list[Delta](), list[float]()
    with frames(drawn.append, slept.append) as show:
        rest()
        show(ReasoningDelta("One", 0))
        rest()
        assert [ReasoningDelta("One", 0)] == drawn
        for text in (" and", " two"):
            show(ReasoningDelta(text, 0))
        rest()
        rest()

    assert [ReasoningDelta("One", 0), ReasoningDelta(" and two", 0)] == drawn
    assert [SECONDS, SECONDS] == slept
    assert REST.get() is None


def test_pieces_of_different_kinds_keep_their_order() -> None:
    """Thought, answer and what a turn does are not mixed, and nothing is lost where the block ends early."""
    given: list[Delta] = [
        ReasoningDelta("a", 0, "r"),
        ReasoningDelta("b", 1, "r"),
        TextDelta("c", 2, "r"),
        Status("sending", "m"),
        TextDelta("d", 2, "s"),
        TextDelta("e", 2, "t"),
    ]
    drawn = list[Delta]()
    with suppress(KeyboardInterrupt), frames(drawn.append) as show:
        rest()
        for delta in given:
            show(delta)
        raise KeyboardInterrupt

    assert given == drawn


def test_what_never_rests_is_drawn_piece_by_piece() -> None:
    """A transport of another kind does not say when it waits."""
    drawn = list[Delta]()
    with frames(drawn.append) as show:
        for text in "ab":
            show(TextDelta(text, 0))
            assert TextDelta(text, 0) == drawn[-1]
