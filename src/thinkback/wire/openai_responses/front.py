"""What a gateway needs to answer clients of the Responses API: opaque values, ends of streams, ``FRONT``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from thinkback.wire.framing import last_event
from thinkback.wire.front import ROUTERS, Address, Body, Field, Front, Unserved, is_object
from thinkback.wire.openai import list_models, show_model
from thinkback.wire.openai_responses.hiding import Hiding
from thinkback.wire.openai_responses.write_response import Writer, write_error, write_response
from thinkback.wire.splicing import spliced

# A key with a text that is not empty; most events have none.
MARKED = re.compile(rb'"(?:encrypted_content|signature)"\s*:\s*"[^"]')
_OPAQUE = frozenset({b"encrypted_content", b"signature"})
# What holds them: an item that begins or is done, or the output of a response, by itself or in its last event.
_HOLDERS = frozenset({(b"item",), (b"output", b""), (b"response", b"output", b"")})
_LAST = (b"response.completed", b"response.incomplete", b"response.failed")
_ANY = b"|".join(map(re.escape, _LAST))
_ENDS = (
    re.compile(rb'"type"\s*:\s*"(?:%b)' % _ANY),
    re.compile(rb"event:(?<![^\r\n]event:) ?(?:%b)" % _ANY),
)


def rewrite(payload: bytes, change: Callable[[str], str]) -> bytes:
    """An event or a response with ``change(value)`` for each opaque value in it, all else as it came."""
    if MARKED.search(payload) is None:
        return payload
    return spliced(payload, _is_opaque, change)


def ends(piece: bytes) -> int:
    """Where the event that closes a response begins in a piece of a stream, -1 where it does not."""
    return last_event(piece, *_ENDS) if any(name in piece for name in _LAST) else -1


def _is_opaque(path: Sequence[bytes]) -> bool:
    return 1 < len(path) < 5 and path[-1] in _OPAQUE and tuple(path[:-1]) in _HOLDERS


def _leads_on(tools: Any) -> bool:
    """Whether one of the tools of an item names a model."""
    return isinstance(tools, list) and any(isinstance(tool, dict) and bool(tool.get("model")) for tool in tools)


def _is_image_by_id(item: dict[str, Any]) -> bool:
    """An image that was made before, without the image."""
    return item.get("type") == "image_generation_call" and bool(item.get("id")) and not item.get("result")


_STORED = ("file_id", "file_ids", "container_id", "vector_store_ids", "skill_id", "connector_id", "tunnel_id")
_KEY = "instructions"
_members = msgspec.json.Decoder(dict[str, Raw])
_items = msgspec.json.Decoder(list[Raw])
_values: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def as_asked(asked: bytes, planned: bytes) -> bytes:
    """``planned`` with its first message as ``instructions``, if it is what the request ``asked`` has there.

    A log knows system messages alone, so that they are written in the input; bodies are JSON objects.
    """
    if b'"instructions"' not in asked:
        return planned
    try:
        told = _members.decode(asked).get(_KEY)
        body = _members.decode(planned)
        items = _items.decode(body.get("input", b"[]"))
        instructions = None if told is None else _values.decode(told)
    except msgspec.DecodeError:  # half a surrogate pair, say: the plan says it as it can
        return planned
    if told is None or _KEY in body or not items or not isinstance(instructions, str):
        return planned
    if _values.decode(items[0]) != {"role": "system", "content": instructions}:
        return planned
    rest = Raw(b"[%b]" % b",".join(items[1:]))
    return msgspec.json.encode({**body, "input": rest, _KEY: told})


FRONT = Front(
    address=Address(paths={"/responses": False}, calls={}, marks=re.compile(r"/responses\Z"), header=""),
    body=Body(
        messages="input",
        one_message=str,
        continues=("previous_response_id", "conversation", "prompt"),
        previous="previous_response_id",
        end_user=("safety_identifier", "user", "metadata.user_id"),
        kinds={
            "include": "list",
            "instructions": "text",
            "metadata": "object",
            "previous_response_id": "text",
            "reasoning": "object",
            "safety_identifier": "text",
            "store": "boolean",
            "stream": "boolean",
            "text": "object",
            "tools": "list",
            "user": "text",
        },
        usage="",
        thinking="",
        models=(*ROUTERS, Field("model", "tools"), Field("tools", "input", _leads_on), Field("prompt")),
        stored=(
            Field("conversation"),
            Field("prompt"),
            # tools may also be given as an item
            *(Field(key, under) for key in _STORED for under in ("input", "tools")),
            *(Field("container", under, is_object) for under in ("input", "tools")),
            Field("", "input", _is_image_by_id),
        ),
        unserved=(
            Unserved(
                "background",
                True,
                "background_not_supported",
                "background responses are not served here: send the request without background",
            ),
        ),
    ),
    writer=Writer,
    write_response=write_response,
    write_error=write_error,
    rewrite=rewrite,
    ends=ends,
    marked=MARKED,
    bare=str,
    without_counts=None,
    as_asked=as_asked,
    reports="",
    signing=None,
    hiding=Hiding,
    closing=b"",
    blocks_in_order=True,
    id_prefix="resp_",
    headers=("openai-beta",),
    request_id="",
    operation="chat",
    list_models=list_models,
    show_model=show_model,
)
