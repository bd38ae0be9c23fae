"""Several writers on one session: nothing is lost, the log stays sound."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import thinkback
from tests.session.chats import KEY, get_weather, open_session, refusals, roles
from thinkback.session.store import SessionStore
from thinkback_referee import Referee


def everywhere(store: SessionStore) -> list[str]:
    """The kinds of all commits, each once, on whatever branch: a response that lost the race opens one."""
    session = store.sessions()[0].id
    commits = {
        commit.hash: commit.kind
        for branch in store.log.refs.list(session)
        for commit in store.log.read(session, branch=branch.name)
    }
    return list(commits.values())


def test_two_objects_of_one_session_see_each_other(store: SessionStore, referee: Referee) -> None:
    """What one stored stands in the next request of the other."""
    one, other = open_session(store, referee), open_session(store, referee)
    one.chat("Weather in Oslo?", tools=[get_weather])
    assert "completed" == other.chat("And in Rome?", tools=[get_weather]).state
    one.chat("Thank you.", tools=[])
    assert 3 == roles(referee).count("user")
    assert [] == refusals(referee)
    assert one.log() == other.log()


def test_threads_on_one_file_lose_nothing(tmp_path: Path, referee: Referee) -> None:
    """Each with a session of its own; every response of every turn is in the log."""
    path = tmp_path / "chats.db"
    failures: list[BaseException] = []

    def talk(number: int) -> None:
        try:
            with thinkback.open(path) as store:
                store.lease_period = 1.0
                session = open_session(store, referee, wait=60)
                for turn in range(3):
                    session.chat(f"Hello {number} {turn}")
        except BaseException as error:
            failures.append(error)

    with thinkback.open(path) as store:
        open_session(store, referee)
        threads = [threading.Thread(target=talk, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [] == failures
        assert [] == store.fsck()
        found = everywhere(store)
    assert (12, 12) == (found.count("user"), found.count("response"))


def test_processes_on_one_file_lose_nothing(tmp_path: Path, referee: Referee) -> None:
    """Two programs, the same session, at the same time."""
    path = tmp_path / "chats.db"
    program = textwrap.dedent(
        f"""
        import sys, thinkback
        with thinkback.open({str(path)!r}) as store:
            store.lease_period = 1.0
            session = store.session(
                "chat", endpoint="deepseek", model="deepseek-v4-pro",
                base_url={referee.base_url("deepseek")!r}, api_key={KEY!r}, wait=60,
            )
            for turn in range(5):
                assert session.chat(f"Hello {{sys.argv[1]}} {{turn}}").state == "completed"
        """
    )
    running = [subprocess.Popen([sys.executable, "-c", program, name], stderr=subprocess.PIPE) for name in "ab"]
    errors = [process.communicate(timeout=60)[1] for process in running]
    assert [(0, b""), (0, b"")] == [(p.returncode, error) for p, error in zip(running, errors, strict=True)]
    with thinkback.open(path) as store:
        found = everywhere(store)
        assert [] == store.fsck()
    assert (10, 10, 10) == tuple(found.count(kind) for kind in ("user", "response", "request"))
