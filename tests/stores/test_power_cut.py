"""The power fails while the store writes: on a disk that forgets what was not synced, no acknowledged step is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.stores.disk import Connection, Disk
from tests.stores.samples import put, response_step
from thinkback.errors import StoreError
from thinkback.model.commits import Commit
from thinkback.stores import Durability, open_store
from thinkback.stores.sqlite import SqliteStore

STEPS = 25
LONGEST = 500  # operations of a run that is not cut, rounded up


@pytest.fixture
def seeds() -> random.Random:
    """Seeds, printed so that a failure can be run again."""
    seed = random.randrange(2**32)
    print(f"seeds from {seed}")
    return random.Random(seed)


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_power_cut_leaves_a_whole_prefix(tmp_path: Path, seeds: random.Random, durability: Durability) -> None:
    """Whatever the disk kept, the log is whole steps in order; with ``full``, all that were acknowledged."""
    for run in range(12):
        _cut_and_check(tmp_path / f"{run}", durability, seeds.randrange(2**32))


@pytest.mark.soak
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_power_cut_leaves_a_whole_prefix_for_long(
    tmp_path: Path, seeds: random.Random, durability: Durability
) -> None:
    """The same, two hundred times."""
    for run in range(200):
        _cut_and_check(tmp_path / f"{run}", durability, seeds.randrange(2**32))


def test_the_disk_forgets_what_was_not_synced(tmp_path: Path) -> None:
    """The disk is worth testing on: without any sync, acknowledged steps are lost or the file is torn."""
    lost = 0
    for seed in range(12):
        disk, acknowledged = _write_until_cut(f"lazy {seed}", 400, "full", "PRAGMA synchronous = OFF")
        kept = _read(tmp_path / f"{seed}", disk, random.Random(seed))
        lost += kept is None or kept[: len(acknowledged)] != acknowledged
    assert lost > 0


def _cut_and_check(place: Path, durability: Durability, seed: int) -> None:
    chance = random.Random(seed)
    disk, acknowledged = _write_until_cut(f"disk {seed}", chance.randrange(LONGEST), durability)
    kept = _read(place, disk, chance)
    assert kept is not None, f"seed {seed}"
    shared = min(len(kept), len(acknowledged))
    assert acknowledged[:shared] == kept[:shared], f"seed {seed}"
    assert len(kept) <= len(acknowledged) + 4, f"seed {seed}"
    if durability == "full":
        assert len(acknowledged) <= len(kept), f"seed {seed}: {len(acknowledged) - len(kept)} commits were lost"


def _write_until_cut(name: str, cut: int, durability: Durability, *after_open: str) -> tuple[Disk, list[Commit]]:
    """Append steps until the power fails; the disk, and the commits whose append had returned."""
    disk = Disk(name, cut)
    opened: list[Connection] = []

    def connect(path: str) -> Connection:
        # Without shared memory one connection must have the file to itself; a small checkpoint makes them many.
        if not opened:
            opened.append(Connection(path, name))
            opened[0].execute("PRAGMA locking_mode = EXCLUSIVE")
            opened[0].execute("PRAGMA wal_autocheckpoint = 12")
        return opened[0]

    acknowledged: list[Commit] = []
    try:
        store = SqliteStore("log.db", durability, connect)
        for sql in after_open:
            opened[0].execute(sql)
        store.create_session("s", "s", 1)
        for number in range(STEPS):
            acknowledged += put(store, "s", response_step(f"{number}", thought=f"thought {number} " * 150))
    except StoreError:
        pass
    for connection in opened:
        connection.close()
    disk.unregister()
    return disk, acknowledged


def _read(place: Path, disk: Disk, chance: random.Random) -> list[Commit] | None:
    """What is read after the power is back; ``None`` if the log is damaged."""
    place.mkdir()
    for name, data in disk.survivors(chance).items():
        (place / name).write_bytes(data)
    try:
        store = open_store(place / "log.db")
    except StoreError:
        return None
    try:
        if list(store.fsck()):
            return None
        found = store.find_session("s")
        return store.read("s") if found else []
    finally:
        store.close()
