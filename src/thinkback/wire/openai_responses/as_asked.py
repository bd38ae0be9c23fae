"""Where a client has its instructions: beside the input, or as the first message of it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

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
