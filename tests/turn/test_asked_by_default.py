"""A model that can reason is asked to, by default: in sessions begun since, on every row that is not guessed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.every import every
from tests.turn.rows import ADDRESS, BOOK, DAY, reachable
from thinkback.compile.policy import thinks
from thinkback.errors import SettingError
from thinkback.model.target import Settings, Target, lookup, nested
from thinkback.turn.controls import LEAST_ROOM, Resolver, efforts
from thinkback.wire.registry import PACKAGES, dialect

ROWS = reachable()
NOW = Settings(defaults=1)
EXPLICIT = Settings(defaults=1, explicit=frozenset({"reasoning.enabled"}))
# The rows of servers and hosts with models of all kinds, some of which refuse the words.
MIXED = {
    *("doubao", "hunyuan", "llamacpp", "mistral", "nvidia-nim", "ollama-native", "qwen", "sglang", "siliconflow"),
    *("together", "vllm", "vllm-kimi", "sglang-kimi"),
}


def body(target: Target, settings: Settings, **native: Any) -> dict[str, Any]:
    """The parameters of a request."""
    return Resolver(settings, target, native).params


def at(endpoint: str, model: str) -> Target:
    """A place of the catalogue."""
    return BOOK.target(endpoint, model, on=DAY, base_url=BOOK.endpoint(endpoint).base_url or ADDRESS)


def test_nearly_every_row_is_reached() -> None:
    """What is not tried here is in force for no model today: an older row, or one that only a guess leads to."""
    assert len(ROWS) > 190


@every("id", sorted(ROWS))
def test_a_model_that_can_reason_is_asked_to(id: str) -> None:
    """The request has the row's own words, or reasons without any; saying so explicitly changes nothing."""
    target = ROWS[id]
    rule, asked = target.rule, body(target, NOW)
    if id in MIXED:
        assert (True, body(target, Settings())) == (rule.controls.mixed, asked)
        return
    assert asked == body(target, EXPLICIT)
    assert thinks(rule, asked)
    words = _leaves(rule.controls.on)
    assert all(lookup(asked, path) is not None for path in words)
    if rule.thinks_when:
        assert not thinks(rule, body(target, Settings()))


@every("id", sorted(ROWS))
def test_sessions_of_before_keep_their_way(id: str) -> None:
    """Without the mark nothing is said that nobody asked for: what does not reason by itself does not."""
    resolved = Resolver(Settings(), ROWS[id], {})
    assert [] == resolved.controls
    assert not (ROWS[id].rule.thinks_when and thinks(ROWS[id].rule, resolved.params))


def _leaves(table: dict[str, Any], before: str = "") -> list[str]:
    found = []
    for key, value in table.items():
        found += _leaves(value, f"{before}{key}.") if isinstance(value, dict) else [f"{before}{key}"]
    return found


@pytest.mark.parametrize(
    ("endpoint", "model", "expected"),
    [
        ("anthropic", "claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ("anthropic", "claude-opus-4-6", {"thinking": {"type": "adaptive"}}),
        ("anthropic", "claude-opus-4-7", {"thinking.type": "adaptive"}),
        ("openai", "gpt-5.2", {"reasoning.effort": "low"}),
        ("openai", "gpt-5.4", {"reasoning.effort": "low"}),
        ("mistral", "magistral-medium-latest", {"prompt_mode": "reasoning"}),
        ("openrouter", "anthropic/claude-sonnet-4.5", {"reasoning": {"enabled": True}}),
        (
            "bedrock",
            "amazon.nova-2-lite-v1:0",
            {"additionalModelRequestFields.reasoningConfig.maxReasoningEffort": "low"},
        ),
    ],
)
def test_the_cheapest_documented_setting_is_said(endpoint: str, model: str, expected: dict[str, Any]) -> None:
    """The words for "on"; where the row has only efforts or budgets, the lowest that reasons."""
    sent = body(at(endpoint, model), NOW)
    assert expected == {path: lookup(sent, path) for path in expected}


def test_a_person_s_own_word_is_the_one_that_is_said() -> None:
    """An effort or a budget stands in place of the default's, none asks for nothing, and false switches off."""
    target = at("openai", "gpt-5.2")
    assert "high" == lookup(body(target, Settings(defaults=1, effort="high")), "reasoning.effort")
    assert "none" == lookup(body(target, Settings(defaults=1, effort="none")), "reasoning.effort")
    claude = at("anthropic", "claude-opus-4-6")
    assert {"type": "enabled", "budget_tokens": 2048} == body(claude, Settings(defaults=1, max_tokens=2048))["thinking"]
    assert {"type": "disabled"} == body(claude, Settings(defaults=1, enabled=False))["thinking"]
    router = at("openrouter", "anthropic/claude-sonnet-4.5")
    assert {"effort": "none"} == body(router, Settings(defaults=1, effort="none"))["reasoning"]


@pytest.mark.parametrize(
    ("model", "native", "why"),
    [
        ("claude-opus-4-6", {"temperature": 0.5}, "the request has temperature = 0.5"),
        ("claude-sonnet-4-5", {"tool_choice": {"type": "any"}}, "the request has tool_choice.type = 'any'"),
        ("claude-opus-4-6", {"max_tokens": LEAST_ROOM - 1}, "leaves no room"),
    ],
)
def test_what_the_request_says_itself_beats_the_default(model: str, native: dict[str, Any], why: str) -> None:
    """Nothing is asked for, and a control says why; asked for explicitly, the same is refused or said as before."""
    target = at("anthropic", model)
    resolved = Resolver(NOW, target, native)
    assert native == {key: value for key, value in resolved.params.items() if key in (*native, "thinking")}
    assert [("suppressed", True)] == [(control.state, why in control.reason) for control in resolved.controls]
    if "max_tokens" not in native:
        with pytest.raises(SettingError, match="anthropic refuses"):
            Resolver(EXPLICIT, target, native)


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_a_small_limit_beats_the_default_in_each_dialect(name: str) -> None:
    """The limit stands where the vocabulary of the dialect has it: such a request says what it said without one."""
    for path in dialect(name).parameters.names["max_tokens"]:
        small = nested(path, LEAST_ROOM - 1)
        for row in (row for row in ROWS.values() if row.endpoint.dialect == name):
            if path not in [refused.path for refused in row.rule.forbids]:
                assert body(row, Settings(), **small) == body(row, NOW, **small)


def test_words_of_the_request_s_own_stand_alone() -> None:
    """Two ways of saying one thing never go into one request."""
    sent = body(at("anthropic", "claude-opus-4-6"), NOW, thinking={"type": "disabled"})
    assert {"type": "disabled"} == sent["thinking"]


def test_a_guess_asks_for_nothing() -> None:
    """Where the row was not written for the model, the default says nothing; a person may."""
    target = msgspec.structs.replace(at("anthropic", "claude-opus-4-6"), guessed=True)
    assert "thinking" not in body(target, NOW)
    assert {"type": "adaptive"} == body(target, EXPLICIT)["thinking"]


def test_where_no_effort_is_known_to_reason_a_medium_one_is_said() -> None:
    """A row of a person's own may name conditions that none of its efforts fulfils."""
    target = at("openai", "gpt-5.2")
    rule = msgspec.structs.replace(target.rule, thinks_when=({"mode": "deep"},))
    odd = msgspec.structs.replace(target, rule=rule)
    assert "medium" == lookup(body(odd, NOW), "reasoning.effort")
    assert "medium" in efforts(odd)
