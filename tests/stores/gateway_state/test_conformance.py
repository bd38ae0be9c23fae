"""What every office promises, in SQLite and in PostgreSQL."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkback.errors import StoreError
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.records import (
    Answered,
    Claimed,
    KeyRow,
    Otherwise,
    Slot,
    Spent,
    UnderWay,
    Use,
)
from thinkback.stores.gateway_state.state import GatewayState

SLOT = Slot("t", b"0123456789abcdef")
SCOPE, OTHER = b"scope of someone", b"another's scope."


def row(number: int = 1, **changes: object) -> KeyRow:
    """A key of the tests."""
    digest = hashlib.sha256(b"secret %d" % number).digest()
    made = KeyRow(f"k{number}", digest, "abcd", "acme", "laptop", b'{"models":["*"]}', created=number)
    return msgspec.structs.replace(made, **changes)


def test_a_key_is_found_by_the_digest_of_its_secret(office: GatewayState) -> None:
    """All that was kept of it comes back; another digest finds nothing."""
    first, second = row(1, expires=99, tenant="naïve", name=""), row(2)
    office.keys.create(first)
    office.keys.create(second)
    assert first == office.keys.find(first.digest)
    assert second == office.keys.find(second.digest)
    assert None is office.keys.find(hashlib.sha256(b"guess").digest())
    assert [first, second] == office.keys.list()


def test_a_key_is_made_once(office: GatewayState) -> None:
    """The id or the secret of another key is refused, and so is text that no database keeps."""
    office.keys.create(row(1))
    for twin in (row(1, digest=bytes(32)), row(2, digest=row(1).digest), row(3, name="a\0b"), row(3, tenant="\ud800")):
        with pytest.raises(StoreError):
            office.keys.create(twin)
    assert [row(1)] == office.keys.list()


def test_a_key_is_revoked_once_and_stays_in_the_list(office: GatewayState) -> None:
    """Its first revocation counts; a key that is not there cannot be revoked."""
    office.keys.create(row(1))
    assert [True, False, False] == [office.keys.revoke(id, time) for id, time in (("k1", 7), ("k1", 8), ("k2", 9))]
    assert row(1, revoked=7) == office.keys.find(row(1).digest)


def test_what_a_key_may_do_can_be_changed(office: GatewayState) -> None:
    """Terms and expiry are replaced, the rest stays."""
    office.keys.create(row(1))
    assert office.keys.update("k1", b"{}", 50)
    assert not office.keys.update("k2", b"{}", 50)
    assert row(1, terms=b"{}", expires=50) == office.keys.find(row(1).digest)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["total", "2026-11"]), st.integers(0, 2**40))))
def test_spending_adds_up(office: GatewayState, uses: list[tuple[str, str, int]]) -> None:
    """Whatever is added in whatever order, the sum of each key and period is what was added to it."""
    before = {key: office.spending.read(key) for key in "ab"}
    office.spending.add([Spent(key, period, Use(1, amount, 2 * amount, 0)) for key, period, amount in uses])
    for key in "ab":
        for period in ("total", "2026-11"):
            expected = before[key].get(period, Use())
            for amount in [amount for *of, amount in uses if of == [key, period]]:
                expected = expected.plus(Use(1, amount, 2 * amount, 0))
            assert expected == office.spending.read(key).get(period, Use())


def test_adding_tells_the_sums(office: GatewayState) -> None:
    """What comes back is what all processes together have added."""
    spent = [Spent("b", "total", Use(1, 2, 3, 4)), Spent("a", "total", Use(1, 1, 1, 1))]
    office.spending.add(spent)
    expected = [Spent("a", "total", Use(2, 2, 2, 2)), Spent("b", "total", Use(2, 4, 6, 8))]
    assert expected == sorted(office.spending.add(spent))


def test_days_can_be_forgotten(office: GatewayState) -> None:
    """Days before one go; months and totals stay."""
    periods = ["2026-11-19", "2026-11-20", "2026-11", "2025-01", "total"]
    office.spending.add([Spent("a", period, Use(1)) for period in periods])
    assert 1 == office.spending.forget("2026-11-20")
    assert set(periods[1:]) == set(office.spending.read("a"))


def test_spending_of_threads_is_not_lost(place: str) -> None:
    """Eight at once, each over its own connection, in different orders of keys: all of it is there."""
    offices = [open_gateway_state(place) for _ in range(4)]

    def spend(office: GatewayState, keys: str) -> None:
        for _ in range(10):
            office.spending.add([Spent(key, "total", Use(1, 1)) for key in keys])

    at_once([partial(spend, office, keys) for office in offices for keys in ("ab", "ba")])
    assert [Use(80, 80)] * 2 == [offices[0].spending.read(key)["total"] for key in "ab"]
    for office in offices:
        office.close()


def test_a_slot_is_claimed_answered_and_told_again(office: GatewayState) -> None:
    """The life of an idempotency key: claimed, under way for others, answered for all with the same body."""
    assert Claimed() == office.replays.claim(SLOT, b"body", "a", 0, 10)
    assert UnderWay(10) == office.replays.claim(SLOT, b"body", "b", 5, 15)
    assert Otherwise() == office.replays.claim(SLOT, b"other", "b", 5, 15)
    assert office.replays.renew(SLOT, "a", 20)
    assert UnderWay(20) == office.replays.claim(SLOT, b"body", "b", 15, 25)
    assert office.replays.finish(SLOT, "a", b"sealed", 100)
    assert Answered(b"sealed") == office.replays.claim(SLOT, b"body", "b", 99, 110)
    assert Otherwise() == office.replays.claim(SLOT, b"other", "b", 99, 110)
    assert Claimed() == office.replays.claim(SLOT, b"other", "b", 100, 110)


def test_a_claim_that_ran_out_is_taken_over(office: GatewayState) -> None:
    """A process that comes back after that is told so, and its answer does not count."""
    assert Claimed() == office.replays.claim(SLOT, b"body", "dead", 0, 10)
    assert Claimed() == office.replays.claim(SLOT, b"body", "heir", 10, 20)
    assert not office.replays.renew(SLOT, "dead", 99)
    assert not office.replays.finish(SLOT, "dead", b"late", 99)
    office.replays.release(SLOT, "dead")
    assert UnderWay(20) == office.replays.claim(SLOT, b"body", "c", 15, 25)
    assert office.replays.finish(SLOT, "heir", b"answer", 99)
    assert not office.replays.finish(SLOT, "heir", b"again", 99)
    office.replays.release(SLOT, "heir")
    assert Answered(b"answer") == office.replays.claim(SLOT, b"body", "c", 15, 25)


def test_a_claim_that_was_given_up_is_free(office: GatewayState) -> None:
    """After a failure the next one tries."""
    office.replays.claim(SLOT, b"body", "a", 0, 10)
    office.replays.release(SLOT, "a")
    assert Claimed() == office.replays.claim(SLOT, b"other", "b", 1, 10)


def test_tenants_do_not_meet(office: GatewayState) -> None:
    """The same slot, and the same scope and response, of another tenant is another one."""
    office.replays.claim(SLOT, b"body", "a", 0, 10)
    assert Claimed() == office.replays.claim(Slot("u", SLOT.id), b"other", "b", 0, 10)
    office.carriers.put("t", SCOPE, {"r": b"ours"}, 10)
    assert {} == office.carriers.get("u", SCOPE, ["r"], 0)
    assert {} == office.carriers.get("t", OTHER, ["r"], 0)
    assert {"r": b"ours"} == office.carriers.get("t", SCOPE, ["r"], 0)


def test_a_slot_is_claimed_by_one_of_many_processes(place: str) -> None:
    """Four processes claim the same hundred slots: each goes to one of them, and when they are dead, to the next."""
    open_gateway_state(place).close()
    command = [sys.executable, "-m", "tests.stores.gateway_state.claimant", place]
    processes = [
        subprocess.Popen([*command, name, "100"], stdout=subprocess.PIPE, text=True) for name in ("a", "b", "c", "d")
    ]
    got = [int(line) for process in processes for line in process.communicate()[0].splitlines()]
    assert [0] * 4 == [process.returncode for process in processes]
    assert list(range(100)) == sorted(got)
    office = open_gateway_state(place)
    assert UnderWay(2_000) == office.replays.claim(Slot("t", bytes(16)), b"body", "e", 1_999, 3_000)
    assert Claimed() == office.replays.claim(Slot("t", bytes(16)), b"body", "e", 2_000, 3_000)
    office.close()


@settings(max_examples=20)
@given(st.dictionaries(st.text(st.characters()), st.binary(max_size=100)))
def test_carriers_come_back_by_their_responses(office: GatewayState, sealed: dict[str, bytes]) -> None:
    """Any id that a provider may send and any bytes; later ones take the place of earlier ones."""
    office.carriers.put("t", SCOPE, dict.fromkeys(sealed, b"before"), 10)
    office.carriers.put("t", SCOPE, sealed, 20)
    assert sealed == office.carriers.get("t", SCOPE, [*sealed, "never put"], 19)
    assert {} == office.carriers.get("t", SCOPE, sealed, 20)


def test_what_ran_out_is_purged(office: GatewayState) -> None:
    """Answers, claims and carriers go when their time is over, and no sooner."""
    office.carriers.put("t", SCOPE, {"r": b"old", "s": b"old"}, 10)
    office.carriers.put("t", SCOPE, {"s": b"new"}, 11)
    office.replays.claim(SLOT, b"body", "a", 0, 10)
    assert 2 == office.purge(10)
    assert 0 == office.purge(10)
    assert {"s": b"new"} == office.carriers.get("t", SCOPE, ["r", "s"], 10)


def test_an_office_is_the_same_when_it_is_opened_again(place: str) -> None:
    """All of it lasts; after ``close`` nothing can be asked."""
    first = open_gateway_state(place)
    first.keys.create(row(1))
    first.spending.add([Spent("k1", "total", Use(1))])
    first.close()
    first.close()
    with pytest.raises(StoreError, match="was closed"):
        first.keys.list()
    second = open_gateway_state(place)
    assert [row(1)] == second.keys.list()
    assert {"total": Use(1)} == second.spending.read("k1")
    second.close()


def test_offices_that_are_opened_at_once_are_made_once(place: str) -> None:
    """Eight open a new one together: all work on the same."""
    offices: list[GatewayState] = []
    at_once([lambda: offices.append(open_gateway_state(place))] * 8)
    offices[0].keys.create(row(1))
    assert [[row(1)]] * 8 == [office.keys.list() for office in offices]
    for office in offices:
        office.close()


def at_once(work: list[Callable[[], object]]) -> None:
    """Run all of it on threads and wait for the last."""
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _later(office: GatewayState, seconds: float) -> None:
    """Let time go by for every slot."""
    office._tables.write(("UPDATE {}replays SET until = until - ?", (int(seconds * 1_000_000),)))


def test_a_rate_holds_over_all_who_share_it(place: str) -> None:
    """Of many processes that begin requests at once, so many get one; after a while as many as were earned."""
    offices = [open_gateway_state(place) for _ in range(2)]
    begun: list[float] = []

    def begin(office: GatewayState) -> None:
        begun.extend(office.rates.take("t", "k", 7) for _ in range(6))

    threads = [threading.Thread(target=begin, args=(office,)) for office in offices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waits = [wait for wait in begun if wait]
    one, other = offices
    assert 7 == begun.count(0.0)
    assert all(0 < wait <= 60 / 7 for wait in waits)
    assert (0.0, 0.0) == (one.rates.take("t", "another", 1), one.rates.take("another", "k", 1))
    _later(one, 60 / 7)
    assert (0.0, True) == (other.rates.take("t", "k", 7), one.rates.take("t", "k", 7) > 0)
    _later(one, 3600)
    assert [0.0] * 7 == [one.rates.take("t", "k", 7) for _ in range(7)]
    assert other.rates.take("t", "k", 7) > 0
    _later(one, 120)
    assert 3 == one.purge(time.time_ns() // 1000)
    for office in offices:
        office.close()
