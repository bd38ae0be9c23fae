"""Google access tokens from application default credentials, found and refreshed by google-auth."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple, SupportsBytes

from thinkback.drive.auth.signin import key_instead, package_missing
from thinkback.errors import CredentialError, NetworkError
from thinkback.model.rule import Endpoint
from thinkback.turn.credentials import Credentials

_SECONDS = 60.0


class GoogleSignIn:
    """Tokens of one scope. The credentials are looked for once."""

    waits = True
    account = ("", False)

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._credentials: Any = None
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Find the credentials and fetch the first token."""
        self("", {}, b"")

    def __call__(self, url: str, headers: Mapping[str, str], body: SupportsBytes) -> Credentials:
        """A token that is valid now, and the project it is billed to where the credentials name one."""
        try:
            import google.auth
            from google.auth.exceptions import GoogleAuthError, TransportError
        except ImportError:
            raise package_missing(self._endpoint, "google-auth", "google") from None
        fetch: Any = _fetch  # the shape counts, not the class
        added: dict[str, str] = {}
        try:
            with self._lock:
                if self._credentials is None:
                    scopes = [self._endpoint.auth.scope]
                    self._credentials, _ = google.auth.default(scopes=scopes, request=fetch)
                self._credentials.before_request(fetch, "POST", url, added)
        except TransportError as error:
            raise NetworkError(f"{self._endpoint.id}: Google cannot be reached to sign in: {error}") from None
        except GoogleAuthError as error:
            raise CredentialError(
                f"{self._endpoint.id}: the sign-in to Google failed: {_error_text(error)}",
                next_actions=("run `gcloud auth application-default login`", *key_instead(self._endpoint)),
            ) from None
        token = added.pop("authorization")
        return Credentials({"Authorization": token, **added}, secrets=frozenset({token.removeprefix("Bearer ")}))


def _error_text(error: Exception) -> str:
    """Google's sentence; the answer of the token server, which may stand behind it, is left out."""
    return str(error.args[0]) if error.args else type(error).__name__


class _Answer(NamedTuple):
    """A response as google-auth wants it."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def _fetch(
    url: str,
    method: str = "GET",
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **_: Any,
) -> _Answer:
    """google-auth's requests by the HTTP client that is there anyway."""
    import httpx2
    from google.auth.exceptions import TransportError

    try:
        response = httpx2.request(method, url, content=body, headers=headers, timeout=timeout or _SECONDS)
    except httpx2.HTTPError as error:
        raise TransportError(str(error) or type(error).__name__) from None  # type: ignore[no-untyped-call]
    return _Answer(response.status_code, response.headers, response.content)
