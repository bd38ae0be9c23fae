"""One file of a spool: records behind one another, each durable when ``append`` returns, each ticked off when done.

A record is a mark of 8 bytes that says whether it is done, its time (microseconds), length and CRC-32, and its bytes.
Who holds the lock of a file may change it; the lock ends with its process. Promises: a record that was cut off by a
crash or a full disk hides none before it, and a damaged one hides none behind it; ``wipe`` leaves nothing of what is
done. Must not: know what is recorded.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from thinkback.errors import StoreError

WAITS, DONE = b"\xf5tbspool", b"\xf5tb-done"
_MARKS = re.compile(b"\xf5tb(?:spool|-done)")
_HEAD = struct.Struct(">8sQII")
_PIECE = 1 << 20


class Record(NamedTuple):
    """Where a record is. ``whole`` is false for bytes between records that cannot be one."""

    offset: int
    length: int
    time: int = 0
    crc: int = 0
    whole: bool = True


class SpoolFile:
    """A file whose lock is held from ``open`` until ``close``."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor
        self.size = os.fstat(descriptor).st_size
        self._done: list[Record] = []

    @classmethod
    def open(cls, path: Path, *, new: bool = False) -> SpoolFile | None:
        """The file, locked; ``None`` if another has the lock, or has removed it. Raises ``OSError``."""
        descriptor = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_EXCL if new else 0), 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(descriptor), os.stat(path)):
                raise FileNotFoundError
            if new:
                _sync_directory(path.parent)
        except (BlockingIOError, FileNotFoundError):
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor)

    def append(self, time: int, data: bytes) -> None:
        """Add a record; it is on the disk when this returns. Raises ``StoreError``, and then it is not there."""
        head = _HEAD.pack(WAITS, time, len(data), zlib.crc32(data))
        try:
            _write(self._descriptor, head + data, self.size)
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):  # the next one takes the place of what is left of this
                os.ftruncate(self._descriptor, self.size)
            raise cannot_write(self.path.parent, error) from error
        self.size += len(head) + len(data)

    def records(self) -> Iterator[Record]:
        """What is not done, in order, and what is damaged."""
        at = 0
        while at < self.size:
            mark, time, length, crc = self._head(at)
            record = Record(at + _HEAD.size, length, time, crc)
            end = record.offset + length
            if mark in (WAITS, DONE) and (self._begins(end) or self.read(record) is not None):
                if mark == WAITS:
                    yield record
            else:
                end = self._next(at + 1)
                yield Record(at, end - at, whole=False)
            at = end

    def _begins(self, at: int) -> bool:
        """Whether a record ends here: another begins, or the file ends."""
        return at == self.size or self._head(at)[0] in (WAITS, DONE)

    def read(self, record: Record) -> bytes | None:
        """The bytes of a record; ``None`` where they are not those that were written."""
        if record.offset + record.length > self.size:
            return None
        data = self.raw(record)
        return data if zlib.crc32(data) == record.crc else None

    def raw(self, record: Record) -> bytes:
        """The bytes as they are."""
        return os.pread(self._descriptor, record.length, record.offset)

    def tick(self, record: Record) -> None:
        """Mark a record as done. Not waited for: it is harmless to do a record twice."""
        if record.whole:
            os.pwrite(self._descriptor, DONE, record.offset - _HEAD.size)
            self._done.append(record)

    def wipe(self) -> None:
        """Overwrite what was ticked off. The marks are on the disk before: a record without its bytes looks damaged."""
        done, self._done = self._done, []
        if done:
            os.fsync(self._descriptor)
        for record in done:
            _write(self._descriptor, bytes(record.length), record.offset)

    def remove(self) -> None:
        """Remove the file and end the lock."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """End the lock."""
        os.close(self._descriptor)

    def _head(self, at: int) -> tuple[bytes, int, int, int]:
        read = os.pread(self._descriptor, _HEAD.size, at)
        mark, time, length, crc = _HEAD.unpack(read.ljust(_HEAD.size, b"\0"))
        return mark, time, length, crc

    def _next(self, at: int) -> int:
        """Where the next record may begin, the end of the file if none does."""
        while at < self.size:
            found = _MARKS.search(os.pread(self._descriptor, _PIECE, at))
            if found:
                return at + found.start()
            at += _PIECE - len(WAITS) + 1
        return self.size


def cannot_write(directory: Path, error: OSError) -> StoreError:
    """The error for what could not be spooled."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return StoreError(
        f"the spool {directory} {'does not fit on its disk' if full else f'cannot be written ({error.strerror})'}",
        details={"path": str(directory)},
        next_actions=(
            "nothing of this step was kept: free some space" if full else "check that this user may write there",
        ),
    )


def _write(descriptor: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
