"""Workers of one gateway ask each other for their measures, at sockets in a directory of their own.

A scrape reaches whichever worker accepts it; the page that it gets is that of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from thinkback.servers.gateway.telemetry.metrics import merged

PATIENCE = 2.0
"""Seconds for which a worker is waited for; one that is ending says nothing."""


@asynccontextmanager
async def meeting(directory: str, slot: int, page: Callable[[], str]) -> AsyncIterator[None]:
    """Tell the others ``page`` whenever they ask. Without a directory there are none."""
    if not directory:
        yield
        return
    place = Path(directory) / str(slot)
    place.unlink(missing_ok=True)

    async def tell(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            writer.write(page().encode())
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(tell, place)
    try:
        yield
    finally:
        server.close()
        place.unlink(missing_ok=True)


async def all_pages(directory: str) -> str:
    """The measures of all workers."""
    places = sorted(Path(directory).iterdir())
    return merged(list(await asyncio.gather(*map(_page, places))))


async def _page(place: Path) -> str:
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_unix_connection(place)
            try:
                return (await reader.read()).decode()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""
