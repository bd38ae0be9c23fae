"""From a step to Cohere's bytes: one response, or the events of a stream, in the recorded shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..jsons import JsonObject, as_object, as_text
from ..script import Step
from ..streams import arguments_text, count_words, derived, pieces, slices, sse, words_said

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """A step as the answer to a request: calls have ids, tokens are counted."""

    id: str
    items: tuple[JsonObject, ...]
    calls: tuple[JsonObject, ...]
    finish: str
    usage: JsonObject

    @property
    def message(self) -> JsonObject:
        """The assistant message."""
        called: JsonObject = {"tool_calls": list(self.calls)} if self.calls else {}
        content: JsonObject = {"content": list(self.items)} if self.items else {}
        return {"role": "assistant", **called, **content}


def prepare(step: Step, digest: str, prompt: int, hit: int) -> Answer:
    """The answer to a prompt of so many words."""
    calls: tuple[JsonObject, ...] = tuple(
        {
            "id": call.id or f"{call.name}_{derived(digest, index)[:12]}",
            "type": "function",
            "function": {"name": call.name, "arguments": arguments_text(call)},
        }
        for index, call in enumerate(step.tool_calls)
    )
    items: list[JsonObject] = [{"type": "thinking", "thinking": step.reasoning}] if step.reasoning else []
    text = step.text or step.refusal
    if text or not calls:
        items.append({"type": "text", "text": text})
    finish = step.finish or ("TOOL_CALL" if calls else "COMPLETE")
    return Answer(_uuid(digest), tuple(items), calls, finish, _usage(step, prompt, hit))


def response(answer: Answer) -> JsonObject:
    """The whole response."""
    return {"id": answer.id, "message": answer.message, "finish_reason": answer.finish, "usage": answer.usage}


def events(answer: Answer) -> list[bytes]:
    """The events of the stream, ``[DONE]`` not included."""
    return [sse(event, as_text(event["type"])) for event in _events(answer)]


def _events(answer: Answer) -> Iterator[JsonObject]:
    empty = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    yield {"id": answer.id, "type": "message-start", "delta": {"message": empty}}
    for index, item in enumerate(answer.items):
        name = as_text(item["type"])
        yield _event("content-start", index, {"content": {"type": name, name: ""}})
        yield from (_event("content-delta", index, {"content": {name: piece}}) for piece in pieces(as_text(item[name])))
        yield {"type": "content-end", "index": index}
    for index, call in enumerate(answer.calls):
        function = as_object(call["function"])
        opened = {**call, "function": {"name": function["name"], "arguments": ""}}
        yield _event("tool-call-start", index, {"tool_calls": opened})
        for piece in slices(as_text(function["arguments"])):
            yield _event("tool-call-delta", index, {"tool_calls": {"function": {"arguments": piece}}})
        yield {"type": "tool-call-end", "index": index}
    yield {"type": "message-end", "delta": {"finish_reason": answer.finish, "usage": answer.usage}}


def _event(kind: str, index: int, message: JsonObject) -> JsonObject:
    return {"type": kind, "index": index, "delta": {"message": message}}


def _usage(step: Step, prompt: int, hit: int) -> JsonObject:
    """Thinking is inside the output tokens."""
    thought = count_words(step.reasoning)
    output = thought + words_said(step)
    billed: JsonObject = {"input_tokens": prompt, "output_tokens": output}
    counted: JsonObject = {**billed, **({"reasoning_tokens": thought} if thought else {}), **step.usage}
    return {"billed_units": billed, "tokens": counted, "cached_tokens": hit}


def _uuid(digest: str) -> str:
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
