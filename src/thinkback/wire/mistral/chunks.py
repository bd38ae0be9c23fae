"""The wire shapes of Mistral's chat completions, typed for speed, its usage and its errors.

A key or a type that is not listed makes decoding fail, and ``read`` falls back to a reading that keeps whatever comes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Failure, Usage
from thinkback.wire.values import words

# Only as deep as they are on the wire: what these shapes let through needs no further check.
_Plain: TypeAlias = str | int | float | bool | None
Counts: TypeAlias = dict[str, _Plain | dict[str, _Plain]]


class TextChunk(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="text"):
    """Visible text, also inside a thinking chunk."""

    text: str


class ThinkChunk(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="thinking"):
    """A piece of reasoning. ``signature`` and ``closed`` are kept as they stood, be it as null."""

    thinking: list[TextChunk]
    signature: str | msgspec.UnsetType | None = msgspec.UNSET
    closed: bool | msgspec.UnsetType | None = msgspec.UNSET


class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What one chunk adds to the message; tool calls come whole and seldom, so the general reading takes them."""

    role: str | None = None
    content: str | list[TextChunk | ThinkChunk] | None = None
    tool_calls: None = None


class Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One choice; only index 0 is read."""

    delta: Delta | None = None
    finish_reason: str | None = None
    index: int | None = 0
    logprobs: None = None


class Chunk(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One ``chat.completion.chunk``; ``p`` is padding."""

    choices: list[Choice] | None = None
    id: str | None = None
    object: str | None = None
    created: int | None = None
    model: str | None = None
    p: str | None = None
    usage: Counts | None = None


decode_chunk = msgspec.json.Decoder(Chunk).decode


def read_usage(raw: Any) -> Usage | None:
    """Token counts of a ``usage`` object (already parsed); ``None`` when there are none."""
    if not isinstance(raw, dict) or not raw:
        return None
    prompt, completion = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
    return Usage(
        input=raw.get("prompt_tokens"),
        output=raw.get("completion_tokens"),
        reasoning=completion.get("reasoning_tokens") if isinstance(completion, dict) else None,
        cached=prompt.get("cached_tokens") if isinstance(prompt, dict) else None,
        wire=canonical.source(raw),
    )


def read_failure(status: int, body: Any) -> Failure:
    """The provider's own words from a parsed error body.

    Refused fields come as ``{"detail": [{"loc", "msg", "type"}]}``, also as the ``message`` of the usual object; the
    place of each is told with it.
    """
    error = body.get("error") or body if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Failure(words(error), status)
    said = error.get("message") or error
    details = said.get("detail") if isinstance(said, dict) else None
    listed = [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []
    kind = error.get("type") or (listed[0].get("type") if listed else "")
    code = error.get("code")
    return Failure(
        "; ".join(map(_detail, listed)) or words(details or said),
        status,
        type=words(kind or ""),
        code=words("" if code is None else code),
    )


def _detail(detail: dict[str, Any]) -> str:
    place = detail.get("loc")
    said = words(detail.get("msg") or detail)
    return f"{'.'.join(map(str, place))}: {said}" if isinstance(place, list) and place else said
