"""The wire shapes of the Messages API: the deltas of a stream, typed for speed, token counts and errors.

Only what streams carry all the time is listed; a key, a type or an event that is not makes decoding fail, and
``read`` falls back to a reading that keeps whatever comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Failure, Usage, token_count


class TextPiece(
    msgspec.Struct, tag_field="type", tag="text_delta", rename={"value": "text"}, forbid_unknown_fields=True, gc=False
):
    """A fragment of visible text."""

    field: ClassVar[str] = "text"
    value: str


class ThinkingPiece(
    msgspec.Struct,
    tag_field="type",
    tag="thinking_delta",
    rename={"value": "thinking"},
    forbid_unknown_fields=True,
    gc=False,
):
    """A fragment of reasoning. ``estimated_tokens`` belongs to the frame, not to the block."""

    field: ClassVar[str] = "thinking"
    value: str
    estimated_tokens: int | None = None


class InputPiece(
    msgspec.Struct,
    tag_field="type",
    tag="input_json_delta",
    rename={"value": "partial_json"},
    forbid_unknown_fields=True,
    gc=False,
):
    """A fragment of a tool's input, as source text."""

    field: ClassVar[str] = "partial_json"
    value: str


class SignaturePiece(
    msgspec.Struct,
    tag_field="type",
    tag="signature_delta",
    rename={"value": "signature"},
    forbid_unknown_fields=True,
    gc=False,
):
    """A signature, whole."""

    field: ClassVar[str] = "signature"
    value: str


ContentPiece: TypeAlias = TextPiece | ThinkingPiece | InputPiece | SignaturePiece


class DeltaEvent(
    msgspec.Struct, tag_field="type", tag="content_block_delta", forbid_unknown_fields=True, gc=False, frozen=True
):
    """What one event adds to the block ``index``."""

    index: int
    delta: ContentPiece


decode_delta = msgspec.json.Decoder(DeltaEvent).decode


def read_usage(raw: Mapping[str, Any]) -> Usage | None:
    """Token counts of a ``usage`` object (already parsed); ``None`` when there are none."""
    if not raw:
        return None
    details = raw.get("output_tokens_details")
    return Usage(
        input=raw.get("input_tokens"),
        output=raw.get("output_tokens"),
        reasoning=details.get("thinking_tokens") if isinstance(details, Mapping) else None,
        cached=raw.get("cache_read_input_tokens"),
        cache_write=raw.get("cache_creation_input_tokens"),
        counted=("cache_beside_input",),
        wire=canonical.source(raw),
        last_input=_last_input(raw.get("iterations")),
    )


def _last_input(iterations: object) -> int | None:
    """The input of the model's own last call; others are those of tools that the provider ran."""
    calls = iterations if isinstance(iterations, list) else []
    own = [each for each in calls if isinstance(each, Mapping) and each.get("type", "message") == "message"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [token_count(own[-1].get(name)) for name in names] if own else [None]
    return None if counts[0] is None else sum(filter(None, counts))


def read_failure(status: int, body: Any) -> Failure:
    """The provider's own words from a parsed error body.

    Hosts of the dialect have their own shapes: Google puts the error into a list and calls its type ``status``, AWS
    and simple servers give a ``message`` or a ``detail`` alone.
    """
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return Failure(_words(error) or f"the provider answered with HTTP status {status}", status)
    kind = error.get("type") or error.get("status")
    code = error.get("code")
    return Failure(
        message=_words(error.get("message") or error.get("detail") or dict(error)),
        status=status,
        type=_words(kind) if kind else "",
        code="" if code is None else _words(code),
    )


def _words(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical.source(value)
