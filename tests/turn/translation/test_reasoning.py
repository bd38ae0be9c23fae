"""Reasoning out of each dialect's own words: settings, which the target's rule says in its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turn.translation.test_parameters import target
from thinkback.model.target import Settings
from thinkback.turn.translation import parameters, translate
from thinkback.wire.gemini.parameters import camel


@pytest.mark.parametrize(
    ("source", "params", "effort", "budget", "enabled"),
    [
        ("openai-chat", {"reasoning_effort": "high"}, "high", None, True),
        ("openai-chat", {"reasoning": {"max_tokens": 2000}}, None, 2000, True),
        ("openai-chat", {"thinking": {"type": "disabled"}}, None, None, False),
        ("openai-chat", {"chat_template_kwargs": {"enable_thinking": False}}, None, None, False),
        ("openai-responses", {"reasoning": {"effort": "low", "summary": "auto"}}, "low", None, True),
        ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 2048}}, None, 2048, True),
        ("anthropic", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, "max", None, True),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, None, None, False),
        ("gemini", {"generation_config": {"thinking_config": {"thinking_level": "HIGH"}}}, "high", None, True),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}}, None, None, True),
        ("bedrock", {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}, None, None, False),
        ("mistral", {"reasoning_effort": "none"}, "none", None, True),
        ("ollama", {"think": False}, None, None, False),
        ("ollama", {"think": "low"}, "low", None, True),
        ("cohere", {"thinking": {"type": "enabled", "token_budget": 500}}, None, 500, True),
        ("cohere", {"thinking": {"type": "disabled", "token_budget": 500}}, None, 500, False),
    ],
)
def test_reasoning_is_read_as_settings(
    source: str, params: dict[str, Any], effort: str | None, budget: int | None, enabled: bool
) -> None:
    """Efforts, budgets and switches of each dialect become the neutral settings."""
    read = parameters.read(source, camel(params) if source == "gemini" else params)

    found = read.settings
    assert (effort, budget, enabled, ()) == (found.effort, found.max_tokens, found.enabled, read.rest)


@pytest.mark.parametrize(
    ("source", "params", "shown"),
    [
        ("openai-chat", {"reasoning": {"exclude": True}}, False),
        ("openai-chat", {"reasoning": {"exclude": False}}, True),
        ("openai-chat", {"include_reasoning": False}, False),
        ("openai-responses", {"reasoning": {"summary": "detailed"}}, True),
        ("anthropic", {"thinking": {"type": "adaptive", "display": "omitted"}}, False),
        ("gemini", {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}, True),
        ("gemini-interactions", {"generation_config": {"thinking_summaries": "none"}}, False),
    ],
)
def test_whether_the_client_sees_it_is_read(source: str, params: dict[str, Any], shown: bool) -> None:
    """Every word for it is one setting."""
    read = parameters.read(source, params)

    assert (shown, ()) == (read.settings.include_in_response, read.rest)
    assert "reasoning.includeInResponse" in read.settings.explicit


@pytest.mark.parametrize(
    ("source", "params"),
    [
        ("openai-chat", {"reasoning_effort": "extreme"}),
        ("openai-chat", {"reasoning": {"max_tokens": "many"}}),
        ("anthropic", {"thinking": {"type": "between_tools"}}),
        ("anthropic", {"thinking": {"display": 1}}),
        ("openai-responses", {"text": {"verbosity": "endless"}}),
        ("cohere", {"thinking": {"token_budget": True}}),
    ],
)
def test_words_that_nobody_knows_are_told(source: str, params: dict[str, Any]) -> None:
    """They change no setting, and stay among the rest."""
    read = parameters.read(source, params)

    assert (frozenset(), 1) == (read.settings.explicit, len(read.rest))


def test_verbosity_is_a_setting() -> None:
    """Both dialects that have a word for it mean the same."""
    said = [
        parameters.read("openai-chat", {"verbosity": "low"}).settings.verbosity,
        parameters.read("openai-responses", {"text": {"verbosity": "low"}}).settings.verbosity,
    ]

    assert ["low", "low"] == said


def test_what_the_request_asks_for_beats_what_is_set() -> None:
    """A setting that the request says nothing of stays."""
    given = Settings(effort="low", verbosity="high", explicit=frozenset({"reasoning.effort", "text.verbosity"}))
    done = translate("openai-chat", target("anthropic"), {"reasoning_effort": "high"}, given)

    assert ("high", "high") == (done.settings.effort, done.settings.verbosity)
    assert frozenset({"reasoning.effort", "text.verbosity"}) == done.settings.explicit


def test_a_budget_where_there_are_none_still_asks_for_reasoning() -> None:
    """The number is told; that the model is to think is not lost with it."""
    asked = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    done = translate("anthropic", target("openai-responses"), asked, Settings())

    assert (True, None) == (done.settings.enabled, done.settings.max_tokens)
    assert frozenset({"reasoning.enabled"}) == done.settings.explicit
    assert ("a budget of 2048 tokens: openai takes none for gpt-5.4",) == done.left


def test_no_effort_is_off_where_only_that_can_be_said() -> None:
    """A model with a switch and no word for no effort is switched off."""
    done = translate(
        "openai-responses", target("openai-chat", "kimi", "kimi-k2.5"), {"reasoning": {"effort": "none"}}, Settings()
    )

    assert (False, None) == (done.settings.enabled, done.settings.effort)


def test_a_client_of_google_sees_thoughts_only_if_it_asks() -> None:
    """Its own service hides them unasked, and a program may take the first text for the answer."""
    told = Settings(explicit=frozenset({"reasoning.includeInResponse"}))
    asks = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}

    shown = [
        translate("gemini", target("anthropic"), params, settings).settings.include_in_response
        for params, settings in (({}, Settings()), (asks, Settings()), ({}, told))
    ]

    assert [False, True, True] == shown
