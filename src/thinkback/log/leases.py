"""Leases: who has a turn under way on a branch, and whether that still counts.

A lease is courtesy with a clock. What keeps two writers apart is the compare-and-set of every append; a lease tells the
second one so before it has begun. Must not: read a clock or look at processes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

SECOND = 1_000_000
LONGEST = 3600 * SECOND
"""No lease is given for longer, in microseconds."""

Standing: TypeAlias = Literal["free", "mine", "stale", "live"]


class Owner(NamedTuple):
    """Who holds a lease: ``id`` is a session object's own, the rest says where that runs.

    ``started`` and ``boot`` are compared and never read: when the process began, and within what its ``pid`` means the
    same. Empty where the system does not tell.
    """

    id: str
    pid: int
    started: str
    boot: str
    host: str


class Lease(NamedTuple):
    """A lease as it was at ``now`` by the store's own clock, as are ``taken`` and ``deadline``: microseconds UTC."""

    owner: Owner
    taken: int
    deadline: int
    now: int


def is_due(deadline: int, now: int) -> bool:
    """Whether a lease ended without being renewed. One that lasts longer than any is due: the clock was set back."""
    return not now < deadline <= now + LONGEST


def is_near(lease: Lease, me: Owner) -> bool:
    """Whether its process is one that can be looked at from here."""
    return (lease.owner.host, lease.owner.boot) == (me.host, me.boot)


def standing(lease: Lease | None, me: Owner, running: str | None) -> Standing:
    """What a lease means to ``me``.

    ``running`` is what runs here under the pid of a lease that is near: when it began, empty where nothing runs,
    ``None`` where that is not known.
    """
    if lease is None:
        return "free"
    if lease.owner.id == me.id:
        return "mine"
    is_another = bool(running and lease.owner.started) and running != lease.owner.started
    if is_due(lease.deadline, lease.now) or (is_near(lease, me) and (running == "" or is_another)):
        return "stale"
    return "live"
