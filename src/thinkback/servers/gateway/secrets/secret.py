"""The secret that the gateway seals with: from the environment, from a file, or made and kept beside the log.

Promises: a secret is in no error and no representation; a file that others may read is refused, one that is made is
whole or not there and made once, however many processes start together.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from thinkback.errors import CredentialError
from thinkback.servers.gateway.secrets.sealing import SHORTEST_SECRET, too_short

NAME = "secret"
_MODE = 0o600
_LONGEST = 4096


def read_secret(source: str, environment: Mapping[str, str]) -> bytes:
    """The secret that ``env:NAME`` or ``file:PATH`` names, without space around it. Raises ``CredentialError``."""
    return _long_enough(read_reference(source, environment))


def read_reference(source: str, environment: Mapping[str, str]) -> bytes:
    """What ``env:NAME`` or ``file:PATH`` names, a secret of any length. Raises ``CredentialError``."""
    kind, _, name = source.partition(":")
    if kind == "env" and name:
        if name not in environment:
            raise CredentialError(
                f"the gateway's secret is configured as the environment variable {name}, which is not set",
                details={"variable": name},
                next_actions=(f"set {name}, or name another place in the configuration",),
            )
        return environment[name].strip().encode()
    if kind == "file" and name:
        return _from_file(Path(name).expanduser())
    raise CredentialError(
        "a secret of the gateway is configured in an unknown form",
        next_actions=("write env:NAME or file:PATH, never the secret itself",),
    )


def text_of(source: str, environment: Mapping[str, str]) -> str:
    """The same as text. Raises ``CredentialError``, also for what is none."""
    try:
        return read_reference(source, environment).decode()
    except UnicodeDecodeError:
        raise CredentialError("the key is not valid text", next_actions=(f"check {source}",)) from None


def read_key(source: str, environment: Mapping[str, str]) -> str:
    """The same where it may not be empty; ``""`` where no ``source`` is named. Raises ``CredentialError``."""
    if not source:
        return ""
    found = text_of(source, environment)
    if not found:
        raise CredentialError(f"there is no secret at {source}", next_actions=("set it, or name another place",))
    return found


def own_secret(directory: Path) -> bytes:
    """The secret in ``directory``, made there, for its owner alone, where there is none. Raises ``CredentialError``."""
    path = directory / NAME
    if not path.exists():
        try:
            _make(path)
        except OSError as error:
            raise CredentialError(
                f"the gateway's secret cannot be created in {directory} ({error.strerror})",
                details={"path": str(path)},
                next_actions=("check that this user may write there, or name a secret under [secrets]",),
            ) from error
    return _long_enough(_from_file(path))


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{NAME}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_urlsafe(48).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:  # another process was first: its secret is the one
            return
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    finally:
        draft.unlink()


def _from_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
                raise CredentialError(
                    f"the secret {path} can be read by other users (mode {stat.S_IMODE(found.st_mode):04o})",
                    details={"path": str(path)},
                    next_actions=(f"chmod 600 {path}", "or, where that is not possible, name it as env:NAME"),
                )
            read = file.read(_LONGEST + 1)
    except OSError as error:
        raise CredentialError(
            f"the secret {path} cannot be read ({error.strerror})",
            details={"path": str(path)},
            next_actions=("check the path and who may read it",),
        ) from error
    if len(read) > _LONGEST:
        raise CredentialError(
            f"the secret {path} has more than {_LONGEST} bytes",
            details={"path": str(path)},
            next_actions=("check that it is the secret, and no other file",),
        )
    return read.strip()


def _long_enough(secret: bytes) -> bytes:
    if len(secret) < SHORTEST_SECRET:
        raise too_short(len(secret))
    return secret
