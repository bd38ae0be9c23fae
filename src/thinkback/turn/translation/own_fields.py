"""Fields that a program adds to its requests for one provider alone, and that other places may refuse.

Promises: they are taken out where an endpoint's ``takes`` does not name them, and everything else stays as it is
written. Must not: look at what a field says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.model import canonical
from thinkback.model.rule import Endpoint
from thinkback.wire.registry import dialect
from thinkback.wire.sources import items, joined, members


def own_fields(front: str, body: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of such fields in the ``body`` of a request of dialect ``front``."""
    return tuple(path for path in dialect(front).parameters.own if _says(body, path))


def _says(body: Mapping[str, Any], path: str) -> bool:
    key, _, name = path.partition(".")
    if not name:
        return key in body
    held = body.get(key)
    return isinstance(held, list) and any(isinstance(each, dict) and name in each for each in held)


def without_own(front: str, endpoint: Endpoint, body: bytes) -> bytes:
    """The JSON object ``body``, a request of dialect ``front``, without such fields as ``endpoint`` may not know."""
    for path in dialect(front).parameters.own:
        key, _, name = path.rpartition(".")
        if path not in endpoint.takes and b'"%b"' % name.encode() in body:
            body = canonical.raw(_without(members(body), key, name))
    return body


def _without(fields: dict[str, str], key: str, name: str) -> str:
    """The object of ``fields`` without the member ``name``, or without that of each object in the list at ``key``."""
    if not key:
        return joined({other: source for other, source in fields.items() if other != name})
    held = fields.get(key, "")
    if not held.startswith("["):
        return joined(fields)
    written = (_without(members(item), "", name) if item.startswith("{") else item for item in items(held))
    return joined({**fields, key: f"[{','.join(written)}]"})
