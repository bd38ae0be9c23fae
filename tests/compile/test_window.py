"""``context.size``: the last N turns go, whole, and system messages stay."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.compile.build import (
    ANTHROPIC,
    Built,
    Talk,
    build,
    call,
    native,
    origin,
    say,
    settings,
    target,
    think,
    thought,
)
from thinkback.compile import fold
from thinkback.errors import ContextRefused
from thinkback.model.commits import Priority

PLACE = target(native(prefix_bound=True, system="late", need_signature=("thinking",)), ANTHROPIC)


def talk_of(*texts: str) -> Talk:
    """Finished turns behind a system message."""
    talk = Talk().system()
    for text in texts:
        talk.turn(text)
    return talk


def test_the_last_turns_go_whole() -> None:
    """The one under way is one of them; each thing that stays away is told of."""
    talk = talk_of("a", "b").loop("c").reply(say("x")).end().user("d")
    built = build(talk, None, settings(context_size=2))
    assert ["Be brief.", "c", "c1", "42", "x", "d"] == built.texts
    assert ["text", "reasoning"] * 2 == [what for what, _ in built.dropped]
    assert {"context.size leaves the turn out"} == {reason for _, reason in built.dropped}
    assert build(talk).counts.raw == built.counts.raw > built.counts.effective


def test_a_size_that_all_fit_into_changes_nothing() -> None:
    """However large."""
    talk = talk_of("a", "b").user("c")
    for size in (3, 9):
        assert build(talk).raw == build(talk, None, settings(context_size=size)).raw


def test_what_is_pinned_stays() -> None:
    """A user's message goes word for word before the turns that are left; not one that was taken away since."""
    talk = talk_of("a", "b", "c").user("d")
    talk.annotate(talk.hashes("user")[0], Priority.PINNED)
    size = settings(context_size=2)
    built = build(talk, None, size)
    assert ["Be brief.", "a", "c", "re c", "d"] == built.texts
    talk.reply(say("re d")).end().user("e")
    assert ["Be brief.", "a", "d", "re d", "e"] == build(talk, None, size).texts
    assert b'"a"' in build(talk, PLACE, size).body
    talk.annotate(talk.hashes("user")[0], Priority.SKIP)
    assert ["Be brief.", "d", "re d", "e"] == build(talk, None, size).texts


@pytest.mark.parametrize("kind", ["response", "assistant", "reasoning"])
def test_a_pinned_answer_stays_with_its_question(kind: Any) -> None:
    """Of a turn that is left out; with results and what answers them where it called; not where it was taken away."""
    talk = talk_of("a", "b", "c").user("d")
    talk.annotate(talk.hashes(kind)[0], Priority.PINNED)
    size = settings(context_size=2)
    assert ["Be brief.", "a", "re a", "c", "re c", "d"] == build(talk, None, size).texts
    assert [b'"a"' in part for part in (build(talk, PLACE, size).body, build(talk).body)] == [True, True]
    talk.annotate(talk.hashes("response")[0], Priority.SKIP)
    assert ["Be brief.", "c", "re c", "d"] == build(talk, None, size).texts
    talk = Talk().system().loop("a").reply(say("x")).end().turn("b").turn("c").user("d")
    talk.annotate(talk.hashes("tool_result")[0], Priority.PINNED)
    assert ["Be brief.", "a", "c1", "42", "x", "c", "re c", "d"] == build(talk, None, size).texts


def test_turns_in_which_nothing_is_said_do_not_count() -> None:
    """System messages alone, and turns that people took away."""
    talk = talk_of("a", "b", "c").system("late").user("d")
    talk.annotate(talk.hashes("user")[2]).annotate(talk.hashes("response")[2])
    built = build(talk, None, settings(context_size=2))
    assert ["Be brief.", "b", "re b", "late", "d"] == built.texts


def test_keep_last_works_on_what_was_selected() -> None:
    """The last N responses with reasoning among those that go."""
    talk = talk_of("a", "b", "c").user("d")
    built = build(talk, None, settings(context_size=3, keep_last=2))
    assert ["on b", "on c"] == built.fields
    built = build(talk, None, settings(context_size=2, keep_last=2))
    assert ["on c"] == built.fields


def test_a_further_turn_folds_the_window_alone() -> None:
    """What has left it is settled, and never looked at again."""
    wanted = settings(context_size=2)
    talk = talk_of("a")
    built = build(talk, None, wanted)
    state = built.state
    for text in "bcdef":
        before = len(talk.commits)
        talk.turn(text)
        state = fold.extend(state, talk.commits[before:], built.writer)
        assert len(state.pending) <= 3
        assert build(talk, None, wanted).body == Built(state).body
    assert 4 == state.settled


def test_the_bytes_grow_within_a_turn() -> None:
    """Each request of a turn begins with the last one."""
    talk = talk_of("a", "b").user("c")
    bodies = []
    for number in range(3):
        bodies.append(b"".join(build(talk, None, settings(context_size=2)).raw))
        talk.reply(think("t"), call(f"c{number}"), content="null").result(f"c{number}")
    assert all(now.startswith(before) for before, now in pairwise(bodies))


def test_reasoning_that_is_bound_to_what_left_the_window_stays_away() -> None:
    """Of the turn under way it goes: the window was the same when it was made; without a record too."""
    talk = Talk(origin(ANTHROPIC)).system()
    wanted = settings(context_size=2)
    for number in range(3):
        talk.user(f"q{number}").answer(PLACE, thought(ANTHROPIC, "t", f"SIG{number}"), say("x"), wanted=wanted).end()
    talk.user("q").answer(PLACE, thought(ANTHROPIC, "t", "SIG8"), call(), wanted=wanted).result()
    assert [b"SIG8"] == [value for value in (b"SIG1", b"SIG2", b"SIG8") if value in build_bytes(talk)]
    talk = Talk(origin(ANTHROPIC))
    for number in range(2):
        talk.turn(f"q{number}", thought(ANTHROPIC, "t", f"SIG{number}"), say("x"))
    talk.user("q").reply(thought(ANTHROPIC, "t", "SIG8"), call()).result()
    assert [b"SIG8"] == [value for value in (b"SIG0", b"SIG1", b"SIG8") if value in build_bytes(talk)]
    assert b"SIG1" in bytes(talk.plan(PLACE, settings(context_size=3)))


def build_bytes(talk: Talk) -> bytes:
    """The next request with a window of two turns."""
    return bytes(talk.plan(PLACE, settings(context_size=2)))


def test_a_window_that_begins_with_an_answer_is_refused_where_the_dialect_does() -> None:
    """The error names what the window left out."""
    talk = Talk(origin(ANTHROPIC)).turn("a", say("x")).reply(say("y")).end().user("b")
    with pytest.raises(ContextRefused, match=r"context\.size leaves the turn out"):
        build(talk, PLACE, settings(context_size=2))
