"""The index of words behind the viewer's searches, brought up to date in a thread of its own.

Promises: a search waits for it only so long; nothing is written before somebody searches; one thread fills, a piece
at a time. Must not: know pages.
"""

from __future__ import annotations

from threading import Lock, Thread
from typing import Literal, TypeAlias

from thinkback.errors import ThinkbackError
from thinkback.session.history.search import BATCH
from thinkback.session.store import SessionStore

IndexState: TypeAlias = Literal["whole", "filling", "stopped"]
"""``stopped``: it lacks something and cannot be filled, as that of a log which may only be read."""


class Indexing:
    """The index of ``store``; any thread may ask."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._lock = Lock()
        self._filling: Thread | None = None
        self._failed = False

    def bring_up_to_date(self, patience: float) -> IndexState:
        """Have what was stored until now added, and wait ``patience`` seconds at most for the end of it."""
        with self._lock:
            filling = self._filling
            if filling is None or not filling.is_alive():
                filling = self._filling = Thread(target=self._fill, name="thinkback-index", daemon=True)
                filling.start()
        filling.join(patience)
        if filling.is_alive():
            return "filling"
        return "stopped" if self._failed else "whole"

    def _fill(self) -> None:
        try:
            while self._store.log.search.fill(BATCH):
                pass
        except ThinkbackError:  # what is in the index is found; the next search tries again
            self._failed = True
        else:
            self._failed = False
