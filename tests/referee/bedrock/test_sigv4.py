"""Signed requests are verified for real: every part of the request counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.referee.bedrock.talk import SONNET, path_of, signed, user
from thinkback_referee.bedrock import API_KEY, BEDROCK, KEY, OTHER_KEY, TEMPORARY_KEY
from thinkback_referee.bedrock.sigv4 import Credential, Fault, signature, verify
from thinkback_referee.jsons import compact
from thinkback_referee.persona import Asked, Persona
from thinkback_referee.transport import Incoming
from thinkback_referee.verdict import Verdict

BODY = compact({"messages": [user("hi")]}).encode()
PATH = path_of(SONNET)
MISMATCH = "The request signature we calculated does not match the signature you provided."


def request(path: str = PATH, **headers: str) -> Incoming:
    return Incoming("POST", f"/bedrock{path}", headers, BODY)


def fault(incoming: Incoming) -> tuple[str, str]:
    found = verify(incoming)
    assert isinstance(found, Fault)
    return found.kind, found.message


def test_the_signature_is_that_of_the_published_example() -> None:
    """The plainest example of the algorithm's public test suite gives the published signature."""
    headers = {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z"}
    scope = ["20150830", "us-east-1", "service", "aws4_request"]
    made = signature(
        Incoming("GET", "/", headers, b""), "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", scope, ["host", "x-amz-date"]
    )
    assert "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" == made


@pytest.mark.parametrize("credential", [KEY, OTHER_KEY, TEMPORARY_KEY])
@pytest.mark.parametrize("path", [PATH, f"/model/{SONNET}/converse", f"{PATH}?b=2&a=1%20x"])
def test_a_signed_request_is_let_in(credential: Credential, path: str) -> None:
    """Each known key signs for its account, with colons in the path encoded or not, and with a query."""
    assert credential == verify(signed(request(path), credential))


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, body=one.body + b" "),
        lambda one: replace(one, path=one.path.replace("converse", "converse-stream")),
        lambda one: replace(one, path=one.path + "?a=1"),
        lambda one: replace(one, method="PUT"),
        lambda one: replace(one, headers={**one.headers, "host": "elsewhere"}),
        lambda one: replace(one, headers={**one.headers, "content-type": "text/plain"}),
        lambda one: replace(one, headers={**one.headers, "authorization": one.headers["authorization"][:-1] + "x"}),
    ],
)
def test_any_change_breaks_the_signature(change: object) -> None:
    """Body, path, query, method and signed headers are all covered."""
    assert callable(change)
    kind, message = fault(change(signed(request(**{"content-type": "application/json"}))))
    assert ("InvalidSignatureException", True) == (kind, message.startswith(MISMATCH))


def test_a_wrong_secret_does_not_match() -> None:
    """The key's name is not enough."""
    assert "InvalidSignatureException" == fault(signed(request(), replace(KEY, secret_key="guess")))[0]


@pytest.mark.parametrize(
    ("incoming", "kind"),
    [
        (request(), "MissingAuthenticationTokenException"),
        (request(authorization="Basic x"), "MissingAuthenticationTokenException"),
        (request(authorization="AWS4-HMAC-SHA256 Credential=x"), "IncompleteSignatureException"),
        (signed(request(), replace(KEY, access_key="AKIAUNKNOWN")), "UnrecognizedClientException"),
        (signed(request(), replace(TEMPORARY_KEY, session_token="")), "UnrecognizedClientException"),
        (signed(request(), replace(KEY, session_token="stray")), "UnrecognizedClientException"),
        (signed(request(), service="s3"), "InvalidSignatureException"),
    ],
)
def test_what_is_not_a_good_signature_is_named(incoming: Incoming, kind: str) -> None:
    """Missing parts, unknown keys, missing or stray tokens and other services each have their exception."""
    assert kind == fault(incoming)[0]


@pytest.mark.parametrize("name", ["host", "x-amz-date", "x-amz-security-token"])
def test_some_headers_must_be_signed(name: str) -> None:
    """Host, date and session token must be among the signed headers."""
    one = signed(request(), TEMPORARY_KEY)
    listed = ";".join(sorted({"host", "x-amz-date", "x-amz-security-token"}))
    fewer = listed.replace(f"{name};", "").replace(f";{name}", "")
    headers = {**one.headers, "authorization": one.headers["authorization"].replace(listed, fewer)}
    assert f"'{name}' must be a 'SignedHeader'" in fault(replace(one, headers=headers))[1]


def test_the_date_must_be_that_of_the_scope() -> None:
    """A signature of one day does not hold with the date of another."""
    one = signed(request())
    late = replace(one, headers={**one.headers, "x-amz-date": "20260201T120000Z"})
    assert "Date in Credential scope" in fault(late)[1]


@pytest.mark.parametrize(("key", "status"), [(API_KEY, 200), ("other.key", 200), ("bad-key", 403)])
def test_an_api_key_will_do(key: str, status: int) -> None:
    """A bearer key opens the door without a signature, unless it is the bad one."""
    found = Persona(BEDROCK).read("bedrock", PATH, request(authorization=f"Bearer {key}"))
    assert (status, status == 200) == (found.status if isinstance(found, Verdict) else 200, isinstance(found, Asked))


def test_a_refusal_has_the_shape_of_aws() -> None:
    """A 403 has a message, and the name of the exception in a header."""
    found = Persona(BEDROCK).read("bedrock", PATH, request())
    assert isinstance(found, Verdict)
    expected = (403, {"message": "Missing Authentication Token"}, "MissingAuthenticationTokenException")
    assert expected == (found.status, found.body, found.headers["x-amzn-errortype"])
