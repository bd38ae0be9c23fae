"""The budget of reasoning: said in time, lowered by steps, or refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.turn import playbook
from tests.turn.playbook import Playbook, begins, fires, keeps, refuses, sends, waits
from tests.turn.test_controls import WORDS, target
from thinkback.errors import BudgetSpent
from thinkback.model.deltas import Status
from thinkback.model.plan import Control
from thinkback.model.rule import Budget, Controls, ModelInfo
from thinkback.model.target import Settings
from thinkback.turn.budget import Bounded, bounded
from thinkback.turn.controls import Resolver
from thinkback.turn.plan import History, Plan

HOUSE = target(Controls(effort=WORDS))


def within(spent: int, at: Any = HOUSE, native: dict[str, Any] | None = None, **asked: Any) -> Bounded:
    """What 1,000 tokens of budget make of the settings after so many were spent."""
    return bounded(Settings(**{"budget": 1000, "budget_action": "step_down", **asked}), at, native or {}, spent)


def efforts(*spent: int, at: Any = HOUSE, **asked: Any) -> list[str | None]:
    """What effort is asked for after so many tokens each."""
    return [within(tokens, at, **asked).settings.effort for tokens in spent]


@pytest.mark.parametrize("spent", [0, 799])
@pytest.mark.parametrize("action", ["warn", "step_down", "stop"])
def test_below_eighty_percent_nothing_is_said(spent: int, action: Any) -> None:
    """Whatever is to happen later."""
    settings = Settings(budget=1000, budget_action=action, effort="high")
    assert Bounded(settings) == bounded(settings, HOUSE, {}, spent)


@pytest.mark.parametrize(("spent", "action"), [(800, "stop"), (999, "step_down"), (1000, "warn"), (5000, "warn")])
def test_from_eighty_percent_on_it_is_said(spent: int, action: Any) -> None:
    """As a control, and in words for people; the request stays as it is."""
    settings = Settings(budget=1000, budget_action=action, effort="high")
    told = f"{spent // 10} % of the budget is spent: {spent:,} of 1,000 tokens of reasoning"
    note = Control("reasoning.budget", "1000", "emitted", told)
    assert Bounded(settings, (note,), told) == bounded(settings, HOUSE, {}, spent)


def test_without_a_budget_or_reasoning_nothing_is_counted() -> None:
    """What is switched off cannot be spent."""
    for settings in (Settings(), Settings(budget=1, budget_action="stop", enabled=False)):
        assert Bounded(settings) == bounded(settings, HOUSE, {}, 10**9)


def test_a_spent_budget_stops_the_next_request() -> None:
    """The error says how to go on."""
    with pytest.raises(BudgetSpent, match="100 % of the budget") as caught:
        within(1000, budget_action="stop")
    assert {"spent": 1000, "budget": 1000} == caught.value.details
    assert ["reasoning.budget", "reasoning.budgetAction", "reasoning.enabled"] == [
        next(word for word in action.split() if "." in word) for action in caught.value.next_actions
    ]


def test_effort_goes_down_a_step_for_each_tenth() -> None:
    """One at 100 %, and never below the lowest the endpoint has; none at all is no effort."""
    assert ["high", "medium", "medium", "low", "low", "low"] == efforts(
        999, 1000, 1099, 1100, 1200, 9999, effort="high"
    )
    assert ["none"] == efforts(2000, effort="none")
    both = target(Controls(effort=WORDS), info=ModelInfo("m", efforts=("medium", "high")))
    assert ["medium"] == efforts(2000, at=both, effort="high")


def test_an_effort_that_the_endpoint_lacks_goes_down_from_the_nearest() -> None:
    """As it would have been sent."""
    assert ["medium", "low"] == efforts(1000, 1100, effort="max")


def test_what_is_lowered_is_said() -> None:
    """In controls with the reason, beside how much is spent."""
    found = within(1050, effort="high", max_tokens=4000)
    assert ("medium", 2000) == (found.settings.effort, found.settings.max_tokens)
    assert [("reasoning.budget", "1000"), ("reasoning.maxTokens", "4000"), ("reasoning.effort", "high")] == [
        (control.key, control.value) for control in found.controls
    ]
    assert [
        ("suppressed", "the budget of reasoning is spent: 2000 is asked for"),
        ("suppressed", "the budget of reasoning is spent: medium is asked for"),
    ] == [(control.state, control.reason) for control in found.controls[1:]]


def test_a_maximum_is_halved_with_each_step() -> None:
    """An effort that nobody asked for is not put in its place."""
    for spent, tokens in ((1000, 2000), (1100, 1000), (5000, 1)):
        found = within(spent, max_tokens=4000).settings
        assert (None, tokens) == (found.effort, found.max_tokens)


def test_words_that_stand_for_budgets_go_down_too() -> None:
    """Where an endpoint has tokens instead of words."""
    at = target(Controls(effort_budgets={"low": 1000, "high": 9000}, budget=Budget("thinking.budget")))
    assert ["low"] == efforts(1000, at=at, effort="high")


def test_an_unset_effort_is_taken_for_medium() -> None:
    """Where the model reasons unasked; where it does not, nothing is switched on."""
    assert ["low"] == efforts(1000)
    quiet = target(Controls(effort=WORDS), thinks_when=({"effort": "high"},))
    assert [None] == efforts(1000, at=quiet)
    assert within(1000, quiet, {"effort": "high"}).settings.effort == "low"


def test_an_endpoint_without_efforts_says_so() -> None:
    """Nothing can be asked of it."""
    found = within(1000, target())
    assert None is found.settings.effort
    assert ("reasoning.budgetAction", "unrepresentable") == (found.controls[1].key, found.controls[1].state)


def test_the_lowered_settings_are_said_to_the_endpoint() -> None:
    """As if a person had set them."""
    found = within(1000, effort="high")
    assert {"effort": "medium"} == Resolver(found.settings, HOUSE, {}).params


def test_what_is_spent_is_told_once_in_a_turn() -> None:
    """Each request says it in its plan; people hear it once."""
    history = History()

    def plan() -> Plan:
        made = history.plan(playbook.target(), Settings(), None, {"stream": True})
        return msgspec.structs.replace(made, budget="81 % of the budget is spent")

    play = Playbook(history=history, plan=plan)
    play >> begins << keeps("user") << sends >> refuses(503) << waits(0.375) >> fires << sends
    told = [delta for delta in play.shown if isinstance(delta, Status) and delta.state == "budget"]
    assert [Status("budget", "81 % of the budget is spent")] == told
