"""A disk that forgets: files in memory behind a SQLite VFS, on which what was not synced may be lost.

A write goes to the file's page cache and, as a pending change, towards the disk. ``sync`` makes the pending changes
of one file durable. At a chosen operation the power fails: from then on everything raises an I/O error, and
``survivors`` says what the disk holds: the durable bytes and any subset of the pending changes, each write torn at
sectors of 512 bytes. A deleted file may be back until its directory is synced, and a file that was never synced may
not be there. Promises no more than SQLite asks for: a write damages only the sectors it touches.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import apsw

T = TypeVar("T")

SECTOR = 512
POWERSAFE_OVERWRITE = 0x1000  # as SQLite assumes of every disk: a torn write leaves the bytes beside it alone


class File:
    """``now`` is what the program sees, ``durable`` what is on the disk (``None``: not even a name)."""

    def __init__(self) -> None:
        self.now = bytearray()
        self.durable: bytes | None = None
        self.pending: list[tuple[int, bytes] | int] = []

    def write(self, data: bytes, offset: int) -> None:
        self.pending.append((offset, bytes(data)))
        _write(self.now, offset, data)

    def truncate(self, size: int) -> None:
        self.pending.append(size)
        del self.now[size:]

    def sync(self) -> None:
        self.durable = bytes(self.now)
        self.pending.clear()

    def after_power_cut(self, chance: random.Random) -> bytes | None:
        """What a disk may hold of this file, if its changes reach it in no order and in parts."""
        if self.durable is None and chance.random() < 0.5:
            return None
        left = bytearray(self.durable or b"")
        keep = chance.choice([0.0, 0.5, 0.9, 1.0])
        for change in self.pending:
            if isinstance(change, int):
                if chance.random() < keep:
                    del left[change:]
                continue
            offset, data = change
            for at in range(0, len(data), SECTOR):
                if chance.random() < keep:
                    _write(left, offset + at, data[at : at + SECTOR])
        return bytes(left)


def _write(into: bytearray, offset: int, data: bytes) -> None:
    into.extend(bytes(max(0, offset - len(into))))
    into[offset : offset + len(data)] = data


class Disk(apsw.VFS):
    """The VFS. The power fails at operation number ``cut`` (a write, truncate, sync or delete)."""

    def __init__(self, name: str, cut: int) -> None:
        self.name, self.cut = name, cut
        self.files: dict[str, File] = {}
        self.unlinked: dict[str, File] = {}
        self.operations = 0
        super().__init__(name, "")

    def step(self) -> None:
        """Count an operation that reaches for the disk."""
        self.operations += 1
        self.fail_if_off()

    def fail_if_off(self) -> None:
        if self.operations >= self.cut:
            raise apsw.IOError("the power is off")

    def survivors(self, chance: random.Random) -> dict[str, bytes]:
        """The files that are there when the power is back."""
        returned = {name: file for name, file in self.unlinked.items() if chance.random() < 0.5}
        found = {name: file.after_power_cut(chance) for name, file in (returned | self.files).items()}
        return {name: data for name, data in found.items() if data is not None}

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        self.fail_if_off()
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        flags[1] = flags[0]
        return OpenFile(self, self.files.setdefault(path, File()))

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.step()
        file = self.files.pop(filename, None)
        if file is not None and not syncdir:
            self.unlinked[filename] = file

    def xAccess(self, pathname: str, flags: int) -> bool:
        self.fail_if_off()
        return pathname in self.files

    def xFullPathname(self, name: str) -> str:
        return name


class OpenFile:
    """An open file of the disk; one connection, so locks are always granted."""

    def __init__(self, disk: Disk, file: File) -> None:
        self._disk, self._file = disk, file

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.fail_if_off()
        return bytes(self._file.now[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        self._file.write(data, offset)
        self._disk.step()

    def xTruncate(self, newsize: int) -> None:
        self._file.truncate(newsize)
        self._disk.step()

    def xSync(self, flags: int) -> None:
        self._disk.step()
        if self._file.durable is None:  # the unix VFS syncs the directory with a new journal or write-ahead log
            self._disk.unlinked.clear()
        self._file.sync()

    def xFileSize(self) -> int:
        return len(self._file.now)

    def xSectorSize(self) -> int:
        return SECTOR

    def xDeviceCharacteristics(self) -> int:
        return POWERSAFE_OVERWRITE

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xCheckReservedLock(self) -> bool:
        return False

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xClose(self) -> None:
        pass


class Rows:
    """The rows of a statement that has run to its end."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)


class Connection:
    """An apsw connection as the store expects it: ``sqlite3``'s calls and ``sqlite3``'s errors."""

    def __init__(self, path: str, vfs: str) -> None:
        self._db = _named(lambda: apsw.Connection(path, vfs=vfs))

    @property
    def in_transaction(self) -> bool:
        return bool(self._db.in_transaction)

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        return Rows(_named(lambda: list(self._db.execute(sql, tuple(parameters)))))

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Rows:
        return Rows(_named(lambda: list(self._db.executemany(sql, [tuple(row) for row in parameters]))))

    def close(self) -> None:
        with contextlib.suppress(apsw.Error):  # the power may be off
            self._db.close(True)


def _named(call: Callable[[], T]) -> T:
    try:
        return call()
    except apsw.Error as error:
        raised = sqlite3.OperationalError(str(error))
        raised.sqlite_errorcode = getattr(error, "result", apsw.SQLITE_IOERR)
        raise raised from error
