"""One tenant's log in a PostgreSQL database: its transactions, and where sessions were found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Concatenate, ParamSpec, TypeVar

from thinkback.errors import NotFoundError
from thinkback.log.progress import Progress
from thinkback.log.protocol import Problem
from thinkback.stores.database import Key, RepeatError
from thinkback.stores.errors import damaged
from thinkback.stores.migrations import Schema
from thinkback.stores.postgres.backup import copy_to_file
from thinkback.stores.postgres.connections import SNAPSHOT, Connection, Pool, transaction
from thinkback.stores.postgres.fsck import fsck
from thinkback.stores.postgres.rows import PostgresRows
from thinkback.stores.postgres.schema import renew

P = ParamSpec("P")
T = TypeVar("T")

LOOKS = 20
REMEMBERED = 4096


class Log:
    """The log of ``tenant`` behind ``pool``, in the format ``schema``. The operations' ``Database``."""

    def __init__(
        self, pool: Pool, tenant: str, schema: Schema, is_old: bool = False, progress: Progress | None = None
    ) -> None:
        self.pool, self.tenant, self._schema, self._is_old = pool, tenant, schema, is_old
        self._progress = progress
        self._keys: dict[str, Key] = {}

    def read(self, work: Callable[Concatenate[PostgresRows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns, all of it seeing the log as it was at one moment."""
        return self.pool.run(lambda db: self._attempt(db, SNAPSHOT, lambda rows: work(rows, *args, **kwargs)))

    def peek(self, work: Callable[Concatenate[PostgresRows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work``, which makes one query, and return its result."""
        return self.run(work, *args, **kwargs)

    def write(self, work: Callable[Concatenate[PostgresRows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns, in one transaction."""
        self.renew()
        return self.pool.run(lambda db: self._attempt(db, "", lambda rows: work(rows, *args, **kwargs)))

    def note(self, work: Callable[Concatenate[PostgresRows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``write``, without waiting for the server's disk."""

        def quickly(rows: PostgresRows) -> T:
            rows.db.execute("SET LOCAL synchronous_commit TO off")
            return work(rows, *args, **kwargs)

        return self.write(quickly)

    def run(self, work: Callable[Concatenate[PostgresRows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns, which makes its own transactions."""
        return self.pool.run(lambda db: self._attempt(db, None, lambda rows: work(rows, *args, **kwargs)))

    def is_writable(self) -> bool:
        """Tell whether the log has the newest format."""
        return not self._is_old

    def renew(self) -> None:
        """Bring a log of an older format up, which is read as it stands until it is written to."""
        if self._is_old:
            self.pool.run(lambda db: renew(db, self.pool.shown, self._schema, self._progress))
            self._is_old = False

    def problems(self, progress: Progress | None = None) -> Iterator[Problem]:
        """What ``fsck`` finds in the log of this tenant."""
        with self.pool.connection() as db:
            yield from fsck(db, self.tenant, self._schema, progress)

    def sweep(self) -> None:
        """Nothing: from the server's files it goes when the server vacuums, and archives and copies expire."""

    def backup(self, path: str, progress: Progress | None = None) -> None:
        """A copy of the tenant's log as of now, in a SQLite file."""
        self.pool.run(lambda db: copy_to_file(db, self.tenant, path, progress))

    def close(self) -> None:
        """Close every connection."""
        self.pool.close()

    def _attempt(self, db: Connection, mode: str | None, work: Callable[[PostgresRows], T]) -> T:
        """``work`` in a transaction of that mode, ``None``: in none; again where another writer was first.

        What is remembered of a session may be wrong: so it is looked up before something is said not to be there.
        """
        said = ""
        for _ in range(LOOKS):
            if len(self._keys) >= REMEMBERED:
                self._keys.clear()
            rows = PostgresRows(db, self.tenant, self._keys, self._is_old)
            try:
                with nullcontext() if mode is None else transaction(db, mode):
                    return work(rows)
            except NotFoundError:
                if not rows.forget():
                    raise
            except RepeatError as error:
                said = str(error)
        raise damaged(said)
