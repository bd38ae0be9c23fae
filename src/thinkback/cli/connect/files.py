"""The files of agents, and what is kept to take changes back: the only I/O of ``connect``.

Promises: a file is replaced whole or not at all, with mode 0600; a link is never followed or replaced, also where it is
put there in between (every step goes by one open directory); what changed after it was read is not overwritten. What
is kept is private and in no repository. Commands run one after another (``only_one``). A draft has a name for an
instant alone, always the same one, so that none stays behind a process that was killed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from thinkback.cli.connect.agents import File
from thinkback.cli.connect.documents import Change, digest_of
from thinkback.errors import RuleFileError, SettingError

_LARGEST = 4 << 20
_VERSION = 1
_MARKS = (".git", ".hg", ".jj", ".svn")
_BOM = b"\xef\xbb\xbf"
_AWAY = "set the agent's own variable to the real file, or edit the file by hand"


class Found(NamedTuple):
    """A file as it is: ``None`` where it is not there."""

    data: bytes | None
    mode: int = 0o600


class Record(NamedTuple):
    """What was written to a file: the changes that it had not before, and the file before them.

    ``earlier`` are the changes of the write before, until this one is known to be done: where it ended in between, the
    file has those. They were read back: of a secret they have the digest.
    """

    changes: tuple[Change, ...]
    written: str
    original: Found
    earlier: tuple[Change, ...] = ()


def place_of(file: File, environment: Mapping[str, str]) -> Path:
    """Where ``file`` is, or would be made."""
    for place in file.places:
        named = environment.get(place.variable)
        if named and place.is_file:
            return Path(named).expanduser().absolute()
        if named:
            return _named(file, Path(named).expanduser().absolute() / place.below)
    return _named(file, (Path.cwd() if file.is_here else Path.home()).resolve() / file.below)


def _named(file: File, folder: Path) -> Path:
    there = (folder / name for name in reversed(file.names) if os.path.lexists(folder / name))
    return next(there, folder / file.names[0])


def repository_of(path: Path, environment: Mapping[str, str]) -> Path | None:
    """The root of the repository that ``path`` is in; a work tree that is marked by a file counts as well."""
    folder = path.parent.resolve()
    tree = environment.get("GIT_WORK_TREE")
    roots = [above for above in (folder, *folder.parents) if any(os.path.lexists(above / mark) for mark in _MARKS)]
    if tree and folder.is_relative_to(Path(tree).expanduser().resolve()):
        roots.append(Path(tree).expanduser().resolve())
    return roots[0] if roots else None


def read(path: Path) -> Found:
    """The file at ``path``. Raises ``SettingError`` for a link, another user's file, and what is no file or cannot be
    read.
    """
    with suppress(FileNotFoundError), _naming(path), _folder(path, make=False) as folder:
        return _read(path, folder)
    return Found(None)


def text_of(path: Path, data: bytes | None) -> tuple[bytes, str]:
    """The byte order mark, and the text behind it. Raises ``RuleFileError``."""
    data = data or b""
    mark = _BOM if data.startswith(_BOM) else b""
    try:
        return mark, data[len(mark) :].decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RuleFileError(
            f"{path}: line {line}: it is not UTF-8", details={"file": str(path), "line": line}
        ) from None


def replace(path: Path, data: bytes | None, mode: int, expected: bytes | None) -> None:
    """Put ``data`` in place of the file, or remove it (``None``), where it is still what was ``expected``."""
    with _naming(path), _folder(path, make=True) as folder:
        if _read(path, folder).data != expected:
            raise SettingError(
                f"{path} was changed meanwhile: nothing was written", next_actions=("run the command again",)
            )
        name = _name(path.name, path, folder)
        if data is None:
            os.unlink(name, dir_fd=folder)
            return
        draft = _name(f".{path.name}.thinkback", path, folder)
        try:
            with suppress(FileNotFoundError):  # of a command that was killed
                os.unlink(draft, dir_fd=folder)
            with _draft(draft, folder) as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
                if os.name != "nt":
                    os.fchmod(stream.fileno(), mode)
                if not _has_name(stream):
                    os.link(f"/proc/self/fd/{stream.fileno()}", draft, dst_dir_fd=folder)
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)


@contextmanager
def only_one() -> Iterator[None]:
    """Keep other commands from writing or undoing meanwhile. Raises ``SettingError`` as ``replace`` does."""
    place = _state() / "lock"
    with _naming(place), _folder(place, make=True) as folder:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with open(os.open(_name(place.name, place, folder), flags, 0o600, dir_fd=folder), "rb") as stream:
            if os.name != "nt":
                import fcntl

                fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def check_owner(path: Path) -> None:
    """Raise ``SettingError`` where root would put ``path``, or directories on its way, among another user's files."""
    above = next(folder for folder in path.parents if os.path.lexists(folder))
    if os.name != "nt" and os.geteuid() == 0 and above.lstat().st_uid != 0:
        raise SettingError(
            f"{above} belongs to another user, who could not read what root writes there: nothing was written",
            details={"file": str(path)},
            next_actions=("run the command as that user",),
        )


def original_of(agent: str, path: Path) -> Path:
    """Where the file is kept as it was."""
    return _record_of(agent, path).with_suffix(".original")


def kept(agent: str, path: Path) -> Record | None:
    """What was written to ``path`` for ``agent``, if it was. Raises ``SettingError`` for a damaged record."""
    place = _record_of(agent, path)
    found = read(place).data
    if found is None:
        return None
    try:
        said: dict[str, Any] = json.loads(found)
        if said["version"] != _VERSION:
            raise ValueError
        changes, earlier = _changes(said["changes"]), _changes(said.get("earlier", ()))
        original = read(original_of(agent, path)).data if not said["made"] else None
        if not said["made"] and original is None:
            raise ValueError
        return Record(changes, str(said["written"]), Found(original, int(said["mode"])), earlier)
    except (ValueError, KeyError, TypeError):
        raise SettingError(
            f"{place} cannot be read, so it is not known what was written to {path}",
            next_actions=(f"undo the change by hand, then remove {place}",),
        ) from None


def keep(agent: str, path: Path, record: Record) -> None:
    """Keep what is about to be written, then, without ``earlier``, that it was; and the file as it was before."""
    place, backup = _record_of(agent, path), original_of(agent, path)
    ignored = place.with_name(".gitignore")
    replace(ignored, b"*\n", 0o600, read(ignored).data)
    if record.original.data is not None:
        replace(backup, record.original.data, 0o600, read(backup).data)
    said = {
        "version": _VERSION,
        "file": str(path),
        "made": record.original.data is None,
        "mode": record.original.mode,
        "written": record.written,
        "changes": _listed(record.changes, of_secrets=digest_of),
        "earlier": _listed(record.earlier, of_secrets=lambda digest: digest),
    }
    replace(place, json.dumps(said, indent=2).encode(), 0o600, read(place).data)


def forget(agent: str, path: Path) -> None:
    """Remove the record and the file as it was."""
    for place in (_record_of(agent, path), original_of(agent, path)):
        with suppress(FileNotFoundError):
            place.unlink()


def _listed(changes: Iterable[Change], *, of_secrets: Callable[[object], object]) -> list[dict[str, Any]]:
    return [
        {"path": one.path, "value": of_secrets(one.value) if one.is_secret else one.value, "is_secret": one.is_secret}
        for one in changes
    ]


def _changes(listed: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    return tuple(Change(tuple(one["path"]), one["value"], one["is_secret"]) for one in listed)


def _state() -> Path:
    import platformdirs

    return Path(platformdirs.user_state_dir("thinkback", appauthor=False)).resolve() / "connect"


def _record_of(agent: str, path: Path) -> Path:
    return _state() / f"{agent}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.json"


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors of the system name all of ``path``: a call that goes by a directory knows a part of it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SettingError(
            f"{path} cannot be read or written ({error.strerror})",
            details={"file": str(path)},
            next_actions=("check the rights to the file and to its directory, and the disk",),
        ) from error


def _name(name: str, path: Path, folder: int | None) -> str:
    """How a file beside ``path`` is named to a call that takes ``folder``."""
    return name if folder is not None else str(path.with_name(name))


@contextmanager
def _folder(path: Path, *, make: bool) -> Iterator[int | None]:
    """The directory of ``path``, opened; ``None`` where the system has no such calls. Raises ``SettingError``."""
    parent = path.parent
    if make:
        check_owner(path)
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if parent.is_symlink():
        raise SettingError(f"{parent} is a symbolic link: it is not followed", next_actions=(_AWAY,))
    if os.open not in os.supports_dir_fd:
        yield None
        return
    try:
        descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except NotADirectoryError:
        raise SettingError(f"{parent} is no directory, or is a symbolic link", next_actions=(_AWAY,)) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _draft(draft: str, folder: int | None) -> BinaryIO:
    """A new file to write to: where the system and the file system have such, one without a name."""
    if folder is not None and hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):
            return open(os.open(".", os.O_WRONLY | os.O_TMPFILE, 0o600, dir_fd=folder), "wb")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return open(os.open(draft, flags, 0o600, dir_fd=folder), "wb")


def _has_name(stream: BinaryIO) -> bool:
    return os.fstat(stream.fileno()).st_nlink > 0


def _read(path: Path, folder: int | None) -> Found:
    if folder is None and path.is_symlink():
        raise _linked(path)
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(_name(path.name, path, folder), flags, dir_fd=folder)
    except FileNotFoundError:
        return Found(None)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _linked(path) from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise SettingError(f"{path} is no file", next_actions=(_AWAY,))
    with open(descriptor, "rb") as stream:
        if os.name != "nt" and found.st_uid != os.geteuid():
            raise SettingError(f"{path} belongs to another user", next_actions=("run the command as that user",))
        if found.st_size > _LARGEST:
            raise SettingError(f"{path} has more than {_LARGEST >> 20} MB: that is no configuration of an agent")
        return Found(stream.read(), stat.S_IMODE(found.st_mode))


def _linked(path: Path) -> SettingError:
    return SettingError(f"{path} is a symbolic link: it is neither followed nor replaced", next_actions=(_AWAY,))
