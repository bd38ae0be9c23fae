"""Leases in every store: taken once, replaced only as they were seen, never in an append's way."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec
import pytest

from tests.stores.life import recorded
from tests.stores.postgres_server import Server
from tests.stores.samples import put, user_step
from thinkback.errors import HeadMovedError, NotFoundError
from thinkback.log.leases import Lease, Owner
from thinkback.log.protocol import MAIN, Store
from thinkback.log.seal import head_of
from thinkback.model.commits import Head
from thinkback.stores import open_store

ONE = Owner("one", 1, "then", "boot", "host")
TWO = Owner("two", 2, "", "", "elsewhere")
TERM = 60_000_000


@pytest.fixture(autouse=True)
def session(store: Store) -> None:
    """The session ``s``."""
    store.create_session("s", "s", 1)


def now() -> int:
    return time.time_ns() // 1000


def test_of_two_one_has_it(store: Store) -> None:
    """The other is told who, and nothing it does takes it away."""
    mine = store.leases.take("s", MAIN, ONE, TERM, now())
    assert ONE == mine.owner
    assert TERM == mine.deadline - mine.taken
    assert mine[:3] == store.leases.take("s", MAIN, TWO, TERM, now())[:3]
    store.leases.release("s", MAIN, TWO)
    assert not store.leases.renew("s", MAIN, TWO, TERM, now())
    found = store.leases.find("s", MAIN, now())
    assert found is not None
    assert mine[:3] == found[:3]
    assert TWO == store.leases.take("s", "elsewhere", TWO, TERM, now()).owner


def test_it_is_renewed_and_ended(store: Store) -> None:
    """Renewing leaves since when it is; an ended one is nobody's."""
    first = store.leases.take("s", MAIN, ONE, TERM, now())
    assert store.leases.renew("s", MAIN, ONE, 2 * TERM, now())
    found = store.leases.find("s", MAIN, now())
    assert found is not None
    assert first.taken == found.taken
    assert found.deadline >= first.deadline + TERM
    store.leases.release("s", MAIN, ONE)
    assert store.leases.find("s", MAIN, now()) is None
    assert not store.leases.renew("s", MAIN, ONE, TERM, now())


def test_it_is_replaced_as_it_was_seen(store: Store) -> None:
    """Whose owner renewed it meanwhile is not stale any more."""
    seen = store.leases.take("s", MAIN, ONE, TERM, now())
    assert store.leases.renew("s", MAIN, ONE, 2 * TERM, now())
    assert ONE == store.leases.take("s", MAIN, TWO, TERM, now(), seen).owner
    again = store.leases.find("s", MAIN, now())
    assert TWO == store.leases.take("s", MAIN, TWO, TERM, now(), again).owner
    assert not store.leases.renew("s", MAIN, ONE, TERM, now())


def test_an_append_never_waits_for_it(store: Store) -> None:
    """It is courtesy: what keeps writers apart is the compare-and-set."""
    store.leases.take("s", MAIN, ONE, TERM, now())
    assert put(store, "s", user_step("a")) == store.read("s")


def test_what_is_recorded_goes_beside_it(store: Store) -> None:
    """A leased branch counts as one that has moved, until the lease is due; a step that was stored is known."""
    first = recorded("first", Head(), "kept")
    assert store.recognition.record(first)
    store.leases.take(first.session, MAIN, ONE, TERM, now())
    assert not store.recognition.record(first)
    entry = recorded("second", head_of(first.commits), "kept")
    with pytest.raises(HeadMovedError):
        store.recognition.record(entry)
    beside = msgspec.structs.replace(entry, branch="beside", via=MAIN)
    assert store.recognition.record(beside)
    store.leases.take(first.session, MAIN, ONE, 0, now() - 1)
    assert store.recognition.record(recorded("third", head_of(first.commits), "kept"))


def test_it_goes_with_its_branch_and_session(store: Store) -> None:
    """A branch of the same name is not leased, nor is a session of the same name."""
    put(store, "s", user_step("a"))
    store.refs.create("s", "b", Head())
    store.leases.take("s", "b", ONE, TERM, now())
    store.refs.delete("s", "b", Head())
    assert store.leases.find("s", "b", now()) is None
    store.leases.take("s", MAIN, ONE, TERM, now())
    store.care.delete_session("s")
    store.create_session("another", "s", 2)
    assert store.leases.find("another", MAIN, now()) is None
    with pytest.raises(NotFoundError):
        store.leases.find("nobody", MAIN, now())
    assert [] == list(store.fsck())


def test_of_many_threads_one_has_it(store: Store) -> None:
    """Those who take it at once agree on whose it is."""
    owners = [Owner(f"owner {number}", number, "", "", "") for number in range(6)]
    told: list[Lease] = []
    begin = threading.Barrier(len(owners))

    def take(owner: Owner) -> None:
        begin.wait(10)
        told.append(store.leases.take("s", MAIN, owner, TERM, now()))

    threads = [threading.Thread(target=take, args=(owner,)) for owner in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == len({lease.owner for lease in told})
    assert len(owners) == len(told)


def test_a_server_goes_by_its_own_clock(postgres: Server) -> None:
    """Hosts whose clocks are days apart agree on what is due."""
    log = open_store(postgres.url(), tenant="clocks")
    log.create_session("s", "s", 1)
    day = 86_400_000_000
    mine = log.leases.take("s", MAIN, ONE, TERM, now() - 3 * day)
    found = log.leases.find("s", MAIN, now() + 3 * day)
    assert found is not None
    assert mine.deadline == found.deadline
    assert 0 <= found.now - mine.now < TERM
    log.close()


def test_a_file_goes_by_this_hosts_clock(tmp_path: Path) -> None:
    """What is given is the time."""
    log = open_store(tmp_path / "log.db")
    log.create_session("s", "s", 1)
    assert Lease(ONE, 5, 12, 5) == log.leases.take("s", MAIN, ONE, 7, 5)
    assert Lease(ONE, 5, 12, 40) == log.leases.find("s", MAIN, 40)
    log.close()
