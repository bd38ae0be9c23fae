"""Leases in a log, written once for every database. What one is worth is for callers to say (``log.leases``).

Promises: of two that take a lease at once, one has it and the other is told who. Must not: keep an append waiting.
"""

from __future__ import annotations

from thinkback.log.leases import Lease, Owner
from thinkback.stores.database import Database, RepeatError, Rows
from thinkback.stores.errors import check_text
from thinkback.stores.history import key


class LogLeases:
    """The leases of the log in ``database``; each call is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, session: str, branch: str, now: int) -> Lease | None:
        """The lease on a branch, whatever it is worth."""
        return self._database.read(_find, session, branch, now)

    def take(
        self, session: str, branch: str, owner: Owner, term: int, now: int, instead_of: Lease | None = None
    ) -> Lease:
        """The lease on the branch as it is then: ``owner``'s, unless somebody else's is there."""
        check_text("branch name", branch)
        return self._database.note(_take, session, branch, owner, term, now, instead_of)

    def renew(self, session: str, branch: str, owner: Owner, term: int, now: int) -> bool:
        """Let it last from now on; ``False`` where ``owner`` has none."""
        return self._database.note(_renew, session, branch, owner, term, now)

    def release(self, session: str, branch: str, owner: Owner) -> None:
        """End it, if ``owner`` has it."""
        self._database.note(_release, session, branch, owner)


def _find(rows: Rows, session: str, branch: str, now: int) -> Lease | None:
    return rows.lease(key(rows, session), branch, now)[1]


def _take(rows: Rows, session: str, branch: str, owner: Owner, term: int, now: int, instead_of: Lease | None) -> Lease:
    of = key(rows, session)
    clock, found = rows.lease(of, branch, now)
    mine = Lease(owner, clock, clock + term, clock)
    if found is None:
        stored = rows.put_lease(of, branch, mine, None)
    elif found.owner.id == owner.id or _is_as_seen(found, instead_of):
        stored = rows.put_lease(of, branch, mine, found)
    else:
        return found
    if not stored:
        raise RepeatError(f"branch {branch!r} has no lease, and takes none")
    return mine


def _is_as_seen(found: Lease, seen: Lease | None) -> bool:
    return seen is not None and (found.owner, found.deadline) == (seen.owner, seen.deadline)


def _renew(rows: Rows, session: str, branch: str, owner: Owner, term: int, now: int) -> bool:
    of = key(rows, session)
    clock, found = rows.lease(of, branch, now)
    if found is None or found.owner.id != owner.id:
        return False
    return rows.put_lease(of, branch, found._replace(deadline=clock + term), found)


def _release(rows: Rows, session: str, branch: str, owner: Owner) -> None:
    rows.drop_lease(key(rows, session), branch, owner)
