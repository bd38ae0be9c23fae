"""From a step to Ollama's bytes: one object, or the lines of a stream, in the recorded shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..jsons import JsonObject, compact
from ..script import Step
from ..streams import arguments_object, count_words, derived, pieces
from .request import Request

_TIME = "2026-01-01T00:00:00.000000Z"
_NANOSECONDS = {"load_duration": 50_000_000, "prompt_eval_duration": 100_000_000, "eval_duration": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Answer:
    """A step as the answer to a request; ``thinking`` is empty where the thought is off or leaked into the content."""

    model: str
    thinking: str
    content: str
    calls: tuple[JsonObject, ...]
    end: JsonObject
    """The members of the last line."""

    @property
    def message(self) -> JsonObject:
        """The whole message."""
        thought: JsonObject = {"thinking": self.thinking} if self.thinking else {}
        called: JsonObject = {"tool_calls": list(self.calls)} if self.calls else {}
        return {"role": "assistant", "content": self.content, **thought, **called}


def prepare(request: Request, step: Step, digest: str, prompt: int) -> Answer:
    """The answer to a prompt of so many words."""
    calls: tuple[JsonObject, ...] = tuple(
        {
            "id": call.id or f"call_{derived(digest, index)[:8]}",
            "function": {
                "index": index,
                "name": call.name,
                "arguments": arguments_object(call),
            },
        }
        for index, call in enumerate(step.tool_calls)
    )
    text = step.text or step.refusal
    leaked = f"{step.reasoning}\n</think>\n\n{text}" if step.reasoning and request.profile.leaks else text
    thinking, content = (step.reasoning, text) if request.thinks else ("", leaked)
    said = [text, *(f"{call.name} {call.arguments}" for call in step.tool_calls), step.reasoning]
    end: JsonObject = {
        "done": True,
        "done_reason": step.finish or "stop",
        "total_duration": sum(_NANOSECONDS.values()),
        "load_duration": _NANOSECONDS["load_duration"],
        "prompt_eval_count": prompt,
        "prompt_eval_duration": _NANOSECONDS["prompt_eval_duration"],
        "eval_count": count_words(*said),
        "eval_duration": _NANOSECONDS["eval_duration"],
        **step.usage,
    }
    return Answer(request.profile.model, thinking, content, calls, end)


def response(answer: Answer) -> JsonObject:
    """The whole response."""
    return {"model": answer.model, "created_at": _TIME, "message": answer.message, **answer.end}


def lines(answer: Answer) -> list[bytes]:
    """The lines of the stream."""
    return [compact(line).encode() + b"\n" for line in _lines(answer)]


def _lines(answer: Answer) -> Iterator[JsonObject]:
    for piece in pieces(answer.thinking):
        yield _line(answer, {"content": "", "thinking": piece})
    for piece in pieces(answer.content):
        yield _line(answer, {"content": piece})
    for call in answer.calls:
        yield _line(answer, {"content": "", "tool_calls": [call]})
    yield {**_line(answer, {"content": ""}), **answer.end}


def _line(answer: Answer, message: JsonObject) -> JsonObject:
    return {
        "model": answer.model,
        "created_at": _TIME,
        "message": {"role": "assistant", **message},
        "done": False,
    }
