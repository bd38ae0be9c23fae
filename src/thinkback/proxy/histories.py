"""Histories of conversations that went on a moment ago, so that the next request of one need not read its log.

Promises: a history is given out once, and none that was read before something was erased from its log.
"""

from __future__ import annotations

from collections import OrderedDict

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
        self._epochs: dict[str, int] = {}

    def drop_erased(self, tenant: str, epoch: int) -> None:
        """Let go of a tenant's histories where its log, which is at ``epoch`` now, was at another when they were read.

        To be called with every look-up, before any is given out: another process may have erased something.
        """
        known = self._epochs.get(tenant, epoch)
        if known < epoch:  # one that was looked up earlier may come later
            for place in [place for place in self._kept if place[0] == tenant]:
                self.take(*place)
        self._epochs[tenant] = max(known, epoch)

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
        if not head or weight > self._most_bytes // 4 or history.epoch != self._epochs.get(tenant, history.epoch):
            return
        self.take(tenant, head)
        self._kept[tenant, head] = (history, weight)
        self._bytes += weight
        while len(self._kept) > self._most or self._bytes > self._most_bytes:
            _, (_, gone) = self._kept.popitem(last=False)
            self._bytes -= gone
