"""Sweeping: what has run out goes, and a database in trouble is swept later."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.servers.gateway.harness.offices import Clock, Troubled
from thinkback.errors import StoreError
from thinkback.servers.gateway.access.spending import Spending
from thinkback.servers.gateway.running.sweeping import EVERY, sweep
from thinkback.stores.gateway_state.records import Spent, Use

SCOPE = b"scope".ljust(16)


def test_what_has_run_out_is_swept_and_trouble_is_told(tmp_path: Path) -> None:
    """Three rounds, the first of which fails: in the end only what still holds is there."""

    async def run() -> None:
        office: Any = Troubled(tmp_path)
        told, pauses = list[StoreError](), list[float]()
        office.carriers.put("t", SCOPE, {"old": b"x"}, 1)
        office.carriers.put("t", SCOPE, {"new": b"x"}, 2**60)
        office.spending.add([Spent("k", period, Use(1)) for period in ("2020-01-01", "2020-01", "total")])

        async def pause(seconds: float) -> None:
            pauses.append(seconds)
            office.trouble = len(pauses) == 1
            if len(pauses) == 4:
                raise asyncio.CancelledError

        spending = Spending(office, now=Clock().now)
        sweeping = asyncio.ensure_future(sweep(office, spending, None, told.append, pause))
        await asyncio.wait({sweeping})
        assert sweeping.cancelled()
        assert [EVERY] * 3 == pauses[1:]
        assert 1 == len(told)
        assert {"new": b"x"} == office.carriers.get("t", SCOPE, ["old", "new"], 0)
        assert {"2020-01", "total"} == set(office.spending.read("k"))

    asyncio.run(run())
