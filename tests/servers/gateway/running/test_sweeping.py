"""Sweeping: what has run out goes, and a failure is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.servers.gateway.harness.offices import Clock, Troubled
from thinkback.errors import StoreError
from thinkback.servers.gateway.access.spending import Spending
from thinkback.servers.gateway.running.sweeping import EVERY, sweep
from thinkback.stores.gateway_state.records import Spent, Use

SCOPE = b"scope".ljust(16)


def test_what_has_run_out_is_swept(tmp_path: Path) -> None:
    """Of two carriers and three periods only what still holds is there; a database in trouble is told of."""

    async def run() -> None:
        office: Any = Troubled(tmp_path)
        office.carriers.put("t", SCOPE, {"old": b"x"}, 1)
        office.carriers.put("t", SCOPE, {"new": b"x"}, 2**60)
        office.spending.add([Spent("k", period, Use(1)) for period in ("2020-01-01", "2020-01", "total")])
        spending = Spending(office, now=Clock().now)
        office.trouble = True
        with pytest.raises(StoreError):
            await sweep(office, spending, None)
        office.trouble = False
        assert EVERY == await sweep(office, spending, None)
        assert {"new": b"x"} == office.carriers.get("t", SCOPE, ["old", "new"], 0)
        assert {"2020-01", "total"} == set(office.spending.read("k"))

    asyncio.run(run())
