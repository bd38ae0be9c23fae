"""Reading JSON of unknown shape, and refusing JSON that a careful server should not accept.

Accessors never raise: what is not of the asked type reads as empty. Whoever needs to tell "absent" from "wrong"
asks ``isinstance`` itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

JsonObject = dict[str, object]


def as_object(value: object) -> Mapping[str, object]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[object]:
    """The value if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


def as_objects(value: object) -> list[Mapping[str, object]]:
    """The members of the value if it is a JSON array, each as an object."""
    return [as_object(member) for member in as_list(value)]


def names(text: str) -> frozenset[str]:
    """The words of a text as a set: the members that an object may have."""
    return frozenset(text.split())


def strict_loads(raw: bytes) -> object:
    """Parse JSON; raise ``ValueError`` also for duplicate keys, NaN, Infinity and bytes that are not UTF-8.

    Duplicate keys are what a client that splices bodies out of fragments gets wrong, and most servers hide it.
    """
    return json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)


def read_object(raw: bytes) -> JsonObject | str | None:
    """The JSON object in a body; the parser's complaint where it is no strict JSON, None where it is no object."""
    try:
        found = strict_loads(raw)
    except (ValueError, RecursionError) as error:
        return str(error)
    return dict(as_object(found)) if isinstance(found, dict) else None


def compact(value: object) -> str:
    """JSON without optional white space, as servers put it on a ``data:`` line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _unique(pairs: list[tuple[str, object]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate key in JSON object")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
