"""Keys on this machine: the environment, then the key file, then the system's keyring; looked up when asked.

A key goes by the name of its environment variable. The file is ``keys.toml`` in the configuration directory and is
used only while nobody else may read it. The keyring (the extra ``keyring``) is asked last, because asking may be slow
or wake a person. No error or ``repr`` here holds a key.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from thinkback.errors import (
    CredentialError,
    MissingPackageError,
    NotFoundError,
    RuleFileError,
    SettingError,
    install_hint,
)
from thinkback.model.rule import Endpoint
from thinkback.session import config
from thinkback.settings.files import read_toml

SERVICE = "thinkback"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REMEMBERED = (300.0, 20.0)
"""Seconds for which the keyring is not asked again for a key that it had, and for one that it had not: each request
asks for its key several times, and waits meanwhile.
"""

seen: dict[str, str] = {}
"""The keys that were found outside the environment, by name: what is printed must hold none of them."""
_asked: dict[str, tuple[float, str | None]] = {}


class File(NamedTuple):
    """What the key file holds: keys by name, and the names of those that are in the keyring."""

    keys: Mapping[str, str]
    keyring: Sequence[str]

    def __repr__(self) -> str:
        return f"<File: keys {', '.join(self.keys)}; keyring {', '.join(self.keyring)}>"


def of_endpoint(endpoint: Endpoint, given: str | None, name: str = "") -> str | None:
    """The key for ``endpoint``: the one given, else that under ``name``, else that under one of its own names. Raises
    as ``find``.

    White space around it is taken off: files and shells leave it there. An endpoint that can do without a key, or signs
    in by other means, has one in the keyring only where the key file says so.
    """
    if given is not None:
        return given.strip()
    needs_one = not endpoint.auth.optional and endpoint.auth.scheme in ("bearer", "header", "query")
    return find((name,) if name else endpoint.auth.env, asks_keyring=bool(name) or needs_one)


def find(names: Sequence[str], *, asks_keyring: bool = True) -> str | None:
    """The first key under one of ``names``. The keyring is asked for every name, or only where the file says that it
    has the key. Raises ``CredentialError`` for a key file that others may read, ``RuleFileError`` for one that is none.
    """
    found = next(filter(None, (os.environ.get(name, "").strip() for name in names)), None)
    if found is not None or not names:
        return found
    file = read_file()
    for name in names:
        if file.keys.get(name):
            return _noted(name, file.keys[name])
    for name in names:
        key = _from_keyring(name) if asks_keyring or name in file.keyring else None
        if key:
            return _noted(name, key)
    return None


def replacing(endpoint: Endpoint, given: str | None, name: str = "") -> tuple[str, ...]:
    """Name the place that the key for ``endpoint`` came from, as ``of_endpoint`` finds it, and what replaces it there.

    Empty where no key is known.
    """
    if given is not None:
        return ("the key was given by the program, as api_key=: give another one",)
    names = (name,) if name else endpoint.auth.env
    found = places(names)
    for place in ("environment", "file", "keyring"):
        for variable in (each for each in names if found.get(each) == place):
            if place == "environment":
                return (f"the key came from the environment variable {variable}: set it to another key",)
            if place == "file":
                return (f"the key came from {path()}: `thinkback keys set {variable}` replaces it",)
            return (f"the key came from this machine's keyring: `thinkback keys set {variable} --keyring` replaces it",)
    return ()


def missing(name: str) -> CredentialError:
    """The error for a key that has a name and is nowhere."""
    return CredentialError(
        f"there is no key {name}",
        next_actions=(f"set {name} in the environment", f"or keep it: thinkback keys set {name}"),
    )


def keep(name: str, key: str, *, in_keyring: bool = False) -> Path:
    """Keep ``key`` under ``name``, in the file or in the keyring; returns the file, which says which.

    Raises ``SettingError`` for what cannot be a name or a key, ``CredentialError`` where there is no keyring.
    """
    check_name(name)
    key = key.strip()
    if not key:
        raise SettingError(f"the key for {name} is empty: nothing was kept", next_actions=("type or pipe in the key",))
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingError(
            f"the text given as {name} cannot be a key: it contains spaces or characters that HTTP cannot carry",
            next_actions=("check that the whole key and nothing else was copied",),
        )
    read_file()
    if in_keyring:
        _in_keyring(lambda keyring: keyring.set_password(SERVICE, name, key))
    return _write(name, None if in_keyring else key, in_keyring=in_keyring)


def remove(name: str) -> None:
    """Take the key ``name`` out of the file and the keyring. Raises ``NotFoundError`` where neither has it."""
    check_name(name)
    file = read_file()
    if name not in file.keys and name not in file.keyring:
        raise NotFoundError(
            f"no key {name} is kept", details={"key": name}, next_actions=("`thinkback keys list` lists them",)
        )
    if name in file.keyring:
        _in_keyring(lambda keyring: _delete(keyring, name))
    _write(name, None, in_keyring=False)


def places(names: Iterable[str]) -> dict[str, str]:
    """Where the keys are that there are, by name: those under ``names``, and all that are kept."""
    file = read_file()
    found: dict[str, str] = {}
    for name in dict.fromkeys((*names, *file.keys, *file.keyring)):
        if os.environ.get(name, "").strip():
            found[name] = "environment"
        elif name in file.keys:
            found[name] = "file"
        elif name in file.keyring:
            found[name] = "keyring"
    return found


def check_name(name: str) -> None:
    """Raise ``SettingError`` for what cannot be the name of a key. It is not repeated: it may be a key."""
    if not _VARIABLE.fullmatch(name):
        raise SettingError(
            "a key goes by the name of an environment variable: letters, digits and _",
            next_actions=("`thinkback endpoints` lists endpoints, whose names do as well",),
        )


def path() -> Path:
    """The key file."""
    return config.config_dir() / "keys.toml"


def read_file() -> File:
    """What the key file holds. Raises ``CredentialError`` where others may read it, ``RuleFileError``."""
    file = path()
    try:
        found = config.file_at(file)
    except UnicodeDecodeError:
        raise RuleFileError(f"{file}: it is not UTF-8", details={"file": str(file)}) from None
    if found is None:
        return File({}, ())
    if os.name != "nt" and found.mode & 0o077:
        raise CredentialError(
            f"{file} holds keys, and others may read it (mode {found.mode:04o}): it is not used",
            details={"file": str(file)},
            next_actions=(f"chmod 600 {file}", "if others may have read it, replace the keys"),
        )
    table: dict[str, Any] = read_toml(str(file), found.text)
    keys, marked = table.pop("keys", {}), table.pop("keyring", [])
    # what stands in the place of a name may be a key, and is not repeated
    fault = "what stands before its tables" if table else ""
    if not isinstance(keys, dict) or not all(isinstance(key, str) for key in keys.values()):
        fault = "keys"
    elif not all(map(_VARIABLE.fullmatch, keys)):
        fault = "a name in [keys]"
    elif not isinstance(marked, list) or not all(isinstance(name, str) for name in marked):
        fault = "keyring"
    if fault:
        raise RuleFileError(
            f"{file}: {fault}: it cannot be read",
            details={"file": str(file), "key": fault},
            next_actions=('it holds [keys] with NAME = "...", and keyring = ["NAME"]',),
        )
    return File({name: key.strip() for name, key in keys.items()}, marked)


def _write(name: str, key: str | None, *, in_keyring: bool) -> Path:
    """Set or take out one name; comments stay."""
    import tomlkit

    file = path()
    document: Any = tomlkit.parse(file.read_text(encoding="utf-8") if file.is_file() else "")
    marked = [known for known in document.get("keyring", []) if known != name]
    if in_keyring:
        marked.append(name)
    if marked:
        document["keyring"] = marked
    else:
        document.pop("keyring", None)
    if key is not None:
        if "keys" not in document:
            document["keys"] = tomlkit.table()
        document["keys"][name] = key
    elif "keys" in document:
        document["keys"].pop(name, None)
    config.write_file(file, tomlkit.dumps(document))
    _asked.pop(name, None)
    return file


def _noted(name: str, key: str) -> str:
    seen[name] = key
    return key


def _from_keyring(name: str) -> str | None:
    """What the keyring has; nothing where there is none that can be used."""
    at, known = _asked.get(name, (0.0, None))
    now = time.monotonic()
    if name in _asked and now - at < _REMEMBERED[known is None]:
        return known
    try:
        import keyring
        import keyring.errors
    except ModuleNotFoundError:
        return None
    try:
        found = (keyring.get_password(SERVICE, name) or "").strip() or None
    # a backend without its service, or locked: there is no key to be had there
    except (keyring.errors.KeyringError, RuntimeError, OSError):
        found = None
    _asked[name] = (now, found)
    return found


def _in_keyring(work: Callable[[ModuleType], None]) -> None:
    """Do ``work`` with the keyring. Raises ``CredentialError`` where there is none, ``MissingPackageError``."""
    try:
        import keyring
        import keyring.errors
    except ModuleNotFoundError:
        raise MissingPackageError(
            "the system's keyring is reached through the package keyring, which is not installed",
            details={"package": "keyring", "extra": "keyring"},
            next_actions=(install_hint("keyring"), "or keep the key in the file, without --keyring"),
        ) from None
    try:
        work(keyring)
    except (keyring.errors.KeyringError, RuntimeError, OSError) as error:
        raise CredentialError(
            f"the keyring of this machine cannot be used: {type(error).__name__}",
            next_actions=("unlock it", "or keep the key in the file, without --keyring"),
        ) from None


def _delete(keyring: ModuleType, name: str) -> None:
    """Somebody else may have deleted it already, which is as good."""
    if keyring.get_password(SERVICE, name) is not None:
        keyring.delete_password(SERVICE, name)
