"""AWS Signature Version 4, with the credentials that botocore finds: environment, files, SSO, roles, the machine's."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from typing import Any, SupportsBytes
from urllib.parse import urlsplit

from thinkback.drive.auth.signin import fingerprint, key_instead, package_missing
from thinkback.errors import CredentialError, NetworkError
from thinkback.model.rule import Endpoint
from thinkback.turn.credentials import Credentials

_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d+")
_ALGORITHM = "AWS4-HMAC-SHA256"


class AwsSignIn:
    """Signs requests to one service. The credentials are looked for once; botocore refreshes those that expire."""

    waits = True

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._session: Any = None
        self._credentials: Any = None
        self._account = ("", False)
        self._lock = threading.Lock()

    @property
    def account(self) -> tuple[str, bool]:
        """The AWS account where the credentials name it, else a fingerprint of a lasting access key."""
        return self._account

    def prepare(self) -> None:
        """Find the credentials."""
        self._current()

    def __call__(self, url: str, headers: Mapping[str, str], body: SupportsBytes) -> Credentials:
        """The signature of a request, made now."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        current = self._current()
        # proxies change others on the way
        signed = {name: value for name, value in headers.items() if name.lower().startswith(("content-type", "x-amz-"))}
        return sign(current, self._endpoint.auth.service, self._region(url), stamp, url, signed, bytes(body))

    def _region(self, url: str) -> str:
        """The one that the host names, else the one that AWS's configuration names."""
        labels = (urlsplit(url).hostname or "").split(".")
        named = next((label for label in labels if _REGION.fullmatch(label)), None)
        region: str | None = named or os.environ.get("AWS_REGION") or self._session.get_config_variable("region")
        if not region:
            raise CredentialError(
                f"{self._endpoint.id}: neither its address nor the configuration of AWS says which region it is in",
                next_actions=("set AWS_REGION", "or give the base_url= of a region"),
            )
        return region

    def _current(self) -> Any:
        """The credentials as they are now: access key, secret key, token."""
        try:
            import botocore.session
            from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError
        except ImportError:
            raise package_missing(self._endpoint, "botocore", "aws") from None
        try:
            with self._lock:
                if self._credentials is None:
                    self._session = botocore.session.Session()
                    self._credentials = self._session.get_credentials()
                current = self._credentials and self._credentials.get_frozen_credentials()
        except (ConnectionError, HTTPClientError) as error:
            raise NetworkError(f"{self._endpoint.id}: AWS cannot be reached to sign in: {error}") from None
        except (BotoCoreError, ClientError, ValueError) as error:
            raise self._failed(
                f"the sign-in to AWS failed: {error}", "check AWS_PROFILE, or run `aws sso login`"
            ) from None
        if current is None:
            raise self._failed("there are no AWS credentials", "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret")
        self._account = _account_of(current)
        return current

    def _failed(self, what: str, action: str) -> CredentialError:
        return CredentialError(f"{self._endpoint.id}: {what}", next_actions=(action, *key_instead(self._endpoint)))


def _account_of(current: Any) -> tuple[str, bool]:
    if current.account_id:
        return current.account_id, True
    # A temporary access key is another one tomorrow.
    return ("" if current.token else fingerprint(current.access_key)), False


def sign(
    current: Any, service: str, region: str, stamp: str, url: str, headers: Mapping[str, str], body: bytes
) -> Credentials:
    """The headers that sign a POST of ``body`` to ``url`` at ``stamp`` (YYYYMMDDTHHMMSSZ); ``headers`` are signed too.

    ``SigV4Auth.add_auth`` does the same, but takes its own time and writes the signature and the token to its log.
    """
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    added = {"X-Amz-Date": stamp, **({"X-Amz-Security-Token": current.token} if current.token else {})}
    request = AWSRequest("POST", url, headers={**headers, **added}, data=body)
    request.context["timestamp"] = stamp
    signer = SigV4Auth(current, service, region)
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    names = signer.signed_headers(signer.headers_to_sign(request))
    added["Authorization"] = (
        f"{_ALGORITHM} Credential={signer.scope(request)}, SignedHeaders={names}, Signature={signature}"
    )
    secrets = {signature, current.access_key, current.secret_key, current.token}
    return Credentials(added, secrets=frozenset(secret for secret in secrets if secret))
