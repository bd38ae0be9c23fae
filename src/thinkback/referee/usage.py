"""Token counts by counting words, and the cache hit by comparing prompts word by word.

The prompt is rendered as the provider would render it: reasoning that the model does not get to see is not in it. A
prefix that a client changed between two requests therefore shows up as a smaller hit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from .jsons import JsonObject, as_list, as_object, as_text, compact
from .request import Message, Request
from .script import Step


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


def cache_hit(prompt: Sequence[str], earlier: Iterable[Sequence[str]]) -> int:
    """The length of the longest prefix that the prompt shares with an earlier one."""
    return max((_shared(prompt, other) for other in earlier), default=0)


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


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    for count, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return count
    return length


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
    {"deepseek": _deepseek, "kimi": _kimi, "groq": _groq, "mistral": _mistral}
)
