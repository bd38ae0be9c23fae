"""Removes what has run out: answers, carriers and old days of spending. Several processes may do so at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from thinkback.drive.clock import now
from thinkback.servers.gateway.access.spending import Spending
from thinkback.stores.gateway_state.state import GatewayState

EVERY = 3600.0


async def sweep(office: GatewayState, spending: Spending, executor: Executor | None) -> float:
    """Sweep once; returns the seconds until the next time. Raises ``StoreError``."""
    await asyncio.get_running_loop().run_in_executor(executor, office.purge, now())
    await spending.forget()
    return EVERY
