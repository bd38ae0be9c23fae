"""Tools for files: read, write, edit, list. Whatever goes wrong is told to the model with what to do about it."""

from __future__ import annotations

import os
import secrets
import threading
from contextlib import suppress
from typing import Annotated, Protocol

from msgspec import Meta

from thinkback.drive.bounds import bounded, characters
from thinkback.drive.workspace import text as texts
from thinkback.drive.workspace.paths import (
    Workspace,
    WorkspacePath,
    is_gits,
    kind,
    opened,
    parent,
    resolve,
    translate_os_errors,
)
from thinkback.drive.workspace.text import Written
from thinkback.errors import ToolFailed

# Files larger than this are not read whole: search and commands are for them.
LARGEST = 20_000_000
_LINE = 2_000
_ENTRIES = 1_000
Lines = Annotated[int, Meta(ge=1)]


class Buffers(Protocol):
    """Files that are open somewhere, as in an editor, with changes that the disk does not have. Paths are absolute."""

    def read(self, path: str) -> str | None:
        """The text of an open file; ``None`` where the disk is to say it."""

    def write(self, path: str, text: str) -> bool:
        """Replace the text of a file that is there; false where that is to be done on the disk."""


class Files:
    """The file tools of one workspace. ``tokens`` bounds what one call gives. For any number of threads.

    Files that are open in ``buffers`` are read and changed there.
    """

    def __init__(self, workspace: Workspace, tokens: int, buffers: Buffers | None = None) -> None:
        self._workspace = workspace
        self._tokens = tokens
        self._buffers = buffers
        self._changing = threading.Lock()

    def read(self, path: str, offset: Lines = 1, limit: Lines = 2000) -> str:
        """Read a text file of the workspace, with line numbers; offset is the first line wanted, limit how many. The
        number and the tab before each line are not part of the file.
        """
        place, _, written = self._load(path)
        found = texts.lines(written.text)
        if not found:
            return f"[{place.shown} is empty]"
        if offset > len(found):
            raise ToolFailed(f"{place.shown} has {len(found):,} lines: there is no line {offset:,}")
        shown: list[str] = []
        room = characters(self._tokens)
        for number, line in enumerate(found[offset - 1 : offset - 1 + limit], offset):
            shown.append(f"{number}\t{_short(line)}")
            room -= len(shown[-1]) + 1
            if room < 0 and len(shown) > 1:
                shown.pop()
                break
        return "\n".join([*shown, *_remarks(written, offset, len(shown), len(found))])

    def write(self, path: str, content: str) -> str:
        """Write a text file of the workspace, whole: what was in it is replaced. Directories are made as needed. Use
        edit to change a part of a file.
        """
        place = self._file(path)
        data = content.encode("utf-8", "replace")
        with self._changing:
            before = self._status(place)
            self._put(place, content, data, before)
        count = len(texts.lines(content))
        return f"{'Created' if before is None else 'Replaced'} {place.shown}: {count:,} lines, {len(data):,} bytes."

    def edit(self, path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
        """Replace text in a file of the workspace. old_string must stand in it exactly as given, white space included,
        and exactly once unless replace_all is true.
        """
        if not old_string:
            raise ToolFailed("old_string is empty", next_actions=("Use write to make a file.",))
        if old_string == new_string:
            raise ToolFailed("old_string and new_string are the same: there is nothing to change")
        with self._changing:
            place, status, written = self._load(path)
            old, new = _in_style(written.text, old_string, new_string)
            count = written.text.count(old)
            if count == 0:
                raise _absent(place, written.text, old_string)
            if count > 1 and not replace_all:
                raise _ambiguous(place, written.text, old, count)
            if len(written.text) + count * (len(new) - len(old)) > LARGEST:
                raise ToolFailed(f"{place.shown} would grow beyond {LARGEST:,} characters")
            changed = written.text.replace(old, new)
            self._put(place, changed, written.encoded(changed), status)
        first = _line_of(written.text, written.text.index(old))
        where = f"line {first}" if count == 1 else f"{count} places, the first at line {first}"
        return f"Changed {place.shown} at {where}."

    def list(self, path: str = ".") -> str:
        """List a directory of the workspace: directories end with a slash, files come with their size in bytes."""
        place = resolve(self._workspace, path)
        with translate_os_errors(place):
            try:
                with opened(self._workspace, place) as descriptor, os.scandir(descriptor) as entries:
                    found = sorted((_entry(entry) for entry in entries), key=str.lower)
            except NotADirectoryError:
                raise ToolFailed(f"{place.shown} is a file", next_actions=("Use read.",)) from None
        more = [f"[{len(found) - _ENTRIES:,} more entries]"] if len(found) > _ENTRIES else []
        return bounded("\n".join([*found[:_ENTRIES], *more]), self._tokens) or f"[{place.shown} is empty]"

    def _file(self, path: str) -> WorkspacePath:
        place = resolve(self._workspace, path)
        if not place.parts:
            raise ToolFailed(f"{path or 'an empty path'} is the workspace itself", next_actions=("Give a file in it.",))
        return place

    def _load(self, path: str) -> tuple[WorkspacePath, os.stat_result, Written]:
        place = self._file(path)
        # what cannot be opened as a file is not closed by who tried
        with (
            translate_os_errors(place),
            opened(self._workspace, place) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            status = os.fstat(descriptor)
            _refuse_special(place, status)
            if status.st_size > LARGEST:
                raise ToolFailed(
                    f"{place.shown} has {status.st_size:,} bytes: too much to read",
                    next_actions=("Use search, or a command that shows a part of it.",),
                )
            return place, status, self._as_open(place, texts.decode(file.read(LARGEST), place.shown))

    def _as_open(self, place: WorkspacePath, written: Written) -> Written:
        """``written`` as it is where it is open; line ends alone, which editors make their own, are no difference."""
        text = self._buffers.read(self._path(place)) if self._buffers is not None else None
        if text is None or text.replace("\r\n", "\n") == written.text.replace("\r\n", "\n"):
            return written
        return written._replace(text=text)

    def _put(self, place: WorkspacePath, text: str, data: bytes, before: os.stat_result | None) -> None:
        """Give the file ``text``, where it is open or, as ``data``, on the disk."""
        if is_gits(place):
            raise ToolFailed(f"{place.shown} is git's own", next_actions=("Change it by a command of git, in shell.",))
        if before is not None and self._buffers is not None:
            _refuse_read_only(place, before)
            if self._buffers.write(self._path(place), text):
                return
        self._store(place, data, before)

    def _path(self, place: WorkspacePath) -> str:
        return os.path.join(self._workspace.root, *place.parts)

    def _status(self, place: WorkspacePath) -> os.stat_result | None:
        """What is at ``place``; ``None`` where nothing is."""
        with translate_os_errors(place):
            try:
                with parent(self._workspace, place) as directory:
                    found = os.stat(place.parts[-1], dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                return None
        _refuse_special(place, found)
        return found

    def _store(self, place: WorkspacePath, data: bytes, before: os.stat_result | None) -> None:
        """Put ``data`` at ``place``: whole or, whatever happens, not at all."""
        if before is not None:
            _refuse_read_only(place, before)
        name = f".thinkback-{secrets.token_hex(8)}"
        with translate_os_errors(place), parent(self._workspace, place, create=before is None) as directory:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with open(os.open(name, flags, 0o666, dir_fd=directory), "wb") as file:
                    if before is not None:
                        _make_like(file.fileno(), before)
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, place.parts[-1], src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                _remove(name, directory)
                raise


def _refuse_special(place: WorkspacePath, status: os.stat_result) -> None:
    found = kind(status.st_mode)
    if found:
        raise ToolFailed(f"{place.shown} is {found}", next_actions=("list shows what a directory holds.",))


def _refuse_read_only(place: WorkspacePath, status: os.stat_result) -> None:
    if not status.st_mode & 0o222:
        raise ToolFailed(f"{place.shown} is read-only", next_actions=("Ask the user whether it may be changed.",))


def _make_like(descriptor: int, before: os.stat_result) -> None:
    """Give a new file the owner and the mode of the one before, except that nobody becomes another by running it."""
    found = os.fstat(descriptor)
    if (found.st_uid, found.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, before.st_mode & 0o777)


def _remove(name: str, directory: int) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return


def _short(line: str) -> str:
    return bounded(line, _LINE // 4).replace("\n", " ")


def _remarks(written: Written, offset: int, count: int, total: int) -> list[str]:
    """What the lines alone do not say."""
    remarks: list[str] = []
    if offset > 1 or count < total:
        last = offset + count - 1
        more = f"; go on with offset={last + 1}" if last < total else ""
        remarks.append(f"[lines {offset:,} to {last:,} of {total:,}{more}]")
    if texts.line_end(written.text) == "\r\n":
        remarks.append("[lines end with CRLF; edit keeps that]")
    if written.encoding != "utf-8":
        remarks.append(f"[read as {written.encoding}; edit keeps that]")
    return remarks


def _in_style(text: str, old: str, new: str) -> tuple[str, str]:
    """``old`` and ``new`` with the file's line ends, which ``read`` does not show."""
    if "\r\n" not in text:
        return old, new
    wanted = old.replace("\r\n", "\n").replace("\n", "\r\n")
    if wanted not in text or (old in text and texts.line_end(text) == "\n"):
        return old, new
    return wanted, new.replace("\r\n", "\n").replace("\n", "\r\n")


def _absent(place: WorkspacePath, text: str, old: str) -> ToolFailed:
    wanted = old.split()
    near = next((number for number, line in enumerate(texts.lines(text), 1) if _begins(line, old)), 0)
    hint = f"Line {near} is like its first line, with other white space. " if near and wanted else ""
    return ToolFailed(
        f"old_string does not stand in {place.shown}",
        next_actions=(f"{hint}Read the file again and give the text exactly as it is there, without line numbers.",),
    )


def _begins(line: str, old: str) -> bool:
    return line.split() == old.strip().partition("\n")[0].split() != []


def _ambiguous(place: WorkspacePath, text: str, old: str, count: int) -> ToolFailed:
    at, found = -1, []
    for _ in range(min(count, 5)):
        at = text.index(old, at + 1)
        found.append(str(_line_of(text, at)))
    more = ", ..." if count > len(found) else ""
    return ToolFailed(
        f"old_string stands in {place.shown} {count} times, at lines {', '.join(found)}{more}",
        next_actions=("Give more of what stands around the one that is meant, or replace_all=true.",),
    )


def _line_of(text: str, at: int) -> int:
    return len(texts.lines(text[:at] + "x"))


def _entry(entry: os.DirEntry[str]) -> str:
    name = os.fsencode(entry.name).decode("utf-8", "replace")
    try:
        if entry.is_symlink():
            return f"{name} (a link)"
        return f"{name}/" if entry.is_dir() else f"{name} ({entry.stat(follow_symlinks=False).st_size:,} bytes)"
    except OSError:  # it went away meanwhile
        return name
