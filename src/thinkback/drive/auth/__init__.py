"""Authentication: each scheme that endpoint data names, implemented once.

A key that was given or found is put where the scheme wants it. Without one, AWS, Google and Azure sign in by their own
libraries, which are optional, imported when they are needed, and refresh what expires. Credentials are made when a
request goes out; no error of this package repeats one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType

from thinkback.drive.auth.keys import CARRIERS, Static, key_missing
from thinkback.drive.auth.signin import SignIn
from thinkback.model.rule import Endpoint
from thinkback.turn.credentials import Authenticator, Credentials


def _aws(endpoint: Endpoint) -> SignIn:
    from thinkback.drive.auth.aws import AwsSignIn

    return AwsSignIn(endpoint)


def _google(endpoint: Endpoint) -> SignIn:
    from thinkback.drive.auth.google import GoogleSignIn

    return GoogleSignIn(endpoint)


def _azure(endpoint: Endpoint) -> SignIn:
    from thinkback.drive.auth.azure import AzureSignIn

    return AzureSignIn(endpoint)


# Each is loaded where it is made: most programs sign in by none of them.
SIGN_INS: Mapping[str, Callable[[Endpoint], SignIn]] = MappingProxyType(
    {"sigv4": _aws, "google": _google, "azure": _azure}
)
NO_CREDENTIALS: Authenticator = Static(Credentials({}))


def takes(endpoint: Endpoint, header: str) -> bool:
    """Whether ``header`` (in lower case) is one in which credentials for ``endpoint`` go."""
    auth = endpoint.auth
    return header == auth.header.lower() or (header == "authorization" and auth.scheme in SIGN_INS)


class Keyring:
    """The sign-ins of a program: each is made once and kept with its tokens. For any number of threads."""

    def __init__(self) -> None:
        self._sign_ins: dict[tuple[str, ...], SignIn] = {}
        self._lock = threading.Lock()

    def authenticator(self, endpoint: Endpoint, key: str | None) -> Authenticator:
        """Who authenticates requests to ``endpoint``, with ``key`` if there is one.

        Raises ``CredentialError`` where a key is needed and there is none, or where it cannot be sent.
        """
        scheme = endpoint.auth.scheme
        if scheme == "none":
            return NO_CREDENTIALS
        if key:
            return Static(CARRIERS[scheme](endpoint, key))
        if endpoint.auth.optional:
            return NO_CREDENTIALS
        sign_in = self.sign_in(endpoint)
        if sign_in is None:
            raise key_missing(endpoint)
        return sign_in

    def sign_in(self, endpoint: Endpoint) -> SignIn | None:
        """How ``endpoint`` is signed in to without a key; ``None`` where it cannot be."""
        auth = endpoint.auth
        make = SIGN_INS.get(auth.scheme)
        if make is None:
            return None
        with self._lock:
            name = (auth.scheme, auth.service, auth.scope, endpoint.id)
            if name not in self._sign_ins:
                self._sign_ins[name] = make(endpoint)
            return self._sign_ins[name]

    def __repr__(self) -> str:
        return f"<Keyring: {len(self._sign_ins)} sign-ins>"
