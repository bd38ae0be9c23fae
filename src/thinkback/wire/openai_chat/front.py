"""What a gateway needs to answer clients of chat completions."""

from __future__ import annotations

import re
from typing import Any

from thinkback.wire.front import ROUTERS, Address, Body, Field, Front, both_spellings
from thinkback.wire.openai import list_models, show_model
from thinkback.wire.openai_chat.opaque import CLOSING, MARKED, ends, rewrite
from thinkback.wire.openai_chat.write_response import Writer, write_error, write_response

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
    closing=CLOSING,
    blocks_in_order=False,
    id_prefix="chatcmpl-",
    headers=("openai-beta",),
    request_id="",
    operation="chat",
    list_models=list_models,
    show_model=show_model,
)
