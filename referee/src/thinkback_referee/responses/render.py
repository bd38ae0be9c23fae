"""From an answer to the provider's bytes: one response object, or the events of a stream, as recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ..jsons import JsonObject, as_list, as_object, compact
from ..persona import Rendered
from ..streams import CREATED, derived, pieces, slices, sse
from .answer import ADDED, DELTAS, DONE, WHOLE, Answer, Output, part_of
from .request import Request

_FINAL = MappingProxyType(
    {"completed": "response.completed", "incomplete": "response.incomplete", "failed": "response.failed"}
)


def render(answer: Answer) -> Rendered:
    """The response whole and as a stream."""
    host = answer.request.profile.host
    events = [
        sse({**event, "sequence_number": number}, str(event["type"]) if host.named_events else "")
        for number, event in enumerate(_events(answer))
    ]
    if host.preamble:
        events.insert(0, host.preamble)
    return Rendered(compact(whole(answer)).encode(), events, host.end)


def whole(answer: Answer) -> JsonObject:
    """The response object."""
    output = [answer.item(output, WHOLE) for output in answer.outputs]
    return _response(answer, answer.status, output)


def transformations(request: Request) -> list[JsonObject]:
    """What was left out of the input, in its order, for models that report it."""
    return [
        {"id": item.id, "type": "reasoning", "action": "removed", "reason": reason}
        for place, item in enumerate(request.items)
        if item.kind == "reasoning" and request.profile.drops_silently and (reason := request.withheld(place, item))
    ]


def _events(answer: Answer) -> Iterator[JsonObject]:
    opened = _response(answer, "in_progress", [])
    yield {"type": "response.created", "response": opened}
    yield {"type": "response.in_progress", "response": opened}
    for output in answer.outputs:
        yield _item_event(answer, output, "added", ADDED)
        yield from _parts(answer, output)
        yield _item_event(answer, output, "done", DONE)
    final = whole(answer)
    if answer.request.profile.host.session_only:
        final["output"] = []
    yield {"type": _FINAL[answer.status], "response": final}


def _item_event(answer: Answer, output: Output, what: str, copy: int) -> JsonObject:
    item = answer.item(output, copy)
    return {"type": f"response.output_item.{what}", "output_index": output.index, "item": item}


def _parts(answer: Answer, output: Output) -> Iterator[JsonObject]:
    """The events between an item's first and last, each under the id that the item has there."""
    for number, event in enumerate(_MAKERS[output.kind](answer, output)):
        named: JsonObject = {"item_id": answer.item_id(output, DELTAS + number), "output_index": output.index}
        if "delta" in event and not answer.request.profile.raw:
            named["obfuscation"] = derived(answer.digest, output.index, number)[: 4 + number % 8]
        yield {**event, **named}


def _reasoning(answer: Answer, output: Output) -> Iterator[JsonObject]:
    if answer.request.profile.raw:
        text = output.text
        empty, full = ({"type": "reasoning_text", "text": given} for given in ("", text))
        yield {"type": "response.content_part.added", "content_index": 0, "part": empty}
        for piece in pieces(text):
            yield {"type": "response.reasoning_text.delta", "content_index": 0, "delta": piece}
        yield {"type": "response.reasoning_text.done", "content_index": 0, "text": text}
        yield {"type": "response.content_part.done", "content_index": 0, "part": full}
        return
    for number, part in enumerate(output.parts if answer.request.summarizes else ()):
        where: JsonObject = {"summary_index": number}
        empty, full = ({"type": "summary_text", "text": given} for given in ("", part))
        yield {"type": "response.reasoning_summary_part.added", "part": empty, **where}
        for piece in pieces(part):
            yield {"type": "response.reasoning_summary_text.delta", "delta": piece, **where}
        yield {"type": "response.reasoning_summary_text.done", "text": part, **where}
        yield {"type": "response.reasoning_summary_part.done", "part": full, **where}


def _message(answer: Answer, output: Output) -> Iterator[JsonObject]:
    name = "refusal" if output.refusal else "output_text"
    field = "refusal" if output.refusal else "text"
    said = output.refusal or output.text
    full = part_of(output)
    beside: JsonObject = {"content_index": 0} if output.refusal else {"content_index": 0, "logprobs": []}
    yield {"type": "response.content_part.added", "content_index": 0, "part": {**full, field: ""}}
    for piece in pieces(said):
        yield {"type": f"response.{name}.delta", **beside, "delta": piece}
    yield {"type": f"response.{name}.done", **beside, field: said}
    yield {"type": "response.content_part.done", "content_index": 0, "part": full}


def _call(answer: Answer, output: Output) -> Iterator[JsonObject]:
    for piece in slices(output.text):
        yield {"type": "response.function_call_arguments.delta", "delta": piece}
    yield {"type": "response.function_call_arguments.done", "arguments": output.text}


def _custom_call(answer: Answer, output: Output) -> Iterator[JsonObject]:
    for piece in slices(output.text):
        yield {"type": "response.custom_tool_call_input.delta", "delta": piece}
    yield {"type": "response.custom_tool_call_input.done", "input": output.text}


def _nothing(answer: Answer, output: Output) -> Iterator[JsonObject]:
    yield from ()


_MAKERS = MappingProxyType(
    {
        "reasoning": _reasoning,
        "message": _message,
        "function_call": _call,
        "custom_tool_call": _custom_call,
        "compaction": _nothing,
    }
)


def _response(answer: Answer, status: str, output: list[JsonObject]) -> JsonObject:
    request = answer.request
    body, ended = request.body, status != "in_progress"
    error = {"code": "server_error", "message": "The model failed to answer."} if status == "failed" else None
    found: JsonObject = {
        "id": answer.id,
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": False,
        "completed_at": CREATED + 1 if status == "completed" else None,
        "error": error,
        "frequency_penalty": 0.0,
        "incomplete_details": {"reason": answer.incomplete} if ended and answer.incomplete else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": None,
        "model": request.profile.reported,
        "output": output,
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": _echo(request),
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": "default",
        "store": request.store,
        "temperature": 1.0,
        "text": _text(as_object(body.get("text"))),
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": [_tool(as_object(tool)) for tool in as_list(body.get("tools"))],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": answer.usage if ended else None,
        "user": body.get("user"),
        "metadata": body.get("metadata") or {},
    }
    removed = transformations(request)
    return {**found, "input_transformations": removed} if removed else found


def _text(text: Mapping[str, object]) -> JsonObject:
    """How the text was asked for, in full."""
    found: JsonObject = {"format": {"type": "text"}, "verbosity": "medium", **text}
    format = as_object(found["format"])
    is_schema = format.get("type") == "json_schema"
    return {**found, "format": {"description": None, "strict": False, **format} if is_schema else found["format"]}


def _tool(tool: Mapping[str, object]) -> JsonObject:
    """A tool as it was offered, in full: a function is strict unless the request says otherwise."""
    usual = {"description": None, "parameters": None, "strict": True} if tool.get("type") == "function" else {}
    return {**usual, **tool}


def _echo(request: Request) -> JsonObject:
    summary = request.reasoning.get("summary") or request.reasoning.get("generate_summary")
    if not request.profile.reasons:
        return {"effort": None, "summary": None}
    shown = "detailed" if summary == "auto" else summary
    return {"effort": request.effort, "summary": shown, "context": request.context}
