"""Microsoft Entra tokens (Azure AD) from azure-identity's default credentials, which refreshes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import SupportsBytes

from thinkback.drive.auth.signin import key_instead, package_missing
from thinkback.errors import CredentialError
from thinkback.model.rule import Endpoint
from thinkback.turn.credentials import Credentials


class AzureSignIn:
    """Tokens of one scope. The credentials are looked for once."""

    waits = True
    account = ("", False)

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._token: Callable[[], str] | None = None
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Find the credentials and fetch the first token."""
        self("", {}, b"")

    def __call__(self, url: str, headers: Mapping[str, str], body: SupportsBytes) -> Credentials:
        """A token that is valid now."""
        try:
            from azure.core.exceptions import AzureError
            from azure.identity import DefaultAzureCredential, get_bearer_token_provider
        except ImportError:
            raise package_missing(self._endpoint, "azure-identity", "azure") from None
        try:
            with self._lock:
                if self._token is None:
                    self._token = get_bearer_token_provider(DefaultAzureCredential(), self._endpoint.auth.scope)
                token = self._token()
        except (AzureError, ValueError) as error:  # the network's failures are told as those of the credentials
            raise CredentialError(
                f"{self._endpoint.id}: the sign-in to Azure failed: {str(error).partition(chr(10))[0]}",
                details={"reason": str(error)},
                next_actions=("run `az login`", *key_instead(self._endpoint)),
            ) from None
        return Credentials({"Authorization": f"Bearer {token}"}, secrets=frozenset({token}))
