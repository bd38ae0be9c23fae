"""What a gateway has of conversations beside their logs: withheld responses.

Promises: what may not be recorded is kept sealed and for a while, for its own tenant and scope alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from thinkback.drive import clock
from thinkback.model.commits import Draft
from thinkback.proxy import retention
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.stores.gateway_state.state import Carriers


class Withheld(NamedTuple):
    """Responses of conversations whose content is not recorded: ``keep_for`` so many seconds, sealed by ``sealer``.

    ``now`` is microseconds UTC.
    """

    carriers: Carriers
    sealer: Sealer
    keep_for: float
    now: Callable[[], int] = clock.now

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
