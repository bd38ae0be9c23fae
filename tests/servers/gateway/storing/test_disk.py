"""The disks of store and spool: when they count as full, and what can be stored then."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from thinkback.errors import CorruptLogError, HeadMovedError, StoreError
from thinkback.servers.gateway.storing.disk import EVERY, Disks, free_bytes

ROOM, NONE = 10_000_000, 1_000_000


def disks(place: Path, free: dict[str, int], *names: str) -> Disks:
    """Disks with so many bytes free, of which 5 MB are to stay free."""
    return Disks({name: place / name for name in names}, 5_000_000, lambda where: free[where.name])


@pytest.mark.parametrize(
    ("free", "names", "rests", "takes"),
    [
        ({"store": ROOM}, ["store"], False, True),
        ({"store": NONE}, ["store"], False, False),
        ({"store": NONE, "spool": ROOM}, ["store", "spool"], False, True),
        ({"store": NONE, "spool": NONE}, ["store", "spool"], False, False),
        ({"store": ROOM, "spool": NONE}, ["store", "spool"], False, True),
        ({}, [], False, True),
        ({}, [], True, False),
        ({"spool": ROOM}, ["spool"], True, True),
        ({"spool": NONE}, ["spool"], True, False),
        ({"spool": NONE}, ["spool"], False, True),
    ],
)
def test_step_can_be_stored_where_one_place_has_room(
    tmp_path: Path, free: dict[str, int], names: list[str], rests: bool, takes: bool
) -> None:
    """The store, a directory or a server; else the spool where there is one."""
    assert takes == disks(tmp_path, free, *names).takes_steps(server_rests=rests)


def test_disk_that_a_step_did_not_fit_on_counts_as_full_until_a_write_succeeds(tmp_path: Path) -> None:
    """A quota or a limit of a file, which the free bytes do not show."""
    free = {"store": ROOM}
    found = disks(tmp_path, free, "store")
    found.note(HeadMovedError("another one was first"))
    assert found.takes_steps(server_rests=False)
    found.note(StoreError("this step is one client's fault"))
    found.note(CorruptLogError("so is this", details={"code": sqlite3.SQLITE_CORRUPT}))
    assert found.takes_steps(server_rests=False)
    found.note(StoreError("does not fit", details={"code": sqlite3.SQLITE_FULL}))
    assert {"store": "it cannot be written to"} == found.full
    assert not found.takes_steps(server_rests=False)
    (tmp_path / "store").write_text("no directory")
    assert EVERY == asyncio.run(found.keep())
    assert found.is_full("store")
    (tmp_path / "store").unlink()
    found.look()
    assert not found.is_full("store")
    assert [] == list((tmp_path / "store").iterdir())


def test_disk_of_a_server_is_full_until_the_server_takes_a_write(tmp_path: Path) -> None:
    """Its free bytes are not seen from here; a spool that does not fit says so by its own error."""
    full = [True]

    def trial() -> None:
        if full[0]:
            raise StoreError("full", details={"code": "53100"})

    found = Disks({}, 0, trial=trial)
    found.note(StoreError("full", details={"code": "53100"}))
    found.look()
    assert (False, True) == (found.takes_steps(server_rests=False), found.is_full("store"))
    full[0] = False
    found.look()
    assert found.takes_steps(server_rests=False)


def test_error_of_the_system_tells_of_a_disk_too(tmp_path: Path) -> None:
    """What the spool raises."""
    found = disks(tmp_path, {"spool": ROOM, "store": ROOM}, "store", "spool")
    for number, of_a_disk in ((errno.ENOSPC, True), (errno.EACCES, False)):
        error = StoreError("the spool cannot be written")
        error.__cause__ = OSError(number, "why")
        found = disks(tmp_path, {"spool": ROOM, "store": ROOM}, "store", "spool")
        found.note(error)
        assert of_a_disk == found.is_full("spool")


def test_free_bytes_change_with_each_look(tmp_path: Path) -> None:
    """Room comes and goes; how much there is of it is said in megabytes."""
    free = {"store": NONE}
    found = disks(tmp_path, free, "store")
    assert {"store": "1 MB are free"} == found.full
    free["store"] = ROOM
    found.look()
    assert ({}, {"store": ROOM}) == (found.full, found.free)


def test_what_was_erased_from_the_log_is_room(tmp_path: Path) -> None:
    """The file does not shrink; the journal needs some room of the disk all the same."""
    (tmp_path / "store").mkdir()
    with closing(sqlite3.connect(tmp_path / "store" / "default.db")) as log:
        log.execute("PRAGMA page_size = 65536")
        log.execute("CREATE TABLE t (x)")
        log.execute("INSERT INTO t VALUES (zeroblob(20000000))")
        log.commit()
        free = {"store": 2 * NONE}
        found = disks(tmp_path, free, "store")
        assert found.is_full("store")
        log.execute("DELETE FROM t")
        log.commit()
    found.look()
    assert ({}, {"store": 2 * NONE}) == (found.full, found.free)
    free["store"] = NONE
    found.look()
    assert found.is_full("store")


def test_place_that_is_not_made_yet_has_the_room_of_where_it_will_be(tmp_path: Path) -> None:
    """A first start."""
    assert abs(free_bytes(tmp_path) - free_bytes(tmp_path / "a" / "b")) < 1_000_000_000
