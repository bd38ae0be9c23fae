"""SigV4: against AWS's published examples, against hmac, and with every kind of credentials."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.drive.servers import Server, says
from tests.drive.sign_in import AWS, Tokens, aws_container, forget_clouds
from thinkback.drive.auth.aws import AwsSignIn, sign
from thinkback.errors import CredentialError, NetworkError
from thinkback.turn.credentials import Credentials

# The credentials, place and time of the examples in the AWS Signature Version 4 test suite.
EXAMPLE = SimpleNamespace(
    access_key="AKIDEXAMPLE", secret_key="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token=None, account_id=None
)
STAMP = "20150830T123600Z"
TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthA"
    "x7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9"
    "q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PUBLISHED = [
    ("", {}, b"", None, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    ("?Param1=value1", {}, b"", None, "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"),
    ("", FORM, b"Param1=value1", None, "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
    ("", {}, b"", TOKEN, "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"),
]
URL = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-v1:0/converse?b=2&a=1"
PATH, QUERY, HOST = (
    "/model/anthropic.claude-v1%3A0/converse",
    "a=1&b=2",
    "bedrock-runtime.eu-west-1.amazonaws.com",
)


def by_hand(secret: str, scope: str, path: str, query: str, headers: dict[str, str], names: str, body: bytes) -> str:
    """The signature, worked out from AWS's description with hmac alone; ``path`` and ``query`` are canonical."""
    lowered = {name.lower(): value for name, value in headers.items()}
    lines = [f"{name}:{lowered[name]}\n" for name in names.split(";")]
    canonical = "\n".join(("POST", path, query, "".join(lines), names, hashlib.sha256(body).hexdigest()))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", lowered["x-amz-date"], scope, digest))
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def parts(credentials: Credentials) -> dict[str, str]:
    """The parts of an Authorization header."""
    return dict(re.findall(r"(\w+)=([^, ]+)", credentials.headers["Authorization"]))


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without credentials."""
    forget_clouds(monkeypatch, tmp_path)
    return monkeypatch


def set_key(patch: pytest.MonkeyPatch, **more: str) -> None:
    """A lasting access key in the environment."""
    for name, value in {"AWS_ACCESS_KEY_ID": "AKIATESTS", "AWS_SECRET_ACCESS_KEY": "secret-of-tests", **more}.items():
        patch.setenv(name, value)


@pytest.mark.parametrize(("query", "headers", "body", "token", "signature"), PUBLISHED)
def test_published_examples(
    query: str, headers: dict[str, str], body: bytes, token: str | None, signature: str
) -> None:
    """post-vanilla, post-vanilla-query, post-x-www-form-urlencoded and post-sts-header-before of AWS's test suite."""
    current = SimpleNamespace(**{**vars(EXAMPLE), "token": token})
    url = f"https://example.amazonaws.com/{query}"
    signed = sign(current, "service", "us-east-1", STAMP, url, headers, body)
    assert signature == parts(signed)["Signature"]
    scope = "20150830/us-east-1/service/aws4_request"
    assert f"AKIDEXAMPLE/{scope}" == parts(signed)["Credential"]
    sent = {**headers, **signed.headers, "host": "example.amazonaws.com"}
    names = parts(signed)["SignedHeaders"]
    assert signature == by_hand(EXAMPLE.secret_key, scope, "/", query[1:], sent, names, body)


def test_signature_of_a_request_is_what_hmac_gives(clean: pytest.MonkeyPatch) -> None:
    """Of method, path, query, host, date, content type and body; the region is the host's."""
    set_key(clean, AWS_REGION="us-east-1")
    headers = {"content-type": "application/json", "X-Amz-Of-Mine": "1", "Accept": "not signed"}
    signed = AwsSignIn(AWS)(URL, headers, b'{"a":1}')
    scope = parts(signed)["Credential"].partition("/")[2]
    assert ["eu-west-1", "bedrock", "aws4_request"] == scope.split("/")[1:]
    names = parts(signed)["SignedHeaders"]
    assert "content-type;host;x-amz-date;x-amz-of-mine" == names
    sent = {**headers, **signed.headers, "host": HOST}
    assert parts(signed)["Signature"] == by_hand("secret-of-tests", scope, PATH, QUERY, sent, names, b'{"a":1}')


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_region_comes_from_the_configuration_where_the_host_names_none(
    clean: pytest.MonkeyPatch, variable: str
) -> None:
    """Without either the error says what to set."""
    set_key(clean)
    with pytest.raises(CredentialError, match="AWS_REGION"):
        AwsSignIn(AWS)("http://127.0.0.1:1/model/m/converse", {}, b"")
    clean.setenv(variable, "ap-south-1")
    signed = AwsSignIn(AWS)("http://127.0.0.1:1/model/m/converse", {}, b"")
    assert "ap-south-1" == parts(signed)["Credential"].split("/")[2]


def test_profile_of_the_configuration_file(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its keys, its region, and the account that it names."""
    (tmp_path / "aws-credentials").write_text(
        "[work]\naws_access_key_id = AKIAWORK\naws_secret_access_key = s\naws_account_id = 111122223333\n"
    )
    (tmp_path / "aws-config").write_text("[profile work]\nregion = sa-east-1\n")
    clean.setenv("AWS_PROFILE", "work")
    sign_in = AwsSignIn(AWS)
    assert ("", False) == sign_in.account
    signed = sign_in("http://127.0.0.1:1/model/m/converse", {}, b"")
    assert ["AKIAWORK", "sa-east-1"] == parts(signed)["Credential"].split("/")[::2][:2]
    assert ("111122223333", True) == sign_in.account


def test_account_of_a_lasting_key_is_a_fingerprint(clean: pytest.MonkeyPatch) -> None:
    """Of a temporary one nothing is known, unless the credentials say it."""
    known: list[Any] = []
    for more in ({}, {"AWS_SESSION_TOKEN": "token"}, {"AWS_SESSION_TOKEN": "token", "AWS_ACCOUNT_ID": "444455556666"}):
        set_key(clean, **more)
        sign_in = AwsSignIn(AWS)
        sign_in.prepare()
        known.append(sign_in.account)
    (lasting, is_known), temporary, named = known
    assert (16, False, False) == (len(lasting), is_known, "AKIA" in lasting)
    assert [("", False), ("444455556666", True)] == [temporary, named]


@pytest.mark.parametrize("seconds", [3600, 1])
def test_credentials_that_expire_are_fetched_again(clean: pytest.MonkeyPatch, seconds: int) -> None:
    """And no sooner; the session token goes along signed."""
    clean.setenv("AWS_REGION", "us-east-1")
    tokens = Tokens()
    with aws_container(clean, tokens):
        sign_in = AwsSignIn(AWS)
        tokens.seconds = seconds
        sign_in.prepare()
        before, tokens.seconds = tokens.given, 3600
        signed = sign_in("http://127.0.0.1:1/model/m/converse", {}, b"")
    assert (seconds == 1) == (tokens.given > before)
    assert f"token-{tokens.given}-of-the-tests" == signed.headers["X-Amz-Security-Token"]
    assert "x-amz-security-token" in parts(signed)["SignedHeaders"]


def test_missing_credentials_are_told(clean: pytest.MonkeyPatch) -> None:
    """With both ways out; a profile that does not exist is named."""
    with pytest.raises(CredentialError, match="there are no AWS credentials") as caught:
        AwsSignIn(AWS).prepare()
    assert ("AWS_PROFILE" in caught.value.next_actions[0], "CLOUD_KEY" in caught.value.next_actions[1]) == (True, True)
    clean.setenv("AWS_PROFILE", "nowhere")
    with pytest.raises(CredentialError, match="nowhere"):
        AwsSignIn(AWS).prepare()


def test_nothing_secret_is_logged_or_shown(clean: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Neither key nor token nor signature, at any level, by any library; each is among the secrets to blot out."""
    caplog.set_level(logging.DEBUG)
    set_key(clean, AWS_SESSION_TOKEN="session-token-of-tests")
    sign_in = AwsSignIn(AWS)
    signed = sign_in(URL, {}, b"{}")
    secrets = {"AKIATESTS", "secret-of-tests", "session-token-of-tests", parts(signed)["Signature"]}
    assert secrets == signed.secrets
    for secret in secrets:
        for shown in (caplog.text, repr(signed), repr(sign_in)):
            assert secret not in shown


STS = """
<AssumeRoleResponse><AssumeRoleResult>
  <Credentials>
    <AccessKeyId>ASIA1</AccessKeyId>
    <SecretAccessKey>secret</SecretAccessKey>
    <SessionToken>token</SessionToken>
    <Expiration>{expires}</Expiration>
  </Credentials>
  <AssumedRoleUser>
    <Arn>arn:aws:sts::777788889999:assumed-role/tests/1</Arn>
    <AssumedRoleId>A:1</AssumedRoleId>
  </AssumedRoleUser>
</AssumeRoleResult></AssumeRoleResponse>
"""


def test_role_is_taken_and_names_its_account(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """AWS that cannot be reached for it is a fault of the network, which may pass."""
    (tmp_path / "aws-credentials").write_text("[base]\naws_access_key_id = AKIABASE\naws_secret_access_key = s\n")
    role = "role_arn = arn:aws:iam::777788889999:role/tests\nsource_profile = base\nregion = us-east-1\n"
    (tmp_path / "aws-config").write_text(f"[profile role]\n{role}")
    clean.setenv("AWS_PROFILE", "role")
    clean.setenv("AWS_MAX_ATTEMPTS", "1")
    clean.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    with pytest.raises(NetworkError, match="AWS cannot be reached"):
        AwsSignIn(AWS).prepare()
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    with Server(says(STS.format(expires=expires).encode(), kind="text/xml")) as server:
        clean.setenv("AWS_ENDPOINT_URL_STS", server.url)
        sign_in = AwsSignIn(AWS)
        sign_in.prepare()
    assert b"Action=AssumeRole" in server.asked[0].body
    assert ("777788889999", True) == sign_in.account
