"""The names of sessions and branches in a log's file, for shells that complete them: quick, and without a trace.

Promises: nothing is written, made, locked or migrated; a file that is not there, is no log, or cannot be read just now
gives no names. Any format that has been written is read.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from urllib.parse import quote

_SESSIONS = "SELECT name FROM sessions WHERE name IS NOT NULL ORDER BY session DESC LIMIT ?"
_BRANCHES = (
    "SELECT branches.name FROM branches JOIN sessions USING (session) WHERE sessions.name = ? ORDER BY 1 LIMIT ?"
)
MOST = 1_000


def session_names(path: str) -> list[str]:
    """The sessions, the one begun last first."""
    return _column(path, _SESSIONS)


def branch_names(path: str, session: str) -> list[str]:
    """The branches of a session."""
    return _column(path, _BRANCHES, session)


def _column(path: str, sql: str, *given: str) -> list[str]:
    if not os.path.isfile(path):
        return []
    # with both of these there, whoever writes has made them; otherwise a reader would
    is_open = all(os.path.exists(path + end) for end in ("-wal", "-shm"))
    address = f"file:{quote(os.path.abspath(path))}?mode=ro{'' if is_open else '&immutable=1'}"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=0)) as connection:
            return [name for (name,) in connection.execute(sql, (*given, MOST))]
    except (sqlite3.Error, UnicodeDecodeError):
        return []
