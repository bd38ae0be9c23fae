"""What a gateway needs to answer clients of the Responses API."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from thinkback.wire.front import ROUTERS, Address, Body, Field, Front, is_object
from thinkback.wire.openai import list_models, show_model
from thinkback.wire.openai_responses.opaque import MARKED, ends, rewrite
from thinkback.wire.openai_responses.write_response import Writer, write_error, write_response

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
        models=(*ROUTERS, Field("model", "tools"), Field("prompt")),
        stored=(
            Field("background"),
            Field("conversation"),
            Field("prompt"),
            # tools may also be given as an item
            *(Field(key, under) for key in _STORED for under in ("input", "tools")),
            *(Field("container", under, is_object) for under in ("input", "tools")),
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
    closing=b"",
    blocks_in_order=True,
    id_prefix="resp_",
    headers=("openai-beta",),
    request_id="",
    operation="chat",
    list_models=list_models,
    show_model=show_model,
)
