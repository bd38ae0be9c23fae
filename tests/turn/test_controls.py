"""Neutral settings to parameters: what is said, what is not, and what is reported of it."""

from __future__ import annotations

from typing import Any

import pytest

from thinkback.errors import SettingError
from thinkback.model.plan import Control
from thinkback.model.rule import Budget, Controls, Endpoint, Forbidden, ModelInfo, Rule, ServerState
from thinkback.model.target import Settings, Target
from thinkback.turn.controls import Resolver, effort_sent, nested

WORDS: dict[str, dict[str, Any]] = {word: {"effort": word} for word in ("none", "low", "medium", "high")}
KEYS = {
    "enabled": "reasoning.enabled",
    "effort": "reasoning.effort",
    "max_tokens": "reasoning.maxTokens",
    "display": "reasoning.display",
    "summary": "reasoning.summary",
    "strict": "reasoning.strict",
    "verbosity": "text.verbosity",
    "server_state": "session.serverState",
}


def target(controls: Controls | None = None, *, id: str = "house", info: ModelInfo | None = None, **row: Any) -> Target:
    """A target whose rule has these controls and keys."""
    place = {key: row.pop(key) for key in ("params", "strict", "dialect") if key in row}
    rule = Rule("r", id, "s", "2026-01-01", controls=controls or Controls(), **row)
    endpoint = Endpoint(id, "House", "https://house.example/v1", **place)
    return Target(endpoint, endpoint.base_url, "m", rule, info or ModelInfo("m"))


def resolve(at: Target, native: dict[str, Any] | None = None, **asked: Any) -> Resolver:
    """What one request says, if a person asked for ``asked``."""
    return Resolver(Settings(**asked, explicit=frozenset(KEYS[name] for name in asked)), at, native or {})


def states(resolved: Resolver) -> dict[str, str]:
    """What became of each key."""
    return {control.key: control.state for control in resolved.controls}


def test_without_settings_nothing_is_said() -> None:
    """Native parameters stand alone, whatever words the rule has."""
    resolved = resolve(target(Controls(effort=WORDS, on={"think": True})), {"seed": 1})
    assert ({"seed": 1}, []) == (resolved.params, resolved.controls)


def test_a_word_in_the_endpoints_own_words() -> None:
    """Said as it is; under another name or value it is reported as such."""
    assert ({"effort": "low"}, {"reasoning.effort": "emitted"}) == _told(Controls(effort=WORDS), effort="low")
    other = Controls(effort={"low": {"effort": 3}})
    resolved = resolve(target(other), effort="low")
    assert [Control("reasoning.effort", "low", "represented", "said as effort=3")] == resolved.controls


def _told(controls: Controls, **asked: Any) -> tuple[dict[str, Any], dict[str, str]]:
    resolved = resolve(target(controls), **asked)
    return resolved.params, states(resolved)


@pytest.mark.parametrize(
    ("asked", "efforts", "sent"),
    [
        ("minimal", (), "low"),
        ("max", (), "high"),
        ("xhigh", (), "high"),
        ("medium", ("low", "high"), "high"),
        ("low", ("none", "high"), "high"),
        ("high", ("low",), "low"),
    ],
)
def test_the_nearest_effort_that_is_taken(asked: str, efforts: tuple[str, ...], sent: str) -> None:
    """Of two equally near ones the higher; what the model takes narrows what the endpoint has words for."""
    resolved = resolve(target(Controls(effort=WORDS), info=ModelInfo("m", efforts=efforts)), effort=asked)
    assert {"effort": sent} == resolved.params
    assert [Control("reasoning.effort", asked, "represented", f"m does not take it: {sent} is sent")] == (
        resolved.controls
    )


@pytest.mark.parametrize(("asked", "takes"), [("none", "low, high"), ("high", "none")])
def test_none_and_some_do_not_stand_for_each_other(asked: str, takes: str) -> None:
    """No thinking is no kind of thinking, and the other way round."""
    table = {word: {"effort": word} for word in takes.split(", ")}
    resolved = resolve(target(Controls(effort=table)), effort=asked)
    assert [Control("reasoning.effort", asked, "unrepresentable", f"m takes {takes}")] == resolved.controls
    assert {} == resolved.params


def test_a_word_that_is_known_to_be_refused_is_not_sent() -> None:
    """An empty table says so."""
    assert ({}, {"reasoning.effort": "suppressed"}) == _told(Controls(effort={**WORDS, "max": {}}), effort="max")


def test_what_there_are_no_words_for() -> None:
    """Each is reported as such, and nothing is sent."""
    asked: dict[str, Any] = {"effort": "low", "max_tokens": 5, "verbosity": "low"}
    asked |= {"display": "omitted", "server_state": True}
    params, told = _told(Controls(), **asked)
    assert {} == params
    assert dict.fromkeys((KEYS[name] for name in asked), "unrepresentable") == told
    assert ({}, {"reasoning.enabled": "unrepresentable"}) == _told(Controls(), enabled=False)


def test_on_and_off() -> None:
    """By the words for them, else by the effort none; how much to think is pointless when it is off."""
    both = Controls(on={"think": True}, off={"think": False}, effort=WORDS, max_tokens="budget")
    assert ({"think": True}, {"reasoning.enabled": "emitted"}) == _told(both, enabled=True)
    assert ({"think": False}, {"reasoning.enabled": "emitted"}) == _told(both, enabled=False)
    assert {"effort": "none"} == _told(Controls(effort=WORDS), enabled=False)[0]
    params, told = _told(both, enabled=False, effort="high", max_tokens=9)
    assert {"think": False} == params
    assert {
        "reasoning.enabled": "emitted",
        "reasoning.effort": "suppressed",
        "reasoning.maxTokens": "suppressed",
    } == told


def test_a_model_that_cannot_be_switched_off() -> None:
    """The row says so, or the words that the model takes do."""
    for controls, efforts in ((Controls(off={"think": False}, always_on=True), ()), (Controls(effort=WORDS), ("low",))):
        resolved = resolve(target(controls, info=ModelInfo("m", efforts=efforts)), enabled=False)
        assert [Control("reasoning.enabled", "false", "unrepresentable", "m cannot be told not to reason")] == (
            resolved.controls
        )
        assert {} == resolved.params


def test_on_by_an_effort_where_the_model_only_thinks_with_one() -> None:
    """Unless a person said how much, or it thinks anyway."""
    asleep = target(Controls(effort=WORDS, max_tokens="budget"), thinks_when=({"effort": "medium"},))
    resolved = resolve(asleep, enabled=True)
    assert {"effort": "medium"} == resolved.params
    assert {"reasoning.enabled": "emitted"} == states(resolved)
    assert {"effort": "low"} == resolve(asleep, enabled=True, effort="low").params
    assert {"budget": 5} == resolve(asleep, enabled=True, max_tokens=5).params
    assert {} == resolve(target(Controls(effort=WORDS)), enabled=True).params


def test_native_parameters_win() -> None:
    """A control whose parameter the request has itself is not said a second time in other words."""
    controls = Controls(effort=WORDS, off={"think": {"type": "no"}}, max_tokens="budget", verbosity={"low": {"v": 1}})
    for native in ({"think": {"type": "yes"}}, {"effort": "x"}, {"budget": 3}):
        resolved = resolve(target(controls), native, effort="low", max_tokens=9, verbosity="low")
        assert {**native, "v": 1} == resolved.params
        assert {"reasoning.effort": "suppressed", "reasoning.maxTokens": "suppressed"}.items() <= states(
            resolved
        ).items()
        assert any("of its own" in control.reason for control in resolved.controls)
    assert {"reasoning.enabled": "suppressed"} == states(resolve(target(controls), {"effort": "x"}, enabled=False))
    assert {"reasoning.enabled": "suppressed"} == states(resolve(target(controls), {"effort": "x"}, enabled=True))


def test_native_parameters_win_however_they_are_written() -> None:
    """A control is not said again because the request writes its name with underscores."""
    controls = Controls(budget=Budget("config.thinkingBudget"), display={"auto": {"config": {"includeThoughts": True}}})
    native = {"config": {"thinking_budget": 5, "include_thoughts": False}}
    assert (native, {"reasoning.maxTokens": "suppressed"}) == (
        resolve(target(controls), native, max_tokens=9).params,
        states(resolve(target(controls), native, max_tokens=9)),
    )


def test_native_parameters_win_at_every_target() -> None:
    """Each by the words of its own, however many there are and in whatever order they are asked."""
    targets = [target(Controls(effort={"high": {f"effort{at}": "high"}})) for at in range(150)]
    for at in (*range(150), 0, 149):
        own, foreign = {f"effort{at}": "low"}, {f"effort{at + 1}": "low"}
        assert own == resolve(targets[at], own, effort="high").params
        assert {f"effort{at}": "high", **foreign} == resolve(targets[at], foreign, effort="high").params


def test_an_unknown_host_gets_nothing() -> None:
    """Each control that was asked for is reported as absent."""
    at = target(Controls(effort=WORDS), id="unknown")
    asked: dict[str, Any] = {"effort": "low", "max_tokens": 5, "verbosity": "low"}
    asked |= {"display": "omitted", "server_state": True}
    resolved = resolve(at, {"seed": 1}, **asked)
    assert {"seed": 1} == resolved.params
    assert dict.fromkeys((KEYS[name] for name in asked), "absent") == states(resolved)
    assert {"reasoning.enabled": "absent"} == states(resolve(at, enabled=False))
    assert {"reasoning.enabled": "absent"} == states(resolve(at, enabled=True))


@pytest.mark.parametrize("asked", [{"effort": "low"}, {"max_tokens": 5}, {"display": "summarized"}])
@pytest.mark.parametrize("of_endpoint", [True, False])
def test_a_control_of_reasoning_is_a_mistake_in_strict_mode(asked: dict[str, Any], of_endpoint: bool) -> None:
    """The error names the key and the way out."""
    at = target(Controls(effort=WORDS), strict=of_endpoint)
    mode: dict[str, Any] = {} if of_endpoint else {"strict": True}
    with pytest.raises(SettingError, match=r"reasoning\.strict is on for house") as caught:
        resolve(at, **asked, **mode)
    assert "or set reasoning.strict to false" in caught.value.next_actions


def test_strict_mode_says_nothing_about_reasoning() -> None:
    """The parameters of the rule stay away; those of the endpoint, the limit and what is no reasoning go."""
    controls = Controls(off={"think": False}, verbosity={"low": {"v": "low"}}, display={"auto": {"show": True}})
    row = Rule("r", "house", "s", "2026-01-01", controls=controls, params={"include": ["x"]}, limit_param="n", limit=7)
    place = Endpoint("house", "House", "https://house.example/v1", params={"version": 1})
    resolved = resolve(
        Target(place, place.base_url, "m", row, ModelInfo("m")), strict=True, enabled=False, verbosity="low"
    )
    assert {"version": 1, "n": 7, "v": "low"} == resolved.params
    assert {"text.verbosity": "emitted"} == states(resolved)


BUDGET = Budget("think.budget", floor=100, ceiling=5000, below="limit", params={"think": {"type": "on"}})


@pytest.mark.parametrize(
    ("asked", "native", "sent", "state"),
    [
        ({"max_tokens": 300}, {}, 300, "emitted"),
        ({"max_tokens": 1}, {}, 100, "represented"),
        ({"max_tokens": 9000}, {}, 5000, "represented"),
        ({"max_tokens": 4500}, {"limit": 1000}, 999, "represented"),
        ({"max_tokens": 999}, {"limit": 1000}, 999, "emitted"),
        ({"max_tokens": 500}, {"limit": 101}, 100, "represented"),
        ({"effort": "high"}, {"limit": 1000}, 750, "represented"),
        ({"effort": "low"}, {"limit": 1000}, 200, "represented"),
        ({"effort": "high"}, {"limit": 120}, 100, "represented"),
        ({"effort": "high"}, {}, 4000, "represented"),
    ],
)
def test_a_budget_is_made_to_fit(asked: dict[str, Any], native: dict[str, Any], sent: int, state: str) -> None:
    """Not under the floor, not over the ceiling, below the limit; an effort leaves a quarter of it for the answer."""
    resolved = resolve(target(Controls(budget=BUDGET, effort_budgets={"low": 200, "high": 4000})), native, **asked)
    assert {**native, "think": {"budget": sent, "type": "on"}} == resolved.params
    assert [state] == list(states(resolved).values())
    assert (state == "represented") == (f"{sent} is sent" in resolved.controls[0].reason)


@pytest.mark.parametrize("asked", [{"max_tokens": 300}, {"effort": "high"}])
def test_a_budget_that_cannot_fit_is_not_sent(asked: dict[str, Any]) -> None:
    """The limit of the request leaves no room for the smallest."""
    resolved = resolve(target(Controls(budget=BUDGET, effort_budgets={"high": 4000})), {"limit": 100}, **asked)
    assert ({"limit": 100}, ["suppressed"]) == (resolved.params, list(states(resolved).values()))


def test_a_budget_over_what_the_model_writes_is_cut() -> None:
    """The model's own output limit bounds any budget."""
    at = target(Controls(max_tokens="budget"), info=ModelInfo("m", max_output=50))
    assert {"budget": 50} == resolve(at, max_tokens=80).params


@pytest.mark.parametrize(
    "controls",
    [Controls(effort=WORDS, max_tokens="b", either=True), Controls(effort_budgets={"low": 7}, max_tokens="b")],
)
def test_of_effort_and_budget_the_budget_wins(controls: Controls) -> None:
    """Where the endpoint takes one of the two only."""
    params, told = _told(controls, effort="low", max_tokens=9)
    assert ({"b": 9}, {"reasoning.effort": "suppressed", "reasoning.maxTokens": "emitted"}) == (params, told)


def test_effort_and_budget_go_together_elsewhere() -> None:
    """Both are said where both are taken."""
    assert {"effort": "low", "b": 9} == _told(Controls(effort=WORDS, max_tokens="b"), effort="low", max_tokens=9)[0]


SHOWN = Controls(
    off={"think": False},
    display={"auto": {"show": {"how": "short"}}, "summarized": {"show": {"how": "summarized"}}, "omitted": {}},
)


def test_display_goes_along_unasked() -> None:
    """What a model hides is asked for by default, silently; a word of one's own is reported."""
    assert ({"show": {"how": "short"}}, []) == _read(resolve(target(SHOWN)))
    resolved = resolve(target(SHOWN), display="summarized")
    assert ({"show": {"how": "summarized"}}, [Control("reasoning.display", "summarized", "emitted")]) == _read(resolved)


def _read(resolved: Resolver) -> tuple[dict[str, Any], list[Control]]:
    return resolved.params, resolved.controls


def test_what_is_not_shown_is_not_stored() -> None:
    """The report of ``omitted`` says what that means; what the endpoint has no words for is default there."""
    resolved = resolve(target(SHOWN), display="omitted")
    assert {} == resolved.params
    assert "nothing readable will be stored" in resolved.controls[0].reason


def test_display_beside_tools_may_be_another() -> None:
    """A word that an endpoint cannot keep where tools are offered is said otherwise there, and that is reported."""
    controls = Controls(
        display={"auto": {"show": "yes"}, "summarized": {"show": "yes"}, "updates": {"show": "notes"}},
        display_with_tools={"summarized": {"show": "no"}},
        display_headers={"updates": {"beta": "notes"}},
    )
    asked = Settings(display="summarized", explicit=frozenset({"reasoning.display"}))
    told = Control("reasoning.display", "summarized", "represented", "said as show=no where tools are offered")
    assert ({"show": "no"}, [told]) == _read(Resolver(asked, target(controls), {}, tools=True))
    assert {"show": "yes"} == Resolver(Settings(), target(controls), {}, tools=True).params
    notes = resolve(target(controls), display="updates")
    assert ({"show": "notes"}, {"beta": "notes"}) == (notes.params, notes.headers)
    assert {} == resolve(target(controls), display="summarized").headers
    assert {"reasoning.display": "unrepresentable"} == states(resolve(target(SHOWN), display="updates"))


def test_display_does_not_overrule_what_is_off() -> None:
    """Where its words would, none goes beside an effort of none."""
    off = {"mode": "off"}
    controls = Controls(off=off, effort={"none": off}, display={"auto": {"mode": "on"}}, off_hides=True)
    assert off == resolve(target(controls), effort="none").params
    assert {"mode": "on"} == resolve(target(controls)).params


@pytest.mark.parametrize(("mode", "is_refused"), [("notes", True), ("full", False), (None, False)])
def test_a_parameter_may_be_refused_beside_another_only(mode: str | None, is_refused: bool) -> None:
    """Alone, or beside another value, it is taken."""
    row = Forbidden("effort", "it needs thought", ("max",), when="always", beside={"mode": "notes"})
    native = {"effort": "max", **({} if mode is None else {"mode": mode})}
    if not is_refused:
        assert native == resolve(target(forbids=(row,)), native).params
        return
    with pytest.raises(SettingError, match="it needs thought"):
        resolve(target(forbids=(row,)), native)


def test_display_stays_away_where_nothing_is_thought() -> None:
    """By the parameters of the request, by the setting, and where the request has words of its own."""
    asleep = target(SHOWN, thinks_when=({"effort": "high"},))
    assert ({}, []) == _read(resolve(asleep))
    assert {"reasoning.display": "suppressed"} == states(resolve(asleep, display="summarized"))
    assert {"think": False} == resolve(target(SHOWN), enabled=False).params
    assert "suppressed" == states(resolve(target(SHOWN), enabled=False, display="summarized"))["reasoning.display"]
    native = {"show": {"how": "loud"}}
    assert (native, []) == _read(resolve(target(SHOWN), native))
    told = resolve(target(SHOWN), native, display="summarized").controls
    assert [Control("reasoning.display", "summarized", "suppressed", "the request has show.how of its own")] == told


def test_asking_for_the_default_display_of_an_endpoint_without_any() -> None:
    """There is nothing to say, so nothing is reported."""
    assert ({}, []) == _read(resolve(target(), display="auto"))


def test_server_state_is_said_where_there_is_any() -> None:
    """The switches themselves come with what is compiled."""
    resolved = resolve(target(server_state=ServerState("previous")), server_state=True)
    assert ({}, {"session.serverState": "emitted"}) == (resolved.params, states(resolved))


def test_the_output_limit_that_must_be_given() -> None:
    """The model's own, at most the row's; a request's own limit stays."""
    row: dict[str, Any] = {"limit_param": "a.limit", "limit": 64}
    assert {"a": {"limit": 64}} == resolve(target(**row)).params
    assert {"a": {"limit": 10}} == resolve(target(info=ModelInfo("m", max_output=10), **row)).params
    assert {"a": {"limit": 64}} == resolve(target(info=ModelInfo("m", max_output=99), **row)).params
    assert {"a": {"limit": 5}} == resolve(target(**row), {"a": {"limit": 5}}).params
    assert {} == resolve(target(info=ModelInfo("m", max_output=10))).params


def test_lists_are_united() -> None:
    """What the caller includes and what the rule includes are both asked for, each once; other values are replaced."""
    at = target()
    row = Rule("r", "house", "s", "2026-01-01", params={"include": ["a", "b"], "mode": "x", "only": [1]})
    at = Target(at.endpoint, at.base_url, "m", row, at.info)
    params = resolve(at, {"include": ["c", "a"], "mode": "y"}).params
    assert {"include": ["c", "a", "b"], "mode": "y", "only": [1]} == params


@pytest.mark.parametrize(
    ("row", "native", "is_refused"),
    [
        (Forbidden("t", "no"), {"t": 1}, True),
        (Forbidden("t", "no"), {}, False),
        (Forbidden("t", "no"), {"t": 1, "think": False}, False),
        (Forbidden("t", "no", when="not-thinking"), {"t": 1}, False),
        (Forbidden("t", "no", when="not-thinking"), {"t": 1, "think": False}, True),
        (Forbidden("t", "no", when="always"), {"t": 1, "think": False}, True),
        (Forbidden("a.t", "no", values=("x", "y")), {"a": {"t": "y"}}, True),
        (Forbidden("a.t", "no", values=("x", "y")), {"a": {"t": "z"}}, False),
        (Forbidden("t", "no", allowed=(1,)), {"t": 1.0}, False),
        (Forbidden("t", "no", allowed=(1,)), {"t": 0.5}, True),
    ],
)
def test_what_the_endpoint_refuses_is_refused_here(row: Forbidden, native: dict[str, Any], is_refused: bool) -> None:
    """By path and value, and by whether the request thinks; the error names all three."""
    at = target(forbids=(row,), thinks_unless=({"think": False},))
    if not is_refused:
        assert native == resolve(at, native).params
        return
    with pytest.raises(SettingError, match=f"house refuses {row.path} = .* for m: no") as caught:
        resolve(at, native)
    assert row.path == caught.value.details["key"]


def test_nested_puts_a_value_at_a_dotted_path() -> None:
    """One table per part."""
    assert ({"a": {"b": 1}}, {"c": 2}) == (nested("a.b", 1), nested("c", 2))


def test_another_name_of_the_same_parameter_suppresses_ours() -> None:
    """``aliases`` say how much to think in other words, and two of them contradict each other."""
    controls = Controls(effort=WORDS, max_tokens="budget", aliases=("reasoning_effort",))
    resolved = resolve(target(controls), {"reasoning_effort": "low"}, effort="high", max_tokens=900)
    assert {"reasoning_effort": "low"} == resolved.params
    assert {"reasoning.effort": "suppressed", "reasoning.maxTokens": "suppressed"} == states(resolved)
    assert {"the request has reasoning_effort of its own"} == {control.reason for control in resolved.controls}
    assert {"effort": "high"} == resolve(target(controls), effort="high").params


@pytest.mark.parametrize(("asked", "sent"), [("high", "high"), ("xhigh", "high"), ("minimal", "low"), (None, None)])
def test_the_effort_that_was_sent_can_be_read_back(asked: str | None, sent: str | None) -> None:
    """In the neutral word, whatever was asked for; an endpoint without words for it says none."""
    at = target(Controls(effort=WORDS), info=ModelInfo("m", efforts=("low", "medium", "high")))
    wanted: dict[str, Any] = {"effort": asked} if asked else {}
    assert sent == effort_sent(at, resolve(at, **wanted).params)
    budgets = target(Controls(effort_budgets={"high": 9}))
    assert None is effort_sent(budgets, {"effort": "high"})


SUMMARIES = Controls(
    on={"think": True},
    display={"auto": {"summary": "auto"}, "summarized": {"summary": "detailed"}, "omitted": {}},
    summary={"none": {}, "auto": {"summary": "auto"}, "detailed": {"summary": "detailed"}},
)


@pytest.mark.parametrize(
    ("asked", "said", "states_"),
    [
        ({"summary": "detailed"}, "detailed", {"reasoning.summary": "emitted"}),
        ({"summary": "none"}, None, {"reasoning.summary": "emitted"}),
        ({"summary": "concise"}, "detailed", {"reasoning.summary": "represented"}),
        (
            {"summary": "auto", "display": "omitted"},
            "auto",
            {"reasoning.summary": "emitted", "reasoning.display": "suppressed"},
        ),
        ({"summary": "auto", "display": "auto"}, "auto", {"reasoning.summary": "emitted"}),
    ],
)
def test_a_summary_is_asked_for_by_its_own_word(
    asked: dict[str, Any], said: str | None, states_: dict[str, str]
) -> None:
    """It beats ``reasoning.display``; a word that the endpoint lacks is said as the nearest one, and reported."""
    resolved = resolve(target(SUMMARIES), **asked)
    assert (said, states_) == (resolved.params.get("summary"), states(resolved))


def test_a_summary_is_said_as_display_where_the_endpoint_has_only_that() -> None:
    """Claude shows reasoning summarised or not at all; an endpoint with neither has no way to say it."""
    words = Controls(display={"summarized": {"shown": "yes"}, "omitted": {"shown": "no"}})
    for word, said in (("concise", "yes"), ("none", "no")):
        resolved = resolve(target(words), summary=word)
        assert (said, {"reasoning.summary": "represented"}) == (resolved.params["shown"], states(resolved))
    assert {"reasoning.summary": "unrepresentable"} == states(resolve(target(), summary="auto"))
    resolved = resolve(target(SUMMARIES), {"summary": "mine"}, summary="auto")
    assert ({"summary": "mine"}, {"reasoning.summary": "suppressed"}) == (resolved.params, states(resolved))


def test_strict_refuses_a_summary_and_an_unknown_host_gets_none() -> None:
    """Like every control of reasoning."""
    with pytest.raises(SettingError, match=r"reasoning\.summary = auto cannot be sent"):
        resolve(target(SUMMARIES), summary="auto", strict=True)
    assert {"reasoning.summary": "absent"} == states(resolve(target(id="unknown"), summary="auto"))


READABLE = Settings(readable=True)
BLOCK = Controls(
    on={"mode": "on"},
    off={"mode": "off"},
    display={
        "auto": {"mode": "on", "show": "yes"},
        "summarized": {"mode": "on", "show": "yes"},
        "omitted": {"mode": "on", "show": "no"},
    },
    display_headers={"summarized": {"beta": "shown"}},
    display_with_tools={"summarized": {"mode": "on"}},
)
THINKS: dict[str, Any] = {"thinks_unless": ({"mode": "off"},)}


@pytest.mark.parametrize("native", [{}, {"mode": "adaptive"}, {"show": "no"}, {"show": None}])
def test_readable_reasoning_is_asked_for_beside_what_a_client_says(native: dict[str, Any]) -> None:
    """Its own word for none is beaten, and nothing else is said: not that the model is to think."""
    resolved = Resolver(READABLE, target(BLOCK, **THINKS), native)
    assert ({**native, "show": "yes"}, {"beta": "shown"}) == (resolved.params, resolved.headers)
    assert [Control("reasoning.readable", "true", "emitted", "for the log alone")] == resolved.controls


@pytest.mark.parametrize(
    ("controls", "native", "asked", "reason"),
    [
        (BLOCK, {"show": "notes"}, {}, "the request has show of its own"),
        (BLOCK, {"mode": "off"}, {}, "the model does not reason on this request"),
        (BLOCK, {}, {"enabled": False}, "the model does not reason on this request"),
        (BLOCK, {}, {"display": "auto"}, "reasoning.display or reasoning.summary says it"),
        (BLOCK, {}, {"summary": "auto"}, "reasoning.display or reasoning.summary says it"),
        (Controls(display={"auto": {}, "summarized": {"show": "yes"}}), {}, {}, "it is readable unasked"),
        (Controls(), {}, {}, "house has no way to say it for m"),
    ],
)
def test_readable_reasoning_is_not_asked_for_twice(
    controls: Controls, native: dict[str, Any], asked: dict[str, Any], reason: str
) -> None:
    """Where a client or the operator says it, where there is none, and where no word for it is known."""
    settings = Settings(readable=True, **asked, explicit=frozenset(KEYS[name] for name in asked))
    resolved = Resolver(settings, target(controls, **THINKS), native)
    assert Control("reasoning.readable", "true", "suppressed", reason) in resolved.controls
    assert {key: resolved.params[key] for key in native} == native


@pytest.mark.parametrize(
    ("dialect", "native", "said"),
    [
        ("openai-responses", {"reasoning": {"generate_summary": "detailed"}}, "reasoning.generate_summary"),
        ("openai-chat", {"include_reasoning": True}, "include_reasoning"),
    ],
)
def test_what_a_client_says_at_another_place_is_said(dialect: str, native: dict[str, Any], said: str) -> None:
    """Any place where the dialect lets clients ask for reasoning to read."""
    controls = Controls(display={"summarized": {"show": "yes"}, "omitted": {"show": "no"}})
    resolved = Resolver(READABLE, target(controls, dialect=dialect), native)
    reason = f"the request has {said} of its own"
    assert [Control("reasoning.readable", "true", "suppressed", reason)] == resolved.controls
    assert "show" not in resolved.params


def test_readable_reasoning_beside_tools() -> None:
    """The row may have other words there, or none."""
    resolved = Resolver(READABLE, target(BLOCK, **THINKS), {}, tools=True)
    assert {"reasoning.readable": "suppressed"} == states(resolved)
    hidden = Controls(display={"auto": {}, "summarized": {"show": "yes"}, "omitted": {"show": "no"}})
    assert {"show": "yes"} == Resolver(READABLE, target(hidden), {"show": "no"}).params
