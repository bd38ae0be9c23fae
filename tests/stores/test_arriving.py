"""Sessions from elsewhere in every store: made, grown and put right in one transaction."""

from __future__ import annotations

import pytest

from tests.stores.samples import fill, response_step, user_step
from thinkback.errors import HeadMovedError, IdTakenError, NotFoundError
from thinkback.log.leases import Owner
from thinkback.log.protocol import MAIN, About, Arrival, Origin, Query, Store, Tail
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Commit, Head, Step

FIRST = seal(user_step("1"), Head())
HALF = seal(Step("2", response_step("2").drafts[:-1], 5), head_of(FIRST))
WHOLE = seal(Step("2", response_step("2").drafts, 5), head_of(FIRST))
BESIDE = seal(user_step("3", "Or why is it red?"), head_of(FIRST))


def new(*tails: Tail, **more: object) -> Arrival:
    """The session ``s`` as it comes for the first time."""
    return Arrival("s", "name", 7, tails, is_new=True, **more)  # type: ignore[arg-type]


def lines(store: Store) -> dict[str, list[Commit]]:
    """What is on each branch."""
    return {branch.name: store.read("s", branch=branch.name) for branch in store.refs.list("s")}


def hits(store: Store, text: str) -> int:
    """How often a text is found."""
    while store.search.fill():
        pass
    return len(store.search.find(Query(text)))


def check(store: Store) -> None:
    assert [] == [f"{problem.where}: {problem.what}" for problem in store.fsck()]


def test_a_session_comes_with_its_branches_settings_and_program(store: Store) -> None:
    """Under a name with a number where the name is taken; the branch that is named is open."""
    store.create_session("other", "name", 1)
    tails = Tail("1", FIRST, Head()), Tail("2", WHOLE, head_of(FIRST)), Tail("3", BESIDE, head_of(FIRST), "main-2")
    info = store.arrive(new(*tails, branch="main-2", settings={"a": "b"}, about=About("codex"), origin=Origin("other")))
    assert ("name-2", "main-2", {"a": "b"}, "other") == (info.name, info.branch, info.settings, info.parent)
    assert {MAIN: [*FIRST, *WHOLE], "main-2": [*FIRST, *BESIDE]} == lines(store)
    found = store.summaries()["s"]
    assert ("codex", "Why is the sky blue?") == (found.about.program, found.tally.title)
    check(store)


def test_what_is_outgrown_is_gone(store: Store) -> None:
    """From the log, from search, and from what is counted."""
    store.arrive(new(Tail("1", [*FIRST, *HALF], Head())))
    assert 1 == hits(store, "rayleigh")
    outgrown = head_of(HALF)
    store.arrive(Arrival("s", "name", 7, [Tail("2", WHOLE, head_of(FIRST), MAIN, outgrown)]))
    assert {MAIN: [*FIRST, *WHOLE]} == lines(store)
    assert (len(FIRST) + len(WHOLE), 1) == (store.count(), hits(store, "rayleigh"))
    again = seal(user_step("4", "All else."), Head())
    store.arrive(Arrival("s", "name", 7, [Tail("4", again, Head(), MAIN, head_of(WHOLE))]))
    assert ({MAIN: again}, 1, 0) == (lines(store), store.count(), hits(store, "rayleigh"))
    check(store)


def test_what_something_else_stands_on_stays(store: Store) -> None:
    """A branch, a fork, or what was stored behind it."""
    store.arrive(new(Tail("1", [*FIRST, *HALF], Head())))
    store.create_session("fork", "fork", 1, Origin("s", at=head_of(HALF)))
    store.arrive(Arrival("s", "name", 7, [Tail("2", WHOLE, head_of(FIRST), MAIN, head_of(HALF))]))
    assert [*FIRST, *HALF] == store.read("fork")
    more = fill(store, "s", [user_step("5")])
    store.refs.move("s", MAIN, head_of(more), head_of(WHOLE))
    store.arrive(Arrival("s", "name", 7, [Tail("3", BESIDE, head_of(FIRST), MAIN, head_of(WHOLE))]))
    assert more[-1] == store.read_to("s", more[-1].hash)[-1]
    check(store)


def test_what_somebody_else_changed_is_refused(store: Store) -> None:
    """A head that moved, a session that is there, a turn that is under way, an id that was given up."""
    store.arrive(new(Tail("1", FIRST, Head())))
    for wrong in (
        new(Tail("2", FIRST, Head())),
        Arrival("s", "name", 7, [Tail("3", WHOLE[1:], head_of(WHOLE[:1]))]),
        Arrival("s", "name", 7, [Tail("3", WHOLE, head_of(FIRST), MAIN, head_of(WHOLE))]),
    ):
        with pytest.raises(HeadMovedError):
            store.arrive(wrong)
    owner = Owner("o", 1, "", "b", "h")
    store.leases.take("s", MAIN, owner, 10**12, 1)
    with pytest.raises(NotFoundError):
        store.arrive(Arrival("gone", "name", 7, [], MAIN))
    store.create_session("fork", "fork", 1, Origin("s", at=head_of(FIRST)))
    store.care.delete_session("s")
    with pytest.raises(IdTakenError):
        store.arrive(new(Tail("1", FIRST, Head())))
    assert FIRST == store.read("fork")
