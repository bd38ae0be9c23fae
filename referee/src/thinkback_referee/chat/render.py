"""From a step to the provider's bytes: one completion object, or the events of a stream.

Streams have the shapes of the recordings: where the first chunk puts its empty string, which key is null on every
chunk, whether usage comes in the last chunk, in an extra one, or both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..jsons import JsonObject, as_object
from ..script import Step
from ..streams import CREATED, function_calls, pieces, slices, sse
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
    shape = _shape(answer)
    last = _chunk(envelope, shape.last, answer.finish)
    if not host.usage_on_request:
        last["usage"] = answer.usage
    _add_extras(answer, chunks, last)
    chunks.append(last)
    options = as_object(answer.request.body.get("stream_options"))
    if (host.usage_chunk and options.get("include_usage") is True) or answer.step.repeat_usage:
        chunks.append({**envelope, "choices": [], "usage": answer.usage})
    return [sse(chunk) for chunk in chunks]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The deltas of one family of streams."""

    first: JsonObject
    reasoning: Callable[[str], JsonObject]
    text: Callable[[str], JsonObject]
    last: JsonObject


def _role(**fields: object) -> JsonObject:
    return {"role": "assistant", **fields}


def _thinking_chunk(text: str) -> JsonObject:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], "closed": True}


_SHAPES: MappingProxyType[str, _Shape] = MappingProxyType(
    {
        "plain": _Shape(
            _role(content=""), lambda piece: {"content": piece}, lambda piece: {"content": piece}, {"content": ""}
        ),
        "reasoning_content": _Shape(
            _role(content=None, reasoning_content=""),
            lambda piece: {"content": None, "reasoning_content": piece},
            lambda piece: {"content": piece, "reasoning_content": None},
            {"content": "", "reasoning_content": None},
        ),
        "reasoning": _Shape(
            _role(content=""), lambda piece: {"reasoning": piece}, lambda piece: {"content": piece}, {}
        ),
        "thinking": _Shape(
            _role(content=""),
            lambda piece: {"content": [_thinking_chunk(piece)]},
            lambda piece: {"content": piece},
            {"content": ""},
        ),
    }
)


def _shape(answer: Answer) -> _Shape:
    silent = not answer.request.thinks and not answer.step.reasoning
    return _SHAPES["plain"] if silent else _SHAPES.get(answer.field, _SHAPES["plain"])


def _deltas(answer: Answer) -> Iterator[JsonObject]:
    shape = _shape(answer)
    yield shape.first
    if answer.field in _SHAPES:
        yield from (shape.reasoning(piece) for piece in pieces(answer.step.reasoning))
    yield from (shape.text(piece) for piece in pieces(answer.text))
    if answer.step.refusal:
        for piece in pieces(answer.step.refusal):
            yield {"refusal": piece}
    for index, (identifier, name, arguments) in enumerate(answer.calls):
        function: JsonObject = {"name": name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": identifier, "type": "function", "function": function}]}
        for piece in slices(arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


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
    elif answer.field == "reasoning_content" and _shape(answer) is not _SHAPES["plain"]:
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
