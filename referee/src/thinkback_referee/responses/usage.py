"""Token counts by counting words; reasoning is part of the output, as the providers count it."""

from __future__ import annotations

from ..jsons import JsonObject, as_list, as_object, as_text, compact
from ..script import Step
from .request import Request
from .view import notes_of


def prompt_words(request: Request) -> list[str]:
    """The prompt as words: instructions and tools first, then the items; reasoning only where the model reads it."""
    tools = as_list(request.body.get("tools"))
    words = as_text(request.body.get("instructions")).split() + (compact(tools).split() if tools else [])
    for item in request.items:
        words.append(f"<{item.raw.get('role') or item.kind}>")
        if item.kind == "function_call":
            words += f"{item.raw.get('name')} {item.raw.get('arguments')}".split()
        elif item.kind != "reasoning":
            words += item.text.split()
    # At the end: what the model reads of its reasoning changes with the turn, and with it the prompt.
    return words + [word for note in notes_of(request) for word in note.split()]


def count_usage(step: Step, prompt: int, hit: int) -> JsonObject:
    """The usage object; the step's own numbers win."""
    units = (*step.earlier, step)
    reasoning = sum(len(unit.reasoning.split()) for unit in units)
    output = reasoning + sum(len(text.split()) for unit in units for text in _said(unit))
    counted: JsonObject = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": hit, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt + output,
    }
    return {**counted, **step.usage}


def _said(step: Step) -> list[str]:
    return [step.text, step.refusal, *(f"{call.name} {_arguments(call.arguments)}" for call in step.tool_calls)]


def _arguments(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else compact(as_object(arguments))
