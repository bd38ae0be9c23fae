"""Profiles on this machine: files ``profiles/NAME.toml`` of the configuration directory.

Files are replaced whole and are private. A name is never a path. Nothing here reads a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from thinkback.errors import NotFoundError, RuleFileError, SettingError
from thinkback.rules.urls import normalise_url
from thinkback.session import config
from thinkback.session.config import user_settings
from thinkback.settings import KEYS
from thinkback.settings.profiles import PLACE, Profile, combine, is_name, names_in, parse_profile, render

SETTING = "session.profile"


def path_of(name: str) -> Path:
    """The file of the profile ``name``. Raises ``SettingError`` for what cannot be a name."""
    if not is_name(name):
        raise SettingError(
            f"{name!r:.80} cannot be the name of a profile",
            details={"name": name},
            next_actions=("take letters, digits and . _ - between them, at most 64",),
        )
    return config.config_dir() / "profiles" / f"{name}.toml"


def listed() -> list[str]:
    """The names of the profiles there are."""
    files = (config.config_dir() / "profiles").glob("*.toml")
    return sorted(file.stem for file in files if is_name(file.stem) and file.is_file())


def read(name: str) -> Profile:
    """The profile ``name``, read now. Raises ``NotFoundError``, ``RuleFileError``, ``SettingError``."""
    path = path_of(name)
    return _parsed(str(path), _text(name, path))


def loaded(names: Sequence[str]) -> Profile:
    """The profiles ``names`` as one, read now. Raises as ``read``; the errors say what can be done."""
    return combine({name: read(name) for name in names})


def write(name: str, profile: Profile) -> Path:
    """Make ``profile`` the profile ``name``; comments of the file that is there stay. Raises ``RuleFileError``, and
    ``SettingError`` for an address that holds a password.
    """
    path = path_of(name)
    if profile.base_url:
        normalise_url(profile.base_url)
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    try:
        parse_profile(str(path), old)
    except RuleFileError as error:
        raise RuleFileError(
            f"it was not saved, because what is there cannot be read: {error.message}",
            details=error.details,
            next_actions=(f"correct {path}", f"or delete it first: thinkback profile delete {name}"),
        ) from error
    text = render(profile, old)
    parse_profile(str(path), text)
    config.write_file(path, text)
    return path


def delete(name: str) -> None:
    """Delete the profile ``name``. Raises ``NotFoundError``, and ``SettingError`` for the default."""
    path = path_of(name)
    _text(name, path)
    if name in defaults():
        raise SettingError(
            f"{name} is the default",
            next_actions=(
                "set another default first: thinkback profile default NAME",
                "or none: thinkback profile default --none",
            ),
        )
    path.unlink()


def defaults() -> tuple[str, ...]:
    """The names that the user's settings file says."""
    values, _ = user_settings.read()
    return names_in(str(values.get(SETTING, "")))


def make_default(names: Sequence[str]) -> Path:
    """Write ``names`` into the user's settings file, whose comments stay. Raises as ``loaded``; ``ThinkbackError``
    where it cannot be written.
    """
    loaded(names)
    return user_settings.change({SETTING: ",".join(names) or None})


def described(profile: Profile) -> list[tuple[str, object]]:
    """What a profile says, line by line: pairs of key and value."""
    said: list[tuple[str, object]] = [("kind", profile.kind)]
    said += [(key, getattr(profile, key)) for key in PLACE if getattr(profile, key)]
    if profile.targets:
        said.append(("targets", list(profile.targets)))
    known = [key for key in KEYS if key in profile.settings]
    return said + [(key, profile.settings[key]) for key in (*known, *sorted(profile.settings.keys() - known))]


@lru_cache(maxsize=16)
def _parsed(file: str, text: str) -> Profile:
    """A profile. Each request asks for it many times, and it seldom differs from the last time."""
    return parse_profile(file, text)


def _text(name: str, path: Path) -> str:
    try:
        text = config.text_of(path)
    except UnicodeDecodeError as error:
        raise RuleFileError(f"{path}: it is not UTF-8: {error}", details={"file": str(path)}) from error
    if text is None:
        known = ", ".join(listed()) or "none"
        raise NotFoundError(
            f"there is no profile {name}",
            details={"profile": name, "file": str(path)},
            next_actions=(f"profiles are: {known}", f"where a session goes by it, unset {SETTING} (--profile default)"),
        )
    return text
