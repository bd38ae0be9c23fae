"""JSON documents from providers: objects of a depth that every later step can handle."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Failure

# What a typed decoder raises for a payload that its shape does not list; the slow path reads it, or says what is wrong.
NOT_LISTED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# A body with more levels is no response; the limit keeps every later encoding within the interpreter's.
_DEPTH = 100
_NESTING = (dict, list)
PAGE = "html"
"""The code of a failure where a page for browsers came in the place of an answer."""
_IS_PAGE = r"(?is)\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b"
_TITLE = r"(?i)<title[^>]*>([^<]*)</title"
_LONGEST_TITLE = 80
# A page says what it is at its beginning; a body without an end is not searched for it.
_HEAD = 8_192
_decode = msgspec.json.Decoder().decode


def read_object(payload: bytes) -> tuple[dict[str, Any], bool] | Failure:
    """The JSON object that ``payload`` is and whether it may hold half a letter, or why it is none that can be used."""
    may_be_cut = False
    try:
        body = _decode(payload)
    except NOT_LISTED:
        # Half a letter is one of the things that this decoder refuses.
        may_be_cut = True
        try:
            body = canonical.decode_lenient(payload)
        except msgspec.DecodeError as error:
            return not_json(payload, error)
    if not isinstance(body, dict) or is_too_deep(payload, body):
        return Failure("a part of the response is not a JSON object of usual depth", type="malformed")
    return body, may_be_cut


def not_json(payload: bytes, error: Exception) -> Failure:
    """What is said of a ``payload`` that no JSON decoder reads; a page for browsers is called so."""
    page = page_of(payload[:_HEAD].decode("utf-8", "replace"))
    if page:
        return Failure(f"the response is {page}, not JSON", code=PAGE, type="malformed")
    return Failure(f"a part of the response is not JSON: {error}", type="malformed")


def page_of(text: str) -> str:
    """What a page for browsers is called in an error, with its title; nothing for any other text."""
    head = text[:_HEAD]
    if not re.match(_IS_PAGE, head):
        return ""
    title = re.search(_TITLE, head)
    words = " ".join(title[1].split()) if title is not None else ""
    return f'a web page (HTML), "{words[:_LONGEST_TITLE]}"' if words else "a web page (HTML)"


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
