"""Sealing: what was sealed opens in its scope with a secret of ours, and nothing else opens anywhere."""

from __future__ import annotations

import secrets
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import CredentialError, StoreError
from thinkback.servers.gateway.secrets import sealing
from thinkback.servers.gateway.secrets.sealing import Purpose, Sealer

SECRET, OTHER = b"a secret of the tests, 32 bytes. " * 2, b"another secret, also long enough. " * 2
SEALER = Sealer(SECRET)
scopes = st.binary(max_size=40)


@given(st.binary(max_size=2000) | st.binary(max_size=40).map(lambda data: data * 50), scopes)
def test_what_was_sealed_opens_in_its_scope(data: bytes, scope: bytes) -> None:
    """Any bytes come back, compressed on the way or not, and the token is plain ASCII."""
    token = SEALER.seal(data, scope)
    assert data == SEALER.open(token, scope)
    assert token.startswith("tb1.")
    assert token[4:].replace("-", "").replace("_", "").isalnum()
    assert token.isascii()


@given(st.binary(max_size=300), scopes, scopes)
def test_a_token_never_opens_in_another_scope(data: bytes, scope: bytes, other: bytes) -> None:
    """Only the scope that it was made for opens it."""
    expected = data if scope == other else None
    assert expected == SEALER.open(SEALER.seal(data, scope), other)


@given(st.binary(min_size=1, max_size=300), st.data())
def test_a_token_that_was_changed_anywhere_does_not_open(data: bytes, draw: st.DataObject) -> None:
    """One letter exchanged for another, or anything cut off or added, and nothing comes out."""
    token = SEALER.seal(data, b"scope")
    at = draw.draw(st.integers(0, len(token) - 1))
    letter = draw.draw(st.characters().filter(lambda letter: letter != token[at]))
    for changed in (token[:at] + letter + token[at + 1 :], token[:at], token + letter, token[:at] + token[at + 1 :]):
        assert None is SEALER.open(changed, b"scope")


@given(st.text() | st.text().map(lambda text: "tb1." + text), scopes)
def test_what_is_no_token_does_not_open(text: str, scope: bytes) -> None:
    """Any text, with or without the prefix, is answered with ``None``."""
    assert None is SEALER.open(text, scope)


@given(st.binary(max_size=100))
def test_no_bytes_but_ours_open(data: bytes) -> None:
    """The same holds for bytes that were stored."""
    assert None is SEALER.open_bytes(data, b"scope")
    assert None is SEALER.open_bytes(SEALER.seal_bytes(b"x", b"scope")[:4] + data, b"scope")


def test_a_secret_that_was_replaced_still_opens() -> None:
    """After a change of secrets the old one opens what it sealed, and the new one seals."""
    token = SEALER.seal(b"data", b"scope")
    after = Sealer(OTHER, [SECRET])
    assert b"data" == after.open(token, b"scope")
    assert None is SEALER.open(after.seal(b"data", b"scope"), b"scope")
    assert None is Sealer(OTHER).open(token, b"scope")


@pytest.mark.parametrize("purpose", ["carriers", "idempotency", "spool"])
def test_what_was_sealed_for_one_purpose_does_not_open_for_another(purpose: Purpose) -> None:
    """A client cannot hand in what the gateway sealed for itself."""
    stored = SEALER.of(purpose).seal(b"data", b"scope")
    assert b"data" == Sealer(SECRET, purpose=purpose).open(stored, b"scope")
    assert None is SEALER.open(stored, b"scope")


def test_two_tokens_of_the_same_are_never_alike() -> None:
    """A token tells nobody whether something was sealed before."""
    assert 100 == len({SEALER.seal(b"same", b"scope") for _ in range(100)})


def test_what_can_be_said_shorter_is() -> None:
    """Long data that compresses is compressed, chance data grows by no more than what sealing adds."""
    assert 300 > len(SEALER.seal(b"thinking of it " * 1000, b""))
    assert 1033 == len(SEALER.seal_bytes(secrets.token_bytes(1000), b""))


def test_sealing_and_opening_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the largest is refused, and a token of little that unpacks to much takes no memory."""
    bomb = SEALER.seal(bytes(5_000_000), b"")
    monkeypatch.setattr(sealing, "LARGEST", 100_000)
    with pytest.raises(StoreError, match="100001 bytes are too many"):
        SEALER.seal(bytes(100_001), b"")
    assert bytes(100_000) == SEALER.open(SEALER.seal(bytes(100_000), b""), b"")
    tracemalloc.start()
    try:
        assert None is SEALER.open(bomb, b"")
        assert 1_000_000 > tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_short_secret_is_refused_and_none_is_shown() -> None:
    """A secret that could be guessed is refused; no text shows one."""
    with pytest.raises(CredentialError, match="has 5 bytes") as caught:
        Sealer(b"short")
    assert "short'" not in str(caught.value)
    with pytest.raises(CredentialError):
        Sealer(SECRET, [b"short"])
    assert "<Sealer: 2 secrets>" == repr(Sealer(SECRET, [OTHER]))
