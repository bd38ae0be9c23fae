"""Keys that stand twice in an object: readers differ in which of the two they take, so such a body says no one thing.

Promises: a request in which one stands is refused, with its place; one in which none does costs passes over its bytes
and a look at each object. Pure.
"""

from __future__ import annotations

import json
from typing import Any

from thinkback.errors import WireError

_NESTING = (dict, list)
_LONGEST = 200


class _Pairs(list[tuple[str, Any]]):
    """The members of an object as they were written."""


def check_keys(data: bytes, body: dict[str, Any]) -> None:
    """Raise ``WireError`` where a key of ``data`` is not in ``body``, as which it was read: another took its place."""
    read = _read(body)
    if _at_most(data) == read or _written(data) == read:
        return
    path = _first(json.loads(data.decode("utf-8", "surrogatepass"), object_pairs_hook=_Pairs))
    where = path if len(path) <= _LONGEST else f"{path[:_LONGEST]}..."
    raise WireError(f"{where} stands twice in the request", details={"param": where}, next_actions=("send it once",))


def _at_most(data: bytes) -> int:
    """No fewer keys than are written, mostly as many: quotation marks with a colon behind them that nothing escapes.

    A text that begins with a colon counts as well, and so does one with backslashes before such a mark.
    """
    packed = data.translate(None, b" \t\r\n")
    return packed.count(b'":') - packed.count(b'\\":') + packed.count(b'\\\\":')


def _written(data: bytes) -> int:
    """How many keys are written: what is followed by a colon outside of texts."""
    if b"\\" in data:
        # pairs of backslashes first: what is left before a quotation mark escapes it
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return sum(part.count(b":") for part in data.split(b'"')[::2])


def _read(body: dict[str, Any]) -> int:
    """How many keys were read."""
    found = 0
    level: list[Any] = [body]
    while level:
        found += sum(len(value) for value in level if type(value) is dict)
        level = [
            value
            for outer in level
            for value in (outer.values() if type(outer) is dict else outer)
            if type(value) in _NESTING
        ]
    return found


def _first(body: Any) -> str:
    """The path of the first key that stands twice."""
    waiting = [("", body)]
    while waiting:
        path, value = waiting.pop()
        members = [(f"[{at}]", each) for at, each in enumerate(value)]
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, _ in value:
                if key in seen:
                    return f"{path}.{key}".removeprefix(".")
                seen.add(key)
            members = [(f".{key}", each) for key, each in value]
        waiting += [(f"{path}{step}", each) for step, each in reversed(members) if isinstance(each, list)]
    raise AssertionError("a key that was written and not read stands twice")
