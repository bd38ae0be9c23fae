"""The log in one SQLite file, or in memory: the embedded default. docs/format.md describes the file.

Promises: an append is one transaction that is on the disk when it returns (``durability="full"``); any number of
threads and processes may read and append at once. Must not: know what a payload means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from thinkback.log.protocol import MAIN, Origin, Problem, SessionInfo
from thinkback.model import canonical
from thinkback.model.commits import Commit, Head
from thinkback.stores import Durability, migrations, sqlite_places
from thinkback.stores.sealed import check_text, no_session
from thinkback.stores.sqlite_append import Appends
from thinkback.stores.sqlite_care import SqliteCare
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_open import Connect, connect, naming_errors
from thinkback.stores.sqlite_recognition import SqliteRecognition
from thinkback.stores.sqlite_refs import SqliteRefs
from thinkback.stores.sqlite_search import SqliteSearch
from thinkback.stores.sqlite_sessions import add_session


class SqliteStore:
    """The store in the SQLite file ``path``, made and brought to the newest format where needed, or in ``":memory:"``.

    ``connect`` opens connections (tests pass their own). One connection writes, readers come from a small pool.
    """

    def __init__(
        self,
        path: str,
        durability: Durability = "full",
        connect: Connect = connect,
        schema: migrations.Schema = migrations.NEWEST,
    ) -> None:
        self._file = LogFile(path, durability, connect, schema)
        self._appends = Appends(self._file)
        self.refs = SqliteRefs(self._file)
        self.care = SqliteCare(self._file)
        self.search = SqliteSearch(self._file)
        self.recognition = SqliteRecognition(self._file, self._appends)

    def create_session(self, id: str, name: str, time: int, origin: Origin | None = None) -> SessionInfo:
        """Make the session ``name``; an existing one of that name is returned as it is."""
        check_text("session id", id)
        check_text("session name", name)
        known = self.find_session(name)
        if known is not None and known.name == name:
            return known
        with self._file.write() as db:
            if db.execute("SELECT 1 FROM sessions WHERE name = ?", (name,)).fetchone() is None:
                add_session(db, id, name, time, origin)
            found = sqlite_places.info(db, name)
        assert found is not None
        return found

    def find_session(self, name: str) -> SessionInfo | None:
        """The session of that name or id; a name wins."""
        check_text("session name", name)
        with self._file.read() as db:
            return sqlite_places.info(db, name)

    def list_sessions(self) -> list[SessionInfo]:
        """All sessions, last updated first."""
        with self._file.read() as db:
            return sqlite_places.infos(db)

    def write_settings(self, session: str, settings: Mapping[str, str]) -> None:
        """Replace the session layer of the settings."""
        text = canonical.encode(dict(settings)).decode()
        with self._file.write() as db:
            sql = "UPDATE sessions SET settings = ? WHERE id = ? AND name IS NOT NULL RETURNING session"
            if not db.execute(sql, (text, session)).fetchall():
                raise no_session(session)

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str = MAIN) -> bool:
        """Append ``commits``, sealed on top of ``expected``, in one durable transaction; ``False`` if it was there.

        Raises ``HeadMovedError`` when another writer was first, ``NotFoundError`` for an unknown session or branch.
        """
        return self._appends.append(session, step, commits, expected, branch)

    def read(self, session: str, since: int = -1, branch: str = MAIN) -> list[Commit]:
        """Commits of a branch with ``seq`` greater than ``since``, in order."""
        with self._file.read() as db:
            tip = sqlite_places.pointer(db, sqlite_places.key(db, session), branch)
            return sqlite_places.line(db, tip, since)

    def read_to(self, session: str, hash: str) -> list[Commit]:
        """The history that ends with a commit of the session's family."""
        with self._file.read() as db:
            return sqlite_places.line(db, sqlite_places.locate(db, sqlite_places.key(db, session), hash))

    def find_commit(self, prefix: str, session: str = "") -> tuple[str, Commit]:
        """(session id, commit) of a hash prefix; of a commit that is there several times, the one stored first."""
        with self._file.read() as db:
            return sqlite_places.find_prefix(db, prefix, session)

    def fsck(self) -> Iterator[Problem]:
        """Every disagreement between stored bytes, hashes, parents, positions and refs."""
        from thinkback.stores import sqlite_fsck  # where it is needed: a millisecond of every start

        # A connection of its own: the caller takes its time.
        with closing(self._file.connection()) as db, naming_errors(self._file.path):
            db.execute("BEGIN")
            yield from sqlite_fsck.fsck(db, self._file.schema)

    def count(self) -> int:
        """How many commits there are, on a branch or not."""
        with self._file.read() as db:
            return int(db.execute("SELECT count(*) FROM commits").fetchone()[0])

    def close(self) -> None:
        """Close every connection; later calls raise ``StoreError``. Waits for an append under way."""
        self._file.close()
