"""A life of random changes: stores that look alike and get the same chance make the same change."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from tests.stores.samples import asked_step, response_step, user_step
from thinkback.log.protocol import MAIN, AppendRequest, BranchInfo, Origin, Seen, SessionInfo, Sighting, Store, Summary
from thinkback.log.seal import seal
from thinkback.model import canonical
from thinkback.model.commits import Commit, Erased, Head, Step

Change: TypeAlias = Callable[[Store], object]
Looks: TypeAlias = tuple[list[SessionInfo], dict[tuple[str, str], list[Commit]], list[Seen], Mapping[str, Summary]]

FOREVER = 10**12
SESSIONS, BRANCHES = 5, 4  # no more than so many at once
TOMB = canonical.encode(Erased("asked to", 1))
KINDS = (
    ["append"] * 10
    + ["record"] * 4
    + ["branch"] * 2
    + ["fork", "fork", "switch", "move", "move", "erase", "gc", "drop", "delete", "fill"]
)
SCOPE, DIGESTS = b"a scope 16 bytes", [bytes([number]) * 16 for number in range(8)]


def looks(store: Store) -> Looks:
    """Everything that can be seen by names, sessions, their branches, their histories, sums, and what is recognised."""
    sessions = store.list_sessions()
    histories = {
        (info.id, branch.name): store.read(info.id, branch=branch.name)
        for info in sessions
        for branch in store.refs.list(info.id)
    }
    # Which message was stored first cannot be seen any more once something was collected or erased.
    sums = {
        id: msgspec.structs.replace(
            found, tally=msgspec.structs.replace(found.tally, title=str(bool(found.tally.title)))
        )
        for id, found in store.summaries().items()
    }
    return sessions, histories, store.recognition.lookup(SCOPE, DIGESTS, 10), sums


def recorded(
    id: str, head: Head, session: str = "s", branch: str = MAIN, via: str = "", thought: str = "y", **changes: Any
) -> AppendRequest:
    """A response on top of ``head``, seen under two digests."""
    number = int.from_bytes(id.encode(), "big") % 7
    sightings = [Sighting(SCOPE, digest, f"response of {id}") for digest in DIGESTS[number : number + 2]]
    fields = {"name": id, "created": 1, **changes}
    commits = seal(response_step(id, thought), head)
    return AppendRequest(
        session, step=id, commits=commits, expected=head, branch=branch, via=via, sightings=sightings, **fields
    )


def change(chance: random.Random, store: Store, id: str) -> Change:
    """A change that can be made to ``store`` as it is, and to any that looks like it; ``id`` names what is new."""
    sessions = sorted(store.list_sessions(), key=lambda info: info.id)
    if not sessions:
        return lambda store: store.create_session(id, id, 1)
    info = chance.choice(sessions)
    branches = store.refs.list(info.id)
    branch = chance.choice(branches)
    others = [other for other in branches if other.name != info.branch]
    match chance.choice(KINDS):
        case "branch" if len(branches) < BRANCHES:
            at, via = _place(chance, store, info, branch)
            return lambda store: store.refs.create(info.id, id, at, via)
        case "record" if chance.random() < 0.5:
            at, via = _place(chance, store, info, branch)
            if at == Head():
                new = (
                    recorded(id, at, id)
                    if len(sessions) < SESSIONS
                    else recorded(id, branch.head, info.id, branch.name)
                )
            elif len(branches) < BRANCHES:
                new = recorded(id, at, info.id, id, via)
            else:
                new = recorded(id, branch.head, info.id, branch.name)
            return lambda store: store.recognition.record(new)
        case "fork" if len(sessions) < SESSIONS:
            at, via = _place(chance, store, info, branch)
            return lambda store: store.create_session(id, id, 1, Origin(info.id, via, at, "to see"))
        case "switch":
            return lambda store: store.refs.switch(info.id, branch.name)
        case "move":
            at, via = _place(chance, store, info, branch)
            return lambda store: store.refs.move(info.id, branch.name, branch.head, at, via)
        case "erase" if branch.head.seq >= 0:
            commit = chance.choice(store.read(info.id, branch=branch.name))
            return lambda store: store.care.erase(info.id, {commit.hash: TOMB})
        case "gc":
            return collect
        case "fill":
            return lambda store: store.search.fill(10)
        case "drop" if others:
            other = chance.choice(others)
            return lambda store: store.refs.delete(info.id, other.name, other.head)
        case "delete" if len(sessions) > 1:
            return lambda store: store.care.delete_session(info.id)
        case _:
            commits = seal(_step(chance, id), branch.head)
            return lambda store: store.append(info.id, id, commits, branch.head, branch.name)


def collect(store: Store) -> None:
    """Remove all that no branch reaches: the one change that is many transactions."""
    store.care.gc(FOREVER)


def _place(chance: random.Random, store: Store, info: SessionInfo, branch: BranchInfo) -> tuple[Head, str]:
    """A commit of the branch, or the beginning; with the branch to look on, or none."""
    commits = store.read(info.id, branch=branch.name)
    at = chance.choice([Head(), *(Head(commit.hash, commit.seq) for commit in commits)])
    return at, chance.choice([branch.name, ""])


def _step(chance: random.Random, id: str) -> Step:
    length, time = chance.choice([1, 150]), chance.randrange(1_000)
    thought, text = f"thought {id} " * length, f"text {id} " * length
    steps = (response_step(id, thought, text, time), user_step(id, text, time), asked_step(id, thought, text, time))
    return chance.choice(steps)
