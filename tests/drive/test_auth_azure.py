"""Azure: default credentials, found, kept, refused."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.drive.sign_in import AZURE, Tokens, azure_identity, forget_clouds
from thinkback.drive.auth.azure import AzureSignIn
from thinkback.errors import CredentialError


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without credentials."""
    forget_clouds(monkeypatch, tmp_path)
    return monkeypatch


@pytest.mark.parametrize(("seconds", "last"), [(7200, 1), (60, 2)])
def test_token_is_kept_until_it_expires(clean: pytest.MonkeyPatch, seconds: int, last: int) -> None:
    """It is asked for with the scope, and goes along as a bearer token."""
    tokens = Tokens(seconds)
    with azure_identity(clean, tokens) as server:
        sign_in = AzureSignIn(AZURE)
        sign_in.prepare()
        credentials = sign_in("https://x.example", {}, b"{}")
    assert {"Authorization": f"Bearer token-{last}-of-the-tests"} == credentials.headers
    assert {f"token-{last}-of-the-tests"} == credentials.secrets
    assert last == len(server.asked)
    assert "resource=https://scope.example" in server.asked[0].line
    assert ("", False) == sign_in.account


def test_missing_credentials_are_told(clean: pytest.MonkeyPatch) -> None:
    """The first line of what azure-identity says; the rest is in the details."""
    with pytest.raises(CredentialError, match="sign-in to Azure failed") as caught:
        AzureSignIn(AZURE).prepare()
    assert ("run `az login`", "or, in a program, give api_key=") == caught.value.next_actions
    assert "EnvironmentCredential" in str(caught.value.details["reason"])
    assert "\n" not in caught.value.message


def test_wrong_choice_of_credentials_is_told(clean: pytest.MonkeyPatch) -> None:
    """The name in AZURE_TOKEN_CREDENTIALS."""
    clean.setenv("AZURE_TOKEN_CREDENTIALS", "NoSuchCredential")
    with pytest.raises(CredentialError, match="nosuchcredential"):
        AzureSignIn(AZURE).prepare()


def test_no_token_is_logged_or_shown(clean: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """At any level, by any library."""
    caplog.set_level(logging.DEBUG)
    with azure_identity(clean, Tokens()):
        sign_in = AzureSignIn(AZURE)
        credentials = sign_in("https://x.example", {}, b"")
    for shown in (caplog.text, repr(sign_in), repr(credentials)):
        assert "token-1" not in shown
        assert "secret-of-the-machine" not in shown
