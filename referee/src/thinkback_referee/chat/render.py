"""From a step to the provider's bytes: one completion object, or the events of a stream.

Streams have the shapes of the recordings: where the first chunk puts its empty string, which key is null on every
chunk, whether usage comes in the last chunk, in an extra one, or both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..jsons import JsonObject, as_object
from ..script import Step
from ..streams import CREATED, call_deltas, function_calls, pieces, sse
from .request import Request

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """A step as the answer to a request: calls have ids, the field is settled, tokens are counted."""

    request: Request
    step: Step
    id: str
    field: str
    calls: tuple[tuple[str, str, str], ...]
    """Id, name and arguments of each call."""
    usage: JsonObject

    @property
    def finish(self) -> str:
        """The finish reason."""
        if self.step.finish:
            return self.step.finish
        return "content_filter" if self.step.refusal else "tool_calls" if self.calls else "stop"

    @property
    def text(self) -> str:
        """The text on the wire, with the reasoning in tags where it travels so."""
        if self.field == "tags" and self.step.reasoning:
            return f"<think>\n{self.step.reasoning}\n</think>\n\n{self.step.text}"
        return self.step.text


def field_of(request: Request, step: Step) -> str:
    """Where the reasoning of this answer travels: a field, ``thinking``, ``tags``, or ``hidden``."""
    if step.field:
        return step.field
    if request.body.get("include_reasoning") is False:
        return "hidden"
    form = request.body.get("reasoning_format")
    named = {"raw": "tags", "hidden": "hidden"}.get(form) if isinstance(form, str) else None
    return named if named and request.profile.formats else request.profile.field


def completion(answer: Answer) -> JsonObject:
    """The whole response as one object."""
    message = _message(answer)
    choice: JsonObject = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish}
    whole: JsonObject = {**_envelope(answer, "chat.completion"), "choices": [choice], "usage": answer.usage}
    _add_extras(answer, [], whole)
    return whole


def events(answer: Answer) -> list[bytes]:
    """The response as server-sent events, ``[DONE]`` not included."""
    host = answer.request.profile.host
    envelope = _envelope(answer, "chat.completion.chunk")
    chunks = [_chunk(envelope, delta, None) for delta in _deltas(answer)]
    last = _chunk(envelope, dict(_LAST.get(_family(answer), _EMPTY)), answer.finish)
    if not host.usage_on_request:
        last["usage"] = answer.usage
    _add_extras(answer, chunks, last)
    chunks.append(last)
    options = as_object(answer.request.body.get("stream_options"))
    if (host.usage_chunk and options.get("include_usage") is True) or answer.step.repeat_usage:
        chunks.append({**envelope, "choices": [], "usage": answer.usage})
    return [sse(chunk) for chunk in chunks]


# How the streams of a family begin and end; the others begin and end with an empty text.
_FIRST: Mapping[str, JsonObject] = MappingProxyType({"reasoning_content": {"content": None, "reasoning_content": ""}})
_LAST: Mapping[str, JsonObject] = MappingProxyType(
    {"reasoning_content": {"content": "", "reasoning_content": None}, "reasoning": {}}
)
_EMPTY: JsonObject = {"content": ""}


def _family(answer: Answer) -> str:
    """The field of the reasoning; "plain" where nothing is thought, or the thought is hidden or inside the text."""
    silent = not answer.request.thinks and not answer.step.reasoning
    return answer.field if answer.field in ("reasoning_content", "reasoning", "thinking") and not silent else "plain"


def _thinking_chunk(text: str) -> JsonObject:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], "closed": True}


def _reasoning_delta(family: str, piece: str) -> JsonObject:
    match family:
        case "reasoning_content":
            return {"content": None, "reasoning_content": piece}
        case "thinking":
            return {"content": [_thinking_chunk(piece)]}
        case _:
            return {"reasoning": piece}


def _deltas(answer: Answer) -> Iterator[JsonObject]:
    family = _family(answer)
    beside: JsonObject = {"reasoning_content": None} if family == "reasoning_content" else {}
    yield {"role": "assistant", **_FIRST.get(family, _EMPTY)}
    for piece in pieces(answer.step.reasoning) if family != "plain" else ():
        yield _reasoning_delta(family, piece)
    for piece in pieces(answer.text):
        yield {"content": piece, **beside}
    for piece in pieces(answer.step.refusal):
        yield {"refusal": piece}
    yield from call_deltas(answer.calls)


def _chunk(envelope: Mapping[str, object], delta: JsonObject, finish: str | None) -> JsonObject:
    choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**envelope, "choices": [choice]}


def _envelope(answer: Answer, kind: str) -> JsonObject:
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": kind,
        "created": CREATED,
        "model": answer.request.profile.reported,
        "system_fingerprint": "fp_referee",
    }


def _message(answer: Answer) -> JsonObject:
    step = answer.step
    message: JsonObject = {"role": "assistant", "content": answer.text}
    if answer.field == "thinking" and step.reasoning:
        texts = [{"type": "text", "text": step.text}] if step.text else []
        message["content"] = [_thinking_chunk(step.reasoning), *texts]
    elif answer.field == "reasoning" and step.reasoning:
        message["reasoning"] = step.reasoning
    elif answer.field == "reasoning_content" and _family(answer) != "plain":
        # Empty here, absent there: a model of family A that thought of nothing still says so.
        message["reasoning_content"] = step.reasoning
    if step.refusal:
        message["refusal"] = step.refusal
    if answer.calls:
        message["tool_calls"] = function_calls(answer.calls)
    return message


def _add_extras(answer: Answer, chunks: list[JsonObject], last: JsonObject) -> None:
    """The members that a host adds to its chunks."""
    match answer.request.profile.host.name:
        case "deepseek":
            for chunk in chunks:
                chunk["usage"] = None
        case "groq":
            for chunk in chunks[:1]:
                chunk["x_groq"] = {"id": f"req_{answer.id}"}
            last["x_groq"] = {"id": f"req_{answer.id}", "usage": answer.usage}
