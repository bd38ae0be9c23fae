"""The disks that a gateway writes to: that of its store, where it is a directory, and that of its spool.

Promises: a disk with less room than the configuration keeps free, or on which a step could not be written, counts as
full until a look finds room and a write succeeds. Must not: refuse anything itself.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from thinkback.errors import StoreError

EVERY = 2.0
"""Seconds between two looks."""
_TRIAL = 64 * 1024
"""Bytes that are written, and removed again, where a step could not be."""
_MB = 1_000_000
# SQLite's results FULL, IOERR and READONLY, and PostgreSQL's disk_full and io_error.
_CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, "53100", "58030")
_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
_HEADER = 100
# What is written goes through a journal first, which needs this share of the room that is to stay free.
_JOURNALS = 4


def free_bytes(place: Path) -> int:
    """Bytes that this user may still write at ``place``, or where it would be made. Raises ``OSError``."""
    while True:
        try:
            found = os.statvfs(place)
            no_more_files = found.f_files > 0 and found.f_favail == 0
            return 0 if no_more_files else found.f_bavail * found.f_frsize
        except FileNotFoundError:
            if place == place.parent:
                raise
            place = place.parent


def reusable_bytes(place: Path) -> int:
    """Bytes that were erased from the SQLite files in ``place`` and that what is stored next takes up first."""
    found = 0
    for path in place.glob("*.db"):
        with path.open("rb") as file:
            head = file.read(_HEADER)
        if len(head) == _HEADER:
            page = int.from_bytes(head[16:18])
            found += int.from_bytes(head[36:40]) * (65_536 if page == 1 else page)
    return found


class Disks:
    """The directories in ``places`` by what they hold (``store``, ``spool``); ``least`` bytes are to stay free.

    What was erased from the log is room again, although its file does not shrink. Without a ``store`` that is a
    database on a server: ``trial`` writes to it, and raises ``StoreError`` where that fails.
    """

    def __init__(
        self,
        places: Mapping[str, Path],
        least: int,
        free: Callable[[Path], int] = free_bytes,
        trial: Callable[[], object] = lambda: None,
    ) -> None:
        self._places, self._least, self._ask, self._trial = places, least, free, trial
        self._failed: set[str] = set()
        self.free: dict[str, int] = {}
        self._room: dict[str, int] = {}
        self.look()

    @property
    def full(self) -> dict[str, str]:
        """The faults, by what the disk holds."""
        wrong = {
            name: f"{self.free[name] // _MB} MB are free" for name, room in self._room.items() if room < self._least
        }
        return {**dict.fromkeys(sorted(self._failed), "it cannot be written to"), **wrong}

    def is_full(self, name: str) -> bool:
        """True if the disk of ``name`` counts as full."""
        return name in self.full

    def takes_steps(self, *, server_rests: bool) -> bool:
        """True if a step could be stored now: in the store, or while that is away or full in the spool."""
        full = self.full
        store = "store" not in full and ("store" in self._places or not server_rests)
        return store or ("spool" in self._places and "spool" not in full)

    def note(self, error: StoreError) -> None:
        """A step could not be stored; where a disk is at fault it counts as full until a write succeeds."""
        if _is_of_a_disk(error):
            self._failed.update(self._places, ("store",))

    async def keep(self) -> float:
        """Look, on a thread; returns the seconds until the next time."""
        await asyncio.to_thread(self.look)
        return EVERY

    def look(self) -> None:
        """Ask how much is free, and try again what failed. Raises ``OSError``."""
        for name, place in self._places.items():
            free = self.free[name] = self._ask(place)
            inside = reusable_bytes(place) if self._least // _JOURNALS <= free < self._least else 0
            self._room[name] = free + inside
            if name in self._failed and _is_writable(place):
                self._failed.discard(name)
        if "store" in self._failed and "store" not in self._places:
            with suppress(StoreError):
                self._trial()
                self._failed.discard("store")


def _is_of_a_disk(error: StoreError) -> bool:
    """True if an error is about a disk, and not about the step, which may be one client's."""
    cause = error.__cause__
    if isinstance(cause, OSError):
        return cause.errno in _ERRORS
    return error.details.get("code") in _CODES


def _is_writable(place: Path) -> bool:
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            file.write(bytes(_TRIAL))
            os.fsync(file.fileno())
    except OSError:
        return False
    return True
