"""The parameters of a chat completion, by name: OpenAI's, and those that its hosts add for reasoning."""

from __future__ import annotations

from typing import Any

from thinkback.wire.parameters import (
    AUTO,
    NO_LOGPROBS,
    ONE_ANSWER,
    ONLY_TEXT,
    PLAIN,
    AnswerForm,
    Parameters,
    Reasoning,
    Refusal,
    ToolChoice,
    function,
    is_not_one,
    is_not_text,
    is_set,
    same,
)
from thinkback.wire.result import WantedOptions

_SHARED = ("moderation", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "service_tier")
_OPENAI = {"max_tokens": "max_completion_tokens", **{name: name for name in _SHARED}}

PARAMETERS = Parameters(
    normal=None,
    names={
        **same("temperature", "top_p", "presence_penalty", "frequency_penalty"),
        "end_user": ("user",),
        "max_tokens": ("max_tokens", "max_completion_tokens"),
        **same("seed", "stop"),
    },
    read_only={**same(*_SHARED), "end_user": ("safety_identifier",), **same("metadata", "top_k")},
    names_at={"openai-chat": {**_OPENAI, "end_user": "safety_identifier"}, "azure-openai-chat": _OPENAI},
    ranges={},
    longest_user=64,
    handled=frozenset({"stream", "stream_options"}),
    implied={
        "logprobs": (False,),
        "modalities": (["text"],),
        "n": (1,),
        "service_tier": AUTO,
        "store": (False,),
        "top_logprobs": (0,),
    },
    refused=(
        Refusal("audio", ONLY_TEXT, is_set),
        Refusal("functions", "functions are offered as tools: use tools and tool_choice", bool),
        Refusal("logprobs", NO_LOGPROBS, is_set),
        Refusal("modalities", ONLY_TEXT, is_not_text),
        Refusal("n", ONE_ANSWER, is_not_one),
        Refusal("top_logprobs", NO_LOGPROBS, is_set),
    ),
    own=(),
    bare=frozenset({"web_search_options"}),
    choice=ToolChoice(
        path="tool_choice", words=PLAIN, one=function, several=None, parallel="parallel_tool_calls", single=""
    ),
    form=AnswerForm(
        paths=("response_format",),
        read=None,
        json={"response_format": {"type": "json_object"}},
        about="response_format.json_schema",
        takes=frozenset({"strict", "description"}),
    ),
    reasoning=Reasoning(
        effort=(
            "reasoning_effort",
            "reasoning.effort",
            "extra_body.google.thinking_config.thinking_level",
            "chat_template_kwargs.reasoning_effort",
        ),
        budget=(
            "reasoning.max_tokens",
            "thinking_budget",
            "thinking.budget_tokens",
            "thinking_token_budget",
            "extra_body.google.thinking_config.thinking_budget",
        ),
        switch=(
            "thinking.type",
            "enable_thinking",
            "reasoning.enabled",
            "chat_template_kwargs.enable_thinking",
            "chat_template_kwargs.thinking",
        ),
        shown=(
            "include_reasoning",
            "reasoning.exclude",
            "reasoning.summary",
            "extra_body.google.thinking_config.include_thoughts",
        ),
        verbosity="verbosity",
        hidden_by_default=False,
    ),
)


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming with its usage, and the schema of the answer."""
    params: dict[str, Any] = {}
    if wanted.stream:
        params["stream"] = True
        if wanted.usage:
            params["stream_options"] = {"include_usage": True}
    if wanted.schema is not None:
        schema = {"name": wanted.schema_name, "schema": dict(wanted.schema)}
        params["response_format"] = {"type": "json_schema", "json_schema": schema}
    return params
