"""Virtual keys: who is let in, who is not and why, and how soon a change is seen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.gateway.harness.offices import Clock, Troubled
from thinkback.errors import SettingError
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.access.audit import Audit
from thinkback.servers.gateway.access.keys import Access, Terms, digest_of, grant_of, new_key, new_secret, presented
from thinkback.servers.gateway.grant import OPEN, Budget, Grant, Limits

TERMS = Terms(("gpt-*",), "reasoning", {"reasoning.effort": "high"}, Budget("day", 10, 5))


class Place:
    """An office with one key, and who looks at it."""

    def __init__(self, place: Path, **options: Any) -> None:
        self.clock = Clock()
        self.office = cast(Any, Troubled(place))
        self.secret, self.row = new_key(TERMS, 1, tenant="acme", name="laptop")
        self.grant = grant_of(self.row)
        self.office.keys.create(self.row)
        self.office.calls.clear()
        self.audit = place / "audit.jsonl"
        self.access = Access(
            self.office,
            audit=Audit(self.audit, clock=self.clock.seconds),
            clock=self.clock.seconds,
            now=self.clock.micros,
            **options,
        )

    async def refusal(self, secret: str | None) -> tuple[int, str]:
        """Status and code of the refusal."""
        with pytest.raises(Refused) as caught:
            await self.access.admit(secret, "10.0.0.9")
        assert secret is None or len(secret) < 5 or secret not in str(caught.value)
        return caught.value.status, caught.value.code


@given(
    st.builds(
        Terms,
        st.lists(st.text()).map(tuple),
        st.sampled_from([None, "full", "reasoning", "metadata", "off"]),
        st.dictionaries(st.text(), st.text() | st.booleans() | st.integers(-(2**53), 2**53)),
        st.builds(Budget, st.sampled_from(["day", "month", "total"]), st.none() | st.integers(0, 2**53), st.none()),
        st.builds(Limits, st.none() | st.integers(1, 2**53), st.none()),
    ),
    st.text(),
    st.none() | st.integers(0, 2**53),
)
def test_a_grant_is_kept_whole(terms: Terms, name: str, expires: int | None) -> None:
    """Every term of a key comes back, and of its secret nothing but its digest and four letters are kept."""
    secret, row = new_key(terms, 7, tenant="acme", name=name, expires=expires)
    assert (digest_of(secret), secret[-4:], 7) == (row.digest, row.ending, row.created)
    assert Grant(
        row.id,
        "acme",
        name,
        terms.models,
        terms.recording or "metadata",
        terms.settings,
        terms.budget,
        terms.limits,
        expires,
    ) == grant_of(row, "metadata")


@pytest.mark.parametrize("name", ["", "A", "a/b", "..", "a.b", "-a", "gateway", "secret", "a" * 64, "ü", "a\n", "a b"])
def test_a_tenant_has_a_name_that_a_file_can_have(name: str) -> None:
    """Anything that would be another file, or nobody's, is refused."""
    with pytest.raises(SettingError, match="cannot be the name of a tenant"):
        new_key(Terms(), 7, tenant=name)
    new_key(Terms(), 7, tenant="a-team_2")


def test_no_secret_is_made_twice() -> None:
    """Secrets are long, alike in form, and chance."""
    secrets = {new_secret() for _ in range(1000)}
    assert 1000 == len(secrets)
    assert {46} == {len(secret) for secret in secrets}
    assert all(secret.startswith("tb-") and secret.isascii() for secret in secrets)


@pytest.mark.parametrize(
    ("headers", "query", "expected"),
    [
        ({"authorization": "Bearer tb-a"}, {}, "tb-a"),
        ({"authorization": "bearer  tb-a "}, {}, "tb-a"),
        ({"x-api-key": "tb-a"}, {}, "tb-a"),
        ({"x-goog-api-key": "tb-a"}, {}, "tb-a"),
        ({"api-key": "tb-a"}, {}, "tb-a"),
        ({}, {"key": ["tb-a"]}, "tb-a"),
        ({"authorization": "Bearer sk-found-in-the-environment", "x-api-key": "tb-a"}, {}, "tb-a"),
        ({"authorization": "Bearer sk-other"}, {}, "sk-other"),
        ({"authorization": "Basic dXNlcjpwYXNz"}, {}, ""),
        ({"authorization": ""}, {"key": []}, ""),
        ({}, {}, ""),
    ],
)
def test_a_key_is_found_wherever_a_dialect_has_it(
    headers: Mapping[str, str], query: Mapping[str, list[str]], expected: str
) -> None:
    """Bearer, Anthropic's, Google's and Azure's headers and Gemini's query; ours wins over a provider's."""
    assert expected == presented(headers, query)


def test_a_key_lets_its_holder_in(tmp_path: Path) -> None:
    """The grant is that of the key, and the database is asked once."""

    async def run() -> None:
        place = Place(tmp_path)
        assert [place.grant] * 3 == [await place.access.admit(place.secret) for _ in range(3)]
        assert ["keys.find"] == place.office.calls

    asyncio.run(run())


def test_those_who_come_together_wait_for_one_look_up(tmp_path: Path) -> None:
    """Fifty at once ask the database once; that one of them leaves ends nothing for the others."""

    async def run() -> None:
        place = Place(tmp_path)
        tasks = [asyncio.ensure_future(place.access.admit(place.secret)) for _ in range(50)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [place.grant] * 49 == found[1:]
        assert isinstance(found[0], asyncio.CancelledError)
        assert ["keys.find"] == place.office.calls

    asyncio.run(run())


def test_who_is_refused_is_told_why(tmp_path: Path) -> None:
    """No key, another program's, a wrong one, a revoked one, one that has expired: each has its code."""

    async def run() -> None:
        place = Place(tmp_path)
        assert (401, "missing_key") == await place.refusal(None)
        assert (401, "missing_key") == await place.refusal("")
        assert (401, "unknown_key") == await place.refusal("sk-proj-0123456789012345678901234567890123456789")
        assert (401, "unknown_key") == await place.refusal(new_secret())
        assert (401, "unknown_key") == await place.refusal("tb-")
        assert (401, "unknown_key") == await place.refusal("tb-" + "x" * 10_000)
        assert (401, "unknown_key") == await place.refusal("tb-\udc80\0")
        assert (401, "unknown_key") == await place.refusal(place.secret[:-1])
        place.office.keys.revoke(place.row.id, 5)
        assert (401, "revoked_key") == await place.refusal(place.secret)

    asyncio.run(run())


def test_a_key_ends_at_its_time(tmp_path: Path) -> None:
    """Also while it is remembered."""

    async def run() -> None:
        place = Place(tmp_path)
        place.office.keys.update(place.row.id, place.row.terms, place.clock.micros() + 200_000)
        assert place.row.id == (await place.access.admit(place.secret)).key
        place.clock.wait(0.2)
        assert (401, "expired_key") == await place.refusal(place.secret)

    asyncio.run(run())


def test_a_revocation_is_seen_within_a_second(tmp_path: Path) -> None:
    """What was remembered is looked up again in good time, and before it is too old."""

    async def run() -> None:
        place = Place(tmp_path)
        await place.access.admit(place.secret)
        place.office.keys.revoke(place.row.id, 5)
        assert place.grant == await place.access.admit(place.secret)
        place.clock.wait(1.0)
        assert (401, "revoked_key") == await place.refusal(place.secret)

    asyncio.run(run())


def test_a_key_in_use_is_looked_up_ahead_of_time(tmp_path: Path) -> None:
    """After half of its life it is asked for again, and nobody waits."""

    async def run() -> None:
        place = Place(tmp_path)
        await place.access.admit(place.secret)
        place.clock.wait(0.6)
        place.office.keys.revoke(place.row.id, 5)
        assert place.grant == await place.access.admit(place.secret)
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        assert (401, "revoked_key") == await place.refusal(place.secret)

    asyncio.run(run())


def test_guesses_are_not_remembered(tmp_path: Path) -> None:
    """A flood of wrong keys takes no memory."""

    async def run() -> None:
        place = Place(tmp_path)
        await place.access.admit(place.secret)
        for _ in range(20):
            await place.refusal(new_secret())
        assert 1 == len(place.access._known)

    asyncio.run(run())


def test_a_database_in_trouble_refuses_or_passes_as_configured(tmp_path: Path) -> None:
    """By itself a 503 that says when to come again; where it may pass, a key that was seen lately is taken."""

    async def run() -> None:
        strict, lenient = Place(tmp_path), Place(tmp_path / "lenient", stale_for=60)
        for place in (strict, lenient):
            await place.access.admit(place.secret)
            place.office.trouble = True
            place.clock.wait(2)
        assert (503, "store_unavailable") == await strict.refusal(strict.secret)
        assert lenient.grant == await lenient.access.admit(lenient.secret)
        assert (503, "store_unavailable") == await lenient.refusal(new_secret())
        lenient.clock.wait(60)
        assert (503, "store_unavailable") == await lenient.refusal(lenient.secret)
        for place in (strict, lenient):
            place.office.trouble = False
            place.clock.wait(2)
            assert place.grant == await place.access.admit(place.secret)

    (tmp_path / "lenient").mkdir()
    asyncio.run(run())


def test_a_database_in_trouble_is_not_asked_by_every_request(tmp_path: Path) -> None:
    """After a failure it has a second's rest."""

    async def run() -> None:
        place = Place(tmp_path, stale_for=60)
        await place.access.admit(place.secret)
        place.office.trouble = True
        place.clock.wait(2)
        place.office.calls.clear()
        for _ in range(10):
            await place.access.admit(place.secret)
        assert 1 == len(place.office.calls)

    asyncio.run(run())


def test_without_keys_everybody_is_let_in(tmp_path: Path) -> None:
    """Where the operator asks for none, none is looked at."""

    async def run() -> None:
        place = Place(tmp_path, no_auth=True)
        assert [OPEN] * 2 == [await place.access.admit(secret) for secret in (None, "sk-anything")]
        assert [] == place.office.calls

    asyncio.run(run())


def test_a_key_that_is_shown_holds_where_none_is_asked_for(tmp_path: Path) -> None:
    """What may be recorded of it, and that it was revoked, counts on a gateway without keys too."""

    async def run() -> None:
        place = Place(tmp_path, no_auth=True)
        assert place.row.id == (await place.access.admit(place.secret)).key
        assert (401, "unknown_key") == (await place.refusal(new_secret()))[:2]

    asyncio.run(run())


def test_refusals_of_access_are_in_the_audit_log(tmp_path: Path) -> None:
    """Each says why, from where and which key, and none holds a secret; the same one again is counted."""

    async def run() -> None:
        place = Place(tmp_path)
        wrong = new_secret()
        for _ in range(3):
            await place.refusal(wrong)
        await place.refusal(None)
        place.clock.wait(61)
        await place.refusal(wrong)
        place.office.keys.revoke(place.row.id, 5)
        await place.refusal(place.secret)
        text = place.audit.read_text()
        assert wrong not in text
        assert place.secret not in text
        assert 0o600 == place.audit.stat().st_mode & 0o777
        rows = [json.loads(line) for line in text.splitlines()]
        assert {"refused", "10.0.0.9"} == {row[name] for row in rows for name in ("act", "from")}
        assert [
            ("unknown_key", wrong[-4:], None, None),
            ("missing_key", None, None, None),
            ("unknown_key", wrong[-4:], None, 2),
            ("revoked_key", place.secret[-4:], place.row.id, None),
        ] == [tuple(row.get(name) for name in ("why", "ending", "key", "more")) for row in rows]

    asyncio.run(run())
