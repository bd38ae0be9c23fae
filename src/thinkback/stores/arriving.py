"""A session that arrives from elsewhere: made, added to and pointed to in one transaction, or not at all.

Promises: what a branch had that something whole takes the place of is gone with it, from the search index too, unless
anything else stands on it. Must not: know what a payload means.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from thinkback.log.protocol import MAIN, AppendRequest, Arrival, SessionInfo, Tail
from thinkback.model import canonical
from thinkback.model.commits import Head
from thinkback.stores.branches import add_branch, create_session, held, switch
from thinkback.stores.database import Key, Rows
from thinkback.stores.errors import EMPTY, head_moved, no_session
from thinkback.stores.history import find, pointer
from thinkback.stores.reachability import left_behind
from thinkback.stores.summaries import settle


def requests_of(arrival: Arrival) -> list[AppendRequest]:
    """The steps of its tails, as they are appended."""
    return [
        AppendRequest(
            *(arrival.session, arrival.name, arrival.created, tail.step, tail.commits, tail.expected, tail.branch),
            sightings=tail.sightings,
        )
        for tail in arrival.tails
    ]


def arrive(rows: Rows, arrival: Arrival, append: Callable[[str], object]) -> SessionInfo:
    """Store what arrives; ``append`` stores the step of a tail, by its id, in the same transaction."""
    if arrival.is_new:
        _begin(rows, arrival)
    for tail in arrival.tails:
        if tail.outgrown is not None:
            _replace(rows, arrival.session, tail)
        append(tail.step)
    of, created, _ = held(rows, arrival.session)
    for name, head in arrival.moves.items():
        add_branch(rows, of, name, find(rows, of, head, ""), created)
    if arrival.branch:
        switch(rows, arrival.session, arrival.branch)
    for name, head in arrival.absorbed.items():
        _absorb(rows, of, name, head)
    found = rows.info(arrival.session)
    if found is None:
        raise no_session(arrival.session)
    return found


def _begin(rows: Rows, arrival: Arrival) -> None:
    of = rows.key(arrival.session)
    if of is not None and rows.hold(of) is not None:  # somebody else was first
        raise head_moved(of.id, EMPTY, pointer(rows, of, MAIN).head)
    names = (arrival.name if number == 1 else f"{arrival.name}-{number}" for number in count(1))
    name = next(name for name in names if not rows.has_name(name))
    layer = canonical.encode(dict(arrival.settings)).decode()
    create_session(rows, arrival.session, name, arrival.created, arrival.origin, layer, arrival.about)


def _replace(rows: Rows, session: str, tail: Tail) -> None:
    """Let a branch stand where the tail begins, and remove what it had behind that."""
    of, created, _ = held(rows, session)
    tip = pointer(rows, of, tail.branch, hold=True)
    if tip.head != tail.outgrown:
        raise head_moved(of.id, tail.outgrown or tip.head, tip.head)
    add_branch(rows, of, tail.branch, find(rows, of, tail.expected, ""), created)
    for cut in left_behind(rows, of[:2], tip.place):
        rows.remove(of[:2], cut)
    settle(rows, of)


def _absorb(rows: Rows, of: Key, name: str, head: Head) -> None:
    """Forget a branch, and what stood on it alone."""
    tip = pointer(rows, of, name, hold=True)
    if tip.head != head:
        raise head_moved(of.id, head, tip.head)
    rows.delete_branch(of, name)
    for cut in left_behind(rows, of[:2], tip.place):
        rows.remove(of[:2], cut)
    settle(rows, of)
