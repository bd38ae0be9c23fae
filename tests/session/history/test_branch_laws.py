"""Laws of ``session.branches``: whatever is done, nothing that was ever stored is lost, and nothing is torn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinkback
from thinkback.errors import BranchError, NotFoundError
from thinkback.log.lines import is_torn
from thinkback.model.commits import Commit, Priority
from thinkback.session.history.children import collapse, spawn
from thinkback.session.session import Session

Deed = tuple[str, int]


def commit(session: Session, choice: int) -> None:
    session.commit(f"q {choice}")


def turn(session: Session, choice: int) -> None:
    session.commit(f"q {choice}")
    session.commit(f"a {choice}", kind="assistant")


def edit(session: Session, choice: int) -> None:
    said = [commit for commit in session.log() if commit.kind in ("user", "assistant") and not commit.edit]
    if said:
        session.commit(f"edited {choice}", edit=said[choice % len(said)].hash)


def skip(session: Session, choice: int) -> None:
    log = session.log()
    if log:
        session.annotate(log[choice % len(log)].hash, Priority.SKIP)


def _other(session: Session, choice: int) -> str:
    found = session.branches.list()
    return found[choice % len(found)].name


def branch(session: Session, choice: int) -> None:
    log = session.log()
    at = log[choice % len(log)].hash if log else "HEAD"
    taken = {one.name for one in session.branches.list()}
    name = next(name for name in (f"b{number}" for number in count()) if name not in taken)
    session.branches.branch(name, at, switch=choice % 2 == 0)


def switch(session: Session, choice: int) -> None:
    session.branches.switch(_other(session, choice))


def reset(session: Session, choice: int) -> None:
    log = session.log()
    session.branches.reset(log[choice % len(log)].hash if log else "HEAD")


def merge(session: Session, choice: int) -> None:
    strategy = ("auto", "ours", "theirs")[choice % 3]
    session.branches.merge(_other(session, choice // 3), strategy)  # type: ignore[arg-type]


def pick(session: Session, choice: int) -> None:
    log = session.conversation.store.log.read(session.id, branch=_other(session, choice))
    if log:
        session.branches.cherry_pick(log[choice % len(log)].hash)


def rebase(session: Session, choice: int) -> None:
    session.branches.rebase(_other(session, choice))


def delete(session: Session, choice: int) -> None:
    session.branches.delete(_other(session, choice))


def child(session: Session, choice: int) -> None:
    inheritance = ("full_clone", "head_snapshot", "selective")[choice % 3]
    made = spawn(session, inheritance=inheritance)  # type: ignore[arg-type]
    made.commit("of the child")
    collapse(made, session)


DEEDS: dict[str, Callable[[Session, int], None]] = {
    deed.__name__: deed
    for deed in (commit, turn, edit, skip, branch, switch, reset, merge, pick, rebase, delete, child)
}


@pytest.mark.filterwarnings("ignore:.* is inside a response")
@given(st.lists(st.tuples(st.sampled_from(sorted(DEEDS)), st.integers(0, 200)), max_size=25))
def test_nothing_that_was_stored_is_lost(done: list[Deed]) -> None:
    """Every hash ever seen leads to its commit and the history before it; branches end behind whole responses."""
    with thinkback.open(":memory:") as store:
        session = store.session("law")
        seen: dict[str, Commit] = {}
        for deed, choice in done:
            try:
                DEEDS[deed](session, choice)
            except (BranchError, NotFoundError):
                assert deed in ("pick", "rebase", "delete", "branch", "reset")
            seen |= {found.hash: found for found in session.log()}
        for hash, found in seen.items():
            assert found == store.log.find_commit(hash, session.id)[1] == store.log.read_to(session.id, hash)[-1]
        for made in session.branches.list():
            line = store.log.read(session.id, branch=made.name)
            assert list(range(len(line))) == [found.seq for found in line]
            assert not is_torn(line)
        assert [] == store.fsck()
