"""The log in a PostgreSQL database: for teams, and for several gateway processes. docs/scale.md describes its tables.

Promises: an append is one transaction of one family that the server keeps when it returns (``durability="full"``);
any number of threads, processes and machines may read and append at once; a tenant sees nothing of another.
Must not: know what a payload means; need anything that a sharding PostgreSQL does not offer.
"""

from __future__ import annotations

from thinkback.log.progress import Progress
from thinkback.log.protocol import Durability
from thinkback.stores.errors import check_text
from thinkback.stores.migrations import Schema
from thinkback.stores.postgres.append import Appends
from thinkback.stores.postgres.connections import Pool
from thinkback.stores.postgres.log import Log
from thinkback.stores.postgres.rows import refuse_tenant
from thinkback.stores.postgres.schema import NEWEST, open_format
from thinkback.stores.postgres.search import PostgresSearch
from thinkback.stores.store import LogStore


def open_postgres(
    url: str,
    durability: Durability = "full",
    tenant: str = "default",
    connections: int = 8,
    schema: Schema = NEWEST,
    progress: Progress | None = None,
) -> LogStore:
    """The log of ``tenant`` in the database at ``url``, made and brought to the newest format where needed.

    ``connections`` is how many it may have open at once. ``progress`` counts the steps of bringing an older log up.
    """
    check_text("tenant", tenant)
    refuse_tenant(tenant)
    pool = Pool(url, durability, connections)
    try:
        is_old = pool.run(lambda db: open_format(db, pool.shown, schema, progress))
    except BaseException:
        pool.close()
        raise
    log = Log(pool, tenant, schema, is_old, progress)
    return LogStore(log, Appends(log), PostgresSearch(log))
