"""Everything at once: threads change, collect, erase and index one log as they like."""

from __future__ import annotations

import random
import threading
from contextlib import closing

import msgspec
import pytest

from tests.stores.life import change
from tests.stores.samples import asked_step, file_of, fill, put, response_step, user_step
from thinkback.errors import HeadMovedError, NotFoundError, StoreError
from thinkback.log.protocol import Query, Store
from thinkback.model.commits import Commit
from thinkback.stores import open_store
from thinkback.stores.sqlite import open_sqlite

# What may be said to somebody who was not alone: a name is taken, a branch has become the current one, a file is read
# in which erased bytes are still to be overwritten.
TOLD = ("already", "current branch", "another program is reading")


def _live(store: Store, name: str, seed: int, changes: int, failures: list[BaseException]) -> None:
    """Random changes; that another thread was first, or removed what this one meant, is no failure."""
    chance = random.Random(seed)
    for number in range(changes):
        try:
            change(chance, store, f"{name}-{number}")(store)
            store.search.fill(20)
        except (HeadMovedError, NotFoundError, IndexError):  # the last: nothing is left to choose from
            continue
        except StoreError as error:
            if not any(told in str(error) for told in TOLD):
                failures.append(error)
        except BaseException as error:
            failures.append(error)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_at_once_the_log_is_whole(place: str, seed: int) -> None:
    """Two programs with two threads each: no deadlock, no damage, and the index has what a new one would have."""
    with closing(open_store(place)) as one, closing(open_store(place)) as other:
        for session in "ab":
            fill(one, session, [user_step(f"{n}", f"{session} {n}") for n in range(4)])
        failures: list[BaseException] = []
        threads = [
            threading.Thread(target=_live, args=(store, f"{at}", 10 * seed + at, 40, failures))
            for at, store in enumerate((one, other, one, other))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [] == failures
        assert [] == list(one.fsck())
        found = _found(one)
        one.search.rebuild()
        assert found == _found(other)


@pytest.mark.parametrize("seed", range(2))
def test_threads_share_a_log_in_memory(seed: int) -> None:
    """One connection serves them all: whatever they do at once, the log is whole and its index as a new one."""
    with closing(open_store(":memory:")) as store:
        for session in "ab":
            fill(store, session, [user_step(f"{n}", f"{session} {n}") for n in range(4)])
        failures: list[BaseException] = []
        threads = [threading.Thread(target=_live, args=(store, f"{at}", seed + at, 40, failures)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [] == failures
        assert [] == list(store.fsck())
        found = _found(store)
        store.search.rebuild()
        assert found == _found(store)


def test_readers_of_a_log_in_memory_see_whole_steps() -> None:
    """Threads that read, search and check while another appends: each sees every step whole or not at all."""
    with closing(open_store(":memory:")) as store:
        store.create_session("s", "s", 1)
        failures: list[str] = []
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                commits = store.read("s")
                if len(commits) % 4 or [commit.seq for commit in commits] != list(range(len(commits))):
                    failures.append(f"read {len(commits)} commits")
                failures.extend(problem.what for problem in store.fsck())
                store.search.fill(50)
                if any(hit.session != "s" for hit in store.search.find(Query("thought"))):
                    failures.append("found what is not there")

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(60):
            put(store, "s", response_step(f"{number}"))
        done.set()
        for thread in threads:
            thread.join()
        assert [] == failures
        assert 240 == store.count()


def test_summaries_and_pages_are_of_whole_steps_while_another_program_appends(place: str) -> None:
    """What was counted never goes back and is that of whole turns; pages that are read meanwhile make up the line."""
    with closing(open_store(place)) as writer, closing(open_store(place)) as reader:
        for session in "ab":
            writer.create_session(session, session, 1)

        def write(session: str) -> None:
            for number in range(20):
                put(writer, session, asked_step(f"{number}", "hm", "So.", 2_000 + number))

        threads = [threading.Thread(target=write, args=(session,)) for session in "ab"]
        for thread in threads:
            thread.start()
        pages: list[Commit] = []
        counted = {"a": 0, "b": 0}
        while min(counted.values()) < 20:
            running = any(thread.is_alive() for thread in threads)
            for session, summary in reader.summaries().items():
                assert 30 * summary.tally.turns == summary.tally.tokens
                assert counted[session] <= summary.tally.turns
                counted[session] = summary.tally.turns
            pages += reader.read("a", pages[-1].seq if pages else -1)
            assert 0 == len(pages) % 6
            assert running or min(counted.values()) == 20
        for thread in threads:
            thread.join()
        pages += reader.read("a", pages[-1].seq)
        assert pages == writer.read("a")
        assert [] == list(reader.fsck())


def test_a_log_in_memory_may_change_while_its_problems_are_read() -> None:
    """``fsck`` reads what was there when it began, and holds nobody up meanwhile, its own caller included."""
    store = open_sqlite(":memory:")
    with closing(store):
        fill(store, "s", [user_step("1", "one"), user_step("2", "two")])
        with file_of(store).write() as db:
            db.execute("UPDATE commits SET time = time + 1")
        problems = store.fsck()
        first = next(problems)
        put(store, "s", user_step("3", "three"))
        assert 3 == len([first, *problems])  # both commits, and the latest time of the session
        assert 3 == store.count()


def test_one_name_is_one_session(place: str) -> None:
    """Whoever makes a session of a name at the same time as others gets the one that the first of them made."""
    made: list[str] = []
    with closing(open_store(place)) as one, closing(open_store(place)) as other:

        def work(worker: int) -> None:
            for n in range(10):
                made.append(f"{n} {(one, other)[worker % 2].create_session(f'{worker}-{n}', f'name {n}', 1).id}")

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (80, 10) == (len(made), len(set(made)))
        assert 10 == len(one.list_sessions())
        assert [] == list(one.fsck())


def _found(store: Store) -> list[str]:
    """All that the index has; in which order steps of different threads came is not the same in a new one."""
    while store.search.fill():
        pass
    return sorted(f"{msgspec.structs.replace(hit, arrival=0)}" for hit in store.search.find(Query(limit=10_000)))
