"""Credentials on a plan: put on when it is sent, blotted out of what is said about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import SupportsBytes

import msgspec

from tests.turn.test_plan import plan
from thinkback.turn.credentials import Credentials

URL = "https://house.example/v1/chat/completions"


class Signs:
    """Counts its signatures, and what it was asked to sign."""

    waits = True

    def __init__(self) -> None:
        self.signed: list[tuple[str, bytes]] = []

    def prepare(self) -> None:
        """Nothing to find."""

    def __call__(self, url: str, headers: Mapping[str, str], body: SupportsBytes) -> Credentials:
        self.signed.append((url, bytes(body)))
        count = len(self.signed)
        return Credentials(
            {"X-Sign": f"signature-{count}"}, f"key=abc/{count}", frozenset({"signature", f"abc/{count}"})
        )


def test_plan_is_complete_once_authenticated() -> None:
    """Headers and query are added to what is there; sending it again signs it anew."""
    signs = Signs()
    made = msgspec.structs.replace(plan(stream=True), base_headers={"X-Team": "a"}, authenticator=signs)
    assert (URL, {"X-Team": "a"}, True) == (made.url, made.headers, made.waits)
    for count in (1, 2):
        made.authenticate(made)
        assert (f"{URL}?key=abc/{count}", {"X-Team": "a", "X-Sign": f"signature-{count}"}) == (made.url, made.headers)
    assert bytes(made) == signs.signed[0][1] == signs.signed[1][1]


def test_plan_without_authenticator_stays_as_it_is() -> None:
    """What explains a request needs no credentials."""
    made = plan()
    made.authenticate(made)
    assert (URL, False) == (made.url, made.waits)


def test_secrets_are_blotted_out() -> None:
    """Those that no header is known for too; short ones are left alone."""
    headers = {"X-Amz-Security-Token": "token-of-tests"}
    made = msgspec.structs.replace(plan(), base_headers=headers, authenticator=Signs())
    made.authenticate(b"")
    assert "*** abc/1 ***" == made.without_key("signature abc/1 token-of-tests")


def test_repr_shows_no_credentials() -> None:
    """The names of the headers at most."""
    assert "<Credentials: X-Sign>" == repr(Credentials({"X-Sign": "signature"}, "key=abc", frozenset({"abc"})))
    assert "<Credentials: no headers>" == repr(Credentials({}, "key=abc"))
