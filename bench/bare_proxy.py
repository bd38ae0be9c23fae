"""``python -m bench.bare_proxy UPSTREAM``: forwards bytes and does nothing else. The limit.

aiohttp on both sides, one process: what a proxy in Python costs that neither reads nor keeps what goes through it.
Prints its port.
"""

from __future__ import annotations

import sys

import aiohttp
from aiohttp import web

_HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"})


def app(upstream: str) -> web.Application:
    """Every POST goes to the same path there."""

    async def session(application: web.Application):  # type: ignore[no-untyped-def]
        connector = aiohttp.TCPConnector(limit=0)
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, auto_decompress=False) as client:
            application["client"] = client
            yield

    async def forward(request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        client: aiohttp.ClientSession = request.app["client"]
        body = await request.read()
        async with client.post(upstream + request.path_qs, data=body, headers=headers) as response:
            kept = {name: value for name, value in response.headers.items() if name.lower() not in _HOP_BY_HOP}
            if response.content_length is not None:
                return web.Response(status=response.status, headers=kept, body=await response.read())
            forwarded = web.StreamResponse(status=response.status, headers=kept)
            await forwarded.prepare(request)
            async for piece in response.content.iter_any():
                await forwarded.write(piece)
            await forwarded.write_eof()
            return forwarded

    made = web.Application(client_max_size=2**30)
    made.cleanup_ctx.append(session)
    made.router.add_post("/{path:.*}", forward)
    return made


if __name__ == "__main__":
    import asyncio
    import socket

    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(listening.getsockname()[1], flush=True)
    loop = asyncio.new_event_loop()
    web.run_app(app(sys.argv[1]), sock=listening, print=None, access_log=None, loop=loop)
