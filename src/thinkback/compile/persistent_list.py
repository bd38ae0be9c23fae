"""Append-only sequences whose versions share their items: how states of the fold share what is settled.

Promises: no version ever changes. Growing the newest version is in place, growing an older one copies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

# Items hashed or joined in one go: large enough to be fast, small enough not to double the memory of a body.
BATCH = 256


class Framing(NamedTuple):
    """What is hashed around items: ``start`` before all, ``before`` between two of them, ``after`` behind each."""

    start: bytes = b""
    before: bytes = b""
    after: bytes = b""

    def join(self, items: Iterable[bytes], *, leads: bool) -> bytes:
        """``items`` with what stands around them; ``leads``: none stands before them."""
        return (b"" if leads else self.before) + (self.after + self.before).join(items) + self.after


LINES = Framing(after=b"\n")


class Hashed(NamedTuple):
    """The hash of the first ``length`` items; ``hasher`` is never updated, only copied."""

    length: int
    hasher: hashlib._Hash


class PersistentList(Generic[T]):
    """A version of the sequence: the first ``length`` of the shared items."""

    __slots__ = ("_hashed", "_items", "length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: list[T] = list(items)
        self.length = len(self._items)
        self._hashed: dict[Framing, Hashed] = {}

    def grow(self, more: Sequence[T]) -> PersistentList[T]:
        """A version with ``more`` at its end."""
        if not more:
            return self
        if len(self._items) != self.length:
            return PersistentList((*self, *more))
        self._items.extend(more)
        twin: PersistentList[T] = object.__new__(PersistentList)
        twin._items, twin._hashed = self._items, self._hashed
        twin.length = len(self._items)
        return twin

    def hashed(self, framing: Framing) -> Hashed:
        """The longest beginning of this version whose hash is known."""
        known = self._hashed.get(framing)
        if known is None or known.length > self.length:
            return Hashed(0, hashlib.sha256(framing.start))
        return known

    def remember(self, framing: Framing, hasher: hashlib._Hash) -> None:
        """``hasher`` has taken all items, so that nobody hashes them again."""
        if self.length:
            self._hashed[framing] = Hashed(self.length, hasher.copy())

    def batches(self, start: int = 0) -> Iterator[list[T]]:
        """The items from ``start`` on, many at a time."""
        for at in range(start, self.length, BATCH):
            yield self._items[at : min(at + BATCH, self.length)]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self.length)

    def __len__(self) -> int:
        return self.length


def hash_items(items: PersistentList[bytes], framing: Framing) -> hashlib._Hash:
    """SHA-256 of ``items`` in ``framing``, to be updated; what an earlier call hashed is not hashed again."""
    known = items.hashed(framing)
    hasher, length = known.hasher.copy(), known.length
    for batch in items.batches(length):
        hasher.update(framing.join(batch, leads=not length))
        length += len(batch)
    items.remember(framing, hasher)
    return hasher


class PersistentSet:
    """A version of a set that only grows, of values given once; shared in the same way."""

    __slots__ = ("_order", "length")

    def __init__(self, values: Iterable[object] = ()) -> None:
        self._order: dict[object, int] = {value: at for at, value in enumerate(values)}
        self.length = len(self._order)

    def grow(self, more: Sequence[object]) -> PersistentSet:
        """A version with ``more``, none of which is in it yet."""
        if not more:
            return self
        if len(self._order) != self.length:
            return PersistentSet((*islice(self._order, self.length), *more))
        self._order.update((value, at) for at, value in enumerate(more, self.length))
        twin: PersistentSet = object.__new__(PersistentSet)
        twin._order, twin.length = self._order, len(self._order)
        return twin

    def __contains__(self, value: object) -> bool:
        return self._order.get(value, self.length) < self.length
