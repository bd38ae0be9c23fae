"""Parameters by name: out of each dialect, into each other one, and what there is no name for."""

from __future__ import annotations

from typing import Any

import pytest

from thinkback.model.target import Target, lookup
from thinkback.rules import load_rulebook
from thinkback.turn.translation import parameters
from thinkback.turn.translation.choices import Choice
from thinkback.turn.translation.parameters import Wishes
from thinkback.turn.translation.paths import leaves
from thinkback.wire.parameters import Word
from thinkback.wire.registry import PACKAGES
from thinkback.wire.registry import dialect as spoken_as

BOOK = load_rulebook({})
MAKERS = {
    "anthropic": ("anthropic", "claude-sonnet-4-5"),
    "bedrock": ("bedrock", "us.anthropic.claude-sonnet-4-5-v1:0"),
    "cohere": ("cohere", "command-a-reasoning-08-2025"),
    "gemini": ("gemini", "gemini-3-pro"),
    "gemini-interactions": ("gemini-interactions", "gemini-3-pro"),
    "mistral": ("mistral", "magistral-medium-latest"),
    "ollama": ("ollama-native", "qwen3:4b"),
    "openai-chat": ("llamacpp", "m"),
    "openai-responses": ("openai", "gpt-5.4"),
}


def target(dialect: str, endpoint: str = "", model: str = "") -> Target:
    """Where requests of a dialect go, or another endpoint of it."""
    known, usual = MAKERS[dialect]
    return BOOK.target(endpoint or known, model or usual, base_url="https://example.invalid/v1", on="2026-11-20")


def test_every_dialect_has_a_place_to_go() -> None:
    """Nobody adds a dialect without trying its parameters here."""
    assert set(PACKAGES) == set(MAKERS)


@pytest.mark.parametrize("dialect", PACKAGES)
def test_what_is_written_is_read(dialect: str) -> None:
    """Every name of a dialect comes back with its value."""
    values = {"stop": ["END"], "end_user": "u", "metadata": {"a": "b"}, "service_tier": "flex", "top_p": 0.5}
    common: dict[str, Any] = {name: values.get(name, 1) for name in spoken_as(dialect).parameters.names}

    params, lost = parameters.write(target(dialect), Wishes(common))

    assert (common, []) == (parameters.read(dialect, params).common, lost)


@pytest.mark.parametrize("dialect", [name for name in PACKAGES if name != "ollama"])
@pytest.mark.parametrize("word", ["auto", "none", "required"])
def test_a_choice_of_tools_is_read_as_it_is_written(dialect: str, word: Word) -> None:
    """Each dialect reads its own words; the missing word is told, but for ``auto``, which goes without saying."""
    params, lost = parameters.write(target(dialect), Wishes({}, Choice(word)))

    read = parameters.read(dialect, params)
    assert Choice(word) == read.choice or (read.choice is None and (word == "auto" or lost))
    assert () == read.rest


@pytest.mark.parametrize("dialect", PACKAGES)
@pytest.mark.parametrize("choice", [Choice("required", ("a",)), Choice("required", ("a", "b")), Choice("auto", ("a",))])
def test_tools_chosen_by_name_are_read_as_they_are_written(dialect: str, choice: Choice) -> None:
    """Where a dialect can name one tool, or several, it does; elsewhere that is told and the word stays."""
    params, lost = parameters.write(target(dialect), Wishes({}, choice))

    read = parameters.read(dialect, params)
    assert () == read.rest
    if read.choice != choice:
        assert [f"tool_choice {', '.join(choice.names)}: {dialect} has no word for it"] == lost
        assert read.choice in (None, Choice(choice.word))


@pytest.mark.parametrize(
    ("dialect", "params", "choice"),
    [
        ("openai-chat", {"tool_choice": "any"}, Choice("required")),
        ("openai-chat", {"tool_choice": {"type": "function", "function": {"name": "a"}}}, Choice("required", ("a",))),
        (
            "openai-chat",
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "a"}}]},
                }
            },
            Choice("auto", ("a",)),
        ),
        ("openai-responses", {"tool_choice": {"type": "custom", "name": "a"}}, Choice("required", ("a",))),
        ("openai-responses", {"tool_choice": {"type": "web_search"}}, None),
        ("openai-responses", {"tool_choice": 3}, None),
        ("openai-responses", {"tool_choice": "sometimes"}, None),
        ("anthropic", {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}, Choice("required")),
        ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}}}, Choice("auto")),
        ("gemini", {"toolConfig": {"functionCallingConfig": {}}}, None),
        ("bedrock", {"toolConfig": {"toolChoice": {"tool": {"name": "a"}}}}, Choice("required", ("a",))),
    ],
)
def test_every_way_to_choose_is_understood(dialect: str, params: dict[str, Any], choice: Choice | None) -> None:
    """Words, one tool and several; what is not understood stays among the rest, to be told."""
    read = parameters.read(dialect, params)

    assert choice == read.choice
    assert (list(leaves(params)) if choice is None else []) == list(read.rest)


@pytest.mark.parametrize("dialect", PACKAGES)
def test_one_call_at_a_time_is_said_or_told(dialect: str) -> None:
    """Of a dialect without a word for it the wish is told; several calls are what all do unasked."""
    params, lost = parameters.write(target(dialect), Wishes({}, beside=False))

    assert (False if not lost else None) == parameters.read(dialect, params).beside
    assert ({}, []) == parameters.write(target(dialect), Wishes({}, beside=True))


def test_no_call_and_one_at_a_time_are_not_said_together() -> None:
    """Anthropic has no place for it where nothing may be called, and nothing is lost."""
    params, lost = parameters.write(target("anthropic"), Wishes({}, Choice("none"), beside=False))

    assert ({"tool_choice": {"type": "none"}}, []) == (params, lost)


@pytest.mark.parametrize(
    ("endpoint", "model", "path"),
    [
        ("openai-chat", "gpt-4o", "max_completion_tokens"),
        ("azure-openai-chat", "gpt-4o", "max_completion_tokens"),
        ("llamacpp", "m", "max_tokens"),
    ],
)
def test_an_endpoint_may_have_a_name_of_its_own(endpoint: str, model: str, path: str) -> None:
    """The output limit of OpenAI's own chat completions is called otherwise than that of all others."""
    place = target("openai-chat", endpoint, model)

    assert {path: 7} == parameters.write(place, Wishes({"max_tokens": 7}))[0]


@pytest.mark.parametrize(
    ("dialect", "name", "value", "sent"),
    [
        ("anthropic", "temperature", 1.5, 1),
        ("bedrock", "temperature", 2, 1),
        ("mistral", "temperature", 2, 1.5),
        ("cohere", "frequency_penalty", -1, 0),
        ("cohere", "top_p", 1.0, 0.99),
        ("cohere", "temperature", "hot", "hot"),
    ],
)
def test_a_value_out_of_range_becomes_the_nearest_one(dialect: str, name: str, value: Any, sent: Any) -> None:
    """A dialect that allows less gets as much as it takes, and that is told; what is no number is the provider's."""
    params, lost = parameters.write(target(dialect), Wishes({name: value}))

    assert sent == lookup(params, spoken_as(dialect).parameters.names[name][0])
    assert (value != sent) == bool(lost)


def test_a_long_name_of_an_end_user_becomes_its_digest() -> None:
    """OpenAI takes 64 characters; the digest tells users apart as well."""
    params, lost = parameters.write(target("openai-responses"), Wishes({"end_user": "u" * 65}))

    assert 64 == len(params["safety_identifier"])
    assert ["end_user: openai-responses takes 64 characters, its SHA-256 is sent"] == lost


def test_a_neutral_value_is_not_missed() -> None:
    """A penalty of nothing is what every model has unasked; any other is told where it has no name."""
    assert ({}, []) == parameters.write(target("anthropic"), Wishes({"presence_penalty": 0}))
    assert ({}, ["seed: anthropic has no name for it"]) == parameters.write(target("anthropic"), Wishes({"seed": 0}))


def test_null_and_nothing_ask_for_nothing() -> None:
    """Clients that write every field send ``null`` and empty lists."""
    params: dict[str, Any] = {
        "seed": None,
        "tools": [],
        "metadata": {},
        "logit_bias": {},
        "stop": None,
        "response_format": None,
    }

    assert Wishes({"metadata": {}}) == parameters.read("openai-chat", params)
