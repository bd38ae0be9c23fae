"""The places that cloud credentials come from, on loopback, and an environment without any of one's own."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.drive.servers import Asked, Server, head
from thinkback.model.rule import Auth, Endpoint

AWS = Endpoint("cloud", "Cloud", "", auth=Auth("sigv4", service="bedrock", env=("CLOUD_KEY",)))
GOOGLE = Endpoint("cloud", "Cloud", "", auth=Auth("google", scope="https://scope.example/all", env=("CLOUD_KEY",)))
AZURE = Endpoint("cloud", "Cloud", "", auth=Auth("azure", header="api-key", scope="https://scope.example/.default"))
_CLOUDS = ("AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "GCE_", "IDENTITY_", "MSI_")


def forget_clouds(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """No credentials and no configuration of whoever runs the tests."""
    for name in os.environ:
        if name.startswith(_CLOUDS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(home / "gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(home / "aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(home / "aws-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")


class Tokens:
    """A server that gives out ``token-1``, ``token-2`` ..., each good for ``seconds``; ``status`` refuses them.

    A ``gate`` lets one token through each time it is set.
    """

    def __init__(self, seconds: int = 3600) -> None:
        self.seconds = seconds
        self.status = 200
        self.given = 0
        self.gate: threading.Event | None = None

    def answer(self, server: Server, asked: Asked) -> Iterable[bytes]:
        """The next token in the shape that all three clouds read theirs from."""
        if self.gate is not None:
            assert self.gate.wait(10)
            self.gate.clear()
        self.given += 1
        token = f"token-{self.given}-of-the-tests"
        expiry = int(time.time()) + self.seconds
        body: dict[str, object] = {
            # Google
            "access_token": token,
            "expires_in": self.seconds,
            "token_type": "Bearer",
            # Azure
            "expires_on": str(expiry),
            "resource": "https://scope.example",
            # AWS
            "AccessKeyId": f"ASIA{self.given}",
            "SecretAccessKey": "secret-of-the-tests",
            "Token": token,
            "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expiry)),
        }
        if self.status != 200:
            body = {"error": "invalid_grant", "error_description": f"{token} has been revoked"}
        data = json.dumps(body).encode()
        yield head(self.status, length=len(data), kind="application/json")
        yield data


@contextmanager
def google_account(monkeypatch: pytest.MonkeyPatch, place: Path, tokens: Tokens) -> Iterator[Server]:
    """Application default credentials: a service account whose token server gives ``tokens``."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with Server(tokens.answer) as server:
        account = {
            "type": "service_account",
            "project_id": "billed",
            "private_key_id": "1",
            "private_key": key.decode(),
            "client_email": "tests@billed.example",
            "token_uri": f"{server.url}/token",
        }
        file = place / "service-account.json"
        file.write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        yield server


@contextmanager
def azure_identity(monkeypatch: pytest.MonkeyPatch, tokens: Tokens) -> Iterator[Server]:
    """A managed identity whose endpoint gives ``tokens``."""
    with Server(tokens.answer) as server:
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{server.url}/token")
        monkeypatch.setenv("IDENTITY_HEADER", "secret-of-the-machine")
        yield server


@contextmanager
def aws_container(monkeypatch: pytest.MonkeyPatch, tokens: Tokens) -> Iterator[Server]:
    """A container whose credentials are ``tokens``."""
    with Server(tokens.answer) as server:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.url}/credentials")
        yield server
