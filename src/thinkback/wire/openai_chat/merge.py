"""Merging of what this dialect does not know, so that nothing a stream brings is lost."""

from __future__ import annotations

from typing import Any

# Said again in each chunk rather than in pieces.
_SAID_AGAIN = frozenset({"id", "type", "index", "role", "name", "channel", "status", "format"})


class Merged:
    """A JSON object that comes in pieces: texts and lists get longer, objects are merged, the rest is replaced.

    A value that comes again as it was is not a further piece.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    def add(self, more: dict[str, Any]) -> None:
        """Lay ``more`` on what is kept; ``null`` says nothing."""
        for key, value in more.items():
            old = self._kept.get(key)
            if value is None:
                continue
            if isinstance(old, _Pieces) and isinstance(value, str) and key not in _SAID_AGAIN:
                old.add(value)
            elif isinstance(old, list) and isinstance(value, list):
                old.extend(value if value != old else ())
            elif isinstance(old, Merged) and isinstance(value, dict):
                old.add(value)
            else:
                self._kept[key] = _begin(value)

    def value(self) -> dict[str, Any]:
        """The object as far as it has come."""
        return {key: _end(value) for key, value in self._kept.items()}


class _Pieces:
    """A text in pieces, joined once."""

    def __init__(self, first: str) -> None:
        self._pieces = [first]

    def add(self, piece: str) -> None:
        if self._pieces != [piece]:
            self._pieces.append(piece)

    def value(self) -> str:
        return "".join(self._pieces)


def _begin(value: Any) -> Any:
    if isinstance(value, str):
        return _Pieces(value)
    if isinstance(value, dict):
        merged = Merged()
        merged.add(value)
        return merged
    return list(value) if isinstance(value, list) else value


def _end(value: Any) -> Any:
    return value.value() if isinstance(value, Merged | _Pieces) else value
