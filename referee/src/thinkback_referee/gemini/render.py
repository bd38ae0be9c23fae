"""From a step to Google's bytes: one response object, or the chunks of a stream.

Shapes as recorded: where the signature stands, which members a host adds, what the usage of a chunk already knows.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass

from ..jsons import JsonObject
from ..script import Call, Step
from ..streams import arguments_object, count_words, derived, pieces, words_said
from .ledger import Mint
from .profiles import Host, Profile
from .request import Request

_FINISH_CALLS = "Model generated function call(s)."


@dataclass(frozen=True, slots=True)
class Answer:
    """A step as the answer to a request: calls have ids, the signature is made, tokens are counted."""

    request: Request
    step: Step
    id: str
    calls: tuple[JsonObject, ...]
    signature: str
    """Empty where this response has none."""
    usage: JsonObject

    @property
    def finish(self) -> str:
        """The finish reason."""
        return self.step.finish or ("SAFETY" if self.step.refusal else "STOP")

    @property
    def said(self) -> str:
        """The visible text."""
        return self.step.text or self.step.refusal

    @property
    def shown(self) -> str:
        """The thought, where the request asked for it."""
        return self.step.reasoning if self.request.shows_thoughts else ""

    def mint(self) -> Mint:
        """What the signature stands for, and beside which call or text it stands."""
        host, model, account = self.request.host.name, self.request.profile.reported, self.request.account
        if self.step.tool_calls:
            return Mint(host, model, account, self.step.reasoning, call=self.step.tool_calls[0].name)
        return Mint(host, model, account, self.step.reasoning, text="" if self.request.streams else self.said)


def make_call(profile: Profile, call: Call, digest: str, index: int) -> JsonObject:
    """A function call as Google writes it; a call without arguments has none."""
    identifier = call.id or (derived(digest, "call", index)[:8] if profile.call_ids else "")
    return {"name": call.name, "args": arguments_object(call), **({"id": identifier} if identifier else {})}


def make_signature(host: Host, profile: Profile, step: Step, declared: bool, *seed: str) -> str:
    """The signature of a response; empty where the model gives none.

    Gemini 3 signs calls always and text after a thought; 2.5 signs thoughts only, and only where functions are
    offered. Longer thoughts have longer signatures.
    """
    signed = bool(step.tool_calls) or bool(step.reasoning) if profile.validates else declared and bool(step.reasoning)
    return seal(host, step.reasoning, *seed) if signed else ""


def seal(host: Host, thought: str, *seed: str) -> str:
    """A signature in the host's looks that follows from the seed."""
    blocks = 3 + len(thought) // 64
    sealed = b"".join(bytes.fromhex(derived("signature", *seed, number)) for number in range(blocks))
    return base64.b64encode(host.salt + sealed).decode()


def count_usage(host: Host, step: Step, prompt: int, hit: int) -> JsonObject:
    """The usage object; thoughts are beside the candidates, not among them. The step's own numbers win."""
    candidates, thoughts = words_said(step), count_words(step.reasoning)
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": candidates,
        "totalTokenCount": prompt + candidates + thoughts,
        **({"cachedContentTokenCount": hit} if hit else {}),
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
        **({"thoughtsTokenCount": thoughts} if thoughts else {}),
        **host.usage,
        **step.usage,
    }


def completion(answer: Answer) -> JsonObject:
    """The whole response as one object."""
    thought: list[JsonObject] = [{"text": answer.shown, "thought": True}] if answer.shown else []
    parts: list[JsonObject] = [{"text": answer.said}] if answer.said or not answer.calls else []
    parts += [{"functionCall": call} for call in answer.calls]
    if answer.signature:
        signed = next((index for index, part in enumerate(parts) if "functionCall" in part), None)
        if signed is None:
            signed = len(parts) - 1 if answer.request.profile.signs_last else 0
        parts[signed]["thoughtSignature"] = answer.signature
    return _response(answer, [*thought, *parts], final=True)


def chunks(answer: Answer) -> list[JsonObject]:
    """The response as the chunks of a stream."""
    parts = list(_streamed(answer))
    return [_response(answer, [part], final=index == len(parts) - 1) for index, part in enumerate(parts)]


def _streamed(answer: Answer) -> Iterator[JsonObject]:
    signature: JsonObject = {"thoughtSignature": answer.signature} if answer.signature else {}
    yield from ({"text": piece, "thought": True} for piece in pieces(answer.shown))
    first = not answer.request.profile.signs_last and not answer.calls
    texts: list[JsonObject] = [{"text": piece} for piece in pieces(answer.said)]
    if first and texts:
        texts[0] |= signature
    yield from texts
    for index, call in enumerate(answer.calls):
        yield {"functionCall": call, **({} if index else signature)}
    if not answer.calls:
        # Gemini 3 sends the signature of a text last, on a part with empty text.
        yield {"text": "", **({} if first else signature)}


def _response(answer: Answer, parts: list[JsonObject], *, final: bool) -> JsonObject:
    host = answer.request.host
    candidate: JsonObject = {"content": {"parts": parts, "role": "model"}}
    if final:
        candidate["finishReason"] = answer.finish
    if host.indexed:
        candidate["index"] = 0
        if final and answer.calls:
            candidate["finishMessage"] = _FINISH_CALLS
    return {
        "candidates": [candidate],
        "usageMetadata": answer.usage if final or host.indexed else dict(host.usage),
        "modelVersion": answer.request.profile.reported,
        **host.envelope,
        "responseId": answer.id,
    }
