"""The parameters of a response, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thinkback.wire.parameters import (
    AUTO,
    KEPT_ELSEWHERE,
    NO_LOGPROBS,
    PLAIN,
    AnswerForm,
    Parameters,
    Reasoning,
    Refusal,
    ToolChoice,
    Word,
    is_set,
    same,
)
from thinkback.wire.result import WantedOptions


def _allowed(word: Word, names: Sequence[str]) -> Any:
    return {"type": "allowed_tools", "mode": word, "tools": [{"type": "function", "name": name} for name in names]}


def _has_logprobs(value: Any) -> bool:
    return isinstance(value, list) and "message.output_text.logprobs" in value


PARAMETERS = Parameters(
    normal=None,
    names={
        **same("temperature", "top_p", "presence_penalty", "frequency_penalty", "service_tier"),
        **same("moderation", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
        "end_user": ("user",),
        "max_tokens": ("max_output_tokens",),
        **same("metadata"),
    },
    read_only={"end_user": ("safety_identifier",), **same("stop")},
    names_at={},
    ranges={},
    longest_user=64,
    handled=frozenset({"stream", "stream_options", "store"}),
    implied={
        "background": (False,),
        "include": (["reasoning.encrypted_content"],),
        "reasoning.context": ("auto",),
        "reasoning.mode": ("standard",),
        "service_tier": AUTO,
        "top_logprobs": (0,),
        "truncation": ("disabled",),
    },
    refused=(
        Refusal("background", "there is nothing that would go on without the client", is_set),
        Refusal("conversation", KEPT_ELSEWHERE, is_set),
        Refusal("include", NO_LOGPROBS, _has_logprobs),
        Refusal("previous_response_id", KEPT_ELSEWHERE, is_set),
        Refusal("prompt", KEPT_ELSEWHERE, is_set),
        Refusal("top_logprobs", NO_LOGPROBS, is_set),
    ),
    # Codex, which itself sends the last one only to a provider that is called OpenAI (codex-rs/core/src/client.rs);
    # refusals: openai/codex#30161 (Azure), #46398, diegosouzapw/OmniRoute#4727 (Mistral).
    own=("access_programs", "client_metadata", "input.internal_chat_message_metadata_passthrough"),
    bare=frozenset(),
    choice=ToolChoice(
        path="tool_choice",
        words=PLAIN,
        one=lambda name: {"type": "function", "name": name},
        several=_allowed,
        parallel="parallel_tool_calls",
        single="",
    ),
    form=AnswerForm(
        paths=("text.format",),
        read=None,
        json={"text": {"format": {"type": "json_object"}}},
        about="text.format",
        takes=frozenset({"strict", "description"}),
    ),
    reasoning=Reasoning(
        effort=("reasoning.effort",),
        budget=("reasoning.max_tokens",),
        switch=("reasoning.enabled",),
        shown=("reasoning.summary", "reasoning.generate_summary", "reasoning.exclude"),
        verbosity="text.verbosity",
        hidden_by_default=False,
    ),
)


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, which brings its usage unasked, and the schema of the answer."""
    params: dict[str, Any] = {}
    if wanted.stream:
        params["stream"] = True
    if wanted.schema is not None:
        form = {"type": "json_schema", "name": wanted.schema_name, "schema": dict(wanted.schema)}
        params["text"] = {"format": form}
    return params
