"""Words for thinking: by vendor, by language."""

# ruff: noqa: RUF001 - signs of other scripts are what this is about

from __future__ import annotations

from typing import get_args

import pytest

from thinkback.model.commits import TurnState
from thinkback.rules import packaged as rules
from thinkback.settings import KEYS
from thinkback.settings.labels import Kind, kind_of, packaged, words


@pytest.mark.parametrize(
    ("endpoint", "model", "name"),
    [
        ("anthropic", "claude-opus-5", "Thinking"),
        ("openai", "gpt-5.6", "Reasoning"),
        ("openrouter", "anthropic/claude-opus-5", "Thinking"),
        ("openrouter", "z-ai/glm-5", "Reasoning"),
        ("vertex", "gemini-3-pro", "Thoughts"),
        ("deepseek", "deepseek-chat", "DeepThink"),
        ("kimi", "kimi-k3", "Thinking"),
        ("", "", "Thinking"),
    ],
)
def test_it_is_called_what_its_provider_calls_it(endpoint: str, model: str, name: str) -> None:
    """The model speaks before the endpoint, so that a router does not rename what it passes on."""
    assert name == words("en", endpoint, model).name


@pytest.mark.parametrize(
    ("language", "done", "hidden"),
    [
        ("en", "Reasoned for 12 s, 1,812 tokens", "Reasoned, text withheld (1,812 tokens)"),
        ("ja", "推論時間 12秒、1,812トークン", "推論は行われましたが、提供元は内容を公開していません（1,812トークン）"),
        ("zh", "已推理，用时 12 秒，1,812 个 token", "已推理，但服务商不显示内容（1,812 个 token）"),
        ("ko", "12초 동안 추론함, 토큰 1,812개", "추론했지만 제공자가 내용을 표시하지 않습니다 (토큰 1,812개)"),
        ("es", "Razonó durante 12 s, 1.812 tokens", "Razonó, pero el proveedor no muestra cómo (1.812 tokens)"),
        (
            "fr",
            "A raisonné pendant 12 s, 1\u202f812 tokens",
            "A raisonné, mais le fournisseur n’en montre rien (1\u202f812 tokens)",
        ),
        (
            "de",
            "Hat 12 s geschlussfolgert, 1.812 Tokens",
            "Hat geschlussfolgert; der Anbieter zeigt nicht, wie (1.812 Tokens)",
        ),
    ],
)
def test_seven_languages_say_how_long_and_how_much(language: str, done: str, hidden: str) -> None:
    """Each counts in its own way."""
    said = words(language, "openai", "gpt-5")
    assert (done, hidden) == (said.done(12.3, 1812), said.hidden(1812))


def test_what_is_not_known_is_not_said() -> None:
    """A past thought has no time, a provider may count no tokens."""
    said = words("en")
    assert ["Thought", "Thought, 812 tokens", "Thought for 12 s", "Thought for 12 s, 1 token"] == [
        said.done(),
        said.done(tokens=812),
        said.done(12),
        said.done(12, 1),
    ]
    assert "Thought, text withheld" == said.hidden()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "less than a second"), (1, "1 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3725, "62 min 5 s")],
)
def test_times_are_told_in_seconds_and_minutes(seconds: float, text: str) -> None:
    """Long thoughts are not counted in seconds alone."""
    assert f"Thought for {text}" == words().done(seconds)


@pytest.mark.parametrize("name", ["de", "DE", "de_DE.UTF-8", "de-AT"])
def test_a_locale_is_a_language(name: str) -> None:
    """What the environment says is understood."""
    assert "Denkt nach" == words(name).live


@pytest.mark.parametrize("name", ["", "C", "tlh", "POSIX"])
def test_an_unknown_language_is_english(name: str) -> None:
    """There are always words."""
    assert words("en") == words(name)


def test_a_kind_that_a_language_lacks_is_its_thinking() -> None:
    """Better the reader's language than the vendor's word."""
    assert words("fr") == words("fr", "deepseek")
    assert ("深度思考", "Gedanken", "Denkt nach") == (
        words("zh", "deepseek").name,
        words("de", "gemini").name,
        words("de", "gemini").live,
    )


def test_every_language_says_everything() -> None:
    """All seven, each with a whole ``thinking``; every row is about endpoints that there are."""
    labels = packaged()
    assert {"auto", *labels.language} == set(KEYS["display.language"].choices)
    for language in labels.language.values():
        assert all(getattr(language.thinking, field) for field in Kind.__struct_fields__)
        assert all((language.working, language.partial, language.spent, language.above, language.stop))
    states = {state.removeprefix("partial_") for state in get_args(TurnState)} - {"completed"}
    assert {"en": 0} | dict.fromkeys(labels.language.keys() - {"en"}, len(states)) == {
        name: len(states & set(language.ended)) for name, language in labels.language.items()
    }
    known = {endpoint.id for endpoint in rules.endpoints()}
    assert all(known >= set(row.endpoints) and row.source for row in labels.wording)
    assert "thinking" == kind_of("nobody", "nothing")


def test_a_turn_is_told_in_the_same_language() -> None:
    """That it goes on, and how it ended; where there is no word for it, in those of the log."""
    german, english = words("de", "openai"), words("en", "openai")
    assert ("Arbeitet", "Working") == (german.working, english.working)
    assert ("Strg-C beendet", "Ctrl-C stops") == (german.stop, english.stop)
    assert ("was oben steht, war Nachdenken", "what stands above was reasoning") == (german.above, english.above)
    assert "Reasoning was cut off: all tokens that the answer may have were spent on it" == english.spent
    told = [("timed_out", True), ("partial_failed", True), ("capped", False), ("unheard_of", False)]
    assert [
        ["unvollständig: Zeit abgelaufen", "unvollständig: fehlgeschlagen", "Grenze erreicht", "unheard of"],
        ["partial: timed out", "partial: failed", "capped", "unheard of"],
    ] == [[said.ended(state, cut=cut) for state, cut in told] for said in (german, english)]


def test_what_goes_on_says_how_far_it_is() -> None:
    """While it thinks the count is an estimate, and says so; so may the count at the end."""
    said = words("en", "anthropic", "claude-opus-5")
    assert ("Thinking, 12 s, ~1,812 tokens", "Thought for 12 s, ~812 tokens") == (
        said.so_far(12.3, 1812),
        said.done(12.3, 812, estimated=True),
    )
    assert ["Thought for ~12 s, ~1 token", "Thought for ~1 min 2 s", "Thought for less than a second"] == [
        said.done(12, 1, estimated=True, shared=True),
        said.done(62, shared=True),
        said.done(0.2, shared=True),
    ]
