"""The user's settings file for commands: read as far as it holds, and changed.

Whatever else stands in the file stays as it is, also where it is wrong: a bad entry must not stop the commands that
repair it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from thinkback.errors import RuleFileError, ThinkbackError
from thinkback.session import config
from thinkback.settings import Value, find
from thinkback.settings.editing import edit
from thinkback.settings.files import read_toml, split_settings
from thinkback.settings.registry import ours
from thinkback.settings.values import flatten


def read() -> tuple[dict[str, Value], list[RuleFileError]]:
    """The settings in the file that hold, and an error for each entry that does not.

    Raises ``RuleFileError`` for a file that is not valid TOML.
    """
    file = config.user_settings_file()
    return split_settings(file[0], read_toml(*file)) if file else ({}, [])


class Unset(NamedTuple):
    """What was taken out: ``key``, as the file names it, ``was_there`` in the file at ``path``."""

    key: str
    path: Path
    was_there: bool


def unset(key: str) -> Unset:
    """Take ``key`` out, whatever the file says for it; a name that is no setting must stand in the file.

    Raises as ``change``, and ``SettingError`` for a name that is neither a setting nor in the file.
    """
    file = config.user_settings_file()
    written = [name for name, _ in flatten(read_toml(*file))] if file else []
    name = key if key in written else find(key).name
    return Unset(name, change({name: None}), any(name in (other, ours(other)) for other in written))


def change(changes: Mapping[str, Value | None]) -> Path:
    """Set each key, or take it out where it is ``None``; returns the file, which is made if it is not there.

    Raises ``RuleFileError`` for a file that is not valid TOML, ``ThinkbackError`` for one that cannot be written.
    """
    path = config.config_dir() / "settings.toml"
    name, text = config.user_settings_file() or (str(path), "")
    written = [key for key, _ in flatten(read_toml(name, text))]
    aliases = {key: None for key in written if ours(key) in changes and key not in changes}
    changed = edit(text, {**aliases, **changes})
    if changed == text:
        return path
    try:
        config.write_file(path, changed, path.stat().st_mode & 0o777 if path.exists() else None)
    except OSError as error:
        raise ThinkbackError(
            f"{path} cannot be written: {error.strerror}",
            details={"path": str(path)},
            next_actions=tuple(_by_hand(key, value) for key, value in changes.items()),
        ) from error
    return path


def _by_hand(key: str, value: Value | None) -> str:
    """How a person makes a change in the file."""
    if value is None:
        return f"take {key} out yourself"
    import tomlkit

    table, _, name = key.rpartition(".")
    return f"change it yourself: under [{table}] write: {name} = {tomlkit.item(value).as_string()}"
