"""Appending: on top of whatever is the head, and only once, however often it is tried."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from thinkback.drive.log import append
from thinkback.errors import HeadMovedError, StoreError
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Commit, Draft, Head, Message, Step
from thinkback.stores.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    """A store with the session ``s``."""
    made = MemoryStore()
    made.create_session("s", "chat", 0)
    return made


def step(id: str, *texts: str, time: int = 1) -> Step:
    return Step(id, tuple(Draft("user", Message(text)) for text in texts), time)


def test_step_stands_on_the_head(store: MemoryStore) -> None:
    """Nothing in between."""
    stored = append(store, "s", step("a", "one", "two"), Head())
    assert (tuple(store.read("s")), ()) == stored


def test_step_stands_on_what_others_appended_first(store: MemoryStore) -> None:
    """The commits in between come back with ours."""
    first = append(store, "s", step("a", "one"), Head())
    second = append(store, "s", step("b", "two"), Head())
    assert first.commits == second.between
    assert second.commits[0].parents == (first.commits[0].hash,)


def test_step_that_was_stored_is_found_again(store: MemoryStore) -> None:
    """A second attempt, after the first was cut short behind the store's back, stores nothing twice."""
    once = append(store, "s", step("a", "one", "two"), Head())
    again = append(store, "s", step("a", "one", "two"), Head())
    assert once == again
    assert 2 == len(store.read("s"))


def test_step_that_was_stored_behind_others_is_found_there(store: MemoryStore) -> None:
    """The first attempt met a moved head; the second begins with the old one again."""
    others = append(store, "s", step("a", "one", time=7), Head())
    once = append(store, "s", step("b", "two", time=8), Head())
    append(store, "s", step("c", "three", time=9), head_of(list(once.commits)))
    again = append(store, "s", step("b", "two", time=8), Head())
    assert (once.commits, others.commits) == again


def test_step_that_is_nowhere_to_be_found_is_an_error(store: MemoryStore) -> None:
    """A step id that was used for something else."""
    append(store, "s", step("a", "one"), Head())
    with pytest.raises(StoreError, match="step a was stored before"):
        append(store, "s", step("a", "one", "two"), Head())


class Restless(MemoryStore):
    """A store in which somebody else is always faster."""

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head) -> bool:
        theirs = seal(Step(f"their {step}", (Draft("user", Message("theirs")),), 0), self._session(session).head())
        super().append(session, f"{step} {len(self.read(session))}", theirs, self._session(session).head())
        return super().append(session, step, commits, expected)


def test_endless_race_is_given_up() -> None:
    """After fifty attempts the error is told."""
    store = Restless()
    store.create_session("s", "chat", 0)
    with pytest.raises(HeadMovedError):
        append(store, "s", step("a", "one"), Head())


class Forgetful(MemoryStore):
    """A store that says the head moved and shows nothing new, as one does whose reads lag."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 1

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head) -> bool:
        if self.refusals:
            self.refusals -= 1
            raise HeadMovedError("moved")
        return super().append(session, step, commits, expected)


def test_head_that_moved_back_is_tried_again() -> None:
    """Nothing new to read: the same head once more."""
    store = Forgetful()
    store.create_session("s", "chat", 0)
    assert () == append(store, "s", step("a", "one"), Head()).between
