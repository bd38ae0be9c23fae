"""Token counts by counting words.

The prompt is rendered as the provider would render it: reasoning that the model does not get to see is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..jsons import JsonObject, as_list, as_object, as_text, compact
from ..script import Step
from .request import Message, Request


def prompt_words(request: Request) -> list[str]:
    """The prompt as words: tools first, then each message as the model sees it."""
    words = compact(as_list(request.body.get("tools"))).split() if request.tools else []
    for message in request.messages:
        words.append(f"<{message.role}>")
        if message.index in request.visible:
            words += (message.reasoning(request.profile.field) or "").split()
        words += message.text.split()
        words += _call_words(message)
    return words


def count_usage(request: Request, step: Step, prompt: int, hit: int) -> JsonObject:
    """The usage object of a response in the host's own shape; the step's own numbers win."""
    reasoning = len(step.reasoning.split())
    said = [step.text, step.refusal, *(f"{call.name} {_arguments(call.arguments)}" for call in step.tool_calls)]
    completion = reasoning + sum(len(text.split()) for text in said)
    counted: JsonObject = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if step.reasoning:
        counted["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    extras = _EXTRAS.get(request.profile.host.name)
    return {**counted, **(extras(prompt, hit) if extras else {}), **step.usage}


def _call_words(message: Message) -> list[str]:
    functions = [as_object(as_object(call).get("function")) for call in as_list(message.raw.get("tool_calls"))]
    return [
        word
        for function in functions
        for word in f"{as_text(function.get('name'))} {as_text(function.get('arguments'))}".split()
    ]


def _arguments(arguments: Mapping[str, object] | str) -> str:
    return arguments if isinstance(arguments, str) else compact(arguments)


def _deepseek(prompt: int, hit: int) -> JsonObject:
    return {
        "prompt_tokens_details": {"cached_tokens": hit},
        "prompt_cache_hit_tokens": hit,
        "prompt_cache_miss_tokens": prompt - hit,
    }


def _kimi(prompt: int, hit: int) -> JsonObject:
    return {"cached_tokens": hit}


def _groq(prompt: int, hit: int) -> JsonObject:
    return {"queue_time": 0.0, "prompt_time": 0.0, "completion_time": 0.0, "total_time": 0.0}


def _mistral(prompt: int, hit: int) -> JsonObject:
    return {"prompt_tokens_details": {"cached_tokens": hit}}


_EXTRAS: MappingProxyType[str, Callable[[int, int], JsonObject]] = MappingProxyType(
    {"deepseek": _deepseek, "kimi": _kimi, "groq": _groq, "mistral": _mistral, "openai": _mistral}
)
