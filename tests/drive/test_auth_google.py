"""Google: application default credentials, found, refreshed, refused."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest

from tests.drive.sign_in import GOOGLE, Tokens, forget_clouds, google_account
from thinkback.drive.auth.google import GoogleSignIn
from thinkback.errors import CredentialError, NetworkError

URL = "https://aiplatform.example/v1/projects/p/locations/global"


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without credentials."""
    forget_clouds(monkeypatch, tmp_path)
    return monkeypatch


@pytest.mark.parametrize(("seconds", "last"), [(3600, 1), (60, 2)])
def test_token_is_kept_until_it_expires(clean: pytest.MonkeyPatch, tmp_path: Path, seconds: int, last: int) -> None:
    """It is asked for with a signed statement, and goes along as a bearer token."""
    tokens = Tokens(seconds)
    with google_account(clean, tmp_path, tokens) as server:
        sign_in = GoogleSignIn(GOOGLE)
        sign_in.prepare()
        credentials = sign_in(URL, {}, b"{}")
    assert f"Bearer token-{last}-of-the-tests" == credentials.headers["Authorization"]
    assert "" == credentials.query
    assert {f"token-{last}-of-the-tests"} == credentials.secrets
    assert ["POST /token HTTP/1.1"] * last == [asked.line for asked in server.asked]
    assert b"assertion=" in server.asked[0].body
    assert ("", False) == sign_in.account


def test_project_that_is_billed_goes_along(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the environment names one."""
    clean.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "billed")
    with google_account(clean, tmp_path, Tokens()):
        assert "billed" == GoogleSignIn(GOOGLE)(URL, {}, b"").headers["x-goog-user-project"]


def test_missing_credentials_are_told(clean: pytest.MonkeyPatch) -> None:
    """With both ways out."""
    with pytest.raises(CredentialError, match="sign-in to Google failed") as caught:
        GoogleSignIn(GOOGLE).prepare()
    assert "gcloud auth application-default login" in caught.value.next_actions[0]
    assert "CLOUD_KEY" in caught.value.next_actions[1]


def test_refused_credentials_are_told_without_the_answer(
    clean: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Google's sentence is kept; the answer of the token server may hold anything."""
    caplog.set_level(logging.DEBUG)
    tokens = Tokens()
    tokens.status = 400
    with google_account(clean, tmp_path, tokens):
        sign_in = GoogleSignIn(GOOGLE)
        with pytest.raises(CredentialError, match="sign-in to Google failed: invalid_grant") as caught:
            sign_in.prepare()
        tokens.status = 200
        credentials = sign_in(URL, {}, b"")
    assert f"Bearer token-{tokens.given}-of-the-tests" == credentials.headers["Authorization"]
    for shown in ("".join(traceback.format_exception(caught.value)), caplog.text, repr(sign_in), repr(credentials)):
        assert f"token-{tokens.given}" not in shown
        assert "PRIVATE KEY" not in shown


def test_unreachable_token_server_is_a_fault_of_the_network(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So that the request is tried again."""
    with google_account(clean, tmp_path, Tokens()):
        sign_in = GoogleSignIn(GOOGLE)
    with pytest.raises(NetworkError, match="Google cannot be reached"):
        sign_in.prepare()
