"""Stores: where the log is kept. ``open_store`` picks one; importing this package loads none of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from thinkback.errors import StoreError, install_hint
from thinkback.log.protocol import Durability as Durability

if TYPE_CHECKING:
    from thinkback.log.progress import Progress
    from thinkback.log.protocol import Store

SERVER = ("postgresql://", "postgres://")
"""How the address of a log on a server begins; anything else is a file."""


def open_store(
    path: str | os.PathLike[str],
    durability: Durability = "full",
    tenant: str = "default",
    connections: int = 8,
    progress: Progress | None = None,
) -> Store:
    """The store at ``path``, made if it is not there; ``":memory:"`` is one that ends with the process.

    ``durability="full"``: what ``append`` returned for survives a power cut. ``"normal"``: it survives a crash of
    the process, and a power cut may take the last appends, never a part of one. ``tenant`` and ``connections`` (at
    most so many) are for ``postgresql://``, where many share a database; a file is one tenant. ``progress`` counts
    the steps by which a log of an older format is upgraded, before the first write to it. Raises ``StoreError``.
    """
    place = os.fspath(path)
    if place.startswith(SERVER):
        return _on_server(place, durability, tenant, connections, progress)
    if tenant != "default":
        raise StoreError(
            f"the log {place} is a file, and a file is one tenant",
            details={"path": place, "tenant": tenant},
            next_actions=(f"give {tenant} a file of its own", "or open a postgresql:// address"),
        )
    from thinkback.stores.sqlite import open_sqlite

    return open_sqlite(place, durability, progress=progress)


def _on_server(url: str, durability: Durability, tenant: str, connections: int, progress: Progress | None) -> Store:
    try:
        from thinkback.stores.postgres import open_postgres
    except ImportError as error:
        if error.name not in (None, "psycopg"):  # None: it is there, and the library that it needs is not
            raise
        raise StoreError(
            "a log in PostgreSQL needs psycopg, which is not installed",
            next_actions=(install_hint("postgres"),),
        ) from error
    return open_postgres(url, durability, tenant, connections, progress=progress)
