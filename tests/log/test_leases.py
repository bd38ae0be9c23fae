"""What a lease means to somebody: by its clock, and by the process that holds it."""

from __future__ import annotations

import pytest

from thinkback.log.leases import LONGEST, Lease, Owner, Standing, is_due, is_near, standing

ME = Owner("me", 10, "started 1", "boot 1", "here")
OTHER = Owner("other", 20, "started 2", "boot 1", "here")


def lease(owner: Owner = OTHER, deadline: int = 1000, now: int = 500) -> Lease:
    return Lease(owner, 0, deadline, now)


@pytest.mark.parametrize(
    ("found", "running", "expected"),
    [
        (None, None, "free"),
        (lease(ME), None, "mine"),
        (lease(ME, now=5000), "", "mine"),
        (lease(), "started 2", "live"),
        (lease(), None, "live"),
        (lease(), "", "stale"),
        (lease(), "started 3", "stale"),  # the pid is another process's now
        (lease(now=1000), "started 2", "stale"),
        (lease(now=999), "started 2", "live"),
        (lease(deadline=500 + LONGEST), "started 2", "live"),
        (lease(deadline=501 + LONGEST), "started 2", "stale"),  # the clock was set back
        (lease(OTHER._replace(started="")), "started 3", "live"),  # when it began was not known there
        (lease(OTHER._replace(started="")), "", "stale"),
        (lease(OTHER._replace(host="there")), "", "live"),  # of another machine only the clock tells
        (lease(OTHER._replace(boot="boot 2")), "", "live"),
        (lease(OTHER._replace(host="there"), now=1000), None, "stale"),
    ],
)
def test_what_a_lease_means(found: Lease | None, running: str | None, expected: Standing) -> None:
    """A dead process on this host counts at once, any other owner by the store's clock."""
    assert expected == standing(found, ME, running)


def test_a_process_is_near_where_its_pid_means_the_same() -> None:
    """Host, boot and what shares pids are the same."""
    others = (OTHER, OTHER._replace(host="there"), OTHER._replace(boot="boot 2"))
    assert [True, False, False] == [is_near(lease(owner), ME) for owner in others]


def test_a_lease_is_due_at_its_deadline() -> None:
    """Not a microsecond before."""
    assert [False, True] == [is_due(10, 9), is_due(10, 10)]
