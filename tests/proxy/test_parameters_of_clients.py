"""Every documented parameter of a client's dialect is sent to another one in its words, or named, or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.proxy.playbook import Playbook
from tests.proxy.test_as_clients_sent import MESSAGES, PLACES
from thinkback.model.target import Settings
from thinkback.proxy.events import Choose, Send, Settle

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
PART = {"type": "object", "properties": {}}
CHAT: Mapping[str, Any] = {
    "audio": {"voice": "alloy", "format": "wav"},
    "frequency_penalty": 0.5,
    "function_call": "auto",
    "functions": [{"name": "f", "parameters": PART}],
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "max_completion_tokens": 77,
    "max_tokens": 77,
    "metadata": {"a": "b"},
    "modalities": ["text", "audio"],
    "moderation": {"mode": "strict"},
    "n": 2,
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "x"},
    "presence_penalty": 0.5,
    "prompt_cache_key": "k",
    "prompt_cache_options": {"ttl": "1h"},
    "prompt_cache_retention": "24h",
    "reasoning_effort": "high",
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": SCHEMA}},
    "safety_identifier": "ada",
    "seed": 7,
    "service_tier": "flex",
    "stop": ["END"],
    "store": True,
    "temperature": 0.3,
    "tool_choice": "required",
    "tools": [{"type": "function", "function": {"name": "f", "parameters": PART}}],
    "top_logprobs": 2,
    "top_p": 0.3,
    "user": "ada",
    "verbosity": "low",
    "web_search_options": {},
}
RESPONSES: Mapping[str, Any] = {
    "access_programs": ["x"],
    "background": True,
    "context_management": [{"type": "compaction", "compact_threshold": 9000}],
    "conversation": "conv_1",
    "image": {"quality": "low"},
    "include": ["file_search_call.results"],
    "instructions": "Be brief.",
    "max_output_tokens": 77,
    "max_tool_calls": 3,
    "metadata": {"a": "b"},
    "moderation": {"mode": "strict"},
    "parallel_tool_calls": False,
    "previous_response_id": "resp_1",
    "prompt": {"id": "pmpt_1"},
    "prompt_cache_key": "k",
    "prompt_cache_options": {"ttl": "1h"},
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "high"},
    "safety_identifier": "ada",
    "service_tier": "flex",
    "temperature": 0.3,
    "text": {"verbosity": "low"},
    "tool_choice": "required",
    "tools": [{"type": "function", "name": "f", "parameters": PART, "strict": False}],
    "top_logprobs": 2,
    "top_p": 0.3,
    "truncation": "auto",
    "user": "ada",
}
ANTHROPIC: Mapping[str, Any] = {
    "cache_control": {"type": "ephemeral"},
    "container": "container_1",
    "diagnostics": {"previous_message_id": None, "a": 1},
    "inference_geo": "us",
    "max_tokens": 77,
    "metadata": {"user_id": "ada"},
    "output_config": {"effort": "high"},
    "service_tier": "standard_only",
    "speed": "fast",
    "stop_sequences": ["END"],
    "system": "Be brief.",
    "temperature": 0.3,
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "tool_choice": {"type": "any"},
    "tools": [{"name": "f", "input_schema": PART}],
    "top_k": 5,
    "top_p": 0.3,
    "user_profile_id": "u",
    "workspace_id": "w",
}
GEMINI: Mapping[str, Any] = {
    "cachedContent": "cachedContents/1",
    "generationConfig": {"audioTimestamp": True},
    "labels": {"team": "a"},
    "modelArmorConfig": {"a": "b"},
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "serviceTier": "flex",
    "store": True,
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    "tools": [{"functionDeclarations": [{"name": "f", "description": "F."}]}],
}
CONFIG: Mapping[str, Any] = {
    "candidateCount": 2,
    "frequencyPenalty": 0.5,
    "imageConfig": {"aspectRatio": "1:1"},
    "logprobs": 2,
    "maxOutputTokens": 77,
    "mediaResolution": "MEDIA_RESOLUTION_LOW",
    "presencePenalty": 0.5,
    "responseJsonSchema": SCHEMA,
    "responseLogprobs": True,
    "responseMimeType": "application/json",
    "responseModalities": ["AUDIO"],
    "responseSchema": {"type": "OBJECT", "properties": {}},
    "routingConfig": {"manualMode": {"modelName": "x"}},
    "seed": 7,
    "speechConfig": {"languageCode": "de"},
    "stopSequences": ["END"],
    "temperature": 0.3,
    "thinkingConfig": {"thinkingBudget": 2000},
    "topK": 5,
    "topP": 0.3,
}
# A mark for the prompt cache of its provider, whose whole effect is the price.
MARKS = {("anthropic", "cache_control")}
FRONTS: Mapping[str, Mapping[str, Any]] = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": {**GEMINI, **{f"generationConfig.{name}": value for name, value in CONFIG.items()}},
}
ASKED: Mapping[str, list[dict[str, Any]]] = {
    "openai-chat": [{"role": "user", "content": "Hi"}],
    "openai-responses": [{"role": "user", "content": "Hi"}],
    "anthropic": [{"role": "user", "content": "Hi"}],
    "gemini": [{"role": "user", "parts": [{"text": "Hi"}]}],
}
OFFERED = {
    "openai-chat": CHAT["tools"],
    "openai-responses": RESPONSES["tools"],
    "anthropic": ANTHROPIC["tools"],
    "gemini": GEMINI["tools"],
}


def outcome(front: str, dialect: str, params: Mapping[str, Any]) -> tuple[Any, str]:
    """The body that goes, and what is left out; of a refusal that it is one."""
    body: dict[str, Any] = {"model": "thinker", MESSAGES.get(front, "messages"): ASKED[front], **params}
    if front == "gemini":
        del body["model"]
    play = Playbook(body, front=front, model="thinker" if front == "gemini" else "").asks()
    if not isinstance(play.open, Choose):
        return "refused", ""
    play << Choose >> PLACES[dialect]
    if isinstance(play.open, Settle):
        play >> Settings()
    if not isinstance(play.open, Send):
        return "refused", ""
    return json.loads(play.open.body), str(play.open.plan.record().target.get("left_out", ""))


def given(front: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request's parameters without one, and with it."""
    plain: dict[str, Any] = {} if "tool" not in name and "parallel" not in name else {"tools": OFFERED[front]}
    if front == "anthropic" and name != "max_tokens":
        plain["max_tokens"] = 50000
    if name == "tools":
        del plain["tools"]
    value = FRONTS[front][name]
    if name.startswith("generationConfig."):
        return plain, {**plain, "generationConfig": {name.partition(".")[2]: value}}
    return plain, {**plain, name: value}


@pytest.mark.parametrize("dialect", sorted(PLACES))
@pytest.mark.parametrize("front", FRONTS)
def test_every_parameter_is_sent_or_named_or_refused(front: str, dialect: str) -> None:
    """None is lost in silence."""
    lost = []
    for name in FRONTS[front]:
        without, with_it = (outcome(front, dialect, params) for params in given(front, name))
        if (front, name) not in MARKS and without == with_it:
            lost.append(name)
    assert [] == lost


def test_the_parameters_are_those_of_the_clients_packages() -> None:
    """One that a new version documents is to be given a value here."""
    from anthropic.types import message_create_params as messages
    from openai.types.chat import completion_create_params as completions
    from openai.types.responses import response_create_params as responses

    ours = {"model", "messages", "input", "stream", "stream_options"}
    documented = {
        "openai-chat": completions.CompletionCreateParamsBase,
        "openai-responses": responses.ResponseCreateParamsBase,
        "anthropic": messages.MessageCreateParamsBase,
    }
    for front, params in documented.items():
        assert set() == params.__annotations__.keys() - ours - FRONTS[front].keys() - {"store"}
