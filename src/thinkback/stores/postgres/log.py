"""One tenant's log as the parts of the store share it: its connections, and which family a session belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from thinkback.errors import NotFoundError
from thinkback.stores.postgres.connections import SNAPSHOT, Connection, Pool, transaction
from thinkback.stores.postgres.places import Key, key

T = TypeVar("T")

REMEMBERED = 4096


class Log:
    """The log of ``tenant`` behind ``pool``."""

    def __init__(self, pool: Pool, tenant: str) -> None:
        self.pool, self.tenant = pool, tenant
        self._keys: dict[str, Key] = {}

    def run(self, session: str, work: Callable[[Connection, Key], T]) -> T:
        """``work`` on a session. Raises ``NotFoundError`` if there is none of that id.

        Where a session is never changes, but it may be deleted and its id given to another: so what was remembered
        is looked up again before something is said not to be there.
        """

        def attempt(db: Connection) -> T:
            known = self._keys.get(session)
            if known is not None:
                try:
                    return work(db, known)
                except NotFoundError:
                    self._keys.pop(session, None)
            found = key(db, self.tenant, session)
            if len(self._keys) >= REMEMBERED:
                self._keys.clear()
            self._keys[session] = found
            return work(db, found)

        return self.pool.run(attempt)

    def read(self, session: str, work: Callable[[Connection, Key], T]) -> T:
        """``work`` on a session, all of it seeing the log as it was at one moment."""

        def in_snapshot(db: Connection, of: Key) -> T:
            with transaction(db, SNAPSHOT):
                return work(db, of)

        return self.run(session, in_snapshot)

    def change(self, session: str, work: Callable[[Connection, Key], T]) -> T:
        """``work`` on a session in one transaction."""

        def in_transaction(db: Connection, of: Key) -> T:
            with transaction(db):
                return work(db, of)

        return self.run(session, in_transaction)
