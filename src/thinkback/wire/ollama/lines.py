"""The wire shapes of ``/api/chat``, typed for speed, its usage and its errors.

A key or a type that is not listed makes decoding fail, and ``read`` falls back to a reading that keeps whatever comes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Failure, Usage
from thinkback.wire.documents import NOT_LISTED
from thinkback.wire.values import words


class Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What one line adds to the message; tool calls come whole and seldom, so the general reading takes them."""

    role: str | None = None
    content: str | None = None
    thinking: str | None = None


class Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of a stream but for the last one."""

    message: Message
    model: str | None = None
    created_at: str | None = None
    done: bool = False


class _Function(msgspec.Struct):
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _Call(msgspec.Struct):
    function: _Function


class _Calls(msgspec.Struct):
    tool_calls: list[_Call]


class _Calling(msgspec.Struct):
    message: _Calls


decode_line = msgspec.json.Decoder(Line).decode
_decode_calling = msgspec.json.Decoder(_Calling).decode

_COUNTS = (
    "prompt_eval_count",
    "eval_count",
    "total_duration",
    "load_duration",
    "prompt_eval_duration",
    "eval_duration",
)


def argument_sources(payload: bytes) -> list[str]:
    """The source text of the arguments of each call in ``payload``.

    None where a call is not as usual, or where a lone surrogate in the line keeps msgspec from reading it.
    """
    try:
        calls = _decode_calling(payload).message.tool_calls
        return [bytes(call.function.arguments).decode() for call in calls]
    except NOT_LISTED:
        return []


def read_usage(body: dict[str, Any]) -> Usage | None:
    """Token counts and durations, which stand among the fields of the last line; ``None`` when there are none."""
    counts = {key: body[key] for key in _COUNTS if key in body}
    if not counts:
        return None
    return Usage(
        input=counts.get("prompt_eval_count"),
        output=counts.get("eval_count"),
        wire=canonical.source(counts),
    )


def is_count(key: str) -> bool:
    """Whether a field of the last line is one of those that ``read_usage`` takes."""
    return key in _COUNTS


def read_failure(status: int, body: Any) -> Failure:
    """Ollama's own words from a parsed error body: ``{"error": "text"}``, or the object its cloud gives."""
    error = (body.get("error") or body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Failure(words(error), status)
    code = error.get("code")
    return Failure(
        words(error.get("message") or error),
        status,
        type=words(error.get("type") or ""),
        code=words("" if code is None else code),
    )
