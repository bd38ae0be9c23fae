"""Leases of a log in memory: a table."""

from __future__ import annotations

from tests.stores.model.log import MemoryLog
from thinkback.log.leases import Lease, Owner


class MemoryLeases:
    """The simplest thing that passes."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def find(self, session: str, branch: str, now: int) -> Lease | None:
        """The lease on a branch."""
        with self._log.lock:
            found = self._log.session(session).leases.get(branch)
            return found and found._replace(now=now)

    def take(
        self, session: str, branch: str, owner: Owner, term: int, now: int, instead_of: Lease | None = None
    ) -> Lease:
        """``owner``'s lease, or that which is in its way."""
        with self._log.lock:
            leases = self._log.session(session).leases
            found = leases.get(branch)
            is_seen = found is not None and instead_of is not None and found[:3:2] == instead_of[:3:2]
            if found is not None and found.owner.id != owner.id and not is_seen:
                return found._replace(now=now)
            leases[branch] = Lease(owner, now, now + term, now)
            return leases[branch]

    def renew(self, session: str, branch: str, owner: Owner, term: int, now: int) -> bool:
        """Let it last."""
        with self._log.lock:
            leases = self._log.session(session).leases
            found = leases.get(branch)
            if found is None or found.owner.id != owner.id:
                return False
            leases[branch] = found._replace(deadline=now + term)
            return True

    def release(self, session: str, branch: str, owner: Owner) -> None:
        """End it."""
        with self._log.lock:
            leases = self._log.session(session).leases
            if branch in leases and leases[branch].owner.id == owner.id:
                del leases[branch]
