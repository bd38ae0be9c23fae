"""What a process has of conversations beside their logs: histories that went on a moment ago, and withheld responses.

Promises: a history is given out once; what may not be recorded is kept sealed and for a while, for its own tenant and
scope alone.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import NamedTuple

from thinkback.model.commits import Draft
from thinkback.proxy import retention
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.stores.gateway_state.state import Carriers
from thinkback.turn.plan import History

_MOST = 512
_MOST_BYTES = 64 * 1024 * 1024


class Histories:
    """Each is kept under (tenant, hash of its last commit) and given out once: whoever takes it may grow it.

    Of one event loop. ``weight`` is about the bytes that a history takes.
    """

    def __init__(self, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[History, int]] = OrderedDict()
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0

    def take(self, tenant: str, head: str) -> History | None:
        """The history that ends with ``head``, no longer kept here; ``None`` where there is none."""
        found = self._kept.pop((tenant, head), None)
        if found is None:
            return None
        self._bytes -= found[1]
        return found[0]

    def keep(self, tenant: str, history: History, weight: int) -> None:
        """Keep ``history`` for whoever goes on with it; what was kept longest goes."""
        head = history.head.hash
        if not head or weight > self._most_bytes // 4:
            return
        self.take(tenant, head)
        self._kept[tenant, head] = (history, weight)
        self._bytes += weight
        while len(self._kept) > self._most or self._bytes > self._most_bytes:
            _, (_, gone) = self._kept.popitem(last=False)
            self._bytes -= gone


class Withheld(NamedTuple):
    """Responses of conversations whose content is not recorded: ``keep_for`` so many seconds, sealed by ``sealer``.

    ``now`` is microseconds UTC.
    """

    carriers: Carriers
    sealer: Sealer
    keep_for: float
    now: Callable[[], int] = lambda: time.time_ns() // 1000

    def keep(self, response: str, packed: bytes, tenant: str, scope: bytes) -> bool:
        """Keep what was ``packed`` of a response; that is done. Raises ``StoreError``."""
        sealed = self.sealer.of("carriers").seal_bytes(packed, scope)
        self.carriers.put(tenant, scope, {response: sealed}, self.now() + int(self.keep_for * 1_000_000))
        return True

    def open(self, tenant: str, scope: bytes, responses: Collection[str]) -> dict[str, list[Draft]]:
        """Those of ``responses`` that are kept. Raises ``StoreError``."""
        found: dict[str, list[Draft]] = {}
        sealer = self.sealer.of("carriers")
        for response, sealed in self.carriers.get(tenant, scope, sorted(responses), self.now()).items():
            data = sealer.open_bytes(sealed, scope)
            drafts = retention.unpack(data, response) if data is not None else []
            if drafts:
                found[response] = drafts
        return found
