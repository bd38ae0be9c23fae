"""Removes what has run out: answers, carriers and old days of spending. Several processes may do so at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from thinkback.drive.clock import now
from thinkback.errors import StoreError
from thinkback.servers.gateway.access.spending import Spending
from thinkback.stores.gateway_state.state import GatewayState

EVERY = 3600.0


async def sweep(
    office: GatewayState,
    spending: Spending,
    executor: Executor | None,
    complain: Callable[[StoreError], object],
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Sweep about once in an hour, for ever, at first after a chance part of one. ``complain`` is told of failures."""
    await pause(EVERY * random.random())
    while True:
        try:
            await asyncio.get_running_loop().run_in_executor(executor, office.purge, now())
            await spending.forget()
        except StoreError as error:
            complain(error)
        await pause(EVERY)
