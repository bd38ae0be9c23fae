"""What the user's machine says: configuration files, keys, the date. Read when asked, kept nowhere."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from thinkback.errors import CredentialError
from thinkback.model.rule import Endpoint

_ACCOUNT_SALT = b"thinkback account fingerprint 1\n"


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


def data_file() -> Path:
    """``THINKBACK_DB``, else the log in the platform's data directory; its directory is made private."""
    given = os.environ.get("THINKBACK_DB")
    if given:
        return Path(given)
    import platformdirs

    place = Path(platformdirs.user_data_dir("thinkback", appauthor=False))
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place / "thinkback.db"


def today() -> str:
    """ISO date, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def find_key(endpoint: Endpoint, given: str | None) -> str | None:
    """The key for ``endpoint``: the one given, else the first environment variable that is set.

    White space around it is taken off: files and shells leave it there.
    """
    if given is not None:
        return given.strip()
    return next((value for name in endpoint.auth.env if (value := os.environ.get(name, "").strip())), None)


def fits_header(value: str) -> bool:
    """Whether HTTP can carry ``value`` in a header."""
    return value.isascii() and (value.isprintable() or not value)


def auth_headers(endpoint: Endpoint, key: str | None) -> dict[str, str]:
    """The header that carries ``key``. Raises ``CredentialError`` when the endpoint needs one and there is none."""
    auth = endpoint.auth
    if auth.scheme == "none":
        return {}
    if not key:
        if auth.optional:
            return {}
        names = " or ".join(auth.env) or "a key"
        raise CredentialError(
            f"{endpoint.id} needs a key", next_actions=(f"set {names} in the environment, or give api_key=",)
        )
    if not fits_header(key):
        raise CredentialError(
            f"the key for {endpoint.id} holds characters that HTTP cannot carry",
            next_actions=("check that the whole key and nothing else was copied",),
        )
    return {auth.header: f"Bearer {key}" if auth.scheme == "bearer" else key}


def account(endpoint: Endpoint, headers: Mapping[str, str], key: str | None) -> tuple[str, bool]:
    """(account, whether it is known): the configured one, a stable principal, else a salted hash of the key."""
    if endpoint.account:
        return endpoint.account, True
    lowered = {name.lower(): value for name, value in headers.items()}
    principal = lowered.get("openai-organization") or lowered.get("x-organization-id")
    if principal:
        return principal, True
    if not key:
        return "", False
    return hashlib.sha256(_ACCOUNT_SALT + key.encode()).hexdigest()[:16], False
