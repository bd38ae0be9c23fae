"""Versions that share: growing one never changes another."""

from __future__ import annotations

import hashlib

import pytest

from thinkback.compile.persistent_list import BATCH, LINES, Framing, PersistentList, PersistentSet, hash_items


def test_growing_leaves_older_versions_as_they_were() -> None:
    """The newest version grows in place, an older one by copying, and each keeps its own items."""
    first = PersistentList([1, 2])
    second = first.grow([3])
    branch = first.grow([4])
    third = second.grow([5])
    assert [list(each) for each in (first, second, branch, third)] == [[1, 2], [1, 2, 3], [1, 2, 4], [1, 2, 3, 5]]
    assert [len(each) for each in (first, second, branch, third)] == [2, 3, 3, 4]


def test_growing_by_nothing_is_the_same_version() -> None:
    """Nothing more gives the same version, which may grow again in place."""
    first = PersistentList([1])
    assert first.grow([]) is first
    assert PersistentSet(["a"]).grow([]) is not None


@pytest.mark.parametrize("length", [0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 7])
def test_batches(length: int) -> None:
    """Batches hold the items in order, only those of the version."""
    grown = PersistentList(range(length))
    grown.grow([-1])
    assert [item for batch in grown.batches() for item in batch] == list(range(length))


@pytest.mark.parametrize("length", [0, 1, 2, BATCH, BATCH + 1, 2 * BATCH])
@pytest.mark.parametrize(("before", "after"), [(b",", b""), (b"", b"\n"), (b"<", b">")])
def test_hashes(length: int, before: bytes, after: bytes) -> None:
    """The hash is that of the start and the items with what stands between and behind them."""
    items = [b"%d" % number for number in range(length)]
    expected = hashlib.sha256(b"start" + before.join(item + after for item in items))
    assert expected.digest() == hash_items(PersistentList(items), Framing(b"start", before, after)).digest()


def test_hashes_of_versions() -> None:
    """Each version has its own hash, whichever was asked for first, and what was given out is the caller's."""
    first = PersistentList([b"a"])
    second = first.grow([b"b"])
    branch = first.grow([b"c"])
    for _ in range(2):
        for version, text in ((second, b"a,b"), (first, b"a"), (branch, b"a,c")):
            hasher = hash_items(version, Framing(b"", b","))
            assert hasher.digest() == hashlib.sha256(text).digest()
            hasher.update(b"mine")


def test_only_what_is_new_is_hashed() -> None:
    """What was hashed once is not hashed again, by no version."""
    first = PersistentList([b"a", b"b"])
    hash_items(first, LINES)
    second = first.grow([b"c"])
    assert [first.hashed(LINES).length, second.hashed(LINES).length] == [2, 2]
    hash_items(second, LINES)
    assert [first.hashed(LINES).length, second.hashed(LINES).length] == [0, 3]
    assert second.hashed(Framing()).length == 0


def test_known_values_of_versions() -> None:
    """A version knows its own values and none that a newer or another version got."""
    first = PersistentSet(["a"])
    second = first.grow(["b"])
    branch = first.grow(["c"])
    assert [[value in each for value in "abc"] for each in (first, second, branch)] == [
        [True, False, False],
        [True, True, False],
        [True, False, True],
    ]
