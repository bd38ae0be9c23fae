"""A response whose thoughts nobody asked to read, as the provider gives it then: without the parts that are thoughts.

Promises: every other part and member stays as it came; bytes that are no JSON do not raise. Must not: decide who may
read what.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec
from msgspec import Raw

from thinkback.wire.framing import DATA_LINE, written_events

_THOUGHT = re.compile(rb'"thought"\s*:\s*true')
_Members: TypeAlias = dict[str, Raw]
_members = msgspec.json.Decoder(_Members)
_list = msgspec.json.Decoder(list[Raw])


class Hiding:
    """Of one response; a stream is given in pieces of whole events."""

    def events(self, data: bytes) -> bytes:
        """``data`` without thoughts, and without the events that bring nothing else."""
        if _THOUGHT.search(data) is None:
            return data
        return b"".join(map(_event, written_events(data)))

    def document(self, data: bytes) -> bytes:
        """A whole response without thoughts."""
        return _without(data)[0]


def _event(event: bytes) -> bytes:
    found = DATA_LINE.search(event)
    if found is None:
        return event
    payload, says = _without(found[2])
    return event[: found.start(2)] + payload + event[found.end(2) :] if says else b""


def _without(data: bytes) -> tuple[bytes, bool]:
    """(``data`` without thoughts, whether it says anything else)."""
    if _THOUGHT.search(data) is None:
        return data, True
    try:
        members = _members.decode(data)
        candidates = [_candidate(_members.decode(each)) for each in _list.decode(members["candidates"])]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
        return data, True
    written = Raw(b"[%b]" % b",".join(map(msgspec.json.encode, candidates)))
    says = any("finishReason" in each or b'"parts"' in bytes(each.get("content", Raw(b""))) for each in candidates)
    return msgspec.json.encode({**members, "candidates": written}), says


def _candidate(candidate: _Members) -> _Members:
    if "content" not in candidate:
        return candidate
    content = _members.decode(candidate["content"])
    parts = _list.decode(content.get("parts", Raw(b"[]")))
    kept = [part for part in parts if not _is_thought(part)]
    if len(kept) == len(parts):
        return candidate
    rest = {key: value for key, value in content.items() if key != "parts"}
    if kept:
        rest["parts"] = Raw(b"[%b]" % b",".join(kept))
    return {**candidate, "content": Raw(msgspec.json.encode(rest))}


def _is_thought(part: Raw) -> bool:
    return _THOUGHT.search(part) is not None and bytes(_members.decode(part).get("thought", Raw(b""))) == b"true"
