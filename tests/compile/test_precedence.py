"""Who decides whether reasoning goes along: guard, rule, strip, include, in that order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import ELSEWHERE, Talk, build, call, rule, say, settings, target, think
from thinkback.compile.policy import Policy, ResponseContext, keep_last
from thinkback.model.rule import Switch
from thinkback.model.target import Settings
from thinkback.rules import load_rulebook

DEFAULT = Settings()
ASKED = settings(include_in_context=True)
ASKED_NOT = settings(include_in_context=False)
STRIPPED = settings(strip_from_context="all")
OFF = settings(enabled=False)
FROM_DATA = Settings(include_in_context=True)

FINISHED = Talk().turn("a").user("b")
OPEN = Talk().loop("a", first="on a")

# demand -> settings -> does the reasoning go along
TABLE = {
    ("must", "default"): True,
    ("must", "asked"): True,
    ("must", "asked not"): True,
    ("must", "stripped"): True,
    ("must", "off"): True,
    ("should", "default"): True,
    ("should", "asked"): True,
    ("should", "asked not"): False,
    ("should", "stripped"): False,
    ("should", "off"): False,
    ("may", "default"): False,
    ("may", "asked"): True,
    ("may", "asked not"): False,
    ("may", "stripped"): False,
    ("may", "off"): False,
    ("may", "from data"): True,
    ("never", "default"): False,
    ("never", "asked"): False,
    ("never", "from data"): False,
}
WANTED = {
    "default": DEFAULT,
    "asked": ASKED,
    "asked not": ASKED_NOT,
    "stripped": STRIPPED,
    "off": OFF,
    "from data": FROM_DATA,
}


@pytest.mark.parametrize(("demand", "wanted"), TABLE, ids=" / ".join)
def test_finished_turns(demand: Any, wanted: str) -> None:
    """For a finished turn the rule's demand, then strip, then include decide, each beating the next."""
    built = build(FINISHED, rule(later=demand, missing=("none",)), WANTED[wanted])
    assert ["on a" if TABLE[demand, wanted] else None] == built.fields
    assert built.actions == ["field" if TABLE[demand, wanted] else "drop"]


@pytest.mark.parametrize(("demand", "wanted"), TABLE, ids=" / ".join)
def test_turn_under_way(demand: Any, wanted: str) -> None:
    """For the turn under way it is the same, but nothing strips it."""
    goes = TABLE[demand, wanted] or (demand == "should" and wanted == "stripped")
    built = build(OPEN, rule(open_turn=demand, later="never", missing=("none",)), WANTED[wanted])
    assert ["on a" if goes else None] == built.fields


@pytest.mark.parametrize(("used_tools", "field"), [(True, "plan"), (False, None)])
def test_must_after_tools(used_tools: bool, field: str | None) -> None:
    """``must-after-tools`` demands the reasoning of finished turns that called tools, and of no others."""
    talk = Talk().loop("a").reply(think("last"), say("done")).end() if used_tools else Talk().turn("a")
    built = build(talk.user("b"), rule(later="must-after-tools"), ASKED_NOT)
    assert built.fields == ([field, "last"] if used_tools else [field])


def test_calls_of_a_withheld_response_are_no_tool_use() -> None:
    """A turn whose only calls are withheld used no tools as far as the endpoint can see."""
    talk = Talk().user("a").reply(think("on a"), call()).end("capped").user("b").turn("c").user("d")
    assert [None] == build(talk, rule(later="must-after-tools")).fields


def test_scope_limits_the_demand_to_messages_with_calls() -> None:
    """A demand of scope tool-calls is about messages with calls; the others go by the settings."""
    talk = Talk().loop("a").reply(think("last"), say("done")).end().user("b")
    row = rule(open_turn="must", later="must", scope="tool-calls")
    assert build(talk, row, ASKED_NOT).fields == ["plan", None]
    assert build(talk, row).fields == ["plan", "last"]


@pytest.mark.parametrize(
    ("row", "wanted", "reason"),
    [
        (rule(later="must"), DEFAULT, "goes back in reasoning_content: the endpoint requires it (rule r)"),
        (rule(later="should"), DEFAULT, "goes back in reasoning_content: the endpoint keeps it (rule r)"),
        (rule(later="should"), ASKED, "goes back in reasoning_content: the endpoint keeps it (rule r)"),
        (
            rule(later="may"),
            ASKED,
            "goes back in reasoning_content: you asked for it with reasoning.includeInContext (rule r)",
        ),
        (
            rule(later="may"),
            FROM_DATA,
            "goes back in reasoning_content: "
            "the endpoint's settings ask for it with reasoning.includeInContext (rule r)",
        ),
        (
            rule(later="may", placeholder=" ", placeholder_on="all", missing=("placeholder",)),
            DEFAULT,
            "goes back in reasoning_content: the endpoint wants the field on every assistant message (rule r)",
        ),
        (
            rule(later="may"),
            settings(include_in_context=True, client="openai-chat", client_reasons=True),
            "goes back in reasoning_content: the request brought reasoning of its own, which asks for it (rule r)",
        ),
        (rule(later="never"), ASKED, "the endpoint must not see reasoning of finished turns"),
        (rule(form="none", later="never"), ASKED, "the endpoint takes no reasoning back"),
        (rule(later="should"), STRIPPED, "reasoning.stripFromContext is all"),
        (rule(later="should"), settings(keep_last=0), "reasoning.keepLast is 0"),
        (rule(later="should"), ASKED_NOT, "reasoning.includeInContext is false"),
        (rule(later="should"), OFF, "reasoning.enabled is false"),
        (
            rule(later="may"),
            DEFAULT,
            "the endpoint does not need it (rule r), and reasoning.includeInContext is not set",
        ),
    ],
)
def test_reasons(row: Any, wanted: Settings, reason: str) -> None:
    """Each decision says who decided: the endpoint that requires or keeps it, the setting, or the person who asked."""
    assert [reason] == build(FINISHED, row, wanted).reasons


def test_the_turn_under_way_has_its_own_reason() -> None:
    """``never`` for the turn under way says so."""
    built = build(OPEN, rule(open_turn="never"))
    assert ["the endpoint must not see reasoning of the turn under way"] == built.reasons


def test_guessed_rules_are_named_as_guessed() -> None:
    """A rule that was not written for the model is marked in every decision, also in words where it speaks for one."""
    built = build(FINISHED, target(guessed=True))
    assert built.reasons == ["goes back in reasoning_content: the endpoint keeps it (rule r, guessed)"]
    assert [decision.guessed for decision in built.decisions] == [True]
    assert [decision.guessed for decision in build(FINISHED, target(rule(later="never"), guessed=True)).decisions] == [
        True
    ]


def test_validity_comes_first() -> None:
    """What fails the guard stays away even where it is required."""
    talk = Talk(ELSEWHERE).turn("a").user("b")
    built = build(talk, rule(later="must", missing=("none",)), ASKED)
    assert built.fields == [None]
    assert built.reasons == ["minted by https://other.example/v1, target is https://api.example.com/v1"]


@pytest.mark.parametrize(
    ("row", "params", "thinks"),
    [
        ({"thinks_unless": ({"thinking.type": "disabled"},)}, {}, True),
        ({"thinks_unless": ({"thinking.type": "disabled"},)}, {"thinking": {"type": "disabled"}}, False),
        ({"thinks_unless": ({"a": 1, "b": 2},)}, {"a": 1}, True),
        ({"thinks_unless": ({"a": 1}, {"b": 2})}, {"b": 2}, False),
        ({"thinks_unless": ({},)}, {}, True),
        ({"thinks_when": ({"thinking.type": "enabled"},)}, {}, False),
        ({"thinks_when": ({"thinking.type": "enabled"},)}, {"thinking": {"type": "enabled"}}, True),
        ({"thinks_when": ({"a": 1},), "thinks_unless": ({"b": 1},)}, {"a": 1, "b": 1}, False),
    ],
)
def test_nothing_is_required_while_thinking_is_off(row: Any, params: dict[str, Any], thinks: bool) -> None:
    """``thinks_unless`` and ``thinks_when`` say when the model does not think; then nothing is demanded."""
    built = build(FINISHED, rule(later="must", **row), ASKED_NOT, params=params)
    assert built.state.policy.thinking is thinks
    assert built.fields == (["on a"] if thinks else [None])


def test_reasoning_kept_natively_counts_as_asked_for() -> None:
    """Where the request itself turns retention on, ``may`` is read as ``should`` for finished turns."""
    row = rule(open_turn="may", later="may", keeps_when={"thinking.keep": "all"})
    built = build(FINISHED, row, params={"thinking": {"keep": "all"}})
    assert built.fields == ["on a"]
    assert built.reasons[0].endswith("you asked the endpoint to keep it with thinking.keep (rule r)")
    assert [None] == build(FINISHED, row).fields
    assert [None] == build(OPEN, row, params={"thinking": {"keep": "all"}}).fields


def test_switched_off_and_not_to_be_switched_off() -> None:
    """``enabled=false`` sends none back unless the rule requires it of a model that thinks all the same."""
    assert build(FINISHED, rule(later="must"), OFF).fields == ["on a"]
    assert build(FINISHED, rule(later="should"), OFF).fields == [None]


@pytest.mark.parametrize(
    ("wanted", "number"),
    [
        (Settings(), None),
        (Settings(strip_from_context="allButLast"), 1),
        (Settings(strip_from_context="all"), 0),
        (Settings(strip_from_context="all", keep_last=3), 3),
        (Settings(keep_last=0), 0),
    ],
)
def test_keep_last_is_one_number(wanted: Settings, number: int | None) -> None:
    """``all`` is 0, ``allButLast`` 1, ``none`` no limit, and ``keepLast`` beats them."""
    assert number == keep_last(wanted)


def switched(**fields: Any) -> Any:
    """A rule with a retention switch."""
    return rule(keep_switch=Switch({"thinking": {"keep": "all"}}), **fields)


@pytest.mark.parametrize(
    ("row", "wanted", "params", "emitted"),
    [
        (switched(later="should"), DEFAULT, {}, True),
        (switched(later="should"), settings(keep_last=3), {}, True),
        (switched(later="should"), STRIPPED, {}, False),
        (switched(later="should"), ASKED_NOT, {}, False),
        (switched(later="should"), OFF, {}, False),
        (switched(later="may"), DEFAULT, {}, False),
        (switched(later="may"), ASKED, {}, True),
        (switched(later="must"), ASKED_NOT, {}, False),
        (switched(later="must"), STRIPPED, {}, False),
        (switched(later="must-after-tools"), DEFAULT, {}, True),
        (switched(later="must-after-tools"), ASKED_NOT, {}, False),
        (switched(later="must"), DEFAULT, {}, True),
        (switched(later="must", scope="tool-calls"), ASKED_NOT, {}, False),
        (switched(later="should", thinks_unless=({"off": True},)), DEFAULT, {"off": True}, False),
        (rule(later="should"), DEFAULT, {}, False),
    ],
)
def test_the_retention_switch_goes_where_earlier_reasoning_is_wanted(
    row: Any, wanted: Settings, params: dict[str, Any], emitted: bool
) -> None:
    """``keep_switch`` goes along where the model thinks and no setting takes finished turns away, demanded or not."""
    built = build(FINISHED, row, wanted, params=params)
    assert built.params == ({"thinking": {"keep": "all"}} if emitted else {})


def test_policy_answers_are_kept() -> None:
    """A policy gives one stance per kind of place, not one per message."""
    policy = Policy(build(FINISHED).state.inputs)
    place = ResponseContext(*[False] * 5)
    assert policy.stance(place) is policy.stance(place)


@pytest.mark.parametrize(("wanted", "keeps"), [(DEFAULT, "all"), (ASKED_NOT, None), (STRIPPED, None)])
def test_kimi_demands_reasoning_but_keeps_it_where_wanted(wanted: Settings, keeps: str | None) -> None:
    """Calls of finished turns take their reasoning along in any case; only the switch follows the settings."""
    row = next(row for row in load_rulebook().rules() if row.id == "kimi-k2.6")
    built = build(Talk().loop().reply(say("so")).end().user("next"), row, wanted)
    assert ["plan", None] == built.fields
    assert keeps == built.params.get("thinking", {}).get("keep")
