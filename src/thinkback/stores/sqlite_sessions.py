"""New sessions in a SQLite log."""

from __future__ import annotations

from thinkback.log.protocol import MAIN, Origin
from thinkback.stores import sqlite_places
from thinkback.stores.sealed import id_taken
from thinkback.stores.sqlite_open import Connection
from thinkback.stores.sqlite_places import Key
from thinkback.stores.sqlite_refs import add_branch

# The number is the next one, so that sessions stand in the order they were made in.
_ADD = """
INSERT INTO sessions (session, id, name, family, created, settings, branch, parent, purpose)
SELECT n, ?, ?, coalesce(?, n), ?, '{}', 'main', ?, ? FROM (SELECT coalesce(max(session), 0) + 1 AS n FROM sessions)
RETURNING session, family, id
"""


def add_session(db: Connection, id: str, name: str, time: int, origin: Origin | None) -> None:
    """A session of a name that is free, with its branch, on a new segment or on what it forks from.

    Raises ``IdTakenError``.
    """
    if db.execute("SELECT 1 FROM sessions WHERE id = ?", (id,)).fetchone():
        raise id_taken(id)
    if origin is None:
        rows = db.execute(_ADD, (id, name, None, time, None, "")).fetchall()
        place = None
    else:
        parent = sqlite_places.key(db, origin.session)
        place = None if origin.at is None else sqlite_places.find(db, parent, origin.at, origin.branch)
        rows = db.execute(_ADD, (id, name, parent.family, time, parent.session, origin.purpose)).fetchall()
    add_branch(db, Key(*rows[0]), MAIN, place)
