"""An append-only sequence whose versions share their items: how states of the fold share what is settled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

# Items hashed or joined in one go: large enough to be fast, small enough not to double the memory of a body.
BATCH = 256


class Hashed(NamedTuple):
    """The hash of the first ``length`` items; ``hasher`` is never updated, only copied."""

    length: int
    hasher: hashlib._Hash


class Grown(Generic[T]):
    """A version of the sequence: the first ``length`` of the shared items.

    Growing the newest version is in place; growing an older one copies. So versions share, and none ever changes.
    """

    __slots__ = ("_hashed", "_items", "length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: list[T] = list(items)
        self.length = len(self._items)
        self._hashed: dict[tuple[bytes, bytes, bytes], Hashed] = {}

    def grow(self, more: Sequence[T]) -> Grown[T]:
        """A version with ``more`` at its end."""
        if not more:
            return self
        if len(self._items) != self.length:
            return Grown((*self, *more))
        self._items.extend(more)
        twin: Grown[T] = object.__new__(Grown)
        twin._items, twin._hashed = self._items, self._hashed
        twin.length = len(self._items)
        return twin

    def hasher(self, start: bytes, before: bytes, after: bytes, render: Callable[[T], bytes]) -> hashlib._Hash:
        """SHA-256 of ``start`` and the items: ``before`` between two of them, ``after`` behind each.

        What an earlier call hashed is not hashed again.
        """
        if not self.length:
            return hashlib.sha256(start)
        known = self._hashed.get((start, before, after))
        if known is None or known.length > self.length:
            known = Hashed(0, hashlib.sha256(start))
        hasher = known.hasher.copy()
        for at in range(known.length, self.length, BATCH):
            items = self._items[at : min(at + BATCH, self.length)]
            hasher.update((before if at else b"") + (after + before).join(map(render, items)) + after)
        self._hashed[start, before, after] = Hashed(self.length, hasher)
        return hasher.copy()

    def batches(self) -> Iterator[list[T]]:
        """The items in order, many at a time."""
        for at in range(0, self.length, BATCH):
            yield self._items[at : min(at + BATCH, self.length)]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self.length)

    def __len__(self) -> int:
        return self.length


class Known:
    """A version of a set that only grows, of values given once; shared in the same way."""

    __slots__ = ("_order", "length")

    def __init__(self, values: Iterable[object] = ()) -> None:
        self._order: dict[object, int] = {value: at for at, value in enumerate(values)}
        self.length = len(self._order)

    def grow(self, more: Sequence[object]) -> Known:
        """A version with ``more``, none of which is in it yet."""
        if not more:
            return self
        if len(self._order) != self.length:
            return Known((*islice(self._order, self.length), *more))
        self._order.update((value, at) for at, value in enumerate(more, self.length))
        twin: Known = object.__new__(Known)
        twin._order, twin.length = self._order, len(self._order)
        return twin

    def __contains__(self, value: object) -> bool:
        return self._order.get(value, self.length) < self.length
