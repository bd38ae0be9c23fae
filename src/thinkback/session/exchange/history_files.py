"""The files of other programs as their readers get them: found, opened, cut into lines.

Promises: files are only read; links, devices and pipes in a folder are passed by; whatever a file is encoded in, and
compressed by gzip or not, its lines are UTF-8; a line that is too long comes in pieces, so that it is never held.
Must not: know what a line means.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from thinkback.formats.history import Format, Notes, Source
from thinkback.stores.foreign import tables

MAX_LINE = 64 * 1024 * 1024
"""Bytes of a line that is read."""
MAX_MEMBER = 4 * 1024 * 1024 * 1024
"""Bytes of a file in an archive that are read."""
MAX_RATIO = 100
"""The most times its packed size that a compressed file may have, where it is larger than ``ANY_RATIO``."""
ANY_RATIO = 64 * 1024 * 1024
_HEAD = 256 * 1024
_PIECE = 1024 * 1024
_GZIP = b"\x1f\x8b"
_CONVERSATIONS = re.compile(r"(^|/)conversations[^/]*\.json$")
_WIDE = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
"""Encodings that the beginning of a file tells."""
_NO_ARCHIVE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error)


def below(folder: Path, format: Format, unreadable: Callable[[OSError], None]) -> Iterator[Path]:
    """The regular files of ``format`` below a folder, compressed or not."""
    endings = (*format.endings, *(f"{ending}.gz" for ending in format.endings))
    for place, _, names in os.walk(folder, onerror=unreadable):
        for name in names:
            path = Path(place, name)
            if (name.endswith(endings) or _is_document(path, format.documents)) and _is_regular(path):
                yield path


def head_of(path: Path) -> bytes:
    """The beginning of a file; of an archive that of the first conversations in it. Raises ``OSError``."""
    with _opened(path) as file:
        try:
            head = file.read(_HEAD)
        except (EOFError, zlib.error) as error:
            raise gzip.BadGzipFile(str(error)) from error
    return _head_in(path) or head if head.startswith(b"PK\x03\x04") else head


def _head_in(path: Path) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            named = next(each for each in archive.infolist() if _CONVERSATIONS.search(each.filename))
            with archive.open(named) as file:
                return file.read(_HEAD)
    except (*_NO_ARCHIVE, StopIteration):
        return b""


def members_of_archive(path: Path) -> list[str]:
    """The names of the files in an archive; none of a damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except _NO_ARCHIVE:
        return []


def source_of(path: Path, format: Format, notes: Notes) -> Source:
    """A file as the reader of ``format`` gets it; ``notes`` hears where it breaks off.

    Raises ``OSError``, and ``StoreError`` for a database; so do the lines, as they are read.
    """
    if _is_document(path, format.documents):
        return Source(str(path), (), _documents(path, format.documents, notes))
    if format.tables:
        return Source(str(path), (), tables(str(path), format.tables))
    pieces = _members(path, notes) if path.suffix == ".zip" else _lines(path)
    return Source(str(path).removesuffix(".gz"), _readable(pieces, notes))


def _is_document(path: Path, folders: tuple[str, ...]) -> bool:
    return folders[:1] == (path.parent.parent.name,) and path.suffix == ".json"


def _documents(path: Path, folders: tuple[str, ...], notes: Notes) -> dict[str, list[dict[str, Any]]]:
    """The document at ``path``, and what belongs to it, folder by folder."""
    found = {folders[0]: [_document(path)]}
    ids = [path.stem]
    for folder in folders[1:]:
        files = [each for id in ids for each in _files(path.parents[2] / folder / id)]
        found[folder] = []
        for each in files:
            try:
                found[folder].append(_document(each))
            except OSError as error:
                notes.add(f"a {folder} that cannot be read ({error.strerror})")
        ids = [each.stem for each in files]
    return found


def _document(path: Path) -> dict[str, Any]:
    """A row of a file, or of its beginning where it is too long."""
    with open(path, "rb") as file:
        return {"id": path.stem, "within": path.parent.name, "data": file.read(MAX_LINE).decode("utf-8", "replace")}


def _files(folder: Path) -> list[Path]:
    """The documents in a folder that is there, and no link to another one."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix == ".json" and _is_regular(path))


def _is_regular(path: Path) -> bool:
    """Whether it is a file, and still there."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _readable(pieces: Iterator[bytes], notes: Notes) -> Iterator[bytes]:
    try:
        yield from pieces
    except (EOFError, zlib.error, gzip.BadGzipFile):
        notes.add("a compressed file that breaks off")


def _members(path: Path, notes: Notes) -> Iterator[bytes]:
    """The conversations in an archive, file by file."""
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if _CONVERSATIONS.search(member.filename):
                    _refuse_bomb(member)
                    with archive.open(member) as file:
                        yield from _up_to(file, MAX_MEMBER)
                    yield b"\n"
                elif member.filename.endswith(".json"):
                    notes.add(f"{member.filename.rpartition('/')[2]} in the archive")
    except _NO_ARCHIVE as error:
        raise OSError(0, f"it is no archive that can be read: {error}") from error


def _refuse_bomb(member: zipfile.ZipInfo) -> None:
    """Raise ``OSError`` for a file that unpacks to more than conversations do; no more than that is read of any."""
    most = max(ANY_RATIO, MAX_RATIO * member.compress_size)
    if member.file_size > min(most, MAX_MEMBER):
        name, size = member.filename.rpartition("/")[2], member.file_size // 2**20
        limit = f"at most {MAX_MEMBER // 2**30} GB, and {MAX_RATIO} times its packed size"
        raise OSError(0, f"{name} in the archive would be {size:,} MB; the limit is {limit}")


def _up_to(file: IO[bytes], most: int) -> Iterator[bytes]:
    """The beginning of a file, in pieces."""
    while most > 0 and (piece := file.read(_PIECE)):
        yield piece
        most -= len(piece)


def _lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as packed:
        is_packed = packed.read(2) == _GZIP
    most = min(max(ANY_RATIO, MAX_RATIO * os.stat(path).st_size), MAX_MEMBER)
    with _opened(path) as file:
        while line := file.readline(MAX_LINE):
            most -= len(line) if is_packed else 0
            if most < 0:
                limit = f"at most {MAX_MEMBER // 2**30} GB, and {MAX_RATIO} times its packed size"
                raise OSError(0, f"it unpacks to more than conversations do; the limit is {limit}")
            yield line


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A file as UTF-8, without a mark at its beginning, and as it was before it was compressed."""
    with ExitStack() as stack:
        file: Any = stack.enter_context(open(path, "rb"))
        if file.peek(2).startswith(_GZIP):
            file = stack.enter_context(io.BufferedReader(gzip.GzipFile(fileobj=file)))
        try:
            begins = file.peek(4)
        except (EOFError, zlib.error):
            begins = b""  # whoever reads hears of it
        if begins.startswith(codecs.BOM_UTF8):
            file.read(len(codecs.BOM_UTF8))
        wide = next((name for name, mark in _WIDE.items() if begins.startswith(mark)), "")
        yield stack.enter_context(io.BufferedReader(_Recoded(file, wide))) if wide else file


class _Recoded(io.RawIOBase):
    """A file in another encoding as UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder(encoding)("replace").decode
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """As much as is there, up to the length of ``buffer``."""
        while not self._rest and (data := self._file.read(_PIECE)):
            self._rest = self._decode(data).lstrip("\ufeff").encode("utf-8", "replace")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
