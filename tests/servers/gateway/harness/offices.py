"""An office for tests of the gateway: a real one, whose database can be in trouble, and clocks that stand still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from thinkback.errors import StoreError
from thinkback.stores.gateway_state.sqlite import open_sqlite
from thinkback.stores.gateway_state.state import GatewayState


class Clock:
    """Seconds that only grow, microseconds UTC and the time UTC, all moved by ``wait``."""

    def __init__(self) -> None:
        self.date = datetime(2026, 11, 30, 23, 59, 30, tzinfo=UTC)

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        self.date += timedelta(seconds=seconds)

    def seconds(self) -> float:
        """A clock that only grows."""
        return self.date.timestamp()

    def micros(self) -> int:
        """Microseconds UTC."""
        return round(self.date.timestamp() * 1_000_000)

    def now(self) -> datetime:
        """The time UTC."""
        return self.date


_open: list[GatewayState] = []


def close_all() -> None:
    """Close what the offices of a test have open."""
    while _open:
        _open.pop().close()


class Troubled:
    """An office in SQLite that counts calls, and fails while ``trouble`` is set."""

    def __init__(self, place: Path) -> None:
        self._office = open_sqlite(str(place / "gateway.db"), "normal")
        _open.append(self._office)
        self.trouble = False
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("keys", "spending", "replays", "carriers"):
            return _Part(self, name, getattr(self._office, name))
        return getattr(_Part(self, "office", self._office), name)


class _Part:
    def __init__(self, office: Troubled, name: str, part: Any) -> None:
        self._office, self._name, self._part = office, name, part

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self._office.calls.append(f"{self._name}.{name}")
            if self._office.trouble:
                raise StoreError("the database is in trouble")
            return getattr(self._part, name)(*arguments)

        return call
