"""Dotted paths into the parameters of a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from thinkback.model.target import lookup
from thinkback.wire.parameters import Params


def first(params: Params, paths: Iterable[str]) -> tuple[str, Any] | None:
    """The first of ``paths`` at which something stands, and what."""
    found = ((path, lookup(params, path)) for path in paths)
    return next(((path, value) for path, value in found if value is not None), None)


def nested(path: str, value: Any) -> Params:
    """``value`` at ``path``."""
    for part in reversed(path.split(".")):
        value = {part: value}
    return dict(value)


def leaves(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """The paths of everything that says something: no ``null``, and nothing empty."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{before}{key}.")
        elif value is not None and value != []:
            yield f"{before}{key}"


def within(path: str, known: Iterable[str]) -> bool:
    """Whether ``path`` is one of ``known``, or below one of them."""
    return any(path == one or path.startswith(f"{one}.") for one in known)
