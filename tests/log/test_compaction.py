"""Which run of a history a summary may stand for, what of it stays, what is trimmed, and when to leave it alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.compile.build import Talk, call, say, think
from tests.compile.test_laws import talks
from thinkback.errors import CompactionRefused
from thinkback.log.compaction import (
    AUTOMATIC,
    OVERFLOW,
    Cut,
    Wish,
    checkpoint,
    cut,
    is_cooling,
    is_empty,
    shortened,
)
from thinkback.log.outline import Outline
from thinkback.model.commits import Annotation, Compaction, Content, Priority

LONG = "x" * 5_000

strategies: Any = st.sampled_from(["deterministic", "model", "sliding_window", "middle_out"])
marks = st.sampled_from([Priority.PINNED, Priority.IMPORTANT, Priority.SKIP, None])
wishes: st.SearchStrategy[Wish] = st.builds(
    Wish,
    strategies,
    tail=st.integers(0, 4),
    head=st.integers(0, 2),
    responses=st.integers(0, 2),
    size=st.sampled_from([0, 10]),
    trims=st.booleans(),
)


def turns(count: int) -> Talk:
    """So many finished turns: two pieces and five commits each."""
    talk = Talk()
    for number in range(count):
        talk.turn(f"question {number}")
    return talk


def mark(talk: Talk, at: int, priority: Priority, *retain: str) -> Talk:
    """An annotation of the commit at a position."""
    return talk.note("annotation", Annotation(talk.commits[at].hash, priority, retain=retain))


def run_of(talk: Talk, **fields: Any) -> tuple[int, int]:
    """The ends of the run that is covered."""
    found = cut(Outline(talk.commits), Wish(**fields))
    return found.first, found.last


def compacted(talk: Talk, wish: Wish, summary: str = "before") -> Compaction:
    """The checkpoint of a wish, added to the talk."""
    outline = Outline(talk.commits)
    made = checkpoint(outline, wish, None if wish.strategy == "tool_results" else cut(outline, wish), summary)
    talk.note("compaction", made)
    return made


def looping(rounds: int, *, done: bool = False) -> Talk:
    """A finished turn, and one under way with so many responses that each called a tool."""
    talk = Talk().turn("first").user("Go on!")
    for number in range(rounds):
        talk.reply(think("hm"), call(f"c{number}"), content="null").result(f"c{number}", LONG)
    return talk.end() if done else talk


def test_whole_turns_go_and_the_last_stay() -> None:
    """Usage and the end of a turn go with it, so that nothing of it is left over."""
    assert [(0, 14), (0, 19), (0, 24)] == [run_of(turns(5), tail=tail) for tail in (2, 1, 0)]


def test_a_message_that_waits_for_its_answer_is_the_last_turn() -> None:
    """It is what the next request is about."""
    talk = turns(3).user("now")
    assert [(0, 9), (0, 14)] == [run_of(talk, tail=tail) for tail in (2, 1)]


def test_what_the_system_says_is_not_summarised() -> None:
    """Not at the beginning, and not in between."""
    talk = Talk().system().turn("a").system("Be kind.").turn("b").turn("c")
    found = cut(Outline(talk.commits), Wish(tail=1))
    assert (1, 11) == (found.first, found.last)
    assert ["system"] == [piece.kind for piece in found.kept]


def test_a_pinned_commit_stays_with_its_whole_response() -> None:
    """What is pinned goes word for word, be it a message or any block of a response."""
    talk = turns(4)
    mark(talk, 0, Priority.PINNED)
    mark(talk, 7, Priority.PINNED)
    talk.note("content", Content("rule", "x", priority=Priority.PINNED))
    made = compacted(talk, Wish(tail=0))
    assert (talk.commits[0].hash, talk.commits[6].hash, talk.commits[22].hash) == made.kept


def test_the_middle_goes_out() -> None:
    """The first turns stay as well; the system's words before the middle are not part of it."""
    talk = Talk().system().turn("a").system().turn("b").turn("c").turn("d")
    assert [(7, 11), (7, 16)] == [run_of(talk, strategy="middle_out", tail=tail) for tail in (2, 1)]
    assert (12, 16) == run_of(talk, strategy="middle_out", tail=1, head=2)


@pytest.mark.parametrize(
    ("count", "tail", "said", "fewer"),
    [
        (5, 5, "the session has 5 turns, and the last 5 stay", "--tail 4 (in a program tail=4)"),
        (5, 6, "the session has 5 turns, and the last 6 stay", "--tail 4"),
        (1, 4, "the session has 1 turn, and the last 4 stay", "--tail 0"),
    ],
)
def test_nothing_to_cover_is_refused(count: int, tail: int, said: str, fewer: str) -> None:
    """The error says how many turns there are and how many were to stay, and by which option fewer do."""
    with pytest.raises(CompactionRefused, match=f"nothing new to summarise: {said}") as caught:
        run_of(turns(count), tail=tail)
    assert {"strategy": "deterministic", "turns": count, "tail": tail} == caught.value.details
    assert fewer in caught.value.next_actions[0]


@pytest.mark.parametrize("talk", [Talk(), Talk().system(), Talk().system().user()])
def test_an_empty_history_is_refused(talk: Talk) -> None:
    """Where nothing was said there is nothing to summarise."""
    with pytest.raises(CompactionRefused):
        run_of(talk, tail=1)


def test_fewer_turns_than_none_are_not_proposed() -> None:
    """A summary is not to be had by keeping less."""
    with pytest.raises(CompactionRefused) as caught:
        run_of(Talk(), tail=1)
    assert ("or go on: there is nothing to gain yet",) == caught.value.next_actions


def test_only_what_is_pinned_is_nothing_to_cover() -> None:
    """A summary of nothing would be longer than nothing."""
    talk = mark(mark(turns(1), 0, Priority.PINNED), 1, Priority.PINNED)
    with pytest.raises(CompactionRefused):
        run_of(talk, tail=0)


def test_inside_a_turn_whole_responses_go_with_their_results() -> None:
    """The question stays word for word, and so do the last responses."""
    talk = looping(4)
    found = cut(Outline(talk.commits), Wish(responses=1))
    assert [talk.commits[5].hash] == [piece.hash for piece in found.kept]
    assert (0, 17) == (found.first, found.last)
    assert "response" == talk.commits[18].kind


def test_a_turn_of_few_responses_stays_whole() -> None:
    """What is before it goes all the same; a turn that is over is not cut at all."""
    assert (0, 4) == run_of(looping(2), responses=2)
    assert (0, 4) == run_of(looping(4, done=True), responses=1)
    assert (0, 4) == run_of(looping(2), tail=0)


def test_a_cut_goes_around_what_belongs_together() -> None:
    """A result that came after the next turn began moves the cut before its call."""
    talk = turns(1).user("a").reply(call("c1")).end().user("b").result("c1").reply(say("ok")).end().user("c")
    assert (0, 4) == run_of(talk, tail=2)


def test_a_late_result_of_the_head_moves_the_beginning() -> None:
    """What stays keeps its results, so the run begins behind them."""
    talk = Talk().user("a").reply(call("c1")).end().user("b").result("c1").reply(say("ok")).end().turn("c").user("d")
    assert (6, 13) == run_of(talk, strategy="middle_out", tail=1)


def test_a_later_run_lies_around_an_earlier_one() -> None:
    """A summary is never cut in half: it goes into the new one as a whole."""
    talk = turns(4)
    compacted(talk, Wish(tail=2))
    talk.turn("question 4").turn("question 5")
    assert (0, 19) == run_of(talk, strategy="middle_out", tail=2)
    compacted(talk, Wish("middle_out", tail=2))
    assert [(0, 19)] == [(run.first, run.last) for run in Outline(talk.commits).runs]


def test_runs_may_stand_beside_each_other() -> None:
    """The middle of what came since is summarised on its own where the head is not touched."""
    talk = turns(6)
    compacted(talk, Wish("middle_out", tail=3))
    talk.turn("question 6")
    assert (5, 24) == run_of(talk, strategy="middle_out", tail=2)


def test_what_an_earlier_summary_stands_for_is_nothing_new() -> None:
    """The same run again is refused."""
    talk = turns(4)
    compacted(talk, Wish(tail=2))
    for tail in (2, 3):
        with pytest.raises(CompactionRefused):
            run_of(talk, tail=tail)


def test_a_summary_that_can_no_longer_be_cut_out_stays() -> None:
    """A late result ties what was before the run to what is in it: nothing is covered, rather than a pair parted."""
    talk = Talk().user("a").reply(call("c1")).end().turn("b").turn("c").turn("d")
    compacted(talk, Wish("middle_out", tail=1))
    talk.result("c1", response="resp1").turn("e")
    with pytest.raises(CompactionRefused):
        run_of(talk, strategy="middle_out", tail=1)


def test_long_results_before_the_tail_are_trimmed() -> None:
    """Head and tail are left, and a word of how much went; nothing else changes."""
    talk = looping(2, done=True).turn("next").turn("last")
    made = compacted(talk, Wish("tool_results", tail=2, size=300))
    results = talk.hashes("tool_result")
    assert results == [hash for hash, _ in made.trimmed]
    assert ("", "", ()) == (made.first, made.summary, made.kept)
    for hash, text in made.trimmed:
        assert text.startswith("x" * 200 + "\n[... 4,700 characters left out")
        assert text.endswith(" ...]\n" + "x" * 100)
        assert hash[:12] in text


def test_inside_a_turn_older_results_are_trimmed() -> None:
    """Those of the last responses stay whole."""
    talk = looping(3)
    made = compacted(talk, Wish("tool_results", responses=1))
    assert talk.hashes("tool_result")[:2] == [hash for hash, _ in made.trimmed]


@pytest.mark.parametrize("priority", [Priority.PINNED, Priority.IMPORTANT])
def test_results_that_matter_are_not_trimmed(priority: Priority) -> None:
    """Not even where another block of their response was marked."""
    talk = looping(2, done=True)
    mark(talk, 8, priority)
    made = compacted(talk, Wish("tool_results", tail=0))
    assert talk.hashes("tool_result")[1:] == [hash for hash, _ in made.trimmed]


def test_what_is_trimmed_or_short_or_covered_is_not_trimmed() -> None:
    """A second time nothing is left to do, and the error says what was looked for."""
    talk = looping(2, done=True)
    compacted(talk, Wish("tool_results", tail=0))
    with pytest.raises(CompactionRefused, match="longer than 2,000 characters"):
        compacted(talk, Wish("tool_results", tail=0))
    shorter = compacted(talk, Wish("tool_results", tail=0, size=100))
    assert 2 == len(shorter.trimmed)
    compacted(talk, Wish(tail=0))
    with pytest.raises(CompactionRefused):
        compacted(talk, Wish("tool_results", tail=0, size=10))


def test_a_summary_can_trim_what_stays() -> None:
    """The results of what it covers are gone anyway."""
    talk = looping(3)
    made = compacted(talk, Wish(tail=1, responses=1, trims=True))
    assert talk.hashes("tool_result")[2:] == [hash for hash, _ in made.trimmed]
    assert made.summary == "before"


@given(st.text(), st.integers(0, 20))
def test_shortened_keeps_head_and_tail(text: str, size: int) -> None:
    """What is left is what was there, and what is left out is counted."""
    long = text + "middle" * 50
    short = shortened(long, size, "f" * 64)
    head, _, rest = short.partition("\n[... ")
    tail = rest.partition(" ...]\n")[2]
    assert (long[: len(head)], long[len(long) - len(tail) :]) == (head, tail)
    assert f"{len(long) - size:,} characters left out" in short


def attempt(before: int, after: int, reason: str = AUTOMATIC, **fields: Any) -> Compaction:
    """A checkpoint that nobody asked for."""
    ends = {"first": "a", "last": "b"} if after else {}
    return Compaction("deterministic", **{**ends, "before": before, "after": after, "reason": reason, **fields})


@pytest.mark.parametrize(
    ("found", "cools"),
    [
        (attempt(100, 89), False),
        (attempt(100, 90), True),
        (attempt(100, 0, note="nothing to cover"), True),
        (attempt(100, 95, OVERFLOW), True),
        (attempt(100, 95, "asked for"), False),
        (attempt(100, 50, trimmed=(("a", "b"),)), False),
    ],
)
def test_after_little_use_it_rests_for_three_turns(found: Compaction, cools: bool) -> None:
    """What a person asked for says nothing about that; the log alone decides, so it holds over restarts."""
    talk = turns(1).user("a").note("compaction", found).reply(say("b")).end()
    rests = [is_cooling(talk.commits)]
    for number in range(3):
        talk.user(str(number))
        rests.append(is_cooling(talk.commits))
        talk.reply(say("c")).end()
    assert [cools, cools, cools, False] == rests


def test_a_trim_in_vain_does_not_hold_up_a_summary() -> None:
    """It only rests itself; what came before it counts as ever."""
    talk = turns(1).user("a").note("compaction", Compaction("tool_results", before=9, after=9, reason=AUTOMATIC))
    assert [False, True] == [is_cooling(talk.commits, trims=trims) for trims in (False, True)]
    late = turns(1).user("a").note("compaction", attempt(100, 99))
    late.note("compaction", Compaction("tool_results", before=9, after=5, reason=AUTOMATIC, trimmed=(("a", "b"),)))
    assert [True, False] == [is_cooling(late.commits, trims=trims) for trims in (False, True)]


def test_without_an_attempt_nothing_rests() -> None:
    """Neither in an empty history nor in a short one."""
    assert not is_cooling([])
    assert not is_cooling(turns(2).commits)


def test_a_checkpoint_that_only_says_so_is_empty() -> None:
    """It stands for nothing and trims nothing."""
    trimming = attempt(1, 0, trimmed=(("a", "b"),))
    assert [True, False, False] == [is_empty(found) for found in (attempt(1, 0), attempt(1, 1), trimming)]


@given(
    talks(), st.lists(st.sampled_from([Priority.PINNED, Priority.IMPORTANT, Priority.SKIP, None]), max_size=24), wishes
)
def test_no_cut_parts_what_belongs_together(talk: Talk, marks: list[Priority | None], wish: Wish) -> None:
    """Whatever the history, marks and wish: no response is on both sides, what is pinned or the system's is kept, and
    the log has everything as before."""
    for at, priority in enumerate(marks[: len(talk.commits)]):
        if priority is not None:
            mark(talk, at, priority)
    outline = Outline(talk.commits)
    try:
        found: Cut = cut(outline, wish)
    except CompactionRefused:
        return
    inside = range(found.first, found.last + 1)
    for piece in outline.pieces:
        assert 1 == len({at in inside for at in piece.at})
    covered = {at for piece in found.covered for at in piece.at}
    pinned = {at for at, commit in enumerate(talk.commits) if outline.curation.priority(commit) is Priority.PINNED}
    assert covered.isdisjoint(pinned)
    assert "system" not in {piece.kind for piece in found.covered}
    assert "before" == checkpoint(outline, wish, found, "before").summary


@given(talks(), st.lists(wishes, max_size=4))
def test_runs_in_force_never_overlap(talk: Talk, wishes: list[Wish]) -> None:
    """However often a history is summarised, with turns in between or without."""
    assume(all(commit.kind != "compaction" for commit in talk.commits))
    for wish in wishes:
        try:
            compacted(talk, wish)
        except CompactionRefused:
            talk.turn("more")
    runs = Outline(talk.commits).runs
    assert all(before.last < after.first for before, after in pairwise(runs))
