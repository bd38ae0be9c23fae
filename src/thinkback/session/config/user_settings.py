"""Changes to the user's settings file; whatever else stands in it stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from thinkback.errors import ThinkbackError
from thinkback.session import config
from thinkback.settings import Value, parse_user_file
from thinkback.settings.editing import edit


def change(changes: Mapping[str, Value | None]) -> Path:
    """Set each key, or take it out where it is ``None``; returns the file, which is made if it is not there.

    Raises ``RuleFileError`` for a file that cannot be read, ``ThinkbackError`` for one that cannot be written.
    """
    path = config.config_dir() / "settings.toml"
    name, text = config.user_settings_file() or (str(path), "")
    parse_user_file(name, text)
    changed = edit(text, changes)
    if changed == text:
        return path
    try:
        config.write_file(path, changed, path.stat().st_mode & 0o777 if path.exists() else None)
    except OSError as error:
        wanted = ", ".join(f"{key} = {value}" for key, value in changes.items())
        raise ThinkbackError(
            f"{path} cannot be written: {error.strerror}",
            details={"path": str(path)},
            next_actions=(f"change it yourself: {wanted}",),
        ) from error
    return path
