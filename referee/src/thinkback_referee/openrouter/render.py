"""From a step to the router's bytes: details whole in a completion, in fragments in a stream."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ..chat.render import DONE
from ..jsons import JsonObject, compact
from ..persona import Rendered
from ..script import Step
from ..streams import CREATED, arguments_text, call_deltas, derived, function_calls, pieces, sse
from .request import Request

_PREAMBLE = b": OPENROUTER PROCESSING\n\n"


@dataclass(frozen=True)
class Answer:
    """A step as the answer to a request; ``digest`` already depends on the account."""

    request: Request
    step: Step
    digest: str
    usage: JsonObject

    @property
    def id(self) -> str:
        """The id of the response."""
        return f"gen-{CREATED}-{self.digest[:20]}"

    @cached_property
    def carrier(self) -> str:
        """The opaque value of the reasoning; empty where there is none, or nothing is shown."""
        if not (self.step.reasoning and self.request.shows and self.request.row.family.carrier):
            return ""
        size = 120 + 16 * (len(self.step.reasoning.encode()) // 16)
        data = hashlib.shake_256(derived(self.digest, "carrier").encode()).digest(size)
        return base64.b64encode(b"\x12" + data).decode()

    @cached_property
    def calls(self) -> tuple[tuple[str, str, str], ...]:
        """Id, name and arguments of each call."""
        return tuple(
            (call.id or f"call_{derived(self.digest, index)[:24]}", call.name, arguments_text(call))
            for index, call in enumerate(self.step.tool_calls)
        )

    @property
    def details(self) -> list[JsonObject]:
        """The details whole: the readable entry, and the opaque one where it stands alone."""
        family, text = self.request.row.family, self.step.reasoning
        if not text or not self.request.shows:
            return []
        field = "summary" if family.readable == "reasoning.summary" else "text"
        readable: JsonObject = {"type": family.readable, field: text, **self._common}
        if family.carrier == "signature":
            return [{**readable, "signature": self.carrier}]
        return [readable, self._encrypted] if family.carrier else [readable]

    @property
    def fragments(self) -> Iterator[tuple[str, list[JsonObject]]]:
        """The details as a stream sends them before anything else: text, and entries."""
        family = self.request.row.family
        if family.carrier == "data" and self.details:
            yield "", [self._encrypted]
        field = "summary" if family.readable == "reasoning.summary" else "text"
        for piece in pieces(self.step.reasoning) if self.details else ():
            yield piece, [{"type": family.readable, field: piece, **self._common}]

    @property
    def late(self) -> list[JsonObject]:
        """The signature on its own, which comes when the text or a call has already begun."""
        signed = self.details and self.request.row.family.carrier == "signature"
        return [{"type": "reasoning.text", "signature": self.carrier, **self._common}] if signed else []

    @property
    def finish(self) -> str:
        """The finish reason."""
        return self.step.finish or ("tool_calls" if self.calls else "stop")

    @property
    def _common(self) -> JsonObject:
        return {"format": self.request.row.family.format, "index": 0}

    @property
    def _encrypted(self) -> JsonObject:
        return {"type": "reasoning.encrypted", "data": self.carrier, "id": f"rs_{self.digest[:50]}", **self._common}


def render(answer: Answer) -> Rendered:
    """The completion and the stream that say the same."""
    return Rendered(compact(_completion(answer)).encode(), [_PREAMBLE, *map(sse, _chunks(answer))], DONE)


def _completion(answer: Answer) -> JsonObject:
    shown = bool(answer.details)
    message: JsonObject = {
        "role": "assistant",
        "content": answer.step.text or None,
        "refusal": answer.step.refusal or None,
        "reasoning": answer.step.reasoning if shown else None,
    }
    if shown:
        message["reasoning_details"] = answer.details
    if answer.calls:
        message["tool_calls"] = function_calls(answer.calls)
    choice = {"index": 0, "logprobs": None, **_finish(answer), "message": message}
    return {**_envelope(answer, "chat.completion"), "choices": [choice], "usage": answer.usage}


def _chunks(answer: Answer) -> Iterator[JsonObject]:
    envelope = _envelope(answer, "chat.completion.chunk")

    def chunk(delta: JsonObject, **finish: object) -> JsonObject:
        ended = finish or {"finish_reason": None, "native_finish_reason": None}
        return {**envelope, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}, **ended}]}

    for piece, entries in answer.fragments:
        yield chunk({"content": "", "reasoning": piece or None, "reasoning_details": entries})
    late = answer.late
    for delta in _said(answer):
        yield chunk(delta)
        if late:
            yield chunk({"content": "", "reasoning_details": late})
            late = []
    if late:
        yield chunk({"content": "", "reasoning_details": late})
    yield chunk({"content": ""}, **_finish(answer))
    yield {**chunk({"content": ""}, **_finish(answer)), "usage": answer.usage}


def _said(answer: Answer) -> Iterator[JsonObject]:
    for piece in pieces(answer.step.text):
        yield {"content": piece}
    for piece in pieces(answer.step.refusal):
        yield {"content": "", "refusal": piece}
    yield from call_deltas(answer.calls, content=None)


def _finish(answer: Answer) -> JsonObject:
    stop, calls = answer.request.row.family.native_finish
    return {"finish_reason": answer.finish, "native_finish_reason": calls if answer.calls else stop}


def _envelope(answer: Answer, kind: str) -> JsonObject:
    row = answer.request.row
    return {
        "id": answer.id,
        "object": kind,
        "created": CREATED,
        "model": row.chat.reported,
        "provider": row.family.provider,
    }
