"""From a step to a chat completion of Google's making, whole or streamed.

Signatures stand on the first call, else on the message, there under both names. Whether thoughts still come in
``<thought>`` tags inside the content is unconfirmed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..gemini.profiles import Profile
from ..jsons import JsonObject
from ..script import Step
from ..streams import CREATED, arguments_text, count_words, derived, pieces, sse, words_said

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """A step as the answer to a request; ``calls`` are whole tool calls."""

    id: str
    model: str
    content: str
    calls: tuple[JsonObject, ...]
    signature: str
    finish: str
    usage: JsonObject
    counted: bool
    """Whether a stream ends with its usage."""


def make_answer(
    profile: Profile, step: Step, digest: str, signature: str, *, shown: bool, prompt: int, counted: bool
) -> Answer:
    """The answer, with ids, signature and counts."""
    calls = tuple(_call(profile, step, digest, signature, index) for index in range(len(step.tool_calls)))
    thought = f"<thought>{step.reasoning}</thought>" if shown and step.reasoning else ""
    finish = step.finish or ("content_filter" if step.refusal else "tool_calls" if calls else "stop")
    content = f"{thought}{step.text or step.refusal}"
    return Answer(digest[:22], profile.reported, content, calls, signature, finish, _usage(step, prompt), counted)


def completion(answer: Answer) -> JsonObject:
    """The whole response."""
    message: JsonObject = {"role": "assistant"}
    if answer.content or not answer.calls:
        message["content"] = answer.content
    if answer.calls:
        message["tool_calls"] = list(answer.calls)
    elif answer.signature:
        message |= {**_extra(answer.signature), "thought_signature": answer.signature}
    choice: JsonObject = {"finish_reason": answer.finish, "index": 0, "message": message}
    return {"choices": [choice], **_envelope(answer, "chat.completion"), "usage": answer.usage}


def events(answer: Answer) -> list[bytes]:
    """The chunks of the stream, ``[DONE]`` not included."""
    deltas = list(_deltas(answer))
    chunks = []
    for index, delta in enumerate(deltas):
        last = index == len(deltas) - 1
        choice: JsonObject = {"delta": {**delta, "role": "assistant"}, "index": 0}
        if last:
            choice["finish_reason"] = answer.finish
        chunk: JsonObject = {"choices": [choice], **_envelope(answer, "chat.completion.chunk")}
        chunks.append(sse({**chunk, "usage": answer.usage} if last and answer.counted else chunk))
    return chunks


def _deltas(answer: Answer) -> Iterator[JsonObject]:
    for piece in pieces(answer.content):
        yield {"content": piece}
    for index, call in enumerate(answer.calls):
        yield {"tool_calls": [{**call, "index": index}]}
    if not answer.calls:
        yield {"content": "", **(_extra(answer.signature) if answer.signature else {})}


def _call(profile: Profile, step: Step, digest: str, signature: str, index: int) -> JsonObject:
    call = step.tool_calls[index]
    # Recorded: models whose calls have no ids give the empty one here.
    identifier = call.id or (derived(digest, "call", index)[:8] if profile.call_ids else "")
    signed = _extra(signature) if signature and not index else {}
    return {
        **signed,
        "function": {"arguments": arguments_text(call), "name": call.name},
        "id": identifier,
        "type": "function",
    }


def _extra(signature: str) -> JsonObject:
    return {"extra_content": {"google": {"thought_signature": signature}}}


def _envelope(answer: Answer, kind: str) -> JsonObject:
    return {"created": CREATED, "id": answer.id, "model": answer.model, "object": kind}


def _usage(step: Step, prompt: int) -> JsonObject:
    output = words_said(step)
    # Thoughts are in the total alone.
    total = prompt + output + count_words(step.reasoning)
    return {"completion_tokens": output, "prompt_tokens": prompt, "total_tokens": total, **step.usage}
