"""The log in one SQLite file, or in memory: the embedded default. docs/format.md describes the file.

Promises: an append is one transaction that is on the disk when it returns (``durability="full"``); any number of
threads and processes may read and append at once. Must not: know what a payload means.
"""

from __future__ import annotations

from thinkback.log.progress import Progress
from thinkback.log.protocol import Durability
from thinkback.stores import migrations
from thinkback.stores.sqlite_append import Appends
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_open import Connect, connect
from thinkback.stores.sqlite_rows import SqliteDatabase
from thinkback.stores.sqlite_search import SqliteSearch
from thinkback.stores.store import LogStore


def open_sqlite(
    path: str,
    durability: Durability = "full",
    connect: Connect = connect,
    schema: migrations.Schema = migrations.NEWEST,
    progress: Progress | None = None,
) -> LogStore:
    """The log in the SQLite file ``path``, made and brought to the newest format where needed, or in ``":memory:"``.

    ``connect`` opens connections (tests pass their own). One connection writes, readers come from a small pool.
    ``progress`` counts the steps of bringing an older log up.
    """
    database = SqliteDatabase(LogFile(path, durability, connect, schema, progress))
    return LogStore(database, Appends(database), SqliteSearch(database.file))
