"""What the user's machine says: configuration files, keys, the date. Read when asked, kept nowhere."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from thinkback.errors import CredentialError
from thinkback.model.rule import Endpoint

# Headers that name who pays.
_PRINCIPALS = ("openai-organization", "x-organization-id", "chatgpt-account-id")
_PROJECT = re.compile(r"/projects/([^/]+)")


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
    return {str(file): file.read_text(encoding="utf-8") for file in files if file.is_file()}


def user_settings_file() -> tuple[str, str] | None:
    """(name, text) of ``settings.toml``, or ``None``."""
    file = config_dir() / "settings.toml"
    return (str(file), file.read_text(encoding="utf-8")) if file.is_file() else None


def write_file(path: Path, text: str, mode: int | None = None) -> None:
    """Replace the file at ``path`` whole: a reader sees the old one or the new one. It is private, or has ``mode``.

    A link is followed. Directories on the way are made private.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        if mode is not None:
            draft.chmod(mode)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def user_servers() -> dict[str, Any]:
    """The tables of ``mcp.toml``: MCP servers by name. Raises ``RuleFileError`` for a file that is no TOML."""
    file = config_dir() / "mcp.toml"
    if not file.is_file():
        return {}
    from thinkback.settings.files import read_toml

    return read_toml(str(file), file.read_text(encoding="utf-8"))


def data_file() -> Path:
    """``THINKBACK_DB``, else the log in the platform's data directory; its directory is made private."""
    given = os.environ.get("THINKBACK_DB")
    if given:
        return Path(given)
    import platformdirs

    place = Path(platformdirs.user_data_dir("thinkback", appauthor=False))
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place / "thinkback.db"


def usage_file() -> Path:
    """Where commands log the use of requests: ``THINKBACK_USAGE_LOG``, else in the platform's state directory."""
    given = os.environ.get("THINKBACK_USAGE_LOG")
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_state_dir("thinkback", appauthor=False)) / "usage.jsonl"


def price_file() -> tuple[str, str] | None:
    """(name, text) of ``prices.toml``, or ``None``."""
    file = config_dir() / "prices.toml"
    return (str(file), file.read_text(encoding="utf-8")) if file.is_file() else None


def today() -> str:
    """ISO date, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def find_key(endpoint: Endpoint, given: str | None, name: str = "") -> str | None:
    """The key for ``endpoint``: the one given, else that of the variable ``name``, else that of its own variables, from
    the environment, the key file or the keyring. Raises as ``keys.find``.

    White space around it is taken off: files and shells leave it there. An endpoint that can do without a key, or signs
    in by other means, has one in the keyring only where the key file says so.
    """
    if given is not None:
        return given.strip()
    names = (name,) if name else endpoint.auth.env
    found = next(filter(None, (os.environ.get(name, "").strip() for name in names)), None)
    if found is not None or not names:
        return found
    from thinkback.session import keys

    needs_one = not endpoint.auth.optional and endpoint.auth.scheme in ("bearer", "header", "query")
    return keys.find(names, asks_keyring=bool(name) or needs_one)


def named_key_missing(name: str) -> CredentialError:
    """The error for a key that has a name and is nowhere."""
    return CredentialError(
        f"there is no key {name}",
        next_actions=(f"set {name} in the environment", f"or keep it: thinkback keys set {name}"),
    )


def account(endpoint: Endpoint, base_url: str, headers: Mapping[str, str], key: str | None) -> tuple[str, bool]:
    """(account, whether it is known): the configured one, a stable principal, else a fingerprint of a lasting key."""
    if endpoint.account:
        return endpoint.account, True
    lowered = {name.lower(): value for name, value in headers.items()}
    named = next((lowered[name] for name in _PRINCIPALS if lowered.get(name)), "")
    principal = named or _owner(endpoint, base_url)
    if principal:
        return principal, True
    from thinkback.drive.auth.keys import expires
    from thinkback.drive.auth.signin import fingerprint

    return ("" if not key or expires(endpoint, key) else fingerprint(key)), False


def _owner(endpoint: Endpoint, base_url: str) -> str:
    """The Azure resource or Google project that an address of such an endpoint names."""
    from thinkback.rules.urls import host_matches, split_address

    host, path = split_address(base_url)
    if endpoint.auth.scheme == "azure" and any(host_matches(pattern, host, path) for pattern in endpoint.hosts):
        return host.partition(".")[0]
    project = _PROJECT.search(path) if endpoint.auth.scheme == "google" else None
    return project[1] if project else ""
