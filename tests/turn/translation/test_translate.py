"""A request's parameters on their way to another dialect: nothing is lost without a word."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.fronts import FRONTS
from tests.turn.translation.test_parameters import MAKERS, target
from thinkback.errors import SettingError, UnsupportedContent
from thinkback.log.seal import seal
from thinkback.model.commits import Draft, Head, Message, Step, Tool
from thinkback.model.target import Settings, Target, lookup, without
from thinkback.turn.plan import History
from thinkback.turn.translation import Translated, parameters, plan_without_refused, translate
from thinkback.turn.translation.paths import leaves, within
from thinkback.wire.gemini.parameters import camel
from thinkback.wire.registry import dialect

WEATHER = Tool("weather", "The weather.", '{"type":"object"}')
WORDS = {
    "openai-chat": (
        "audio frequency_penalty include_reasoning logit_bias logprobs max_completion_tokens max_tokens metadata "
        "modalities n parallel_tool_calls prediction presence_penalty prompt_cache_key reasoning reasoning_effort "
        "response_format safety_identifier seed service_tier stop store stream stream_options temperature thinking "
        "tool_choice top_k top_logprobs top_p user verbosity web_search_options functions"
    ),
    "openai-responses": (
        "background conversation include max_output_tokens max_tool_calls metadata parallel_tool_calls "
        "previous_response_id prompt prompt_cache_key reasoning safety_identifier service_tier store stream "
        "stream_options temperature text tool_choice top_logprobs top_p truncation user stop"
    ),
    "anthropic": (
        "container context_management max_tokens mcp_servers metadata output_config output_format service_tier "
        "stop_sequences stream temperature thinking tool_choice top_k top_p"
    ),
    "gemini": "cachedContent generationConfig labels safetySettings toolConfig safety_settings generation_config",
}
INNER = (
    "type effort summary exclude enabled max_tokens format verbosity schema json_schema name mode display user_id "
    "budget_tokens disable_parallel_tool_use functionCallingConfig thinkingConfig thinkingBudget thinkingLevel "
    "includeThoughts candidateCount maxOutputTokens responseMimeType responseSchema stopSequences topK unheard_of"
)
SAID = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(
    ["auto", "none", "required", "any", "high", "low", "enabled", "disabled", "adaptive", "text", "json_object",
     "json_schema", "application/json", "END", "function", "ANY", "omitted", "flex", "default", "x"]
)  # fmt: skip
VALUES = st.recursive(
    SAID,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(INNER.split()), inner, max_size=3),
    max_leaves=6,
)
REQUESTS = st.sampled_from(sorted(WORDS)).flatmap(
    lambda front: st.tuples(
        st.just(front), st.dictionaries(st.sampled_from([*WORDS[front].split(), "unheard_of"]), VALUES, max_size=5)
    )
)
# Inside these one word may say what another has said, and a word for "on" says nothing beside how much.
ONE_THING = (
    "tool_choice",
    "toolConfig",
    "response_format",
    "output_format",
    "output_config",
    "text",
    "generationConfig",
)
ON = ("enabled", "adaptive", "auto", True)


@given(REQUESTS)
def test_no_parameter_is_lost_without_a_word(request: tuple[str, dict[str, Any]]) -> None:
    """Each is understood, told by its path, done by the sender, or asks for what holds anyway.

    Understood it is if without it the wishes are others.
    """
    front, params = request
    params = camel(params) if front == "gemini" else params
    wishes = parameters.read(front, params)
    words = dialect(front).parameters
    for path in leaves(params):
        value = lookup(params, path)
        needless = within(path, words.handled) or value in words.implied.get(path, ())
        told = path in wishes.rest
        understood = wishes != parameters.read(front, without(params, path))
        repeated = within(path, ONE_THING) or value in ON or list(params.values()).count(value) > 1
        assert needless or told or understood or repeated, path


@given(REQUESTS, st.sampled_from(sorted(MAKERS)))
def test_every_wish_arrives_or_is_told(request: tuple[str, dict[str, Any]], spoken: str) -> None:
    """What was read by name stands in the new request under the target's name, or in a sentence; or it is refused."""
    front, params = request
    if front == spoken:
        return
    with suppress(UnsupportedContent):
        _arrives(front, params, spoken)


def _arrives(front: str, params: dict[str, Any], spoken: str) -> None:
    done = translate(front, target(spoken), params, Settings())
    wishes = parameters.read(front, camel(params) if front == "gemini" else params)
    arrived = parameters.read(spoken, done.params)
    for name, value in wishes.common.items():
        told = any(line.startswith(name) for line in done.left)
        assert told or arrived.common.get(name) == value or value in (0, {}, False)
    for name in wishes.rest:
        assert any(line.startswith(f"{name}: ") for line in done.left)


@pytest.mark.parametrize("front", FRONTS)
def test_the_same_dialect_is_not_translated(front: str) -> None:
    """Parameters go through as they are, whatever they are."""
    params = {**FRONTS[front], "unheard_of": {"a": [1]}, "n": 3}

    assert Translated(params, Settings(), ()) == translate(front, target(front), params, Settings())


@pytest.mark.parametrize(
    ("front", "params", "named"),
    [
        ("openai-chat", {"n": 2}, "n"),
        ("openai-chat", {"n": "2"}, "n"),
        ("openai-chat", {"logprobs": True}, "logprobs"),
        ("openai-chat", {"top_logprobs": 3}, "top_logprobs"),
        ("openai-chat", {"modalities": ["text", "audio"]}, "modalities"),
        ("openai-chat", {"modalities": "audio"}, "modalities"),
        ("openai-chat", {"audio": {"voice": "a"}}, "audio"),
        ("openai-chat", {"functions": [{"name": "f"}]}, "functions"),
        ("openai-responses", {"background": True}, "background"),
        ("openai-responses", {"conversation": "conv_1"}, "conversation"),
        ("openai-responses", {"previous_response_id": "resp_1"}, "previous_response_id"),
        ("openai-responses", {"prompt": {"id": "p"}}, "prompt"),
        ("openai-responses", {"include": ["message.output_text.logprobs"]}, "include"),
        ("gemini", {"generation_config": {"candidate_count": 2}}, "generationConfig.candidateCount"),
        ("gemini", {"generationConfig": {"responseModalities": ["AUDIO"]}}, "generationConfig.responseModalities"),
        ("gemini", {"generationConfig": {"responseLogprobs": True}}, "generationConfig.responseLogprobs"),
        ("gemini", {"cached_content": "cachedContents/1"}, "cachedContent"),
    ],
)
def test_what_would_change_the_meaning_is_refused(front: str, params: dict[str, Any], named: str) -> None:
    """Several answers, sounds, probabilities, and what somebody else keeps: an error that names the parameter."""
    with pytest.raises(UnsupportedContent, match=named) as caught:
        translate(front, target("cohere"), params, Settings())

    assert {"parameter": named, "dialect": "cohere"} == caught.value.details


@pytest.mark.parametrize(
    ("front", "params"),
    [
        ("openai-chat", {"n": 1, "logprobs": False, "top_logprobs": 0, "modalities": ["text"], "functions": []}),
        ("openai-chat", {"stream": True, "stream_options": {"include_usage": True}, "store": False, "seed": None}),
        ("openai-responses", {"background": False, "truncation": "disabled", "store": True, "top_logprobs": 0}),
        ("openai-responses", {"include": ["reasoning.encrypted_content"], "reasoning": {"context": "auto"}}),
        ("anthropic", {"service_tier": "auto", "stream": True}),
        ("gemini", {"generationConfig": {"candidateCount": 1, "responseModalities": ["TEXT"]}, "labels": {}}),
    ],
)
def test_what_goes_without_saying_is_not_told(front: str, params: dict[str, Any]) -> None:
    """Clients that write out every default hear nothing of it."""
    done = translate(front, target("mistral"), params, Settings())

    assert ({}, ()) == (done.params, done.left)


def test_what_has_no_name_is_told() -> None:
    """A sentence for each, with its path."""
    done = translate("openai-chat", target("gemini"), {"logit_bias": {"1": 2}, "prediction": {"type": "c"}}, Settings())

    assert ("logit_bias.1: gemini has no name for it", "prediction.type: gemini has no name for it") == done.left


def plan(place: Target, params: dict[str, Any], **given: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The parameters that are sent, and what was told; ``given`` are settings."""
    asked = History(seal(Step("s", (Draft("user", Message("Hi")),), 0), Head()))
    made, left = plan_without_refused(asked, place, Settings(**given), params, (WEATHER,))
    return made.params, left


def test_a_call_that_must_be_made_beats_reasoning() -> None:
    """Where the two exclude each other thinking is off, and that is told."""
    place = target("openai-chat", "deepseek", "deepseek-v4-pro")
    sent, left = plan(place, {"tool_choice": "required"})

    assert ("required", {"type": "disabled"}) == (sent["tool_choice"], sent["thinking"])
    assert ["reasoning: it is off, because deepseek refuses tool_choice"] == [line[:58] for line in left]


def test_a_call_cannot_be_forced_where_thinking_cannot_be_off() -> None:
    """Then the choice stays behind, whole."""
    choice = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
    sent, left = plan(target("anthropic", model="claude-opus-5-5"), {"max_tokens": 900, "tool_choice": choice})

    assert ("tool_choice" in sent, 1) == (False, len(left))
    assert left[0].startswith("tool_choice.type: anthropic refuses")


def test_switching_thinking_off_in_vain_is_undone() -> None:
    """Where the choice is refused all the same, reasoning stays as it was."""
    place = target("openai-chat", "deepseek", "deepseek-v4-pro")
    forbidden = place.rule.forbids[0]
    always = type(forbidden)(forbidden.path, forbidden.reason, forbidden.values, when="always")
    rule = msgspec.structs.replace(place.rule, forbids=(always,))
    sent, left = plan(msgspec.structs.replace(place, rule=rule), {"tool_choice": "required"})

    assert ("thinking" in sent, "tool_choice" in sent) == (False, False)
    assert ["tool_choice"] == [line.partition(":")[0] for line in left]


def test_a_way_to_think_that_a_model_does_not_have_becomes_its_own() -> None:
    """An older client's budget at a model that only thinks adaptively: it thinks."""
    asked = {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    sent, left = plan(target("anthropic", model="claude-opus-4-7"), asked)

    assert "adaptive" == sent["thinking"]["type"]
    assert "budget_tokens" not in sent["thinking"]
    assert left[0].startswith("thinking.type: anthropic refuses")


def test_what_nobody_asked_for_is_an_error() -> None:
    """A refusal that no parameter of the request is to blame for is passed on."""
    with pytest.raises(SettingError):
        plan(target("openai-chat", "deepseek", "deepseek-v4-pro"), {}, strict=True, effort="high")


def test_every_pair_of_dialects_is_translated() -> None:
    """No front is without words for any upstream."""
    done = [
        translate(front, target(spoken), {k: v for k, v in FRONTS[front].items() if k != "contents"}, Settings())
        for front, spoken in itertools.product(FRONTS, MAKERS)
    ]

    assert len(FRONTS) * len(MAKERS) == len(done)


@pytest.mark.parametrize(
    ("front", "params", "spoken", "expected"),
    [
        ("openai-chat", {"store": True}, "openai-responses", "store: whoever sends the request sets it there"),
        ("openai-chat", {"reasoning_effort": "huge"}, "anthropic", "reasoning_effort: its value has no equal there"),
        ("openai-chat", {"metadata": {"a": "b"}}, "anthropic", "metadata: anthropic has no name for it"),
        (
            "openai-responses",
            {"prompt_cache_retention": "24h"},
            "openai-chat",
            "prompt_cache_retention: llamacpp may not know it",
        ),
        ("anthropic", {"thinking": {"extra": 1}}, "mistral", "thinking.extra: mistral has no name for it"),
        ("gemini", {"store": True}, "openai-responses", "store: whoever sends the request sets it there"),
        ("openai-responses", {"text": {"other": 1}}, "ollama", "text.other: ollama has no name for it"),
        (
            "gemini",
            {"toolConfig": {"other": 1}},
            "bedrock",
            "toolConfig.other: bedrock says another thing by that name",
        ),
    ],
)
def test_the_reason_why_a_parameter_is_left_is_true(
    front: str, params: dict[str, Any], spoken: str, expected: str
) -> None:
    """A dialect may have the name and another meaning, or values of its own, and some names are set for everybody."""
    assert ((expected,) if expected else ()) == translate(front, target(spoken), params, Settings()).left
