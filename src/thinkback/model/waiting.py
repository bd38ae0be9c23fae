"""What waits for an answer, in order: calls for their results, found by whatever a result says of its call.

Promises: adding and taking cost the same however many wait. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Waiting(Generic[T]):
    """Things in the order they came, each under some keys; what is taken under one is gone under all."""

    def __init__(self) -> None:
        self._left: dict[int, T] = {}
        self._under: dict[Hashable, deque[int]] = {}
        self._came = 0

    def add(self, thing: T, *keys: Hashable) -> None:
        """``thing`` waits behind the others, to be found under ``keys``."""
        for key in keys:
            self._under.setdefault(key, deque()).append(self._came)
        self._left[self._came] = thing
        self._came += 1

    def take(self, *keys: Hashable) -> T | None:
        """The one that waits longest under the first of ``keys`` that has any; ``None`` where none has."""
        for key in keys:
            places = self._under.get(key, ())
            while places:
                place = places.popleft()
                if place in self._left:
                    return self._left.pop(place)
        return None

    def all(self) -> list[T]:
        """What still waits."""
        return list(self._left.values())
