"""What the shipped rows make of each neutral setting lies within what the wire format reference says is accepted.

The tables are written by hand from the reference, by family of models; the rows are not consulted for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.every import every
from tests.exchanges import exchanges
from thinkback.errors import NotFoundError, SettingError
from thinkback.model.target import Settings, Target, lookup
from thinkback.rules import load_rulebook
from thinkback.turn.controls import Resolver

BOOK = load_rulebook()
TODAY = "2026-11-20"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
DISPLAYS = ("auto", "summarized", "updates", "omitted")
VERBOSITIES = ("low", "medium", "high")
ANY = object()
ABSENT = None

Accepted = dict[str, tuple[object, ...]]


class Family(NamedTuple):
    """Models of one kind: what each parameter may be, and what a request without settings says.

    A parameter that is not listed must not be there. A value may be a range of numbers.
    """

    endpoint: str
    models: tuple[str, ...]
    accepted: Accepted
    plain: dict[str, Any]


def words(*paths_and_words: tuple[str, str]) -> Accepted:
    """Paths and the words each takes."""
    return {path: tuple(text.split()) for path, text in paths_and_words}


INCLUDE: Accepted = {"include": (["reasoning.encrypted_content"],)}
SUMMARY: Accepted = {"reasoning.summary": ("auto", "concise", "detailed")}
VERBOSITY: Accepted = {"text.verbosity": VERBOSITIES}
PLAIN_OFF: dict[str, Any] = {"include": ["reasoning.encrypted_content"]}
PLAIN_ON: dict[str, Any] = {**PLAIN_OFF, "reasoning": {"summary": "auto"}}


def responses(efforts: str, endpoint: str = "openai", *models: str, on: bool = True, verbosity: bool = True) -> Family:
    """A family of OpenAI's (1.1)."""
    accepted = {**INCLUDE, **SUMMARY, **words(("reasoning.effort", efforts)), **(VERBOSITY if verbosity else {})}
    return Family(endpoint, models, accepted, PLAIN_ON if on else PLAIN_OFF)


def claude(
    types: str, efforts: str, endpoint: str, *models: str, budget: bool = False, display: str = "", on: bool = False
) -> Family:
    """A family of Claude's (5.1)."""
    limit = range(4096, 128_001)
    accepted: Accepted = {"max_tokens": (limit,), "anthropic_version": (ANY,), "anthropic_beta": (ANY,)}
    accepted |= words(("thinking.type", types), ("output_config.effort", efforts), ("thinking.display", display))
    if budget:
        accepted["thinking.budget_tokens"] = (range(1024, 128_000),)
    plain = {"thinking": {"type": "adaptive", "display": "summarized"}} if on else {}
    return Family(endpoint, models, accepted, plain)


def converse(types: str, efforts: str, *models: str, budget: bool = False, on: bool = False) -> Family:
    """A family of Claude's behind Converse (7)."""
    within = "additionalModelRequestFields"
    accepted: Accepted = {"inferenceConfig.maxTokens": (range(4096, 128_001),)}
    accepted |= words(
        (f"{within}.thinking.type", types),
        (f"{within}.output_config.effort", efforts),
        (f"{within}.thinking.display", "summarized omitted"),
    )
    if budget:
        accepted[f"{within}.thinking.budget_tokens"] = (range(1024, 128_000),)
    plain = {within: {"thinking": {"type": "adaptive", "display": "summarized"}}} if on else {}
    return Family("bedrock", models, accepted, plain)


THINKING = "generationConfig.thinkingConfig"
SHOWN = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}


def gemini(levels: str, budget: range | None, *models: str, off: bool = False, shown: bool = True) -> Iterator[Family]:
    """A family of Google's (6.1), at both of its doors."""
    accepted: Accepted = {f"{THINKING}.includeThoughts": (True, False)}
    if levels:
        accepted |= words((f"{THINKING}.thinkingLevel", levels))
    if budget is not None:
        accepted[f"{THINKING}.thinkingBudget"] = (budget, -1, *((0,) if off else ()))
    for endpoint in ("gemini", "vertex"):
        yield Family(endpoint, models, accepted, SHOWN if shown else {})


def one(endpoint: str, *models: str, plain: dict[str, Any] | None = None, **accepted: str) -> Family:
    """A family with one parameter or a few; two underscores stand for a dot."""
    pairs = ((path.replace("__", "."), text) for path, text in accepted.items())
    return Family(endpoint, models, words(*pairs), plain or {})


LMH = "low medium high"
TO_MAX = f"{LMH} max"
ALL5 = f"{LMH} xhigh max"
SHOW = "summarized omitted"
UPDATES = f"{SHOW} updates"

FAMILIES = [
    # 1.1: no reasoning, so nothing about it
    one("openai", "gpt-4o", "gpt-4.1", "gpt-5-chat-latest", "gpt-5.2-chat-latest", text__verbosity="medium"),
    responses(LMH, "openai", "o1", "o3", "o3-mini", "o4-mini", "o1-pro", "codex-mini-latest", verbosity=False),
    responses("medium", "openai", "o3-deep-research", "o4-mini-deep-research", verbosity=False),
    responses(f"minimal {LMH}", "openai", "gpt-5", "gpt-5-mini", "gpt-5-nano-2025-08-07"),
    responses(LMH, "openai", "gpt-5-codex", "gpt-5.1-codex"),
    responses(f"{LMH} xhigh", "openai", "gpt-5.1-codex-max", "gpt-5.2-codex", "gpt-5.3-codex"),
    responses(f"none {LMH}", "openai", "gpt-5.1", "gpt-5.1-2025-11-13", on=False),
    responses(f"none {LMH} xhigh", "openai", "gpt-5.2", "gpt-5.3", "gpt-5.4", "gpt-5.4-nano", on=False),
    responses(f"none {LMH} xhigh", "openai", "gpt-5.5"),
    responses(f"none {ALL5}", "openai", "gpt-5.6", "gpt-5.6-terra"),
    responses("high", "openai", "gpt-5-pro"),
    responses("medium high xhigh", "openai", "gpt-5.2-pro", "gpt-5.4-pro", "gpt-5.5-pro"),
    responses(f"none {ALL5}", "openai", "gpt-6-sol", "gpt-6-luna", "gpt-6.1-terra"),
    responses(ALL5, "openai", "gpt-6-astra", "gpt-6.1-sol"),
    # whether they take none is not known, so that it is not sent
    responses(ALL5, "openai", "gpt-6.2-astra", "gpt-6.2-sol", "gpt-6-cyber", "gpt-6-rosalind"),
    # 9.2: a name that says what it is
    one("azure-openai", "gpt-4o", "our-gpt-4o-mini", "gpt-35-turbo", text__verbosity="medium"),
    responses(f"minimal {LMH}", "azure-openai", "gpt-5-mini"),
    responses(f"none minimal {ALL5}", "azure-openai", "my-deployment"),
    # 1.8
    Family(
        "codex",
        ("gpt-5.4",),
        INCLUDE | SUMMARY | words(("reasoning.effort", f"none {LMH} xhigh")) | {"store": (False,), "stream": (True,)},
        {**PLAIN_ON, "store": False, "stream": True},
    ),
    Family(
        "copilot",
        ("gpt-5.3-codex",),
        {**SUMMARY, **words(("reasoning.effort", f"{LMH} xhigh")), "store": (False,)},
        {"reasoning": {"summary": "auto"}, "store": False},
    ),
    responses(f"none {LMH} xhigh", "bedrock-mantle-responses", "openai.gpt-5.5"),
    responses(f"none {ALL5}", "bedrock-mantle-responses", "openai.gpt-5.6-luna"),
    responses(f"minimal {ALL5}", "meta", "muse-spark-1.3", verbosity=False),
    one("bedrock-mantle-responses", "openai.gpt-oss-120b", reasoning__effort=LMH),
    one("deepseek-responses", "deepseek-v4-flash", reasoning__effort="none low high max"),
    one("open-responses", "openai/gpt-oss-20b", "qwen3-8b", reasoning__effort=LMH),
    one("ollama-responses", "qwen3:4b", reasoning__effort=LMH),
    Family(
        "mistral-responses",
        ("mistral-small-latest",),
        {**words(("reasoning.effort", "none high")), "store": (False,)},
        {"store": False},
    ),
    Family(
        "openrouter-responses",
        ("google/gemini-3-flash-preview",),
        {**INCLUDE, **SUMMARY, **words(("reasoning.effort", f"none minimal {ALL5}"))},
        PLAIN_ON,
    ),
    # 3.7
    Family("xai", ("grok-4", "grok-4.20-reasoning", "grok-code-fast-1", "grok-4-1-fast"), INCLUDE, PLAIN_OFF),
    Family("xai", ("grok-3-mini",), {**INCLUDE, **words(("reasoning.effort", "none low high"))}, PLAIN_OFF),
    Family(
        "xai",
        ("grok-3", "grok-4-0709", "grok-4-fast-non-reasoning", "grok-latest"),
        {**INCLUDE, **words(("reasoning.effort", f"none {LMH}"))},
        PLAIN_OFF,
    ),
    # xhigh since 2026-10-21; older models lower it themselves
    Family("xai", ("grok-4.3",), {**INCLUDE, **words(("reasoning.effort", f"none {LMH} xhigh"))}, PLAIN_OFF),
    Family(
        "xai",
        ("grok-4.5", "grok-4.6", "grok-4.7"),
        {**INCLUDE, **words(("reasoning.effort", f"{LMH} xhigh"))},
        PLAIN_OFF,
    ),
    Family("xai", ("grok-2-1212",), {}, {}),
    Family("xai-chat", ("grok-4", "grok-code-fast-1", "grok-4.20-reasoning"), {}, {}),
    one("xai-chat", "grok-3-mini", reasoning_effort="none low high"),
    one("xai-chat", "grok-3", "grok-4-1-fast-reasoning", reasoning_effort=f"none {LMH}"),
    one("xai-chat", "grok-4.3", reasoning_effort=f"none {LMH} xhigh"),
    one("xai-chat", "grok-4.5", "grok-4.6", "grok-4.7", reasoning_effort=f"{LMH} xhigh"),
    # 2
    Family("openai-chat", ("gpt-4o", "gpt-5-chat-latest"), {}, {}),
    one("openai-chat", "o3-mini", "o4-mini", reasoning_effort=LMH),
    one("openai-chat", "gpt-5", "gpt-5-mini", reasoning_effort=f"minimal {LMH}", verbosity=LMH),
    one("openai-chat", "gpt-5.1", reasoning_effort=f"none {LMH}", verbosity=LMH),
    one("openai-chat", "gpt-5.4", "gpt-5.5", reasoning_effort=f"none {LMH} xhigh", verbosity=LMH),
    # max is refused here, whatever the model takes elsewhere
    one("openai-chat", "gpt-6.1-sol", "gpt-6.2-astra", reasoning_effort=f"{LMH} xhigh", verbosity=LMH),
    one("openai-chat", "gpt-6-sol", "gpt-5.6-sol", reasoning_effort=f"none {LMH} xhigh", verbosity=LMH),
    Family("azure-openai-chat", ("gpt-4o",), {}, {}),
    one("azure-openai-chat", "gpt-5-mini", reasoning_effort=f"minimal {LMH}", verbosity=LMH),
    # 5.1
    claude("", "", "anthropic", "claude-3-5-sonnet-20241022", "claude-3-opus-20240229", "claude-3-haiku-20240307"),
    *(
        claude("enabled disabled", "", endpoint, *names, budget=True, display=SHOW)
        for endpoint, names in (
            ("anthropic", ("claude-3-7-sonnet-20250219", "claude-opus-4-1", "claude-sonnet-4-0", "claude-haiku-4-5")),
            ("anthropic", ("claude-opus-4-20250514", "claude-sonnet-4-5", "claude-opus-4-5")),
            ("vertex-claude", ("claude-opus-4-1@20250805", "claude-haiku-4-5@20251001")),
            ("bedrock-claude", ("us.anthropic.claude-sonnet-4-5-20250929-v1:0",)),
        )
    ),
    *(
        claude("enabled adaptive disabled", TO_MAX, endpoint, *names, budget=True, display=SHOW)
        for endpoint, names in (
            ("anthropic", ("claude-opus-4-6", "claude-sonnet-4-6")),
            ("vertex-claude", ("claude-opus-4-6",)),
            ("bedrock-claude", ("us.anthropic.claude-opus-4-6-v1",)),
        )
    ),
    *(
        claude("adaptive disabled", ALL5, endpoint, *names, display=UPDATES)
        for endpoint, names in (
            ("anthropic", ("claude-opus-4-7", "claude-opus-4-8")),
            ("vertex-claude", ("claude-opus-4-7",)),
            ("bedrock-claude", ("us.anthropic.claude-opus-4-8",)),
        )
    ),
    *(
        claude("adaptive disabled", ALL5, endpoint, *names, display=UPDATES, on=True)
        for endpoint, names in (
            ("anthropic", ("claude-opus-5", "claude-sonnet-5")),
            ("vertex-claude", ("claude-sonnet-5",)),
            ("bedrock-claude", ("global.anthropic.claude-opus-5",)),
            ("anthropic", ("claude-haiku-5-5",)),
            ("vertex-claude", ("claude-haiku-5-5",)),
            ("bedrock-claude", ("us.anthropic.claude-haiku-5-5",)),
        )
    ),
    *(
        claude("adaptive", ALL5, endpoint, *names, display=UPDATES, on=True)
        for endpoint, names in (
            ("anthropic", ("claude-opus-5-5", "claude-fable-5", "claude-fable-5-1", "claude-mythos-5-1")),
            ("anthropic", ("claude-fable-5-2", "claude-mythos-5", "claude-mythos-5-2", "claude-mythos-preview")),
            ("vertex-claude", ("claude-opus-5-5", "claude-fable-5", "claude-fable-5-1", "claude-mythos-5-1")),
            ("bedrock-claude", ("us.anthropic.claude-opus-5-5", "us.anthropic.claude-fable-5")),
        )
    ),
    *(
        claude("adaptive between_tools", ALL5, endpoint, model, display=UPDATES, on=True)
        for endpoint, model in (
            ("anthropic", "claude-sonnet-5-5"),
            ("vertex-claude", "claude-sonnet-5-5"),
            ("bedrock-claude", "us.anthropic.claude-sonnet-5-5"),
        )
    ),
    # 5.8
    Family(
        "deepseek-anthropic",
        ("deepseek-v4-flash", "deepseek-reasoner"),
        {
            "max_tokens": (range(4096, 128_001),),
            **words(("thinking.type", "enabled disabled"), ("output_config.effort", "low high max")),
        },
        {},
    ),
    *(
        Family(
            endpoint,
            names,
            {"max_tokens": (range(4096, 128_001),), **words(("thinking.type", types))},
            {},
        )
        for endpoint, names, types in (
            ("kimi-anthropic", ("kimi-k2.6",), "enabled disabled"),
            ("kimi-anthropic", ("kimi-k3", "kimi-k2-thinking"), ""),
            ("zai-anthropic", ("glm-4.7",), "enabled disabled"),
            ("zai-anthropic", ("glm-5.3",), ""),
            ("minimax-anthropic", ("MiniMax-M2.5", "MiniMax-M3"), ""),
        )
    ),
    # 6.1
    *gemini("", None, "gemini-2.0-flash", "gemini-1.5-pro", shown=False),
    *gemini("", range(1, 24_577), "gemini-2.5-flash", "gemini-2.5-flash-preview-09-2025", off=True),
    *gemini("", range(128, 32_769), "gemini-2.5-pro", "gemini-2.5-pro-preview-06-05"),
    *gemini("", range(512, 24_577), "gemini-2.5-flash-lite", off=True, shown=False),
    *gemini("LOW MEDIUM HIGH", range(128, 32_769), "gemini-3-pro-preview"),
    Family(
        "gemini",
        ("gemini-3.1-pro-preview",),
        {
            f"{THINKING}.includeThoughts": (True, False),
            f"{THINKING}.thinkingBudget": (range(128, 32_769), -1),
            **words((f"{THINKING}.thinkingLevel", "LOW MEDIUM HIGH")),
        },
        SHOWN,
    ),
    Family(
        "vertex",
        ("gemini-3.1-pro-preview",),
        {
            f"{THINKING}.includeThoughts": (True, False),
            f"{THINKING}.thinkingBudget": (range(128, 32_769), -1, 0),
            **words((f"{THINKING}.thinkingLevel", "LOW MEDIUM HIGH")),
        },
        SHOWN,
    ),
    *gemini("MINIMAL LOW MEDIUM HIGH", range(128, 24_577), "gemini-3-flash-preview", "gemini-3.1-flash-lite"),
    *gemini("MINIMAL LOW MEDIUM HIGH", None, "gemini-3.5-flash", "gemini-3.6-flash", "gemini-3.7-flash-lite"),
    *gemini("LOW MEDIUM HIGH", None, "gemini-3.7-flash", "gemini-3.8-flash", "gemini-flash-latest", "gemini-4-pro"),
    # 6.7, 6.8
    one(
        "gemini-interactions",
        "gemini-3-flash-preview",
        "gemini-3.5-flash",
        plain={"generation_config": {"thinking_summaries": "auto"}},
        generation_config__thinking_level="minimal low medium high",
        generation_config__thinking_summaries="auto none",
    ),
    one(
        "gemini-interactions",
        "gemini-3-pro-preview",
        "gemini-3.7-flash",
        plain={"generation_config": {"thinking_summaries": "auto"}},
        generation_config__thinking_level=LMH,
        generation_config__thinking_summaries="auto none",
    ),
    one("gemini-openai", "gemini-3-flash-preview", reasoning_effort=f"minimal {LMH}"),
    one("gemini-openai", "gemini-3-pro-preview", "gemini-3.7-flash", reasoning_effort=LMH),
    one("gemini-openai", "gemini-2.5-flash", reasoning_effort=f"none {LMH}"),
    # 7
    converse("enabled disabled", "", "us.anthropic.claude-3-7-sonnet-20250219-v1:0", budget=True),
    converse("enabled disabled", "", "us.anthropic.claude-opus-4-1-20250805-v1:0", budget=True),
    converse("enabled adaptive disabled", TO_MAX, "us.anthropic.claude-sonnet-4-6", budget=True),
    converse("adaptive disabled", ALL5, "us.anthropic.claude-opus-4-7"),
    converse("adaptive disabled", ALL5, "us.anthropic.claude-opus-5", on=True),
    converse("adaptive", ALL5, "us.anthropic.claude-opus-5-5", "us.anthropic.claude-fable-5-1", on=True),
    converse("adaptive", ALL5, "us.anthropic.claude-fable-5", "us.anthropic.claude-mythos-5-1", on=True),
    converse("adaptive disabled", ALL5, "us.anthropic.claude-haiku-5-5", on=True),
    converse("adaptive between_tools", ALL5, "us.anthropic.claude-sonnet-5-5", on=True),
    Family("bedrock", ("us.deepseek.r1-v1:0", "amazon.nova-lite-v1:0", "moonshot.kimi-k2-thinking"), {}, {}),
    Family("bedrock", ("anthropic.claude-3-5-sonnet-20240620-v1:0",), {}, {}),
    one("bedrock", "openai.gpt-oss-120b-1:0", additionalModelRequestFields__reasoning_effort=LMH),
    one("bedrock", "qwen.qwen3-32b-v1:0", additionalModelRequestFields__reasoning_config="low high"),
    one(
        "bedrock",
        "us.amazon.nova-2-lite-v1:0",
        additionalModelRequestFields__reasoningConfig__type="enabled",
        additionalModelRequestFields__reasoningConfig__maxReasoningEffort=LMH,
    ),
    # 8, 9.1, 3.11
    one("mistral", "mistral-small-latest", "mistral-medium-3.5", reasoning_effort="none high"),
    one("mistral", "magistral-medium-latest", prompt_mode="reasoning"),
    Family("mistral", ("codestral-latest", "ministral-8b-latest", "mistral-small-2506"), {}, {}),
    Family(
        "cohere",
        ("command-a-reasoning-08-2025", "command-a-plus-05-2026"),
        {"thinking.type": ("enabled", "disabled"), "thinking.token_budget": (range(1, 1_000_000),)},
        {},
    ),
    Family("cohere", ("command-r-plus-08-2024", "command-a-03-2025"), {}, {}),
    Family("ollama-native", ("qwen3:4b", "deepseek-r1:8b"), {"think": (True, False, *TO_MAX.split())}, {}),
    Family("ollama-native", ("gpt-oss:20b",), {"think": ("low", "medium", "high")}, {}),
]  # fmt: skip
CASES = [(family, model) for family in FAMILIES for model in family.models]
ASKED: list[dict[str, Any]] = [
    *({"effort": word} for word in EFFORTS),
    {"enabled": False},
    {"enabled": True},
    *({"enabled": False, "display": word} for word in DISPLAYS),
    *({"max_tokens": tokens} for tokens in (1, 1000, 4096, 20_000, 50_000, 500_000)),
    *({"max_tokens": 8192, "effort": word} for word in EFFORTS),
    *({"display": word} for word in DISPLAYS),
    *({"effort": "high", "display": word} for word in DISPLAYS),
    *({"verbosity": word} for word in VERBOSITIES),
]
KEYS = {
    "effort": "reasoning.effort",
    "enabled": "reasoning.enabled",
    "max_tokens": "reasoning.maxTokens",
    "display": "reasoning.display",
    "verbosity": "text.verbosity",
}


def target(family: Family, model: str) -> Target:
    """Where the request goes."""
    place = BOOK.endpoint(family.endpoint)
    return BOOK.target(place.id, model, on=TODAY, base_url=place.base_url or "https://x.example/v1")


def resolve(at: Target, native: dict[str, Any] | None = None, **asked: Any) -> Resolver:
    """What one request says, if a person asked for ``asked``."""
    return Resolver(Settings(**asked, explicit=frozenset(KEYS[name] for name in asked)), at, native or {})


def leaves(params: dict[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    """Dotted path and value of everything that is no table."""
    for key, value in params.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def fits(value: object, accepted: tuple[object, ...]) -> bool:
    """Whether one of the accepted values or ranges has it; ``True`` is not 1."""
    for allowed in accepted:
        if isinstance(allowed, range):
            if isinstance(value, int) and not isinstance(value, bool) and value in allowed:
                return True
        elif allowed is ANY or (type(value) is type(allowed) and value == allowed):
            return True
    return False


def refused(family: Family, params: dict[str, Any]) -> list[tuple[str, object]]:
    """What of ``params`` the family does not accept."""
    return [(path, value) for path, value in leaves(params) if not fits(value, family.accepted.get(path, ()))]


@every(("family", "model"), CASES)
def test_a_plain_request_says_only_what_is_due(family: Family, model: str) -> None:
    """Without settings nothing is said but what belongs to every request, and it is accepted."""
    params = resolve(target(family, model)).params
    always = ("max_tokens", "inferenceConfig", "anthropic_version", "anthropic_beta")
    assert family.plain == {key: value for key, value in params.items() if key not in always}
    assert [] == refused(family, params)
    needs_limit = family.endpoint.endswith(("anthropic", "claude"))
    assert not needs_limit or "max_tokens" in params


@every(("family", "model"), CASES)
def test_every_setting_is_said_in_accepted_words(family: Family, model: str) -> None:
    """Whatever is asked for, what is sent is within the table, and what became of it is reported."""
    for asked in ASKED:
        resolved = resolve(target(family, model), **asked)
        assert [] == refused(family, resolved.params), asked
        told = {control.key for control in resolved.controls}
        missed = {KEYS[name] for name in asked} - told
        assert missed <= {"reasoning.display", "reasoning.enabled"}, asked


@every(("family", "model"), CASES)
def test_a_budget_stays_below_the_output_limit(family: Family, model: str) -> None:
    """A budget leaves room below the limit of the request, be it given or not; else none is sent."""
    path, limits = next(
        (
            (path, lookup_path)
            for path, lookup_path in (
                ("thinking.budget_tokens", "max_tokens"),
                ("additionalModelRequestFields.thinking.budget_tokens", "inferenceConfig.maxTokens"),
            )
            if path in family.accepted
        ),
        ("", ""),
    )
    if not path:
        return
    for given in (None, 1000, 1025, 3000, 16_000):
        native = {} if given is None else _at(limits, given)
        budgets: tuple[dict[str, Any], ...] = ({"max_tokens": 50_000}, {"effort": "high"}, {"effort": "minimal"})
        for asked in budgets:
            params = resolve(target(family, model), native, **asked).params
            budget, limit = lookup(params, path), lookup(params, limits)
            assert budget is None or 1024 <= budget < limit
            assert budget is None or "effort" not in asked or limit < 1400 or limit - budget >= limit // 4


@pytest.mark.parametrize(
    ("endpoint", "model", "expected"),
    [
        ("openai", "gpt-5.1", {"reasoning.effort": "medium"}),
        ("openai", "gpt-5.4", {"reasoning.effort": "medium", "reasoning.summary": "auto"}),
        ("anthropic", "claude-sonnet-4-5", {"thinking.type": "enabled", "thinking.budget_tokens": 10_240}),
        ("anthropic", "claude-opus-4-8", {"thinking.type": "adaptive", "thinking.display": "summarized"}),
        ("gemini", "gemini-2.5-flash-lite", {f"{THINKING}.thinkingBudget": -1}),
        ("mistral", "mistral-small-latest", {"reasoning_effort": "high"}),
        ("openai", "gpt-5", {"reasoning.effort": None}),
    ],
)
def test_a_model_that_does_not_think_unasked_does_so_when_asked(
    endpoint: str, model: str, expected: dict[str, object]
) -> None:
    """``reasoning.enabled = true`` is enough; a model that thinks anyway is told nothing."""
    params = resolve(BOOK.target(endpoint, model, on=TODAY), enabled=True).params
    assert expected == {path: lookup(params, path) for path in expected}


def _at(path: str, value: object) -> dict[str, Any]:
    for part in reversed(path.split(".")):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def test_effort_and_budget_exclude_each_other() -> None:
    """Gemini 3 and Claude 4.6 get one of the two, never both."""
    for endpoint, model, both in (
        ("gemini", "gemini-3-pro-preview", (f"{THINKING}.thinkingLevel", f"{THINKING}.thinkingBudget")),
        ("anthropic", "claude-opus-4-6", ("output_config.effort", "thinking.budget_tokens")),
    ):
        at = BOOK.target(endpoint, model, on=TODAY)
        params = resolve(at, max_tokens=4096, effort="high").params
        assert [None, 4096] == [lookup(params, path) for path in both]


@pytest.mark.parametrize(
    ("endpoint", "model", "native"),
    [
        (
            "anthropic",
            "claude-sonnet-4-5",
            {"thinking": {"type": "enabled", "budget_tokens": 2048}, "temperature": 0.5},
        ),
        ("anthropic", "claude-sonnet-4-5", {"thinking": {"type": "enabled"}, "tool_choice": {"type": "any"}}),
        ("anthropic", "claude-opus-4-8", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("anthropic", "claude-opus-4-8", {"temperature": 1}),
        ("anthropic", "claude-opus-5", {"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}}),
        ("anthropic", "claude-opus-5-5", {"thinking": {"type": "disabled"}}),
        ("anthropic", "claude-fable-5-1", {"tool_choice": {"type": "tool", "name": "x"}}),
        ("anthropic", "claude-sonnet-5-5", {"thinking": {"type": "disabled"}}),
        ("openai", "o4-mini", {"temperature": 0.2}),
        ("openai", "gpt-5.1", {"temperature": 0.2, "reasoning": {"effort": "low"}}),
        ("xai", "grok-4.5", {"stop": ["x"]}),
        ("codex", "gpt-5.4", {"max_output_tokens": 5}),
        ("codex", "gpt-5.4", {"stream": False}),
        ("gemini", "gemini-3.5-flash", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 5}}}),
    ],
)
def test_what_is_known_to_be_refused_is_refused_before_the_network(
    endpoint: str, model: str, native: dict[str, Any]
) -> None:
    """Parameters that the reference says are answered by an error."""
    with pytest.raises(SettingError, match="refuses"):
        resolve(BOOK.target(endpoint, model, on=TODAY), native)


@pytest.mark.parametrize(
    ("endpoint", "model", "native"),
    [
        ("anthropic", "claude-sonnet-4-5", {"temperature": 0.5, "tool_choice": {"type": "any"}, "top_k": 5}),
        ("anthropic", "claude-haiku-4-5", {"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 1.0}),
        ("anthropic", "claude-opus-4-8", {"thinking": {"type": "adaptive"}, "temperature": 1}),
        ("anthropic", "claude-sonnet-5-5", {"thinking": {"type": "between_tools"}}),
        ("openai", "gpt-5.1", {"temperature": 0.2}),
        ("openai", "gpt-5.5", {"temperature": 0.2, "reasoning": {"effort": "none"}}),
        ("openai", "gpt-4o", {"temperature": 0.2, "top_p": 0.5}),
        ("gemini", "gemini-3-pro-preview", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 500}}}),
        ("xai", "grok-4.3", {"stop": ["x"], "reasoning": {"effort": "none"}}),
    ],
)
def test_what_is_accepted_passes(endpoint: str, model: str, native: dict[str, Any]) -> None:
    """Parameters that recorded traffic or the reference show to be taken."""
    params = resolve(BOOK.target(endpoint, model, on=TODAY), native).params
    assert native.items() <= params.items() or all(lookup(params, path) == value for path, value in leaves(native))


def test_no_recorded_request_that_was_accepted_is_refused_here() -> None:
    """What providers took from recorded clients passes, and loses nothing."""
    for exchange in exchanges():
        request, response = exchange.data["request"] or {}, exchange.data["response"]
        body = request.get("body") or {}
        found = re.search(r"models?/([^/:]+(?:%3A\d|:\d)?)(?::\w+Content|/converse)", request.get("path") or "")
        model = body.get("model") or (found[1].replace("%3A", ":") if found else "")
        if not model or response.get("status", 200) >= 400:
            continue
        try:
            place = BOOK.speaking(exchange.data["provider"], exchange.data["dialect"])
        except NotFoundError:
            continue
        at = BOOK.target(place.id, model, on=TODAY, base_url=place.base_url or "https://x.example/v1")
        assert set(dict(leaves(body))) <= set(dict(leaves(Resolver(Settings(), at, body).params))), exchange.id


def test_openrouter_gets_one_word_about_reasoning() -> None:
    """A budget wins over an effort, and the older name of the effort over both."""
    place = BOOK.target("openrouter", "deepseek/deepseek-v4-pro", on=TODAY)
    keys = frozenset({"reasoning.effort", "reasoning.maxTokens"})
    wanted = Settings(effort="high", max_tokens=2000, explicit=keys)
    both = Resolver(wanted, place, {})
    assert {"max_tokens": 2000} == both.params["reasoning"]
    assert {"reasoning.effort": "suppressed", "reasoning.maxTokens": "emitted"} == {
        control.key: control.state for control in both.controls
    }
    own = Resolver(wanted, place, {"reasoning_effort": "low"})
    assert ("low", None) == (own.params["reasoning_effort"], lookup(own.params, "reasoning"))
    assert {"suppressed"} == {control.state for control in own.controls}
