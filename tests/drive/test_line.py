"""Appending: on top of whatever is the head, and only once, however often it is tried."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.stores.model.store import MemoryStore
from thinkback.drive.line import Line, Stored
from thinkback.errors import HeadMovedError, StoreError
from thinkback.log.protocol import MAIN
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Origin, Text, ToolResult
from thinkback.model.commits import Commit, Draft, Head, Message, Response, Step, block_draft


@pytest.fixture
def store() -> MemoryStore:
    """A store with the session ``s``."""
    made = MemoryStore()
    made.create_session("s", "chat", 0)
    return made


def append(store: MemoryStore, session: str, step: Step, head: Head) -> Stored:
    return Line(store, session, MAIN).append(step, head)


def step(id: str, *texts: str, time: int = 1) -> Step:
    return Step(id, tuple(Draft("user", Message(text)) for text in texts), time)


def test_step_stands_on_the_head(store: MemoryStore) -> None:
    """Nothing in between."""
    stored = append(store, "s", step("a", "one", "two"), Head())
    assert (tuple(store.read("s")), (), "") == stored


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
    assert (once.commits, others.commits, "") == again


def test_step_that_is_nowhere_to_be_found_is_an_error(store: MemoryStore) -> None:
    """A step id that was used for something else."""
    append(store, "s", step("a", "one"), Head())
    with pytest.raises(StoreError, match="step a was stored before"):
        append(store, "s", step("a", "one", "two"), Head())


class Restless(MemoryStore):
    """A store in which somebody else is always faster."""

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str = MAIN) -> bool:
        head = head_of(self.read(session))
        theirs = seal(Step(f"their {step}", (Draft("user", Message("theirs")),), 0), head)
        super().append(session, f"{step} {len(self.read(session))}", theirs, head)
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

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str = MAIN) -> bool:
        if self.refusals:
            self.refusals -= 1
            raise HeadMovedError("moved")
        return super().append(session, step, commits, expected)


def test_head_that_moved_back_is_tried_again() -> None:
    """Nothing new to read: the same head once more."""
    store = Forgetful()
    store.create_session("s", "chat", 0)
    assert () == append(store, "s", step("a", "one"), Head()).between


def response(id: str, text: str, time: int = 1) -> Step:
    """What a provider answered."""
    header = Response(Origin("openai-chat", "u", "m"), blocks=1)
    return Step(id, (Draft("response", header, id), block_draft(Text(text), id, 0)), time)


def test_a_response_that_lost_the_race_opens_a_branch(store: MemoryStore) -> None:
    """It was made on another head, so it stays there, and the line goes on behind it."""
    asked = append(store, "s", step("a", "one"), Head())
    head = head_of(asked.commits)
    others = append(store, "s", response("theirs", "first"), head)
    line = Line(store, "s", MAIN)
    stored = line.append(response("ours", "second"), head)
    assert ("main-ours", "main-ours", ()) == (line.branch, stored.opened, stored.between)
    assert [*asked.commits, *stored.commits] == line.read() == store.read("s", branch="main-ours")
    assert [*asked.commits, *others.commits] == store.read("s")
    after = line.append(step("b", "and?"), head_of(stored.commits))
    assert after.commits == tuple(store.read("s", head_of(stored.commits).seq, "main-ours"))


def test_a_result_that_lost_the_race_opens_a_branch(store: MemoryStore) -> None:
    """A tool's result belongs to the line its call was made on."""
    head = head_of(append(store, "s", step("a", "one"), Head()).commits)
    append(store, "s", step("b", "two"), head)
    result = Step("r", (Draft("tool_result", ToolResult("c1", "42"), "resp"),), 2)
    assert "main-r" == Line(store, "s", MAIN).append(result, head).opened


def test_a_branch_that_was_opened_is_found_again(store: MemoryStore) -> None:
    """The attempt before was cut short behind the store's back: nothing is stored twice."""
    head = head_of(append(store, "s", step("a", "one"), Head()).commits)
    append(store, "s", step("b", "two"), head)
    once = Line(store, "s", MAIN).append(response("ours", "second"), head)
    line = Line(store, "s", MAIN)
    assert (once, "main-ours") == (line.append(response("ours", "second"), head), line.branch)


def test_a_branch_made_and_left_empty_is_used(store: MemoryStore) -> None:
    """The attempt before ended between making the branch and appending to it."""
    head = head_of(append(store, "s", step("a", "one"), Head()).commits)
    append(store, "s", step("b", "two"), head)
    store.refs.create("s", "main-ours", head)
    assert "main-ours" == Line(store, "s", MAIN).append(response("ours", "second"), head).opened


def test_a_branch_that_was_moved_away_is_no_place_for_more(store: MemoryStore) -> None:
    """Somebody took it elsewhere: a message is refused, a response opens a branch where it was made."""
    first = append(store, "s", step("a", "one", "two"), Head()).commits
    store.refs.move("s", MAIN, head_of(first), head_of(first[:1]))
    with pytest.raises(HeadMovedError):
        append(store, "s", step("b", "three"), head_of(first))
    line = Line(store, "s", MAIN)
    assert line.newer(head_of(first)) is None
    stored = line.append(response("r", "late"), head_of(first))
    assert [*first, *stored.commits] == line.read()


def test_a_detached_line_is_only_read(store: MemoryStore) -> None:
    """Appending says how to go on."""
    first = append(store, "s", step("a", "one", "two"), Head()).commits
    line = Line(store, "s", MAIN)
    line.looks_at = first[0].hash
    assert (list(first[:1]), []) == (line.read(), line.newer(head_of(first[:1])))
    with pytest.raises(StoreError, match="the session is detached at commit"):
        line.append(step("b", "three"), head_of(first[:1]))
