"""What a gateway needs to answer clients of the Messages API: opaque values, ends of streams, signatures for reasoning
that came without one, ``FRONT``.

Promises: what is signed or rewritten, and every event and member beside, stays as it came; bytes that are no JSON do
not raise. Must not: know what stands in a signature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.wire.anthropic.hiding import Hiding
from thinkback.wire.anthropic.write_response import THREAD_NOT_FOUND, Writer, write_error, write_response
from thinkback.wire.framing import DATA_LINE, last_event, written_events
from thinkback.wire.front import ROUTERS, Address, Body, Field, Front, Listed, Unserved, is_object
from thinkback.wire.splicing import spliced

# A key with a text that is not empty; most events have none.
MARKED = re.compile(rb'"(?:signature|data|encrypted_content)"\s*:\s*"[^"]')
CLOSING = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_OPAQUE = frozenset({b"signature", b"data", b"encrypted_content"})
# What holds them: the content of a message, whole or in its first event, a block that begins, or what is added to one.
_HOLDERS = frozenset({(b"content", b""), (b"message", b"content", b""), (b"content_block",), (b"delta",)})
_ENDS = (
    re.compile(rb'"type"\s*:\s*"message_stop"'),
    re.compile(rb"event:(?<![^\r\n]event:) ?message_stop"),
)


def rewrite(payload: bytes, change: Callable[[str], str]) -> bytes:
    """An event or a message with ``change(value)`` for each opaque value in it, all else as it came."""
    if MARKED.search(payload) is None:
        return payload
    return spliced(payload, _is_opaque, change)


def ends(piece: bytes) -> int:
    """Where the event ``message_stop`` begins in a piece of a stream, -1 where it does not."""
    return last_event(piece, *_ENDS) if b"message_stop" in piece else -1


def _is_opaque(path: Sequence[bytes]) -> bool:
    return 1 < len(path) < 5 and path[-1] in _OPAQUE and tuple(path[:-1]) in _HOLDERS


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
        return b"".join(self._event(event) for event in written_events(data))

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
        said = DATA_LINE.search(event) if any(mark in event for mark in _MATTERS) else None
        body = _decoded(said.group(2)) if said is not None else {}
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


def _list_models(listed: Sequence[Listed]) -> dict[str, Any]:
    rows = [_show_model(each) for each in listed]
    first, last = (rows[0]["id"], rows[-1]["id"]) if rows else (None, None)
    return {"data": rows, "has_more": False, "first_id": first, "last_id": last}


def _show_model(listed: Listed) -> dict[str, Any]:
    made = datetime.fromtimestamp(listed.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": "model", "id": listed.id, "display_name": listed.display or listed.id, "created_at": made}


FRONT = Front(
    address=Address(
        paths={"/messages": False, "/messages/count_tokens": True},
        calls={},
        marks=re.compile("/messages"),
        header="anthropic-version",
    ),
    body=Body(
        messages="messages",
        one_message=None,
        continues=(),
        previous="",
        end_user=("metadata.user_id",),
        kinds={"metadata": "object", "stream": "boolean", "thinking": "object", "tools": "list"},
        usage="",
        thinking="thinking.type",
        models=(*ROUTERS, Field("model", "tools"), Field("model", "context_management"), Field("advisor")),
        stored=(
            Field("container", names=is_object),
            Field("file_id", "messages"),
            Field("file_id", "system"),
            Field("skills", "container"),
        ),
        unserved=(
            # Claude Code falls back by these words, the anthropic package by the code; another code ends the program.
            Unserved(
                "thread.type",
                "continue",
                THREAD_NOT_FOUND,
                "capability_rejected: beta_header:message-threads-2026-08-12: threads are not continued here; "
                "send the whole conversation",
            ),
        ),
        served_whole=("thread",),
    ),
    writer=Writer,
    write_response=write_response,
    write_error=write_error,
    rewrite=rewrite,
    ends=ends,
    marked=MARKED,
    bare=str,
    without_counts=None,
    as_asked=None,
    reports="context_management",
    signing=Signing,
    hiding=Hiding,
    unhidden=("thinking-token-count",),
    closing=CLOSING,
    blocks_in_order=True,
    id_prefix="msg_",
    headers=("anthropic-beta",),
    request_id="request-id",
    operation="chat",
    list_models=_list_models,
    show_model=_show_model,
)
