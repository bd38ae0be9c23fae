"""The wire shapes of Converse: events typed for speed, usage, and errors.

Only deltas are listed, which is nearly all of a stream; a key or a type that is not makes decoding fail, and ``read``
falls back to a reading that keeps whatever comes. ``p`` is padding, there to hide the length of an event; it is
not kept.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Failure, Usage
from thinkback.wire.event_stream import EXCEPTION
from thinkback.wire.result import Stop
from thinkback.wire.values import words

STOPS: dict[str, Stop] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "safety",
    "content_filtered": "safety",
    "refusal": "refusal",
    "pause_turn": "paused",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}


class ReasoningDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One of the three."""

    text: str | None = None
    signature: str | None = None
    redactedContent: str | None = None


class ToolUseDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A fragment of the input's JSON."""

    input: str


class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What one event adds to a content block; one of the three."""

    text: str | None = None
    reasoningContent: ReasoningDelta | None = None
    toolUse: ToolUseDelta | None = None


class ContentBlockDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The event that a stream is made of."""

    contentBlockIndex: int
    delta: Delta
    p: str = ""


class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A delta; every other event is read as it comes."""

    contentBlockDelta: ContentBlockDelta


decode_event = msgspec.json.Decoder(Event).decode


def read_usage(raw: Any) -> Usage | None:
    """Token counts of a ``usage`` object (already parsed); ``None`` when there are none."""
    if not isinstance(raw, dict) or not raw:
        return None
    return Usage(
        input=raw.get("inputTokens"),
        output=raw.get("outputTokens"),
        cached=raw.get("cacheReadInputTokens"),
        cache_write=raw.get("cacheWriteInputTokens"),
        counted=("cache_beside_input",),
        wire=canonical.source(raw),
    )


def read_failure(status: int, body: Any) -> Failure:
    """The provider's own words from a parsed error body or an exception of a stream."""
    if not isinstance(body, dict):
        return Failure(words(body), status)
    if EXCEPTION in body:
        return _failure(status, str(body[EXCEPTION]), body.get("body"))
    for key, value in body.items():
        if key.endswith("Exception"):
            return _failure(status, key, value)
    return _failure(status, str(body.get("__type") or body.get("code") or ""), body)


def _failure(status: int, type: str, body: Any) -> Failure:
    """``type`` may come with a name space; a stream's exception may name the status and words of the model's own."""
    said = body if isinstance(body, dict) else {}
    message = said.get("message") or said.get("Message") or said.get("errorMessage") or body
    own, upstream = said.get("originalStatusCode"), said.get("originalMessage")
    return Failure(
        message=words(message),
        status=status,
        type=type.rpartition("#")[2],
        code=str(own) if isinstance(own, int) else "",
        upstream=upstream if isinstance(upstream, str) else "",
    )


def is_error(body: dict[str, Any]) -> bool:
    """Whether an object that is no event and no response says what went wrong."""
    return any(key in body for key in (EXCEPTION, "__type", "message", "Message")) or any(
        key.endswith("Exception") for key in body
    )
