"""What the user's machine says: configuration files, places of data, the date. Looked at when asked.

A file is opened again only where its stat changed since it was read.
``keys`` finds keys, ``user_settings`` changes the settings file.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from thinkback.errors import RuleFileError

if TYPE_CHECKING:
    from thinkback.rules import Rulebook

_MOST_FILES = 256
# A file whose clock stood still while it was read may have been written again with the same times: so long a file must
# have been left alone to be taken from memory, the longer one where times are whole seconds.
_SETTLED = 50_000_000
_SETTLED_SECONDS = 2_000_000_000


class File(NamedTuple):
    """A file as it was read: its text and its permission bits."""

    text: str
    mode: int


_read: dict[str, tuple[tuple[int, ...], File]] = {}


def file_at(path: Path) -> File | None:
    """The file at ``path``, or ``None`` where there is none. Raises ``OSError``, ``UnicodeDecodeError``."""
    name = str(path)
    try:
        found = os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    known = _read.get(name)
    if known is not None and known[0] == _identity(found):
        return known[1]
    began = time.time_ns()
    with open(name, encoding="utf-8") as stream:
        found = os.fstat(stream.fileno())
        file = File(stream.read(), stat.S_IMODE(found.st_mode))
    whole = found.st_mtime_ns % 1_000_000_000 == 0
    if began - max(found.st_mtime_ns, found.st_ctime_ns) > (_SETTLED_SECONDS if whole else _SETTLED):
        if len(_read) >= _MOST_FILES:
            _read.clear()
        _read[name] = _identity(found), file
    else:
        _read.pop(name, None)
    return file


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def text_of(path: Path) -> str | None:
    """The text of the file at ``path``, or ``None`` where there is none. Raises as ``file_at``."""
    file = file_at(path)
    return file.text if file is not None else None


def config_dir() -> Path:
    """``THINKBACK_CONFIG_DIR``, else the platform's configuration directory."""
    given = os.environ.get("THINKBACK_CONFIG_DIR")
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_config_dir("thinkback", appauthor=False))


def user_rule_files() -> dict[str, str]:
    """Name to text of the user's rule files: ``rules.toml`` and ``rules/*.toml``."""
    place = config_dir()
    files = [place / "rules.toml", *sorted((place / "rules").glob("*.toml"))]
    return {str(file): _whole(file) for file in files if _is_there(file)}


def rule_update_files() -> dict[str, str]:
    """Name to text of the rule updates that are kept, the oldest first."""
    files = sorted((config_dir() / "rules" / "updates").glob("[0-9]*.toml"))
    return {str(file): _whole(file) for file in files if _is_there(file)}


def rulebook() -> Rulebook:
    """The package's rules, the updates that are kept, and the user's files. Raises ``RuleFileError``."""
    from thinkback.rules import load_rulebook

    return load_rulebook(user_rule_files(), rule_update_files())


def user_settings_file() -> tuple[str, str] | None:
    """(name, text) of ``settings.toml``, or ``None``."""
    return _named(config_dir() / "settings.toml")


def write_file(path: Path, text: str, mode: int | None = None) -> None:
    """Replace the file at ``path`` whole: a reader sees the old one or the new one. It is private, or has ``mode``.

    A link is followed. Directories on the way are made private.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        if mode is not None:
            draft.chmod(mode)
        os.replace(draft, target)
    except OSError as error:
        # of the file that is meant; nobody knows the draft
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def user_servers() -> dict[str, Any]:
    """The tables of ``mcp.toml``: MCP servers by name. Raises ``RuleFileError`` for a file that cannot be used."""
    file = config_dir() / "mcp.toml"
    if not file.is_file():
        return {}
    from thinkback.settings.files import read_toml

    return read_toml(str(file), _whole(file))


def data_file() -> Path:
    """``THINKBACK_DB``, else the log in the platform's data directory, which need not be there."""
    given = os.environ.get("THINKBACK_DB")
    return Path(given) if given else _data_dir() / "thinkback.db"


def make_place(log: str) -> None:
    """Make the platform's data directory, private, where it is the place of ``log``.

    One that cannot be made is told by whoever opens the log.
    """
    place = _data_dir()
    if Path(log).parent == place:
        with suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)


def _data_dir() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("thinkback", appauthor=False))


def usage_file() -> Path:
    """Where commands log the use of requests: ``THINKBACK_USAGE_LOG``, else in the platform's state directory."""
    given = os.environ.get("THINKBACK_USAGE_LOG")
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_state_dir("thinkback", appauthor=False)) / "usage.jsonl"


def price_file() -> tuple[str, str] | None:
    """(name, text) of ``prices.toml``, or ``None``."""
    return _named(config_dir() / "prices.toml")


def _named(path: Path) -> tuple[str, str] | None:
    return (str(path), _whole(path)) if _is_there(path) else None


def _is_there(path: Path) -> bool:
    """Whether ``path`` is a file. Raises ``RuleFileError`` where its directory may not be entered."""
    try:
        return path.is_file()
    except PermissionError as error:
        raise _unreadable(path, error.strerror, "let this user enter its directory") from None


def _whole(path: Path) -> str:
    """The text of a file of the configuration, empty where it has just gone. Raises ``RuleFileError``."""
    try:
        return text_of(path) or ""
    except OSError as error:
        reason, action = error.strerror, "give this user read permission for it"
    except UnicodeDecodeError as error:
        reason, action = f"it is not UTF-8 ({error.reason})", f"correct {path}"
    raise _unreadable(path, reason, f"{action}, or move it away")


def _unreadable(path: Path, reason: str | None, action: str) -> RuleFileError:
    return RuleFileError(f"{path} cannot be read: {reason}", details={"file": str(path)}, next_actions=(action,))


def today() -> str:
    """ISO date, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())
