"""Parameters that need no translation: what the shell does itself, what says what holds anyway, and what must not be
lost, so that a request with it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from thinkback.errors import UnsupportedContent
from thinkback.model.target import lookup
from thinkback.turn.translation.paths import Params

HANDLED: Mapping[str, frozenset[str]] = {
    "anthropic": frozenset({"stream"}),
    "cohere": frozenset({"stream"}),
    "gemini-interactions": frozenset({"stream", "store"}),
    "mistral": frozenset({"stream"}),
    "ollama": frozenset({"stream"}),
    "openai-chat": frozenset({"stream", "stream_options"}),
    "openai-responses": frozenset({"stream", "stream_options", "store"}),
}
"""What whoever sends the request sees to: how it streams, and whether the conversation is kept."""

_AUTO = ("auto", "default")
_UNSAID: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "anthropic": {"service_tier": _AUTO, "output_config.format.type": ("text",)},
    "gemini": {
        "generationConfig.candidateCount": (1,),
        "generationConfig.responseLogprobs": (False,),
        "generationConfig.responseModalities": (["TEXT"], ["text"]),
    },
    "openai-chat": {
        "logprobs": (False,),
        "modalities": (["text"],),
        "n": (1,),
        "service_tier": _AUTO,
        "store": (False,),
        "top_logprobs": (0,),
    },
    "openai-responses": {
        "background": (False,),
        "include": (["reasoning.encrypted_content"],),
        "reasoning.context": ("auto",),
        "reasoning.mode": ("standard",),
        "service_tier": _AUTO,
        "top_logprobs": (0,),
        "truncation": ("disabled",),
    },
}


def goes_without_saying(dialect: str, path: str, value: Any) -> bool:
    """Whether ``value`` at ``path`` asks for what every dialect does unasked."""
    return value in _UNSAID.get(dialect, {}).get(path, ())


class _Refusal(NamedTuple):
    """What is refused at ``path``: any value, or those that ``asks``; and why."""

    path: str
    reason: str
    asks: Callable[[Any], bool] = lambda value: value not in (False, 0)


def _is_more(value: Any) -> bool:
    return bool(value != 1)


def _speaks(value: Any) -> bool:
    return any(str(kind).lower() != "text" for kind in (value if isinstance(value, list) else [value]))


def _has_logprobs(value: Any) -> bool:
    return isinstance(value, list) and "message.output_text.logprobs" in value


_ONE = "a response has one answer there"
_NO_LOGPROBS = "the probabilities of tokens do not come along"
_ELSEWHERE = "what it stands for is kept by another service"
_ONLY_TEXT = "answers are text there"
_REFUSED: Mapping[str, tuple[_Refusal, ...]] = {
    "gemini": (
        _Refusal("cachedContent", _ELSEWHERE),
        _Refusal("generationConfig.candidateCount", _ONE, _is_more),
        _Refusal("generationConfig.logprobs", _NO_LOGPROBS),
        _Refusal("generationConfig.responseLogprobs", _NO_LOGPROBS),
        _Refusal("generationConfig.responseModalities", _ONLY_TEXT, _speaks),
    ),
    "openai-chat": (
        _Refusal("audio", _ONLY_TEXT),
        _Refusal("functions", "functions are offered as tools: use tools and tool_choice", bool),
        _Refusal("logprobs", _NO_LOGPROBS),
        _Refusal("modalities", _ONLY_TEXT, _speaks),
        _Refusal("n", _ONE, _is_more),
        _Refusal("top_logprobs", _NO_LOGPROBS),
    ),
    "openai-responses": (
        _Refusal("background", "there is nothing that would go on without the client"),
        _Refusal("conversation", _ELSEWHERE),
        _Refusal("include", _NO_LOGPROBS, _has_logprobs),
        _Refusal("previous_response_id", _ELSEWHERE),
        _Refusal("prompt", _ELSEWHERE),
        _Refusal("top_logprobs", _NO_LOGPROBS),
    ),
}


def refuse(front: str, spoken: str, params: Params) -> None:
    """Raise ``UnsupportedContent`` naming the parameter whose loss would change what the request means."""
    for path, reason, asks in _REFUSED.get(front, ()):
        value = lookup(params, path)
        if value is not None and asks(value):
            raise UnsupportedContent(
                f"{path} cannot be asked of an endpoint that speaks {spoken}: {reason}",
                details={"parameter": path, "dialect": spoken},
                next_actions=(f"leave {path} out", f"or use a model whose endpoint speaks {front}"),
            )
