"""What a gateway needs to answer clients of chat completions: opaque values, ends of streams, ``FRONT``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from thinkback.wire.front import ROUTERS, Address, Body, Field, Front, both_spellings
from thinkback.wire.openai import list_models, show_model
from thinkback.wire.openai_chat.write_response import Writer, write_error, write_response
from thinkback.wire.splicing import spliced

# A key with a text that is not empty; most chunks have none.
MARKED = re.compile(rb'"(?:signature|data|thought_signature|reasoning_opaque)"\s*:\s*"[^"]')
CLOSING = b"data: [DONE]\n\n"
_DEEPEST = 9
_ANYWHERE = frozenset({b"thought_signature", b"reasoning_opaque"})
_HOLDERS = {
    b"reasoning_details": frozenset({b"signature", b"data"}),
    b"thinking_blocks": frozenset({b"signature", b"data"}),
    b"content": frozenset({b"signature"}),
}
_DONE = re.compile(rb"data:(?<![^\r\n]data:) ?\[DONE\](?=[\r\n]|\Z)")


def rewrite(payload: bytes, change: Callable[[str], str]) -> bytes:
    """A chunk or a completion with ``change(value)`` for each opaque value of the message, all else as it came."""
    if MARKED.search(payload) is None:
        return payload
    return spliced(payload, _is_opaque, change)


def ends(piece: bytes) -> int:
    """Where ``data: [DONE]`` begins in a piece of a stream, -1 where it does not."""
    if b"[DONE]" not in piece:
        return -1
    found = _DONE.search(piece)
    return -1 if found is None else found.start()


def _is_opaque(path: Sequence[bytes]) -> bool:
    if not 4 <= len(path) <= _DEEPEST or path[0] != b"choices" or path[2] not in (b"message", b"delta"):
        return False
    if path[-1] in _ANYWHERE:
        return b"arguments" not in path
    return path[-1] in _HOLDERS.get(path[3], ())


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
# A chunk with counts and no choice: it is there for them alone.
_NO_CHOICE = re.compile(rb'"choices"\s*:\s*\[\s*\]')


def without_counts(events: bytes) -> bytes:
    """Whole events of a stream without those that only count tokens."""
    if b'"usage"' not in events or _NO_CHOICE.search(events) is None:
        return events
    end = b"\r\n\r\n" if b"\r\n\r\n" in events else b"\n\n"
    kept = [event for event in events.split(end) if not (b'"usage"' in event and _NO_CHOICE.search(event))]
    return end.join(kept)


def _is_of_account(value: Any) -> bool:
    """An address that only an account understands, as Kimi's ``ms://`` is."""
    scheme = _SCHEME.match(value) if isinstance(value, str) else None
    return scheme is not None and scheme[0].lower() not in ("http://", "https://")


def _is_files(value: Any) -> bool:
    """Text that Qwen-Long reads as the files of the account that it names."""
    return isinstance(value, str) and value.startswith("fileid://")


FRONT = Front(
    # Every request that no other front claims is of this one.
    address=Address(paths={"/chat/completions": False}, calls={}, marks=re.compile(""), header=""),
    body=Body(
        messages="messages",
        one_message=None,
        continues=(),
        previous="",
        end_user=("safety_identifier", "user", "metadata.user_id"),
        kinds={
            "metadata": "object",
            "safety_identifier": "text",
            "stream": "boolean",
            "stream_options": "object",
            "tools": "list",
            "user": "text",
        },
        usage="stream_options.include_usage",
        thinking="",
        models=(*ROUTERS, Field("model", "tools"), Field("model", "web_search_options")),
        stored=(
            Field("file_id", "messages"),
            Field("audio.id", "messages"),
            Field("url", "messages", _is_of_account),
            Field("content", "messages", _is_files),
            Field("text", "messages", _is_files),
            Field("id", "audio"),
            *both_spellings("cachedContent", "google.cachedContent", "extra_body.google.cachedContent"),
        ),
    ),
    writer=Writer,
    write_response=write_response,
    write_error=write_error,
    rewrite=rewrite,
    ends=ends,
    marked=MARKED,
    bare=str,
    without_counts=without_counts,
    as_asked=None,
    reports="",
    signing=None,
    hiding=None,
    closing=CLOSING,
    blocks_in_order=False,
    id_prefix="chatcmpl-",
    headers=("openai-beta",),
    request_id="",
    operation="chat",
    list_models=list_models,
    show_model=show_model,
)
