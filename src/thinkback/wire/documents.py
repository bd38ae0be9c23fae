"""JSON documents from providers: objects of a depth that every later step can handle."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Failure

# What a typed decoder raises for a payload that its shape does not list; the slow path reads it, or says what is wrong.
NOT_LISTED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# A body with more levels is no response; the limit keeps every later encoding within the interpreter's.
_DEPTH = 100
_NESTING = (dict, list)


def read_object(payload: bytes) -> dict[str, Any] | Failure:
    """The JSON object that ``payload`` is, or why it is none that can be used."""
    try:
        body = canonical.decode(payload)
    except msgspec.DecodeError as error:
        return Failure(f"a part of the response is not JSON: {error}", type="malformed")
    if not isinstance(body, dict) or is_too_deep(payload, body):
        return Failure("a part of the response is not a JSON object of usual depth", type="malformed")
    return body


def is_too_deep(payload: bytes, body: dict[str, Any]) -> bool:
    """Whether ``body``, the object that ``payload`` is, has more levels than anything here can handle."""
    if payload.count(b"[") + payload.count(b"{") <= _DEPTH:
        return False
    level: list[Any] = [body]
    for _ in range(_DEPTH):
        level = [
            value
            for outer in level
            for value in (outer.values() if type(outer) is dict else outer)
            if type(value) in _NESTING
        ]
        if not level:
            return False
    return True
