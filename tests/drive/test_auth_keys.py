"""Keys that go along as they are, and what is said where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.drive.sign_in import AWS, AZURE, GOOGLE, forget_clouds
from thinkback.drive.auth import NO_CREDENTIALS, Keyring, takes
from thinkback.errors import CredentialError
from thinkback.model.rule import Auth, Endpoint

SECRET = "key/of the+tests"


def endpoint(auth: Auth) -> Endpoint:
    """A place with that authentication."""
    return Endpoint("house", "House", "https://house.example", auth=auth)


@pytest.mark.parametrize(
    ("auth", "headers", "query"),
    [
        (Auth(), {"Authorization": f"Bearer {SECRET}"}, ""),
        (Auth("header", header="x-api-key"), {"x-api-key": SECRET}, ""),
        (Auth("query", query="api key"), {}, "api%20key=key%2Fof%20the%2Btests"),
        (AWS.auth, {"Authorization": f"Bearer {SECRET}"}, ""),
        (GOOGLE.auth, {"Authorization": f"Bearer {SECRET}"}, ""),
        (AZURE.auth, {"api-key": SECRET}, ""),
        (Auth("none"), {}, ""),
    ],
)
def test_each_scheme_has_its_place_for_a_key(auth: Auth, headers: dict[str, str], query: str) -> None:
    """Also those that can do without one; nothing is fetched for it, and no repr shows it."""
    authenticator = Keyring().authenticator(endpoint(auth), SECRET)
    authenticator.prepare()
    credentials = authenticator("https://house.example/v1", {}, b"{}")
    assert (headers, query) == (credentials.headers, credentials.query)
    assert not authenticator.waits
    assert (SECRET in credentials.secrets) == (auth.scheme != "none")
    for shown in (repr(credentials), str(credentials), repr(authenticator)):
        assert SECRET not in shown
        assert "key%2F" not in shown


@pytest.mark.parametrize("scheme", ["bearer", "header", "query"])
def test_missing_key_is_told_with_its_variables(scheme: str) -> None:
    """Unless the place takes requests without one."""
    auth = Auth(scheme, env=("HOUSE_KEY", "OLD_HOUSE_KEY"))  # type: ignore[arg-type]
    with pytest.raises(CredentialError, match="set HOUSE_KEY or OLD_HOUSE_KEY in the environment") as caught:
        Keyring().authenticator(endpoint(auth), None)
    assert "or, in a program, give api_key=" == caught.value.next_actions[-1]
    assert "api_key" not in caught.value.for_people()
    assert caught.value.next_actions[:-1] == caught.value.actions_for_people
    free = endpoint(Auth(scheme, optional=True))  # type: ignore[arg-type]
    assert NO_CREDENTIALS is Keyring().authenticator(free, None)


@pytest.mark.parametrize("auth", [Auth(), Auth("header", header="x-api-key"), AZURE.auth])
def test_key_that_no_header_can_carry_is_not_repeated(auth: Auth) -> None:
    """A copy with something else in it."""
    with pytest.raises(CredentialError, match="characters that HTTP cannot carry") as caught:
        Keyring().authenticator(endpoint(auth), f"{SECRET}\n")
    assert SECRET not in str(caught.value)


def test_sign_in_is_made_once() -> None:
    """So that its tokens are; a repr shows nothing of it."""
    keyring = Keyring()
    assert keyring.authenticator(AWS, None) is keyring.authenticator(AWS, "") is keyring.sign_in(AWS)
    assert keyring.sign_in(GOOGLE) is not keyring.sign_in(AWS)
    assert keyring.sign_in(endpoint(Auth())) is None
    assert "<Keyring: 2 sign-ins>" == repr(keyring)


@pytest.mark.parametrize(
    ("place", "module", "extra"),
    [(AWS, "botocore", "aws"), (GOOGLE, "google.auth", "google"), (AZURE, "azure.identity", "azure")],
)
def test_missing_library_is_told_with_its_extra(
    place: Endpoint, module: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before anything else, and a key is offered as the other way."""
    forget_clouds(monkeypatch, tmp_path)
    for name in [name for name in sys.modules if name == module or name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    authenticator = Keyring().authenticator(place, None)
    with pytest.raises(CredentialError, match=rf"pip install '\.\[{extra}\]'") as caught:
        authenticator.prepare()
    assert extra == caught.value.details["extra"]
    assert "api_key=" in caught.value.next_actions[-1]


def test_own_header_is_recognised() -> None:
    """A token of one's own replaces a sign-in; for a key in another header it is another thing."""
    assert takes(AZURE, "api-key")
    assert takes(AZURE, "authorization")
    assert takes(endpoint(Auth()), "authorization")
    assert not takes(endpoint(Auth("header", header="X-Api-Key")), "authorization")
    assert takes(endpoint(Auth("header", header="X-Api-Key")), "x-api-key")
