"""A response whose summaries nobody asked for, as the provider gives it then: items of reasoning without summary.

Promises: the events that are left are numbered one after another; every other member stays as it came; bytes that are
no JSON do not raise. Must not: decide who may read what.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Raw

from thinkback.wire.framing import DATA_LINE, written_events

_Members: TypeAlias = dict[str, Raw]
_Change: TypeAlias = Callable[[_Members], _Members]

_SUMMARY = re.compile(rb'"type"\s*:\s*"response\.reasoning_summary')
_NUMBER = re.compile(rb'("sequence_number"\s*:\s*)([0-9]+)')
_members = msgspec.json.Decoder(dict[str, Raw])
_items = msgspec.json.Decoder(list[Raw])
_REASONING = b'"reasoning"'


class Hiding:
    """Of one response; a stream is given in pieces of whole events."""

    def __init__(self) -> None:
        self._gone = 0

    def events(self, data: bytes) -> bytes:
        """``data`` without the events of summaries."""
        return b"".join(self._event(event) for event in written_events(data))

    def document(self, data: bytes) -> bytes:
        """A whole response without summaries."""
        return _without(data, _response)

    def _event(self, event: bytes) -> bytes:
        if _SUMMARY.search(event) is not None:
            self._gone += 1
            return b""
        if b'"summary"' in event:
            event = DATA_LINE.sub(lambda found: found[1] + _without(found[2], _payload) + found[3], event)
        if self._gone:
            event = _NUMBER.sub(lambda found: b"%b%d" % (found[1], int(found[2]) - self._gone), event, 1)
        return event


def _without(data: bytes, change: _Change) -> bytes:
    if b'"summary"' not in data:
        return data
    try:
        members = _members.decode(data)
        changed = change(members)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return data
    return msgspec.json.encode(changed)


def _payload(members: _Members) -> _Members:
    """An event: it has an item, or the response so far."""
    found: _Members = dict(members)
    if "item" in members:
        found["item"] = _item(members["item"])
    if "response" in members:
        found["response"] = Raw(msgspec.json.encode(_response(_members.decode(members["response"]))))
    return found


def _response(members: _Members) -> _Members:
    found = dict(members)
    if "output" in members:
        items = [_item(item) for item in _items.decode(members["output"])]
        found["output"] = Raw(b"[%b]" % b",".join(items))
    asked = members.get("reasoning")
    if asked is not None and b'"summary"' in bytes(asked):
        found["reasoning"] = Raw(msgspec.json.encode({**_members.decode(asked), "summary": None}))
    return found


def _item(source: Raw) -> Raw:
    if b'"summary"' not in bytes(source):
        return source
    members = _members.decode(source)
    if bytes(members.get("type", Raw(b""))) != _REASONING:
        return source
    return Raw(msgspec.json.encode({**members, "summary": []}))
