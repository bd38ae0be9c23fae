"""What one attaches to an issue: versions, what is configured, sizes, the last failures.

Promises: what is printed is picked from words of our own (names of settings, of shipped endpoints and of their keys)
and numbers. No value of a setting, no key, path, address, host name, no name that a person gave, nothing that was said.
"""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

import thinkback
from thinkback.cli import terminal
from thinkback.errors import ThinkbackError

if TYPE_CHECKING:
    from thinkback.session.store import SessionStore

_VARIABLES = ("DB", "TENANT", "CONFIG_DIR", "USAGE_LOG", "ENDPOINT", "MODEL", "BASE_URL", "DEBUG")
_OURS = re.compile(r"extra == '(acp|aws|azure|gateway|google|keyring|mcp|otel|parquet|postgres)'")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
# How many sessions, the last used ones, are looked through for failures, and how many failures are told.
_SESSIONS, _FAILURES = 20, 5


def report(db: str) -> dict[str, Any]:
    """The report on this installation and the log ``db``; what cannot be read is the kind of its error."""
    return {
        "thinkback": thinkback.__version__,
        "python": f"{platform.python_version()} {platform.python_implementation()}",
        "sqlite": sqlite3.sqlite_version,
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": _packages(),
        "environment": [f"THINKBACK_{name}" for name in _VARIABLES if os.environ.get(f"THINKBACK_{name}")],
        "settings": _tried(_settings),
        "default endpoint": _tried(_endpoint),
        "files": _tried(_files),
        "keys": _tried(_keys),
        "log": _tried(lambda: _log(db)),
    }


def print_report(found: Mapping[str, Any]) -> None:
    """A line for each fact."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            terminal.out(f"{name}:")
            for key, one in value.items():
                terminal.out(f"  {key}: {_text(one)}")
        else:
            terminal.out(f"{name}: {_text(value)}")


def _text(value: object) -> str:
    if not isinstance(value, list):
        return str(value)
    return (
        ", ".join(" ".join(map(str, one.values())) if isinstance(one, Mapping) else str(one) for one in value) or "none"
    )


def _tried(find: Callable[[], object]) -> object:
    try:
        return find()
    except ThinkbackError as error:
        return f"cannot be read ({error.kind})"
    except OSError as error:
        return f"cannot be read ({type(error).__name__})"


def _packages() -> dict[str, str]:
    """What thinkback requires, and what its extras do where it is there."""
    try:
        required = metadata.requires("thinkback") or []
    except metadata.PackageNotFoundError:  # a checkout that is on the path
        return {}
    names = [line for line in required if "extra ==" not in line or _OURS.search(line)]
    found = {}
    for name in sorted({match[0] for line in names if (match := _NAME.match(line))} | {"thinkback-referee"}):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _settings() -> dict[str, list[str]]:
    """The names of settings in the user's file and in the default profiles."""
    from thinkback.session.config import user_settings
    from thinkback.session.profiles import files

    values, faults = user_settings.read()
    found = {"user": _known(values)}
    defaults = files.defaults()
    if defaults:
        found["default profiles"] = _known(files.loaded(defaults).settings)
    return {**found, **({"wrong": [str(len(faults))]} if faults else {})}


def _endpoint() -> str:
    """The endpoint of the default profiles."""
    from thinkback.session.profiles import files

    return _shipped(files.loaded(files.defaults()).endpoint) if files.defaults() else "none"


def _shipped(endpoint: str) -> str:
    from thinkback.rules import packaged

    return endpoint if endpoint in {row.id for row in packaged.endpoints()} else "one of your own"


def _known(keys: Iterable[str]) -> list[str]:
    """The names among ``keys`` that are settings of ours; how many others there are."""
    from thinkback.settings import KEYS

    found = [key for key in keys if key in KEYS]
    others = sum(key not in KEYS for key in keys)
    return [*found, *([terminal.plural(others, "name of your own")] if others else [])]


def _files() -> dict[str, int]:
    """How many of each kind the person has."""
    from thinkback.session import config

    place = config.config_dir()
    kinds = {"profiles": "profiles/*.toml", "apps": "apps/*.toml", "rules": "rules/*.toml"}
    found = {kind: len(list(place.glob(pattern))) for kind, pattern in kinds.items()}
    return {**found, **{name: 1 for name in ("settings.toml", "rules.toml", "mcp.toml") if (place / name).is_file()}}


def _keys() -> dict[str, object]:
    """Where keys of shipped endpoints are, by name; how many there are under other names."""
    from thinkback.rules import packaged
    from thinkback.session.config import keys

    names = dict.fromkeys(name for row in packaged.endpoints() for name in row.auth.env)
    places = keys.places(names)
    found: dict[str, object] = {name: f"present ({where})" for name, where in places.items() if name in names}
    return {**found, "others": "absent", "under names of your own": sum(name not in names for name in places)}


def _log(db: str) -> dict[str, object]:
    from thinkback.cli.options import existing_log, is_log_there, log_path

    path = log_path(db)
    if not is_log_there(path):
        return {"place": "there is none yet"}
    with existing_log(db) as store:
        sessions = store.sessions()
        found: dict[str, object] = {
            "sessions": len(sessions),
            "commits": sum(info.commits for info in sessions),
            "last failures": _failures(store),
        }
    if "://" in path:
        return {"place": "a server", **found}
    sizes = [os.path.getsize(path + end) for end in ("", "-wal") if os.path.exists(path + end)]
    return {"place": "a file", "bytes": sum(sizes), "format": _format(path), **found}


def _format(path: str) -> int:
    """The number of the log's format: bytes 60 to 63 of a SQLite file."""
    with open(path, "rb") as file:
        return int.from_bytes(file.read(64)[60:64], "big")


def _failures(store: SessionStore) -> list[dict[str, str]]:
    """How turns ended that did not come to their end: kind, time and endpoint, the last one first."""
    from thinkback.model.commits import Request, TurnEnded

    found = []
    for info in store.sessions()[:_SESSIONS]:
        endpoint = ""
        for commit in store.commits(info.id):
            if isinstance(commit.value, Request):
                endpoint = commit.value.target.get("endpoint", "")
            elif isinstance(commit.value, TurnEnded) and commit.value.state != "completed":
                told = _shipped(endpoint)
                found.append(
                    (commit.time, {"kind": commit.value.state, "time": terminal.iso(commit.time), "endpoint": told})
                )
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])[:_FAILURES]]
