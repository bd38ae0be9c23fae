"""Where steps go while the database is in trouble, and that they come back in order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers.gateway.harness.offices import Clock
from tests.servers.gateway.harness.steps import SECRET, Recorder, entries
from thinkback.errors import HeadMovedError, NotFoundError, StoreError
from thinkback.log.erasing import Order, SessionHistory, echoed
from thinkback.log.protocol import AppendRequest, Store
from thinkback.model import canonical
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.servers.gateway.storing.failover import EVERY, REST, Storing
from thinkback.servers.gateway.storing.spool import ASIDE, PATIENCE, Drained, Spool
from thinkback.stores import open_store
from thinkback.stores.gateway_state import open_gateway_state

TROUBLE = StoreError("the database is in trouble")


@pytest.fixture
def store() -> Iterator[Store]:
    """A log."""
    opened = open_store(":memory:")
    yield opened
    opened.close()


def commits(store: Store, session: str = "s") -> list[str]:
    """The hashes in the log."""
    return [commit.hash for commit in store.read(session)]


def hashes(kept: list[AppendRequest]) -> list[str]:
    """Those of steps."""
    return [commit.hash for entry in kept for commit in entry.commits]


def test_a_step_goes_into_the_log_or_into_the_spool(tmp_path: Path, store: Store) -> None:
    """What follows a spooled step follows it into the spool, and all of it comes into the log when it is drained."""
    recorder, clock, kept = Recorder(store), Clock(), entries(5)
    storing = Storing(recorder, Spool(tmp_path, Sealer(SECRET)), clock.seconds)
    assert storing("tenant", kept[0])
    recorder.trouble = TROUBLE
    assert not storing("tenant", kept[1])
    recorder.trouble = None
    clock.wait(REST)
    assert not storing("tenant", kept[2])
    assert storing("tenant", entries(1, session="other", name="other")[0])
    assert Drained(2, 0, 0) == storing.drain()
    assert storing("tenant", kept[3])
    assert hashes(kept[:4]) == commits(store)
    storing.close()


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["step", "trouble", "well", "drain", "restart", "wait"]), max_size=40))
def test_whatever_happens_every_step_is_stored_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, acts: list[str]
) -> None:
    """Steps, troubles, drains and restarts in any order: in the end the log holds every step, as if nothing was."""
    store, clock, directory = open_store(":memory:"), Clock(), tmp_path_factory.mktemp("spool")
    recorder, steps = Recorder(store), entries(40)
    waiting = iter(steps)
    spool = Spool(directory, Sealer(SECRET))
    storing = Storing(recorder, spool, clock.seconds)
    taken, behind = 0, False
    for act in [*acts, "well", "restart", "drain"]:
        match act:
            case "step":
                if behind:  # nobody goes on from what an earlier process spooled before it is in the log
                    behind = storing.drain().left > 0
                if not behind:
                    storing("tenant", next(waiting))
                    taken += 1
            case "trouble" | "well":
                recorder.trouble = TROUBLE if act == "trouble" else None
            case "drain":
                storing.drain()
            case "restart":
                storing.close()
                spool = Spool(directory, Sealer(SECRET))
                storing = Storing(recorder, spool, clock.seconds)
                behind = storing.drain().left > 0
            case "wait":
                clock.wait(REST)
    if taken:
        assert hashes(steps[:taken]) == commits(store)
    assert [step.step for step in steps[:taken]] == recorder.stored
    storing.close()
    store.close()


def test_a_database_in_trouble_is_left_alone_for_a_moment(tmp_path: Path, store: Store) -> None:
    """Requests that come meanwhile do not wait for it."""
    asked: list[str] = []

    def failing(tenant: str, entry: AppendRequest) -> None:
        asked.append(entry.session)
        raise TROUBLE

    clock = Clock()
    storing = Storing(failing, Spool(tmp_path, Sealer(SECRET)), clock.seconds)
    for number in range(5):
        storing("tenant", entries(1, session=str(number))[0])
    clock.wait(REST)
    storing("tenant", entries(1, session="later")[0])
    assert ["0", "later"] == asked
    storing.close()


def test_what_is_no_trouble_is_told_to_the_caller(tmp_path: Path) -> None:
    """A head that moved is the caller's to resolve; without a spool everything is."""

    def moved(tenant: str, entry: AppendRequest) -> None:
        raise HeadMovedError("another one was first")

    def failing(tenant: str, entry: AppendRequest) -> None:
        raise TROUBLE

    spool = Spool(tmp_path, Sealer(SECRET))
    with pytest.raises(HeadMovedError):
        Storing(moved, spool)("tenant", entries(1)[0])
    with pytest.raises(StoreError):
        Storing(failing)("tenant", entries(1)[0])
    assert 0 == spool.bytes()
    assert Drained(0, 0, 0) == Storing(failing).drain()


def test_what_an_earlier_process_left_is_stored_at_the_start(tmp_path: Path, store: Store) -> None:
    """The loop beside the server takes it up, and tells."""

    async def run() -> None:
        left, kept = Spool(tmp_path, Sealer(SECRET)), entries(3)
        for entry in kept:
            left.put("tenant", entry)
        left.close()
        storing = Storing(Recorder(store), Spool(tmp_path, Sealer(SECRET)))
        told = list[Drained]()
        assert EVERY == await storing.keep(told.append)
        assert EVERY == await storing.keep(told.append)
        assert [Drained(3, 0, 0)] == told
        storing.close()
        assert hashes(kept) == commits(store)
        without = Storing(Recorder(store))
        assert EVERY == await without.keep(told.append)
        without.close()

    asyncio.run(run())


def test_what_was_put_aside_loses_what_is_erased(tmp_path: Path) -> None:
    """A step that will never be stored is kept for people, sealed: without what was erased, and not at all where its
    session was deleted. What cannot be opened stays.
    """
    state, sealer, time = open_gateway_state(tmp_path / "state"), Sealer(SECRET), [0.0]
    spool, clock = Spool(tmp_path / "spool", sealer, now=lambda: time[0]), Clock()
    mine, other = entries(1)[0], entries(3, session="other", name="other")[2]
    gone = entries(5, session="gone", name="gone")[4]

    def refuses(tenant: str, entry: AppendRequest) -> None:
        raise NotFoundError("there is no such session")

    storing = Storing(refuses, spool, clock.seconds, erasures=state.erasures)
    for entry in (mine, gone, other):
        spool.put("tenant", entry)
    time[0] = 2 * PATIENCE  # they have waited for long
    assert Drained(0, 3, 0) == storing.drain()
    strange = tmp_path / "spool" / ASIDE / "strange"
    strange.write_bytes(b"of another secret")
    assert 0 == storing.mend_aside()
    later = max(commit.time for commit in mine.commits) + 1
    state.erasures.add("tenant", canonical.encode(Order(later, "deleted", session="gone")), 2**62)
    order = Order(later, "redacted", messages=echoed([SessionHistory("s", mine.commits)], {mine.commits[0].hash}))
    state.erasures.add("tenant", canonical.encode(order), 2**62)
    assert 2 == storing.mend_aside()
    assert 0 == storing.mend_aside()
    left = [sealer.of("spool").open_bytes(path.read_bytes(), b"step") for path in strange.parent.iterdir()]
    words = [mine, other, gone]
    found = [any(entry.commits[0].payload in each for each in left if each) for entry in words]
    assert [False, True, False] == found
    assert (3, True) == (len(left), strange.exists())
    assert len([each for each in left if each and mine.commits[0].hash.encode() in each]) == 1
    storing.close()
    state.close()
