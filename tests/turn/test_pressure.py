"""How full the context is, and which checkpoint brings room: shown by building the next request."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.compile.build import ANTHROPIC, Talk, call, native, origin, say, settings, target, think, thought
from tests.compile.test_laws import rows, talks
from tests.compile.test_laws import wishes as settings_of_people
from tests.compile.test_native_laws import Case, cases
from tests.log.test_compaction import compacted, mark, marks, turns
from tests.log.test_compaction import wishes as wishes_of_people
from thinkback.compile.policy import binds
from thinkback.errors import CompactionRefused, ThinkbackError
from thinkback.log.compaction import AUTOMATIC, OVERFLOW, Wish, is_empty
from thinkback.log.outline import Outline
from thinkback.model.commits import Compaction, Content, Priority
from thinkback.model.plan import Counts
from thinkback.model.rule import ModelInfo, Rule
from thinkback.model.target import Settings, Target
from thinkback.turn.auto_compaction import is_closed, trial
from thinkback.turn.plan import History, Plan
from thinkback.turn.pressure import after_refusal, automatic, describe, level, share, thoughts_lost

LONG = "word " * 400
"""About 500 tokens."""


def place(context: int = 0, row: Rule | None = None, **fields: Any) -> Target:
    """A target whose model has so much context."""
    return target(row, info=ModelInfo("m1", context=context), **fields)


def planned(
    talk: Talk, context: int = 0, wanted: Settings | None = None, to: Target | None = None
) -> tuple[History, Plan]:
    """The history, and its next request."""
    history = History(talk.commits)
    return history, history.plan(to or place(context), wanted or Settings(), None, {})


def long_turns(count: int) -> Talk:
    """So many finished turns of about 1,000 tokens each."""
    talk = Talk()
    for number in range(count):
        talk.user(f"{number} {LONG}").reply(say(f"{number} {LONG}")).end()
    return talk


def now(talk: Talk, context: int, wanted: Settings | None = None, to: Target | None = None) -> Compaction | None:
    """What is done before the next request."""
    return automatic(*planned(talk, context, wanted, to))


def counted(effective: int, limit: int = 1_000) -> Counts:
    """Counts with these numbers."""
    return Counts(effective, effective, 0, limit)


@pytest.mark.parametrize(
    ("effective", "expected"),
    [
        (0, ""),
        (699, ""),
        (700, "warn"),
        (799, "warn"),
        (800, "trim"),
        (899, "trim"),
        (900, "summarise"),
        (5_000, "summarise"),
    ],
)
def test_a_level_is_reached_at_its_percentage(effective: int, expected: str) -> None:
    """Of the effective tokens that the next request carries."""
    assert expected == level(counted(effective), Settings())


def test_thresholds_are_a_setting() -> None:
    """And so is whether anything is done at all; without a known size there is nothing to compare with."""
    assert "summarise" == level(counted(300), Settings(compaction_thresholds="10/20/30"))
    assert "" == level(counted(999), Settings(compaction_auto=False))
    assert "" == level(counted(999, 0), Settings())


def test_how_full_it_is_can_be_read() -> None:
    """A share, the size, and the tokens."""
    assert "75 % of 128,000 tokens (96,000 effective)" == share(counted(96_000, 128_000))
    assert "why: 100 tokens become 50" == describe(Compaction("manual", before=100, after=50, reason="why"))
    assert "why: no" == describe(Compaction("manual", reason="why", note="no"))


def test_below_the_thresholds_nothing_is_done() -> None:
    """A warning changes nothing either."""
    assert [None, None] == [now(long_turns(4), context) for context in (100_000, 5_500)]


def test_at_the_second_threshold_old_results_are_trimmed() -> None:
    """Nothing is summarised while that is enough."""
    talk = Talk()
    for number in range(6):
        talk.user("look").reply(call("c1")).result("c1", LONG).reply(say(LONG)).end()
        if number == 1:
            talk.reply(call("c1")).result("c1", LONG * 6).reply(say("ok")).end()
    found = now(talk.user("now"), 11_000)
    assert found is not None
    assert ("tool_results", "") == (found.strategy, found.summary)
    assert found.reason.startswith(f"{AUTOMATIC}: 8")
    assert found.after < 0.7 * 11_000 < found.before


def test_at_the_third_threshold_the_history_is_summarised() -> None:
    """As many of the last turns stay as the setting says, the one under way among them."""
    talk = long_turns(9).user("now")
    hashes = [commit.hash for commit in talk.commits]
    found = now(talk, 9_800)
    assert found is not None
    assert ("deterministic", hashes[0], hashes[6 * 4 - 1]) == (found.strategy, found.first, found.last)
    assert found.after < 0.7 * 9_800
    fewer = now(talk, 9_800, settings(compaction_keep_turns=2, compaction_strategy="sliding_window"))
    assert fewer is not None
    assert ("sliding_window", hashes[8 * 4 - 1]) == (fewer.strategy, fewer.last)


def test_where_the_last_turns_are_the_long_ones_fewer_stay() -> None:
    """What is kept must leave room, else it would be full again at once."""
    talk = turns(6)
    for number in range(4):
        talk.user(f"{number} {LONG}").reply(say(LONG)).end()
    found = now(talk.user("now"), 4_200)
    assert found is not None
    assert found.after < 0.7 * 4_200


def test_in_a_long_tool_loop_its_own_beginning_is_summarised() -> None:
    """The question stays, and so do the last responses with their results."""
    talk = Talk().user("Go on until it works!")
    for number in range(12):
        talk.reply(think("hm"), call(f"c{number}"), content="null").result(f"c{number}", LONG + LONG)
    found = now(talk, 12_000)
    assert found is not None
    assert (talk.commits[0].hash,) == found.kept
    assert found.after < 0.7 * 12_000
    messages = [json.loads(message) for message in trial(*planned(talk, 12_000), found).messages]
    assert ["user", "user", "assistant", "tool"] == [message["role"] for message in messages][:4]
    assert "Go on until it works!" == messages[1]["content"]


def bound() -> Target:
    """A place whose reasoning is bound to what stands before it."""
    return place(6_000, native(prefix_bound=True), speech=ANTHROPIC)


def test_what_is_bound_to_its_prefix_is_left_alone_until_the_turn_ends() -> None:
    """Neither by itself nor after a refusal; between turns it is summarised, and what is unbound says so."""
    talk = long_turns(5).user("Look!")
    talk.answer(bound(), thought(ANTHROPIC, "plan", "SIG1"), call("c1")).result("c1", LONG)
    history, plan = planned(talk, to=bound())
    assert is_closed(Outline(talk.commits), plan)
    assert (None, None) == (automatic(history, plan), after_refusal(history, plan, "too long"))
    talk.answer(bound(), thought(ANTHROPIC, "so", "SIG2"), say("done")).end().user("next")
    history, plan = planned(talk, to=bound())
    found = automatic(history, plan)
    assert found is not None
    later = [decision for decision in trial(history, plan, found).decisions if decision.what == "signature"]
    assert all(decision.action == "drop" and "prefix" in decision.reason for decision in later)
    lost = thoughts_lost(history, plan, found)
    assert lost.startswith("compaction costs 2 thoughts: m1 binds them to what stood before")
    assert all(decision.block[:8] in lost for decision in later)


@pytest.mark.parametrize(("thoughts", "said"), [(1, "costs 1 thought:"), (5, "costs 5 thoughts:")])
def test_the_thoughts_that_a_checkpoint_costs_are_counted_and_some_are_named(thoughts: int, said: str) -> None:
    """Three by their hashes, the rest by their number."""
    talk = long_turns(5)
    for number in range(thoughts):
        talk.user(str(number)).answer(bound(), thought(ANTHROPIC, "so", f"SIG{number}"), say("done")).end()
    history, plan = planned(talk.user("next"), to=bound())
    first = next(commit.hash for commit in talk.commits if commit.kind == "user")
    last = next(commit.hash for commit in talk.commits[1:] if commit.kind == "response")
    lost = thoughts_lost(history, plan, Compaction("manual", "s", first, last))
    assert said in lost
    assert ("and 2 more" in lost) == (thoughts == 5)


def test_where_nothing_is_bound_no_thought_is_lost() -> None:
    """Nor by a checkpoint that came to nothing."""
    history, plan = planned(long_turns(6), 6_000)
    found = automatic(history, plan)
    assert found is not None
    assert "" == thoughts_lost(history, plan, found)
    history, plan = planned(long_turns(6), to=bound())
    found = automatic(history, plan)
    assert found is not None
    assert "" == thoughts_lost(history, plan, found) == thoughts_lost(history, plan, Compaction("manual"))


def test_what_brings_little_is_said_and_not_repeated() -> None:
    """The log has the attempt; for some turns there is no other, also in another process."""
    talk = Talk().turn("a").user(LONG * 10)
    found = now(talk, 5_000)
    assert found is not None
    assert is_empty(found)
    assert "nothing was done" in found.note
    talk.note("compaction", found)
    assert now(talk, 5_000) is None
    talk.reply(say("b")).end().user("c")
    assert now(talk, 5_000) is None


def test_where_nothing_can_be_trimmed_it_is_said() -> None:
    """And the next threshold is not held up by it."""
    talk = Talk().user(LONG).reply(say(LONG)).end().user("now")
    found = now(talk, 1_200)
    assert found is not None
    assert ("tool_results", "nothing was done: there is nothing left to take") == (found.strategy, found.note)
    talk.note("compaction", found).reply(say(LONG)).end().user("more").reply(say("x")).end().user("and more")
    summarised = now(talk, 1_500)
    assert summarised is not None
    assert "deterministic" == summarised.strategy


def test_at_one_place_it_is_tried_once() -> None:
    """Until something is said, nothing else can come of it."""
    talk = long_turns(9).user("now")
    found = now(talk, 9_800)
    assert found is not None
    talk.note("compaction", found)
    assert now(talk, 3_000) is None
    assert now(talk.reply(call("c1")).result("c1"), 3_000) is not None


def test_what_somebody_asked_for_is_no_attempt() -> None:
    """A checkpoint by hand a moment ago does not stand in the way."""
    talk = long_turns(9).user("now")
    compacted(talk, Wish("manual", tail=8), "They spoke.")
    assert now(talk, 8_000) is not None


def test_a_history_that_nobody_began_is_summarised_too() -> None:
    """What programs added is no user's word."""
    talk = Talk()
    for number in range(9):
        talk.note("content", Content("fact", f"{number} {LONG}")).reply(say("ok")).end()
    assert now(talk, 4_500) is not None
    assert after_refusal(*planned(talk), "too long") is not None
    alone = Talk().note("content", Content("fact", LONG * 9))
    found = now(alone, 4_500)
    assert found is not None
    assert is_empty(found)


def test_a_model_is_not_asked_in_the_middle_of_a_turn() -> None:
    """The log alone has to do there."""
    found = now(long_turns(9).user("now"), 9_800, settings(compaction_strategy="model"))
    assert found is not None
    assert "deterministic" == found.strategy


def refusals(talk: Talk, wanted: Settings | None = None) -> list[Compaction]:
    """The checkpoints of a turn whose every request is called too long."""
    found: list[Compaction] = []
    while (made := after_refusal(*planned(talk, wanted=wanted), "too long")) is not None:
        found.append(made)
        talk.note("compaction", made)
    return found


def test_after_a_refusal_fewer_turns_stay_each_time() -> None:
    """At most three times in a turn, each time less is sent; the context's size need not be known."""
    found = refusals(long_turns(12).user("now"))
    assert 3 == len(found)
    assert [f"{OVERFLOW}: too long"] * 3 == [each.reason for each in found]
    sizes = [found[0].before, *(each.after for each in found)]
    assert sizes == sorted(sizes, reverse=True)
    assert found[-1].after < 2_000
    talk = long_turns(12).user("now")
    refusals(talk)
    assert after_refusal(*planned(talk), "too long") is None
    talk.reply(say("ok")).end().user(LONG).reply(say(LONG)).end().user("again")
    assert after_refusal(*planned(talk), "too long") is not None


def test_a_giant_result_is_trimmed_at_last() -> None:
    """Where no turn and no response can go, what is left is its size."""
    talk = Talk().user("Look!").reply(call("c1")).result("c1", LONG * 50)
    found = refusals(talk)
    assert ["tool_results"] == [each.strategy for each in found]
    assert found[0].after < 1_000


def test_what_cannot_be_made_shorter_is_not_sent_again() -> None:
    """Neither a message alone, nor anything where it is switched off."""
    assert [] == refusals(Talk().user(LONG))
    assert [] == refusals(long_turns(5), settings(compaction_auto=False))


def test_a_request_that_could_not_be_built_is_no_way_out() -> None:
    """What an endpoint demands is not summarised away: that checkpoint is passed over."""
    strict = place(2_000, native(), speech=ANTHROPIC)
    talk = Talk(origin(ANTHROPIC)).turn("a", say(LONG)).turn("b", say(LONG)).user("Look!")
    talk.reply(thought(ANTHROPIC, "plan", "SIG1"), call("c1")).result("c1", LONG + LONG)
    found = now(talk, 2_000, to=strict)
    assert found is not None


@given(
    talks(), rows, settings_of_people, st.lists(marks, max_size=24), st.lists(wishes_of_people, min_size=1, max_size=3)
)
def test_requests_behind_checkpoints_are_whole(
    talk: Talk, row: Rule, wanted: Settings, said: list[Priority | None], wishes: list[Wish]
) -> None:
    """Whatever the history, marks, rule and checkpoints, one upon the other: every call has its result and every
    result its call, what is pinned is there word for word, of what stays every carrier and reasoning text that went
    along still does, and the log has everything as before.
    """
    for at, priority in enumerate(said[: len(talk.commits)]):
        if priority is not None:
            mark(talk, at, priority)
    talk.note("content", Content("pin", "PINNED WORDS", priority=Priority.PINNED)).turn("more").turn("and more")
    stored, to = list(talk.commits), place(0, row)
    try:
        before = planned(talk, wanted=wanted, to=to)[1]
    except ThinkbackError:
        assume(False)
    for wish in wishes:
        with suppress(CompactionRefused):
            compacted(talk, wish, "SUMMARY")
    after = planned(talk, wanted=wanted, to=to)[1]
    waiting: list[str] = []
    for message in map(json.loads, after.messages):
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert [] == waiting
            waiting = [each["id"] for each in message.get("tool_calls") or ()]
    assert [] == waiting
    assert bytes(before).count(b"PINNED WORDS") <= bytes(after).count(b"PINNED WORDS") <= 1
    outline = Outline(talk.commits)
    gone = {talk.commits[at].hash for piece in outline.pieces if outline.is_inside(piece) for at in piece.at}
    assert set() == _went(before) - _went(after) - gone
    assert stored == talk.commits[: len(stored)]


@given(cases(), st.lists(wishes_of_people, min_size=1, max_size=3))
def test_what_stays_keeps_what_it_carries(case: Case, wishes: list[Wish]) -> None:
    """In every dialect that takes reasoning back in its place, with everything that its maker tied to it; where it is
    bound to what stands before it, nothing goes along that did not before.
    """
    talk, wanted = case
    talk.turn("more", say("a")).turn("and more", say("b"))
    before = _outcome(case)
    for wish in wishes:
        with suppress(CompactionRefused):
            compacted(talk, wish, "SUMMARY")
    after = _outcome(case)
    outline = Outline(talk.commits)
    gone = {talk.commits[at].hash for piece in outline.pieces if outline.is_inside(piece) for at in piece.at}
    if before is None or after is None:
        return
    if binds(wanted.target.rule, wanted.settings):
        assert set() == _went(after) & gone
    else:
        assert set() == _went(before) - _went(after) - gone


def _outcome(case: Case) -> Plan | None:
    """The next request, where there is one."""
    wanted = case.wanted
    try:
        return History(case.talk.commits).plan(wanted.target, wanted.settings, None, wanted.params)
    except ThinkbackError:
        return None


def _went(plan: Plan) -> set[str]:
    """The blocks of which something goes along with its own words."""
    return {found.block for found in plan.decisions if found.message >= 0 and found.block}


@given(talks(), rows, st.sampled_from([50, 200, 1_000]), st.booleans())
def test_what_is_proposed_makes_the_request_smaller(talk: Talk, row: Rule, context: int, refused: bool) -> None:
    """By itself or after a refusal: never more tokens than before, and as many as it says."""
    talk.turn("x" * 400).turn("y" * 400).user("now")
    try:
        history, plan = planned(talk, to=place(context, row))
    except ThinkbackError:
        assume(False)
    found = after_refusal(history, plan, "too long") if refused else automatic(history, plan)
    if found is None or is_empty(found):
        return
    after = trial(history, plan, found).counts.effective
    assert (plan.counts.effective, after) == (found.before, found.after)
    assert after < plan.counts.effective
