"""What the sign-ins of AWS, Google and Azure have in common."""

from __future__ import annotations

import hashlib
from typing import Protocol

from thinkback.errors import IN_A_PROGRAM, CredentialError, install_hint
from thinkback.model.rule import Endpoint
from thinkback.turn.credentials import Authenticator

_SALT = b"thinkback account fingerprint 1\n"


class SignIn(Authenticator, Protocol):
    """Credentials that a provider's own library finds, refreshes and keeps."""

    @property
    def account(self) -> tuple[str, bool]:
        """(account, whether it is known), as far as what was prepared tells it."""


def fingerprint(key: str) -> str:
    """A name for the owner of a long-lived key, from which the key cannot be read."""
    return hashlib.sha256(_SALT + key.encode()).hexdigest()[:16]


def package_missing(endpoint: Endpoint, package: str, extra: str) -> CredentialError:
    """The error for a sign-in whose library is not installed."""
    return CredentialError(
        f"{endpoint.id} is signed in to with {package}, which is not installed",
        details={"package": package, "extra": extra},
        next_actions=(install_hint(extra), *key_instead(endpoint)),
    )


def key_instead(endpoint: Endpoint) -> tuple[str, ...]:
    """The advice to use a key."""
    names = " or ".join(endpoint.auth.env)
    return (*((f"or set {names}",) if names else ()), f"{IN_A_PROGRAM} api_key=")
