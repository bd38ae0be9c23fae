"""Turns of several session objects and processes: nobody ends, repairs or overtakes another's."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.effort import Effort
from tests.session.chats import DEFINITION, kinds, open_session, run
from tests.stores.postgres_server import Server
from thinkback.drive import leases
from thinkback.drive.clock import now
from thinkback.errors import BusyError, ThinkbackError
from thinkback.log.leases import Lease, Owner
from thinkback.log.protocol import MAIN
from thinkback.model.commits import Head, TurnEnded
from thinkback.model.texts import text_of
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee
from thinkback_referee.script import Call, Step

WHOLE = ["user", "request", "response", "reasoning", "assistant", "provider_usage", "completed"]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a log may be made that several processes open."""
    return str(tmp_path / "log.db") if request.param == "sqlite" else str(request.getfixturevalue("database"))


class Model:
    """Answers at once, or does ``meanwhile`` first."""

    def __init__(self, meanwhile: Any = None) -> None:
        self.meanwhile = meanwhile

    def chat(self, **request: Any) -> dict[str, Any]:
        """One response."""
        if self.meanwhile is not None:
            self.meanwhile()
        message = {"role": "assistant", "content": "answer"}
        return {"id": "r", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


class Other:
    """A process with a turn under way on the branch ``main`` of the session ``chat``."""

    def __init__(self, place: str, period: float) -> None:
        command = [sys.executable, "-m", "tests.session.holder", place, str(period)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert "asked" == self.line()

    def line(self) -> str:
        """What it says next."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def answer(self, text: str) -> str:
        """Let the model answer; what the process says in the end."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        return self.line()


@contextmanager
def other(place: str, period: float = 20.0) -> Iterator[Other]:
    """Such a process; it is gone afterwards."""
    made = Other(place, period)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def opened(store: SessionStore, meanwhile: Any = None, **options: Any) -> Session:
    return store.session("chat", client=Model(meanwhile), model="m", **options)


def ends(session: Session, branch: str = MAIN) -> list[tuple[str, str]]:
    """How the turns of a branch ended."""
    commits = session.conversation.store.log.read(session.id, branch=branch)
    return [(commit.value.state, commit.value.reason) for commit in commits if isinstance(commit.value, TurnEnded)]


# -- other processes ---------------------------------------------------------------------------------------------------


def test_a_second_process_is_told_who_is_at_work(place: str) -> None:
    """Nothing it may do by default touches the other's turn, which ends as if it had been alone."""
    with thinkback.open(place) as store:
        session = opened(store)
        session.chat("first")
        with other(place) as process:
            before = session.log()
            attempts: list[Callable[[], object]] = [
                lambda: session.chat("me too"),
                lambda: session.commit("by hand"),
                lambda: session.reasoning("by hand"),
                lambda: session.annotate(before[0].hash, "pinned"),
                lambda: session.branches.reset("main^1"),
                lambda: session.wire.plan("me too"),
                lambda: run(session.aio.chat("me too")),
            ]
            for attempt in attempts:
                with pytest.raises(BusyError, match=rf"^busy: process {process.process.pid} on \S+ since \d{{4}}-"):
                    attempt()
            assert before == session.log()
            assert "completed main 2" == process.answer("mine")
        assert [("completed", "")] * 2 == ends(session)
        assert "completed" == session.chat("now me").state
        assert [("completed", "")] * 3 == ends(session)


def test_waiting_ends_with_the_other_turn(place: str) -> None:
    """The question comes behind the other's answer."""
    with thinkback.open(place) as store, other(place) as process:
        store.lease_period = 0.4
        session = opened(store, wait=60)
        waiting = threading.Event()
        session.on("notice", lambda text: waiting.set())
        thread = threading.Thread(target=session.chat, args=("now me",))
        thread.start()
        assert waiting.wait(30)
        assert "completed main 1" == process.answer("mine")
        thread.join()
        assert [("completed", "")] * 2 == ends(session)


def test_going_on_in_a_branch_disturbs_nobody(place: str) -> None:
    """It begins before the turn under way."""
    with thinkback.open(place) as store:
        session = opened(store)
        session.chat("first")
        with other(place) as process:
            session.branches.beside("mine")
            assert "completed" == session.chat("me too").state
            texts = [text_of(commit.value) for commit in session.log(kinds=("user",))]
            assert "completed main 2" == process.answer("theirs")
        assert ["first", "me too"] == texts
        assert [("completed", "")] * 2 == ends(session) == ends(session, "mine")


def test_what_is_taken_over_is_not_written_into(place: str) -> None:
    """The other's turn is ended by name; what it still brings goes to a branch of its own."""
    with thinkback.open(place) as store, other(place) as process:
        session = opened(store)
        session.take_over()
        assert "completed" == session.chat("mine now").state
        state, branch, _ = process.answer("too late").split()
        assert ("completed", True) == (state, branch.startswith("main-"))
        (first, why), last = ends(session)
        assert ("interrupted", ("completed", "")) == (first, last)
        assert why.startswith(f"process {os.getpid()} on ")
        assert "too late" not in str([commit.value for commit in session.log()])
        assert "too late" in str([commit.value for commit in store.log.read(session.id, branch=branch)])
        assert [] == store.fsck()


def test_a_dead_process_holds_nothing(place: str) -> None:
    """At once, and although nobody has noticed its end yet: it is a zombie until its parent looks."""
    with thinkback.open(place) as store, other(place) as process:
        session = opened(store)
        with pytest.raises(BusyError):
            session.chat("mine")
        process.process.kill()
        os.waitid(os.P_PID, process.process.pid, os.WEXITED | os.WNOWAIT)
        assert "completed" == session.chat("mine").state
        assert [("interrupted", "the turn was never finished"), ("completed", "")] == ends(session)


def test_a_stopped_process_that_comes_back_writes_beside(place: str) -> None:
    """After three missed renewals its turn is over; it learns so when it goes on."""
    with thinkback.open(place) as store, other(place, period=0.1) as process:
        store.lease_period = 0.1
        session = opened(store, wait=60)
        os.kill(process.process.pid, signal.SIGSTOP)
        assert "completed" == session.chat("mine").state
        assert [("interrupted", "the turn was never finished"), ("completed", "")] == ends(session)
        os.kill(process.process.pid, signal.SIGCONT)
        state, branch, _ = process.answer("too late").split()
        assert ("completed", True) == (state, branch.startswith("main-"))
        assert 2 == len(ends(session))


def test_a_stopped_process_that_nobody_missed_goes_on(place: str) -> None:
    """Its lease ran out and nobody took it."""
    with thinkback.open(place) as store, other(place, period=0.05) as process:
        session = opened(store)
        os.kill(process.process.pid, signal.SIGSTOP)
        found = store.log.leases.find(session.id, MAIN, now())
        while found is not None and found.now < found.deadline:
            found = store.log.leases.find(session.id, MAIN, now())
        os.kill(process.process.pid, signal.SIGCONT)
        assert "completed main 1" == process.answer("mine")


def test_a_silent_provider_costs_no_lease(place: str) -> None:
    """Renewals go on while the turn's thread waits in foreign code: for four terms here."""
    with thinkback.open(place) as store, other(place, period=0.05) as process:
        session = opened(store)
        deadlines: set[int] = set()
        while len(deadlines) < 12:
            lease = store.log.leases.find(session.id, MAIN, now())
            assert lease is not None
            deadlines.add(lease.deadline)
        with pytest.raises(BusyError):
            session.chat("me too")
        assert "completed main 1" == process.answer("mine")


def test_a_server_that_restarts_ends_no_turn() -> None:
    """Nor where the crash lost the lease: it is taken again as long as the branch stands where the turn left it."""
    with Server() as server, thinkback.open(server.url()) as store, other(server.url(), period=0.05) as process:
        session = opened(store)
        server.restart("immediate")
        with server.connect() as db:
            db.execute("DELETE FROM thinkback.leases")
        lease = None
        while lease is None:
            lease = store.log.leases.find(session.id, MAIN, 0)
        assert process.process.pid == lease.owner.pid
        with pytest.raises(BusyError):
            session.chat("me too")
        assert "completed main 1" == process.answer("mine")


def test_owners_that_die_stop_and_come_back_lose_nothing(place: str, effort: Effort) -> None:
    """Whatever becomes of the others, our turns end as they should, and every answer is somewhere, once."""
    chance = random.Random(effort.seed)
    rounds = effort.rounds(2, 100)
    with thinkback.open(place) as store:
        store.lease_period = 0.1
        session = opened(store, wait=60)
        answered: list[str] = []
        for number in range(rounds):
            with other(place, period=0.1) as process:
                fate = chance.choice(["dies", "stops", "is taken over"])
                if fate == "dies":
                    process.process.kill()
                elif fate == "stops":
                    os.kill(process.process.pid, signal.SIGSTOP)
                else:
                    session.take_over()
                assert "completed" == session.chat(f"ours {number}").state
                if fate != "dies":
                    os.kill(process.process.pid, signal.SIGCONT)
                    answered.append(f"theirs {number}")
                    state, branch, _ = process.answer(answered[-1]).split()
                    assert ("completed", True) == (state, branch.startswith("main-")), (effort.seed, number, fate)
        assert ["interrupted", "completed"] * rounds == [state for state, _ in ends(session)]
        commits = {
            commit.hash: text_of(commit.value)
            for branch in store.log.refs.list(session.id)
            for commit in store.log.read(session.id, branch=branch.name)
        }
        assert [1] * len(answered) == [list(commits.values()).count(text) for text in answered]
        assert [] == store.fsck()


# -- one process -------------------------------------------------------------------------------------------------------


def test_two_session_objects_of_one_process(store: SessionStore) -> None:
    """The second is refused while the first runs, and only on the same branch."""
    refused: list[str] = []

    def meanwhile() -> None:
        second = opened(store)
        with pytest.raises(BusyError) as raised:
            second.chat("me too")
        refused.append(raised.value.kind)
        second.branches.beside("mine")
        refused.append(str(second.chat("me too").state))

    first = opened(store, meanwhile)
    assert "completed" == first.chat("mine").state
    assert ["busy", "completed"] == refused
    assert [("completed", "")] == ends(first) == ends(first, "mine")


def lease_on(session: Session, branch: str = MAIN) -> Lease | None:
    return session.conversation.store.log.leases.find(session.id, branch, now())


def test_a_lease_ends_with_its_turn(store: SessionStore, referee: Referee) -> None:
    """However it ends: by itself, closed, dropped, refused, on the asyncio side too."""
    session = open_session(store, referee)
    session.chat("Hello?")
    assert lease_on(session) is None
    with session.stream("Again?") as stream:
        reading = iter(stream)
        next(reading)
        assert lease_on(session) is not None
    assert lease_on(session) is None
    deltas = iter(session.stream("And again?"))
    next(deltas)
    del deltas
    gc.collect()
    assert lease_on(session) is None
    run(session.aio.chat("Hello?"))
    assert lease_on(session) is None

    async def leave() -> None:
        async with session.aio.stream("Hello?") as stream:
            await anext(stream)
            assert lease_on(session) is not None

    run(leave())
    assert lease_on(session) is None

    async def look(city: str) -> str:
        """The weather of a city."""
        return city

    with pytest.raises(ThinkbackError, match="coroutine"):
        session.chat("Hello?", tools=[look])
    assert lease_on(session) is None
    session.wire.plan("Hello?")
    assert lease_on(session) is None


def test_a_turn_that_waits_for_results_holds_nothing(store: SessionStore, referee: Referee) -> None:
    """Another session object may give them."""
    referee.push(Step(tool_calls=[Call("get_weather", {"city": "Oslo"})]), Step(text="cold"))
    first, second = open_session(store, referee), open_session(store, referee)
    (call,) = first.chat("Weather?", tools=[DEFINITION]).tool_calls
    assert lease_on(first) is None
    assert "cold" == second.generate({call.id: "cold"}).text


@pytest.mark.parametrize("is_async", [False, True])
def test_a_turn_that_waits_for_a_person_is_left_alone(store: SessionStore, referee: Referee, is_async: bool) -> None:
    """A second session object is refused, offered a branch of its own, and ends nothing of the first."""
    referee.push(Step(tool_calls=[Call("get_weather", {"city": "Rome"})]), Step(text="beside"), Step(text="warm"))
    session, second = open_session(store, referee), open_session(store, referee)

    def get_weather(city: str) -> str:
        """The weather of a city."""
        return city

    def late(request: object) -> bool:
        for attempt in (lambda: second.chat("Quick!"), lambda: second.commit("by hand")):
            with pytest.raises(BusyError, match="has a turn under way"):
                attempt()
        second.branches.beside("mine")
        assert "beside" == second.chat("Quick!").text
        return True

    options: Any = {"tools": [get_weather], "approve": late, "settings": {"permissions.mode": "ask"}}
    reply = run(session.aio.chat("Rome?", **options)) if is_async else session.chat("Rome?", **options)
    assert ("completed", "warm", MAIN) == (reply.state, reply.text, session.branches.current)
    assert [("completed", "")] == ends(session) == ends(session, "mine")
    assert lease_on(session) is None


def test_a_stream_that_nobody_reads_lets_others_go_on(store: SessionStore, referee: Referee) -> None:
    """It is taken again when somebody reads on."""
    store.lease_period = 0.01
    session = open_session(store, referee)
    deltas = iter(session.stream("Hello?"))
    next(deltas)
    while lease_on(session) is not None:
        pass
    next(deltas)
    assert lease_on(session) is not None
    assert [] != list(deltas)
    assert ["completed"] == [state for state, _ in ends(session)]


def test_a_clock_that_was_set_back_leases_nothing_for_ever(store: SessionStore) -> None:
    """Of another boot, where no process can be asked: a deadline further off than any lease lasts."""
    session = opened(store)
    lost = Owner("lost", 1, "", "another boot", "host")
    store.log.leases.take(session.id, MAIN, lost, 60_000_000, now() + 86_400_000_000)
    assert "completed" == session.chat("Hello?").state


def test_a_lost_lease_before_the_first_step_stores_nothing(store: SessionStore) -> None:
    """Somebody took the branch between the lease and the question."""
    session = opened(store)
    thief = Owner("thief", os.getpid(), leases.running(os.getpid()) or "", "", "elsewhere")

    def steal(drafts: object) -> None:
        found = store.log.leases.find(session.id, MAIN, now())
        store.log.leases.take(session.id, MAIN, thief, 60_000_000, now(), found)
        store.log.append(session.id, "theirs", [], Head())
        session.conversation.holder.renew()

    session.on("pre_commit", steal)
    with pytest.raises(BusyError):
        session.chat("Hello?")
    assert [] == session.log()


def test_waiting_in_a_loop_keeps_no_thread(store: SessionStore, referee: Referee) -> None:
    """More wait than the store has threads, and each has its turn."""
    store.lease_period = 0.4
    sessions = [open_session(store, referee, wait=60) for _ in range(8)]

    async def all_at_once() -> None:
        await asyncio.gather(*(session.aio.chat(f"Hello {at}") for at, session in enumerate(sessions)))

    run(all_at_once())
    assert ["completed"] * 8 == [state for state, _ in ends(sessions[0])]
    assert WHOLE[-1] == kinds(sessions[0])[-1]


def test_processes_are_told_apart() -> None:
    """What runs under a pid: when it began, nothing, or not known."""
    assert "" != leases.running(os.getpid())
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert "" == leases.running(process.pid)
