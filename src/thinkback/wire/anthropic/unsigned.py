"""Reasoning that came without a signature, given one: programs take one for what they keep reasoning by.

Promises: what is signed, and every event and member beside, stays as it came; bytes that are no JSON do not raise.
Must not: know what stands in a signature.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from thinkback.model import canonical

_EVENT = re.compile(rb".*?(?:\r\n\r\n|\n\n|\Z)", re.DOTALL)
_DATA = re.compile(rb"^data: ?(.*?)\r?$", re.MULTILINE)
_BEGINS = re.compile(rb'"type"\s*:\s*"thinking"')
_MATTERS = (b"content_block_start", b"signature_delta", b"content_block_stop")
_SIGNATURE = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%b}\n\n'
_DELTA = b'{"type":"signature_delta","signature":%b}'


class Signing:
    """Signs the reasoning of one response with ``sign()``. A stream is given in pieces of whole events."""

    def __init__(self, sign: Callable[[], str]) -> None:
        self._sign = sign
        # The blocks of reasoning that have begun, and have no signature so far.
        self._open: set[int] = set()

    def events(self, data: bytes) -> bytes:
        """``data`` with a signature in front of the end of each block that brought none."""
        if not self._open and _BEGINS.search(data) is None:
            return data
        if not any(mark in data for mark in _MATTERS):
            return data
        return b"".join(self._event(event) for event in _EVENT.findall(data))

    def document(self, data: bytes) -> bytes:
        """A whole message with a signature in each block that has none."""
        if _BEGINS.search(data) is None:
            return data
        try:
            message = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
            blocks = msgspec.json.decode(message["content"], type=list[msgspec.Raw])
            signed = [self._signed(block) for block in blocks]
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
            return data
        if signed == blocks:
            return data
        return msgspec.json.encode({**message, "content": signed})

    def _signed(self, block: msgspec.Raw) -> msgspec.Raw:
        if not _is_unsigned(msgspec.json.decode(block)):
            return block
        members = msgspec.json.decode(block, type=dict[str, msgspec.Raw])
        members["signature"] = msgspec.Raw(canonical.string(self._sign()))
        return msgspec.Raw(msgspec.json.encode(members))

    def _event(self, event: bytes) -> bytes:
        said = _DATA.search(event) if any(mark in event for mark in _MATTERS) else None
        body = _decoded(said.group(1)) if said is not None else {}
        index = body.get("index")
        if not isinstance(index, int):
            return event
        match body.get("type"):
            case "content_block_start" if _is_unsigned(body.get("content_block")):
                self._open.add(index)
            case "content_block_delta" if _has_signature(body.get("delta")):
                self._open.discard(index)
            case "content_block_stop" if index in self._open:
                self._open.discard(index)
                return _SIGNATURE % (index, _DELTA % canonical.string(self._sign())) + event
        return event


def _is_unsigned(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "thinking" and not block.get("signature")


def _has_signature(delta: Any) -> bool:
    return isinstance(delta, dict) and bool(delta.get("signature"))


def _decoded(source: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(source, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
