"""``python -m bench.loopback.provider``: a provider of chat completions that costs next to nothing. Prints its port.

Streams take turns, a few events each, so that it is no brake. It reads no more of a request than where it ends, whether
it streams, and whether the stream is to be held open.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from typing import Any

from bench.loopback import bodies

_IDS = count(1)
_MARK = b"000000000000"
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_WHOLE = bodies.answer(0)
_EVENTS = [b"%x\r\n%b\r\n" % (len(event), event) for event in bodies.events(0)]
_AT_ONCE = 5
_PIECES = [b"".join(_EVENTS[at : at + _AT_ONCE]) for at in range(0, len(_EVENTS), _AT_ONCE)]


class Provider(asyncio.Protocol):
    """One connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._got = b""
        self._paused = False
        self._gone = False
        self._next, self._last, self._id = 0, 0, b""

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._go_on()

    def data_received(self, data: bytes) -> None:
        got = self._got + data if self._got else data
        at = got.find(b"\r\n\r\n")
        if at < 0 or len(got) < at + 4 + _length(got[:at]):
            self._got = got
            return
        self._got = b""
        self._id = b"%012x" % next(_IDS)
        body = got[at + 4 :]
        if bodies.STREAMS not in body and b'"stream": true' not in body:
            whole = _WHOLE.replace(_MARK, self._id)
            self._transport.write(_HEAD % len(whole) + whole)
            return
        self._transport.write(_STREAM_HEAD)
        self._next, self._last = 0, bodies.HELD // _AT_ONCE if bodies.HOLDS in body else len(_PIECES)
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._paused or self._gone or self._next >= self._last:
            return
        self._transport.write(_PIECES[self._next].replace(_MARK, self._id))
        self._next += 1
        if self._next == len(_PIECES):
            self._transport.write(b"0\r\n\r\n")
        elif self._next < self._last:
            self._loop.call_soon(self._go_on)


def _length(head: bytes) -> int:
    at = head.lower().find(b"content-length:")
    return int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0


async def serve() -> None:
    """Until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Provider(loop), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve())
    else:
        uvloop.run(serve())
