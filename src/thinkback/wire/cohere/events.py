"""The wire shapes of Cohere's chat: events typed for speed, usage, and errors.

Only what streams carry in nearly every event is listed; a key or a type that is not makes decoding fail, and ``read``
falls back to a reading that keeps whatever comes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Failure, Usage
from thinkback.wire.result import Stop

STOPS: dict[str, Stop] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "TOOL_CALL": "tool_calls",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "safety",
    "ERROR": "error",
    "TIMEOUT": "error",
    "USER_CANCEL": "error",
}


class Content(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A piece of a content item: one of the two."""

    thinking: str | None = None
    text: str | None = None


class Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A piece of a call's arguments."""

    arguments: str


class Call(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A piece of a call."""

    function: Function


class Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What an event adds to the message: one of the three."""

    content: Content | None = None
    tool_calls: Call | None = None
    tool_plan: str | None = None


class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The delta of an event."""

    message: Message


class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An event with a delta; those that begin or end something are read as they come."""

    type: str
    delta: Delta
    index: int = 0


decode_event = msgspec.json.Decoder(Event).decode


def read_usage(raw: Any) -> Usage | None:
    """Token counts of a ``usage`` object (already parsed); billed units stay in its ``wire``."""
    if not isinstance(raw, dict) or not raw:
        return None
    tokens = raw.get("tokens")
    counts = tokens if isinstance(tokens, dict) else {}
    return Usage(
        input=counts.get("input_tokens"),
        output=counts.get("output_tokens"),
        reasoning=counts.get("reasoning_tokens"),
        cached=raw.get("cached_tokens"),
        wire=canonical.source(raw),
    )


def read_failure(status: int, body: Any) -> Failure:
    """The provider's own words from a parsed error body."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Failure(_text(error), status)
    message = error.get("message") or error.get("detail") or error
    return Failure(_text(message), status, type=_plain(error.get("type")), code=_plain(error.get("code")))


def _plain(value: object) -> str:
    return str(value) if isinstance(value, str | int) and value != "error" else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else canonical.source(value)
