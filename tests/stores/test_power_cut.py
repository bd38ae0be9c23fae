"""The power fails while the store writes: a disk that forgets what was not synced loses no acknowledged change."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.effort import Effort
from tests.stores.disk import Connection, Disk
from tests.stores.life import Looks, change, looks
from thinkback.errors import StoreError
from thinkback.stores import Durability, open_store
from thinkback.stores.sqlite import open_sqlite

CHANGES = 25
LONGEST = 560  # operations of the longest runs that are not cut


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_power_cut_leaves_a_whole_prefix(tmp_path: Path, effort: Effort, durability: Durability) -> None:
    """Whatever the disk kept, appends, branches, forks, erasures and collections are whole and in order.

    With ``full``, all that were acknowledged are there. The log goes on from it.
    """
    _cut_and_check(tmp_path / "torn page", durability, 22)  # its file ends within a page that the journal has
    seeds = effort.chance
    for run in range(effort.rounds(12, 200)):
        _cut_and_check(tmp_path / f"{run}", durability, seeds.randrange(2**32))


def test_the_disk_forgets_what_was_not_synced(tmp_path: Path) -> None:
    """The disk is worth testing on: without any sync, acknowledged changes are lost or the file is torn."""
    lost = 0
    for seed in range(12):
        chance = random.Random(seed)
        disk, states, done = _live_until_cut(f"lazy {seed}", chance, 400, "full", "PRAGMA synchronous = OFF")
        kept = _read(tmp_path / f"{seed}", disk, chance)
        lost += kept is None or kept not in states[done:]
    assert lost > 0


def _cut_and_check(place: Path, durability: Durability, seed: int) -> None:
    chance = random.Random(seed)
    disk, states, acknowledged = _live_until_cut(f"disk {seed}", chance, chance.randrange(LONGEST), durability)
    kept = _read(place, disk, chance)
    assert kept is not None, f"seed {seed}"
    allowed = states[acknowledged:] if durability == "full" else states
    assert kept in allowed, f"seed {seed}: none of the last {len(allowed)} of {len(states)} states"


def _live_until_cut(
    name: str, chance: random.Random, cut: int, durability: Durability, *after_open: str
) -> tuple[Disk, list[Looks], int]:
    """Change a log until the power fails.

    The disk, what the log looked like before the first change and after each, the last of them the one that the cut
    interrupted, and how many changes had returned.
    """
    disk = Disk(name, cut)
    opened: list[Connection] = []

    def connect(path: str) -> Connection:
        # Without shared memory one connection must have the file to itself; a small checkpoint makes them many.
        if not opened:
            opened.append(Connection(path, name))
            opened[0].execute("PRAGMA locking_mode = EXCLUSIVE")
            opened[0].execute("PRAGMA wal_autocheckpoint = 12")
        return opened[0]

    mirror = open_store(":memory:")
    states = [looks(mirror)]
    acknowledged = 0
    try:
        store = open_sqlite("log.db", durability, connect)
        for sql in after_open:
            opened[0].execute(sql)
        for number in range(CHANGES):
            make = change(chance, mirror, f"{number}")
            make(mirror)
            states.append(looks(mirror))
            make(store)
            acknowledged += 1
    except StoreError:
        pass
    for connection in opened:
        connection.close()
    disk.unregister()
    return disk, states, acknowledged


def _read(place: Path, disk: Disk, chance: random.Random) -> Looks | None:
    """What is seen after the power is back, and that the log goes on; ``None`` if it is damaged."""
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
        found = looks(store)
        for number in range(5):
            change(chance, store, f"next {number}")(store)
        return found if not list(store.fsck()) else None
    except StoreError:
        return None
    finally:
        store.close()
