"""From a step of the script to an interaction: one object, or the events of a stream, in the recorded shapes."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..jsons import JsonObject, as_list, as_object, as_text, compact
from ..script import Step
from ..streams import arguments_object, count_words, derived, pieces, sse, words_said
from .ledger import CALL, OUTPUT, THOUGHT
from .request import Request

DONE = b"event: done\ndata: [DONE]\n\n"
_TIME = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Answer:
    """A step as the answer to a request: the model's steps, counted."""

    id: str
    model: str
    steps: tuple[JsonObject, ...]
    status: str
    usage: JsonObject


def prepare(request: Request, step: Step, digest: str, signature: str, prompt: int, hit: int) -> Answer:
    """The answer, with ids and everything that must come back."""
    identifier = base64.b64encode(b"\n\x17" + derived(digest, "id")[:40].encode()).decode().rstrip("=")
    steps = tuple(_steps(request, step, digest, signature))
    status = step.finish or ("requires_action" if step.tool_calls else "completed")
    usage = _usage(step, prompt, hit)
    return Answer(f"v1_{identifier}", request.profile.reported, steps, status, usage)


def interaction(answer: Answer) -> JsonObject:
    """The whole interaction."""
    return {
        "id": answer.id,
        "status": answer.status,
        "usage": answer.usage,
        "created": _TIME,
        "updated": _TIME,
        "service_tier": "standard",
        "steps": list(answer.steps),
        "object": "interaction",
        "model": answer.model,
    }


def events(answer: Answer) -> list[bytes]:
    """The events of the stream, ``done`` not included."""
    begun: JsonObject = {"id": answer.id, "status": "in_progress", "object": "interaction", "model": answer.model}
    whole = {name: value for name, value in interaction(answer).items() if name != "steps"}
    told: Sequence[JsonObject] = [
        {"interaction": begun, "event_type": "interaction.created"},
        {"interaction_id": answer.id, "status": "in_progress", "event_type": "interaction.status_update"},
        *(event for index, step in enumerate(answer.steps) for event in _step_events(index, step)),
        {"interaction": whole, "event_type": "interaction.completed"},
    ]
    return [sse(event, as_text(event["event_type"])) for event in told]


def _steps(request: Request, step: Step, digest: str, signature: str) -> Iterator[JsonObject]:
    shown = step.reasoning and request.config.get("thinking_summaries") == "auto"
    summary: JsonObject = {"summary": [{"type": "text", "text": step.reasoning}]} if shown else {}
    yield {"signature": signature, **summary, "type": THOUGHT}
    text = step.text or step.refusal
    if text or not step.tool_calls:
        yield {"content": [{"text": text, "type": "text"}], "type": OUTPUT}
    for index, call in enumerate(step.tool_calls):
        identifier = call.id or derived(digest, "call", index)[:8]
        yield {"id": identifier, "type": CALL, "name": call.name, "arguments": arguments_object(call)}


def _step_events(index: int, step: JsonObject) -> Iterator[JsonObject]:
    start: JsonObject = {"type": step["type"]}
    deltas: list[JsonObject] = []
    if step["type"] == CALL:
        start = {**step, "arguments": {}}
        deltas = [{"arguments": compact(step["arguments"]), "type": "arguments_delta"}]
    elif step["type"] == THOUGHT:
        texts = [as_text(as_object(item)["text"]) for item in as_list(step.get("summary"))]
        deltas = [
            {"content": {"text": piece, "type": "text"}, "type": "thought_summary"}
            for text in texts
            for piece in pieces(text)
        ]
        deltas.append({"signature": step["signature"], "type": "thought_signature"})
    else:
        texts = [as_text(as_object(item)["text"]) for item in as_list(step["content"])]
        deltas = [{"text": piece, "type": "text"} for text in texts for piece in pieces(text)]
    yield {"index": index, "step": start, "event_type": "step.start"}
    yield from ({"index": index, "delta": delta, "event_type": "step.delta"} for delta in deltas)
    yield {"index": index, "event_type": "step.stop"}


def _usage(step: Step, prompt: int, hit: int) -> JsonObject:
    output, thoughts = words_said(step), count_words(step.reasoning)
    return {
        "total_tokens": prompt + output + thoughts,
        "total_input_tokens": prompt,
        "input_tokens_by_modality": [{"modality": "text", "tokens": prompt}],
        "total_cached_tokens": hit,
        "total_output_tokens": output,
        "total_tool_use_tokens": 0,
        "total_thought_tokens": thoughts,
        **step.usage,
    }
