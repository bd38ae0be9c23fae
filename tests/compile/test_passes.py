"""The passes: what each may touch, and that their word for one response holds for all of its kind."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.compile.build import Talk, build, inputs, native, redacted, rule, say, settings, tagged, target, think, tied
from thinkback.compile import fold
from thinkback.compile.decide import PASSES, Precedents, case_of, decide, pieces_of
from thinkback.compile.grouping import Grouper
from thinkback.compile.pieces import Case
from thinkback.compile.policy import Policy, ResponseContext
from thinkback.model.rule import Rule, Switch
from thinkback.model.target import Settings

OPEN, FINISHED = ResponseContext(True, False, False, False, False), ResponseContext(False, False, False, True, False)
TALKS = {
    "own": Talk().turn("a", think("one"), say("x")).turn("b", think("two"), say("y")).turn("c"),
    "blank": Talk().turn("a", think(" "), say("x")).turn("b", think(""), say("")).turn("c", say("z")),
    "tags": Talk().turn("a", tagged("t"), say("x")).turn("b", tagged("u"), think("v"), say("y")),
    "bare": Talk().turn("a", say("x")).turn("b", say("y")),
    "carrying": Talk().turn("a", redacted("R"), tied(say("x"), "i1")).turn("b", redacted("R"), say("y")),
}
ROWS = (rule(), rule(form="tags"), rule(form="details"), rule(later="never"), rule(placeholder_on="all"), native())


def cases(talk: Talk, row: Rule, wanted: Settings) -> Sequence[Case]:
    """Every response of ``talk``, in the turn under way and in a finished one."""
    policy, grouper = Policy(inputs(target(row), wanted)), Grouper()
    grouper.take(talk.commits)
    units = [unit for turn in grouper.turns for unit in turn.responses]
    return [
        case_of(unit, place, policy, policy.verdict(unit.header.origin), (), "")
        for unit in units
        for place in (OPEN, FINISHED)
    ]


@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.form}-{row.later}-{row.placeholder_on}")
def test_one_word_for_all_of_a_kind(talk: Talk, row: Rule) -> None:
    """What was decided of responses before changes nothing about one, only the work."""
    known: Precedents = {}
    for case in (*cases(talk, row, settings()), *cases(talk, row, settings(include_in_context=False))):
        assert decide(case, {}) == decide(case, known)


def test_a_response_that_carries_something_is_no_precedent() -> None:
    """Its opaque values are its own."""
    known: Precedents = {}
    for case in cases(TALKS["carrying"], native(), settings()):
        decide(case, known)
    assert known == {}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.form}-{row.later}-{row.placeholder_on}")
def test_what_stays_away_stays_away(row: Rule) -> None:
    """A pass decides what is open; only ``foreign`` turns to what an earlier one dropped."""
    for case in (case for talk in TALKS.values() for case in cases(talk, row, settings())):
        pieces = pieces_of(case.unit)
        for each in PASSES:
            dropped = [piece.hash for piece in pieces if piece.state == "drop"]
            pieces = each(pieces, case)
            kept = {piece.hash for piece in pieces if piece.state != "drop"}
            assert each.__name__ == "foreign" or kept.isdisjoint(dropped)
        assert "open" not in {piece.state for piece in pieces}
        assert "goes" not in {piece.state for piece in pieces}


def test_what_was_written_of_settled_turns_is_not_kept() -> None:
    """The state of a long conversation has in its cache only what may still change."""
    talk = Talk()
    state, writer = build(talk).state, build(talk).writer
    for number in range(12):
        before = len(talk.commits)
        talk.turn(f"turn {number}")
        state = fold.extend(state, talk.commits[before:], writer)
        fold.request(state, writer)
        assert len(state.cache.responses) <= len(state.pending) <= 2
        assert len(state.cache.messages) <= 2


def test_strict_adds_nothing() -> None:
    """Where nothing about reasoning may be sent, no switch goes along either."""
    row = rule(open_turn="may", later="may", keep_switch=Switch({"keep": True}))
    built = build(Talk().turn("a").user("b"), row, settings(strict=True))
    assert fold.added(built.state.policy, built.request) == Switch()
