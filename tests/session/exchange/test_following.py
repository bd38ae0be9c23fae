"""An import that keeps up: what a program writes is there once, whole, as soon as it is known to be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.formats.samples import CLAUDE, CODEX, SAMPLES, asked, claude, jsonl
from thinkback.errors import CorruptLogError, NotFoundError, StoreError
from thinkback.log.protocol import Arrival, SessionInfo
from thinkback.session.exchange.following import EVERY, Following, follow
from thinkback.session.exchange.histories import Took, Wanted, run
from thinkback.session.store import SessionStore

BEGAN = 1_800_000_000.0


class Machine:
    """A clock, and files that are written at its time. ``then`` is what happens in each wait; at its end is Ctrl-C."""

    def __init__(self, *then: Callable[[], object]) -> None:
        self.now = BEGAN
        self.waits: list[float] = []
        self._then = iter(then)

    def clock(self) -> float:
        """Seconds."""
        return self.now

    def wait(self, seconds: float) -> None:
        """Time goes on."""
        self.waits.append(seconds)
        self.now += seconds
        happens = next(self._then, None)
        if happens is None:
            raise KeyboardInterrupt
        happens()

    def put(self, path: Path, data: bytes, ago: float = 0) -> None:
        """A file as a program leaves it."""
        path.write_bytes(data)
        os.utime(path, (self.now - ago, self.now - ago))


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """An empty log."""
    with thinkback.open(":memory:") as opened:
        yield opened


def kinds(store: SessionStore) -> list[str]:
    """Those of the commits of the one session."""
    (info,) = store.sessions()
    return [commit.kind for commit in store.commits(info.name)]


def nothing() -> None:
    """A round in which nothing is written."""


def test_what_is_written_meanwhile_is_there_once_and_whole(store: SessionStore, tmp_path: Path) -> None:
    """The same as one import of the files as they are at the end."""
    file, heard = tmp_path / "s1.jsonl", list[Took]()
    ends = iter(range(5, len(CLAUDE) + 1))
    machine: Machine = Machine(
        *[lambda: machine.put(file, jsonl(*CLAUDE[: next(ends)]))] * (len(CLAUDE) - 4), *[nothing] * 6
    )
    machine.put(file, jsonl(*CLAUDE[:4]))
    done, gaps = follow(store.log, Wanted("claude-code", str(tmp_path)), heard.append, machine.clock, machine.wait)
    (took,) = done
    with thinkback.open(":memory:") as other:
        (once,), left = run(other.log, Wanted("claude-code", str(tmp_path)))
        assert (once.commits, left) == (took.commits, gaps)
        ours, theirs = store.commits(took.name), other.commits(once.name)
        assert [commit.hash for commit in theirs] == [commit.hash for commit in ours]
    assert took.commits == sum(each.commits for each in heard)
    assert ["main"] == [branch.name for branch in store.log.refs.list(store.find(took.name).id)]
    assert [] == store.fsck()


def test_the_time_between_two_looks_grows_with_what_they_take(store: SessionStore, tmp_path: Path) -> None:
    """Two seconds, or four times as long as the look: it takes at most a fifth of a processor."""

    def slow(took: Took) -> None:
        machine.now += 5

    machine = Machine(nothing)
    machine.put(tmp_path / "s1.jsonl", jsonl(*CLAUDE), ago=60)
    follow(store.log, Wanted("claude-code", str(tmp_path)), slow, machine.clock, machine.wait)
    assert [20, EVERY] == machine.waits


def test_the_last_response_waits_until_it_is_followed(store: SessionStore, tmp_path: Path) -> None:
    """A response that nothing follows may go on."""
    file, machine = tmp_path / "s1.jsonl", Machine()
    following = Following(store.log, Wanted("claude-code", str(tmp_path)), machine.clock)
    machine.put(file, jsonl(*CLAUDE))
    list(following.look())
    assert "assistant" not in kinds(store)
    machine.now += 9
    assert [] == list(following.look())
    machine.put(file, jsonl(*CLAUDE, claude("u2", "a4", "user", "And then?")))
    list(following.look())
    assert ["assistant", "provider_usage", "turn_ended", "user"] == kinds(store)[-4:]
    assert [] == list(following.look())


def test_the_last_response_is_taken_when_its_file_rested(store: SessionStore, tmp_path: Path) -> None:
    """Ten seconds after it changed; at once where that was long ago."""
    file, machine = tmp_path / "s1.jsonl", Machine()
    following = Following(store.log, Wanted("claude-code", str(tmp_path)), machine.clock)
    machine.put(file, jsonl(*CLAUDE))
    list(following.look())
    machine.now += 10
    (took,) = following.look()
    assert ["response", "assistant", "provider_usage", "turn_ended"] == kinds(store)[-took.commits :]
    assert [] == list(following.look())
    with thinkback.open(":memory:") as other:
        machine.put(file, jsonl(*CLAUDE), ago=60)
        list(Following(other.log, Wanted("claude-code", str(tmp_path)), machine.clock).look())
        assert kinds(store) == kinds(other)


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli", "pi"])
def test_a_response_that_comes_in_pieces_is_there_once(store: SessionStore, tmp_path: Path, name: str) -> None:
    """However long the program rests after each line: on one branch, once in search and in what is counted."""
    file, machine = tmp_path / "s1.jsonl", Machine()
    following = Following(store.log, Wanted(name, str(tmp_path)), machine.clock)
    lines = SAMPLES[name].splitlines(keepends=True)
    for at in range(1, len(lines) + 1):
        machine.put(file, b"".join(lines[:at]), ago=60)
        list(following.look())
    with thinkback.open(":memory:") as other:
        run(other.log, Wanted(name, str(tmp_path)))
        (ours,), (theirs,) = store.sessions(), other.sessions()
        assert (theirs.head, other.log.count()) == (ours.head, store.log.count())
        assert [len(each.find_reasoning("list")) for each in (store, other)] in ([0, 0], [1, 1])
        assert other.log.summaries()[theirs.id].tally == store.log.summaries()[ours.id].tally
        assert other.usage().total == store.usage().total
    assert ["main"] == [branch.name for branch in store.log.refs.list(ours.id)]
    assert [] == store.fsck()


def test_what_is_erased_of_a_response_that_grows_stays_erased(store: SessionStore, tmp_path: Path) -> None:
    """The whole response takes the place of its beginning, without the words that were taken out of that."""
    file, machine = tmp_path / "s1.jsonl", Machine()
    following = Following(store.log, Wanted("codex", str(tmp_path)), machine.clock)
    at = next(at for at, line in enumerate(CODEX) if "It is there." in str(line)) + 1
    machine.put(file, jsonl(*CODEX[:at]), ago=60)
    list(following.look())
    (info,) = store.sessions()
    (thought,) = (c for c in store.commits(info.name) if getattr(c.value, "thought", "") == "It is there.")
    store.care.redact(thought.hash, "It")
    machine.put(file, jsonl(*CODEX), ago=60)
    (took,) = following.look()
    assert (1, 13, False) == (
        took.erased,
        len(store.commits(info.name)),
        "It is there." in str(store.commits(info.name)),
    )
    assert [] == store.fsck()


def test_what_is_erased_meanwhile_stays_erased(store: SessionStore, tmp_path: Path) -> None:
    """A session that is deleted while its program goes on is skipped, and that is said."""
    file, machine = tmp_path / "c1.jsonl", Machine()
    following = Following(store.log, Wanted("codex", str(tmp_path)), machine.clock)
    machine.put(file, jsonl(*CODEX), ago=60)
    (took,) = following.look()
    store.care.delete_session(took.name)
    machine.put(file, jsonl(*CODEX, asked("And then?", "user.text")))
    assert ["it was erased here, and stays so"] == [each.skipped for each in following.look()]
    file.unlink()
    assert [] == list(following.look())


class Meanwhile:
    """A log in which somebody writes to the session once, just before something is added to it."""

    def __init__(self, store: SessionStore) -> None:
        self._store, self._is_due = store, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store.log, name)

    def arrive(self, arrival: Arrival) -> SessionInfo:
        """What the log does."""
        if self._is_due and not arrival.is_new:
            self._is_due = False
            self._store.session(arrival.name).commit("Something of mine.")
        return self._store.log.arrive(arrival)


def test_a_session_that_somebody_else_writes_to_is_read_again(store: SessionStore, tmp_path: Path) -> None:
    """In the next round; nothing is said of it before."""
    machine = Machine()
    following = Following(Meanwhile(store), Wanted("claude-code", str(tmp_path)), machine.clock)
    machine.put(tmp_path / "s1.jsonl", jsonl(*CLAUDE[:2]), ago=60)
    assert [1] == [took.commits for took in following.look()]
    machine.put(tmp_path / "s1.jsonl", jsonl(*CLAUDE), ago=60)
    assert [] == list(following.look())
    assert [11] == [took.commits for took in following.look()]
    assert [] == list(following.look())


class Locked:
    """A log that takes nothing for its first ``times``, and counts how often what was erased is asked for."""

    def __init__(self, store: SessionStore, times: int, error: StoreError) -> None:
        self._store, self._times, self._error = store, times, error
        self.summed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store.log, name)

    def summaries(self, *given: Any) -> Any:
        """What the log does."""
        self.summed += 1
        return self._store.log.summaries(*given)

    def arrive(self, arrival: Arrival) -> SessionInfo:
        """What the log does."""
        if self._times:
            self._times -= 1
            raise self._error
        return self._store.log.arrive(arrival)


def test_a_log_that_is_locked_is_tried_again(store: SessionStore, tmp_path: Path) -> None:
    """It is told once, and nothing is lost; what did not change asks the log nothing."""
    machine, heard, told = Machine(*[nothing] * 5), list[Took](), list[str]()
    log = Locked(store, 2, StoreError("the log is locked"))
    machine.put(tmp_path / "s1.jsonl", jsonl(*CLAUDE), ago=60)
    wanted = Wanted("claude-code", str(tmp_path))
    done, _ = follow(log, wanted, heard.append, machine.clock, machine.wait, told.append)
    assert ["the log is locked"] == told
    assert [12] == [took.commits for took in done] == [took.commits for took in heard]
    assert 3 == log.summed


def test_a_damaged_log_is_not_tried_again(store: SessionStore, tmp_path: Path) -> None:
    """It ends."""
    machine = Machine(nothing)
    machine.put(tmp_path / "s1.jsonl", jsonl(*CLAUDE), ago=60)
    log = Locked(store, 1, CorruptLogError("damaged"))
    with pytest.raises(CorruptLogError):
        follow(log, Wanted("claude-code", str(tmp_path)), lambda _: None, machine.clock, machine.wait)


def test_a_file_that_could_not_be_read_is_read_later(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although it did not change."""
    machine = Machine()
    following = Following(store.log, Wanted("claude-code", str(tmp_path)), machine.clock)
    machine.put(tmp_path / "s1.jsonl", jsonl(*CLAUDE), ago=60)
    with monkeypatch.context() as patched:

        def fail(*given: Any) -> Any:
            raise OSError(24, "Too many open files")

        patched.setattr("thinkback.session.exchange.histories.source_of", fail)
        assert [] == list(following.look())
        assert 1 == len(following.gaps)
    machine.now += 10
    assert [12] == [took.commits for took in following.look()]
    assert not [gap for gap in following.gaps if "cannot be read" in gap.left.what]


def test_a_folder_that_is_not_there_is_named(store: SessionStore, tmp_path: Path) -> None:
    """At the beginning."""
    with pytest.raises(NotFoundError, match="no histories of codex"):
        list(Following(store.log, Wanted("codex", str(tmp_path / "none")), lambda: BEGAN).look())
