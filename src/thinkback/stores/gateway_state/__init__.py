"""What a gateway keeps beside the logs. Keys, what they spent, answers that may be given again, carriers.

``open_gateway_state`` picks where it is kept; importing this package loads no database.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from thinkback.errors import StoreError, install_hint
from thinkback.log.protocol import Durability
from thinkback.stores import SERVER

if TYPE_CHECKING:
    from thinkback.stores.gateway_state.state import GatewayState

FILE = "gateway.db"


def open_gateway_state(
    place: str | os.PathLike[str], durability: Durability = "full", connections: int = 4
) -> GatewayState:
    """The state in the directory ``place``, or in the database of a ``postgresql://`` address; made if not there.

    ``durability`` as for a log; ``connections`` is how many may be open to a server. Raises ``StoreError``.
    """
    where = os.fspath(place)
    if where.startswith(SERVER):
        return _on_server(where, durability, connections)
    from thinkback.stores.gateway_state.sqlite import open_sqlite

    directory = Path(where)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the directory {where} of the gateway cannot be made ({error.strerror})",
            details={"path": where},
            next_actions=("check the path, and that this user may write there",),
        ) from error
    return open_sqlite(str(directory / FILE), durability)


def state_beside(log: str) -> GatewayState | None:
    """The state of a gateway whose tenant's log is at ``log``; ``None`` where no gateway keeps anything there."""
    if log.startswith(SERVER):
        from thinkback.stores.gateway_state.postgres import is_in

        return _on_server(log, "full", 1) if is_in(log) else None
    directory = Path(log).absolute().parent
    return open_gateway_state(directory) if (directory / FILE).exists() else None


def _on_server(url: str, durability: Durability, connections: int) -> GatewayState:
    try:
        from thinkback.stores.gateway_state.postgres import open_postgres
    except ImportError as error:
        if error.name not in (None, "psycopg"):  # None: it is there, and the library that it needs is not
            raise
        raise StoreError(
            "the gateway's tables in PostgreSQL need psycopg, which is not installed",
            next_actions=(install_hint("postgres"),),
        ) from error
    return open_postgres(url, durability, connections)
