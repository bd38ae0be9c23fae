"""Versions that share: growing one never changes another."""

from __future__ import annotations

import hashlib

import pytest

from thinkback.compile.grown import BATCH, Grown, Known


def same(item: bytes) -> bytes:
    """The item as it is."""
    return item


def test_growing_leaves_older_versions_as_they_were() -> None:
    """The newest version grows in place, an older one by copying, and each keeps its own items."""
    first = Grown([1, 2])
    second = first.grow([3])
    branch = first.grow([4])
    third = second.grow([5])
    assert [list(each) for each in (first, second, branch, third)] == [[1, 2], [1, 2, 3], [1, 2, 4], [1, 2, 3, 5]]
    assert [len(each) for each in (first, second, branch, third)] == [2, 3, 3, 4]


def test_growing_by_nothing_is_the_same_version() -> None:
    """Nothing more gives the same version, which may grow again in place."""
    first = Grown([1])
    assert first.grow([]) is first
    assert Known(["a"]).grow([]) is not None


@pytest.mark.parametrize("length", [0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 7])
def test_batches(length: int) -> None:
    """Batches hold the items in order, only those of the version."""
    grown = Grown(range(length))
    grown.grow([-1])
    assert [item for batch in grown.batches() for item in batch] == list(range(length))


@pytest.mark.parametrize("length", [0, 1, 2, BATCH, BATCH + 1, 2 * BATCH])
@pytest.mark.parametrize(("before", "after"), [(b",", b""), (b"", b"\n"), (b"<", b">")])
def test_hashes(length: int, before: bytes, after: bytes) -> None:
    """The hash is that of the start and the items with what stands between and behind them."""
    items = [b"%d" % number for number in range(length)]
    expected = hashlib.sha256(b"start" + before.join(item + after for item in items))
    assert expected.digest() == Grown(items).hasher(b"start", before, after, same).digest()


def test_hashes_of_versions() -> None:
    """Each version has its own hash, whichever was asked for first, and what was given out is the caller's."""
    first = Grown([b"a"])
    second = first.grow([b"b"])
    branch = first.grow([b"c"])
    for _ in range(2):
        for version, text in ((second, b"a,b"), (first, b"a"), (branch, b"a,c")):
            hasher = version.hasher(b"", b",", b"", same)
            assert hasher.digest() == hashlib.sha256(text).digest()
            hasher.update(b"mine")


def test_only_what_is_new_is_hashed() -> None:
    """What was hashed once is not rendered again."""
    seen: list[bytes] = []

    def render(item: bytes) -> bytes:
        seen.append(item)
        return item

    first = Grown([b"a", b"b"])
    first.hasher(b"", b"", b"\n", render)
    first.grow([b"c"]).hasher(b"", b"", b"\n", render)
    assert seen == [b"a", b"b", b"c"]


def test_a_hash_that_failed_leaves_nothing_behind() -> None:
    """When rendering an item fails, the next attempt begins where the last good one ended."""
    few = Grown([b"a"])
    few.hasher(b"", b"", b"", same)
    many = few.grow([b"a"] * BATCH + [b"b"])

    def halfway(item: bytes) -> bytes:
        if item == b"b":
            raise ValueError("no bytes")
        return item

    with pytest.raises(ValueError, match="no bytes"):
        many.hasher(b"", b"", b"", halfway)
    assert many.hasher(b"", b"", b"", same).digest() == hashlib.sha256(b"a" * (BATCH + 1) + b"b").digest()


def test_known_values_of_versions() -> None:
    """A version knows its own values and none that a newer or another version got."""
    first = Known(["a"])
    second = first.grow(["b"])
    branch = first.grow(["c"])
    assert [[value in each for value in "abc"] for each in (first, second, branch)] == [
        [True, False, False],
        [True, True, False],
        [True, False, True],
    ]
