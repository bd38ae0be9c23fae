"""The logs of the tenants: one file each in a directory, or one PostgreSQL for all. Opened when first asked for."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

from thinkback.errors import StoreError
from thinkback.log.protocol import Store
from thinkback.servers.gateway.config.schema import Store as StoreConfig
from thinkback.stores import SERVER, open_store

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class TenantLogs:
    """Every tenant's log, in the directory or at the address ``place``. For any number of threads."""

    def __init__(self, place: str, config: StoreConfig) -> None:
        self._place = place
        self._config = config
        self._lock = threading.Lock()
        self._open: dict[str, Store] = {}

    def of(self, tenant: str) -> Store:
        """The log of ``tenant``. Raises ``StoreError``."""
        known = self._open.get(tenant)
        if known is not None:
            return known
        with self._lock:
            if tenant not in self._open:
                self._open[tenant] = self._opened(tenant)
            return self._open[tenant]

    def _opened(self, tenant: str) -> Store:
        config = self._config
        if self._place.startswith(SERVER):
            return open_store(self._place, config.durability, tenant, config.connections)
        if not _NAME.fullmatch(tenant):
            raise StoreError(
                f"{tenant!r} cannot be the name of a file, and a tenant's log is one",
                next_actions=("name tenants with letters, digits, dots, dashes and underscores",),
            )
        directory = Path(self._place)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"the directory of the logs cannot be made ({error.strerror})") from error
        return open_store(os.fspath(directory / f"{tenant}.db"), config.durability)

    def close(self) -> None:
        """Close every log. Waits for what is being stored."""
        with self._lock:
            stores, self._open = list(self._open.values()), {}
        for store in stores:
            store.close()
