"""The log in a PostgreSQL database: for teams, and for several gateway processes. docs/scale.md describes its tables.

Promises: an append is one transaction of one family that the server keeps when it returns (``durability="full"``);
any number of threads, processes and machines may read and append at once; a tenant sees nothing of another.
Must not: know what a payload means; need anything that a sharding PostgreSQL does not offer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from thinkback.log.protocol import MAIN, Origin, Problem, SessionInfo
from thinkback.model import canonical
from thinkback.model.commits import Commit, Head
from thinkback.stores import Durability
from thinkback.stores.migrations import Schema
from thinkback.stores.postgres import places, sessions
from thinkback.stores.postgres.append import Appends
from thinkback.stores.postgres.care import PostgresCare
from thinkback.stores.postgres.connections import Pool
from thinkback.stores.postgres.fsck import fsck
from thinkback.stores.postgres.log import Log
from thinkback.stores.postgres.recognition import PostgresRecognition
from thinkback.stores.postgres.refs import PostgresRefs
from thinkback.stores.postgres.schema import NEWEST, migrate
from thinkback.stores.postgres.search import PostgresSearch
from thinkback.stores.sealed import check_sealed, check_text, prefix_range

_COUNT = "SELECT count(*) FROM thinkback.commits WHERE tenant = %s"


class PostgresStore:
    """The log of ``tenant`` in the database at ``url``, made and brought to the newest format where needed.

    ``connections`` is how many it may have open at once.
    """

    def __init__(
        self,
        url: str,
        durability: Durability = "full",
        tenant: str = "default",
        connections: int = 8,
        schema: Schema = NEWEST,
    ) -> None:
        check_text("tenant", tenant)
        places.refuse_tenant(tenant)
        pool = Pool(url, durability, connections)
        self._log, self._schema = Log(pool, tenant), schema
        self._appends = Appends()
        self.refs = PostgresRefs(self._log)
        self.search = PostgresSearch(self._log)
        self.care = PostgresCare(self._log)
        self.recognition = PostgresRecognition(self._log, self._appends)
        try:
            pool.run(lambda db: migrate(db, pool.shown, schema))
        except BaseException:
            self.close()
            raise

    def create_session(self, id: str, name: str, time: int, origin: Origin | None = None) -> SessionInfo:
        """Make the session ``name``; an existing one of that name is returned as it is."""
        check_text("session id", id)
        check_text("session name", name)
        return self._log.pool.run(lambda db: sessions.create(db, self._log.tenant, id, name, time, origin))

    def find_session(self, name: str) -> SessionInfo | None:
        """The session of that name or id; a name wins."""
        check_text("session name", name)
        return self._log.pool.run(lambda db: places.info(db, self._log.tenant, name))

    def list_sessions(self) -> list[SessionInfo]:
        """All sessions, last updated first."""
        return self._log.pool.run(lambda db: places.infos(db, self._log.tenant))

    def write_settings(self, session: str, settings: Mapping[str, str]) -> None:
        """Replace the session layer of the settings."""
        text = canonical.encode(dict(settings)).decode()
        self._log.run(session, lambda db, of: sessions.write_settings(db, of, text))

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str = MAIN) -> bool:
        """Append ``commits``, sealed on top of ``expected``, in one durable transaction; ``False`` if it was there.

        Raises ``HeadMovedError`` when another writer was first, ``NotFoundError`` for an unknown session or branch.
        """
        check_text("step id", step)
        check_sealed(commits, expected)
        return self._log.run(session, lambda db, of: self._appends.append(db, of, branch, step, commits, expected))

    def read(self, session: str, since: int = -1, branch: str = MAIN) -> list[Commit]:
        """Commits of a branch with ``seq`` greater than ``since``, in order."""
        return self._log.read(session, lambda db, of: places.history(db, of, branch, since))

    def read_to(self, session: str, hash: str) -> list[Commit]:
        """The history that ends with a commit of the session's family."""
        return self._log.read(session, lambda db, of: places.line(db, of, places.locate(db, of, hash)))

    def find_commit(self, prefix: str, session: str = "") -> tuple[str, Commit]:
        """(session id, commit) of a hash prefix; of a commit that several sessions hold, the oldest session's."""
        prefix_range(prefix)
        if session:
            return self._log.run(session, lambda db, of: places.find_prefix(db, of.tenant, prefix, of))
        return self._log.pool.run(lambda db: places.find_prefix(db, self._log.tenant, prefix, None))

    def fsck(self) -> Iterator[Problem]:
        """Every disagreement between stored bytes, hashes, parents, positions and refs of this tenant."""
        with self._log.pool.connection() as db:
            yield from fsck(db, self._log.tenant, self._schema)

    def count(self) -> int:
        """How many commits there are of this tenant, on a branch or not."""
        rows = self._log.pool.run(lambda db: db.execute(_COUNT, (self._log.tenant,)).fetchall())
        return int(rows[0][0])

    def close(self) -> None:
        """Close every connection; later calls raise ``StoreError``."""
        self._log.pool.close()
