"""Arguments of a call that come in pieces, each at a JSON path (``streamFunctionCallArguments``).

The pieces of one text come one after another under the same path; numbers, booleans and null come whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from thinkback.model import canonical

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")
# A path with more steps is no argument; deeper objects are refused everywhere else, too.
_STEPS = 90


class _Leaf:
    """A value: JSON source text, or the pieces of a string."""

    __slots__ = ("pieces", "source")

    def __init__(self, source: str = "null") -> None:
        self.source = source
        self.pieces: list[str] = []

    def json(self) -> str:
        return canonical.string(canonical.whole("".join(self.pieces))).decode() if self.pieces else self.source


class _Branch:
    """An object, or a list where all steps below it are numbers."""

    __slots__ = ("below",)

    def __init__(self) -> None:
        self.below: dict[str | int, _Node] = {}

    def json(self) -> str:
        numbers = [key for key in self.below if isinstance(key, int)]
        if numbers and len(numbers) == len(self.below):
            return f"[{','.join(self.below[key].json() for key in sorted(numbers))}]"
        names = [f"{canonical.string(str(key)).decode()}:{node.json()}" for key, node in self.below.items()]
        return f"{{{','.join(names)}}}"


_Node: TypeAlias = _Leaf | _Branch


class PartialArguments:
    """The arguments of one call under construction."""

    __slots__ = ("_leaf", "_path", "_root")

    def __init__(self, begun: Any = None) -> None:
        self._root = _Branch()
        self._path: str | None = None
        self._leaf = _Leaf()
        if isinstance(begun, Mapping):
            for key, value in begun.items():
                self._root.below[str(key)] = _Leaf(canonical.source(value))

    def add(self, piece: Mapping[str, Any]) -> None:
        """One entry of ``partialArgs``."""
        path = piece.get("jsonPath")
        if not isinstance(path, str):
            return
        if path != self._path:
            self._leaf, self._path = self._at(_steps(path)), path
        leaf, text = self._leaf, piece.get("stringValue")
        if isinstance(text, str):
            leaf.pieces.append(text)
        for name in ("numberValue", "boolValue"):
            if piece.get(name) is not None:
                leaf.source, leaf.pieces = canonical.source(piece[name]), []

    def source(self) -> str:
        """The arguments as far as they have come, as JSON source text."""
        return self._root.json()

    def _at(self, steps: list[str | int]) -> _Leaf:
        """The value at a path; what stands in its way gives way."""
        branch = self._root
        for step in steps[:-1]:
            below = branch.below.get(step)
            if not isinstance(below, _Branch):
                below = branch.below[step] = _Branch()
            branch = below
        leaf = branch.below.get(steps[-1])
        if not isinstance(leaf, _Leaf):
            leaf = branch.below[steps[-1]] = _Leaf()
        return leaf


def _steps(path: str) -> list[str | int]:
    """``$.a.b[0]`` as its steps; a path that is none is a name."""
    steps: list[str | int] = []
    at = 1
    while at < len(path) and len(steps) < _STEPS:
        found = _STEP.match(path, at)
        if found is None:
            break
        number = found[2]
        steps.append(int(number) if number else found[1] or found[3] or found[4] or "")
        at = found.end()
    return steps if steps and at == len(path) and path[0] == "$" else [path]
