"""Stores: where the log is kept. ``open_store`` picks one; importing this package loads none of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from thinkback.log.protocol import Store

Durability = Literal["full", "normal"]


def open_store(path: str | os.PathLike[str], durability: Durability = "full") -> Store:
    """The store at ``path``, made if it is not there; ``":memory:"`` is one that ends with the process.

    ``durability="full"``: what ``append`` returned for survives a power cut. ``"normal"``: it survives a crash of
    the process, and a power cut may take the last appends, never a part of one. Raises ``StoreError``.
    """
    place = os.fspath(path)
    if place == ":memory:":
        from thinkback.stores.memory import MemoryStore

        return MemoryStore()
    from thinkback.stores.sqlite import SqliteStore

    return SqliteStore(place, durability)
