"""The wire shapes of ``GenerateContentResponse``: chunks that only bring text, typed for speed, and small objects.

A key that is not listed makes decoding fail, and ``read`` falls back to a reading that keeps whatever comes.
"""

from __future__ import annotations

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Usage
from thinkback.wire.documents import NOT_LISTED


class TextPart(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """A piece of the answer or, as a ``thought``, of the summary of the reasoning."""

    text: str
    thought: bool = False


class Content(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """What a chunk adds."""

    parts: list[TextPart] = []
    role: str = "model"


class Candidate(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """One candidate; only index 0 is read."""

    content: Content = Content()
    finishReason: str | None = None
    index: int = 0


class Chunk(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """One response of a stream."""

    candidates: list[Candidate]
    usageMetadata: msgspec.Raw = msgspec.Raw()
    modelVersion: str = ""
    responseId: str = ""
    createTime: str = ""


class _Call(msgspec.Struct, frozen=True):
    args: msgspec.Raw = msgspec.Raw()


class _Part(msgspec.Struct, frozen=True):
    functionCall: _Call = _Call()
    function_call: _Call = _Call()


class _Parts(msgspec.Struct, frozen=True):
    parts: list[_Part] = []


class _Calling(msgspec.Struct, frozen=True):
    content: _Parts = _Parts()
    index: int = 0


class _Whole(msgspec.Struct, frozen=True):
    candidates: list[_Calling] = []


decode_chunk = msgspec.json.Decoder(Chunk).decode
_decode_calls = msgspec.json.Decoder(_Whole).decode


def arguments_of(payload: bytes) -> list[str | None]:
    """The source text of ``args`` for each part of candidate 0, as far as there is any; maybe none at all."""
    try:
        calling = [candidate for candidate in _decode_calls(payload).candidates if candidate.index == 0]
        calls = [part.functionCall.args or part.function_call.args for part in calling[-1].content.parts]
        return [bytes(args).decode() or None for args in calls]
    except NOT_LISTED:
        return []


def read_usage(source: bytes) -> Usage | None:
    """Token counts of a ``usageMetadata`` object; ``None`` when there are none, or none that can be read.

    The typed reading takes the object as it stands: numbers beyond all bounds, and bytes that are no text.
    """
    try:
        raw = canonical.decode_lenient(source) if source else None
    except msgspec.DecodeError:
        return None
    if not isinstance(raw, dict) or not raw:
        return None
    return Usage(
        input=raw.get("promptTokenCount"),
        output=raw.get("candidatesTokenCount"),
        reasoning=raw.get("thoughtsTokenCount"),
        cached=raw.get("cachedContentTokenCount"),
        counted=("reasoning_beside_output",),
        wire=canonical.source(raw),
    )
