"""A client that is no brake: requests are bytes that are there, of responses no more is read than where they end.

``saturate`` keeps N connections busy; ``paced`` sends at a given rate whatever comes back, and counts the time from
when a request was due (a proxy that stalls does not thereby get fewer requests).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from statistics import quantiles
from time import perf_counter
from typing import Any, NamedTuple

from bench.loopback import bodies

Body = Callable[[int], bytes]


class Load(NamedTuple):
    """What came of it: responses in ``seconds``, milliseconds of the median and the slowest 1 %, events of streams.

    ``cpu``: seconds of processor that the server used meanwhile.
    """

    responses: int
    failures: int
    seconds: float
    p50: float
    p99: float
    events: int
    cpu: float = 0.0

    @property
    def rate(self) -> float:
        """Responses a second."""
        return self.responses / self.seconds


class Connection(asyncio.Protocol):
    """One connection; ``done`` is called with (status, events of the body) when a response has ended."""

    def __init__(self, done: Callable[[Connection, int, int], None]) -> None:
        self._done = done
        self._head = b""
        self._left = -1
        self._tail = b""
        self._events = self._status = 0
        self.due = 0.0
        self.busy = False
        self.received = 0

    def connection_made(self, transport: Any) -> None:
        self.transport: asyncio.Transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self.busy:
            self._finish(0)

    def send(self, request: bytes, due: float) -> None:
        """A whole request, head and body."""
        self.due, self.busy, self._head, self._events, self.received = due, True, b"", 0, 0
        self._status = 0
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if not self._status:
            self._head += data
            at = self._head.find(b"\r\n\r\n")
            if at < 0:
                return
            head, data = self._head[:at].lower(), self._head[at + 4 :]
            self._status = int(head[9:12])
            length = head.find(b"content-length:")
            self._left = int(head[length + 15 :].split(b"\r", 1)[0]) if length >= 0 else -1
            self._tail = b""
        if self._left >= 0:
            self._left -= len(data)
            if self._left <= 0:
                self._finish(self._status)
            return
        joined = self._tail + data
        self._events += joined.count(b"data: {") - self._tail.count(b"data: {")
        self._tail = joined[-8:]
        if joined.endswith(b"0\r\n\r\n"):
            self._finish(self._status)

    def _finish(self, status: int) -> None:
        self.busy = False
        self._done(self, status, self._events)


def wire(port: int, body: bytes, path: str = "/v1/chat/completions") -> bytes:
    """A request as bytes."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer sk-bench\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Tally:
    def __init__(self) -> None:
        self.times: list[float] = []
        self.failures = self.events = 0

    def add(self, connection: Connection, status: int, events: int) -> None:
        self.times.append(perf_counter() - connection.due)
        self.failures += status != 200
        self.events += events

    def load(self, seconds: float) -> Load:
        cuts = quantiles(self.times, n=100) if len(self.times) > 1 else [0.0] * 99
        p50, p99 = cuts[49] * 1e3, cuts[98] * 1e3
        return Load(len(self.times) - self.failures, self.failures, seconds, p50, p99, self.events)


async def saturate(port: int, connections: int, seconds: float, body: Body) -> Load:
    """Each connection sends its next request when the response has come; those that are under way are waited for."""
    loop = asyncio.get_running_loop()
    tally, numbers = _Tally(), iter(range(1 << 60))
    over = loop.create_future()
    running, end = connections, perf_counter() + 3600.0

    def done(connection: Connection, status: int, events: int) -> None:
        nonlocal running
        tally.add(connection, status, events)
        now = perf_counter()
        if now < end and not connection.transport.is_closing():
            connection.send(wire(port, body(next(numbers))), now)
            return
        running -= 1
        if not running and not over.done():
            over.set_result(None)

    opened = [await _connected(port, done) for _ in range(connections)]
    began = perf_counter()
    end = began + seconds
    for connection in opened:
        connection.send(wire(port, body(next(numbers))), perf_counter())
    await asyncio.wait_for(over, seconds + 60)
    took = perf_counter() - began
    _close(opened)
    return tally.load(took)


async def paced(port: int, rate: float, seconds: float, body: Body) -> Load:
    """``rate`` requests a second, evenly, each on a free connection or a new one."""
    loop = asyncio.get_running_loop()
    tally, free, opened = _Tally(), [], []
    under_way = 0
    idle = asyncio.Event()

    def done(connection: Connection, status: int, events: int) -> None:
        nonlocal under_way
        tally.add(connection, status, events)
        free.append(connection)
        under_way -= 1
        if not under_way:
            idle.set()

    async def later(request: bytes, due: float) -> None:
        connection = await _connected(port, done)
        opened.append(connection)
        connection.send(request, due)

    opened += [await _connected(port, done) for _ in range(32)]
    free += opened
    began, tasks = perf_counter(), set()
    for number in range(int(rate * seconds)):
        due = began + number / rate
        wait = due - perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        under_way += 1
        idle.clear()
        request = wire(port, body(number))
        if free:
            free.pop().send(request, due)
        else:
            task = loop.create_task(later(request, due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    await asyncio.wait_for(idle.wait(), 60)
    took = perf_counter() - began
    _close(opened)
    return tally.load(took)


async def held(port: int, count: int, measure: Callable[[], int]) -> tuple[int, int]:
    """Open ``count`` streams that do not end. Returns how many began, and what ``measure`` gives when they have."""
    opened: list[Connection] = []
    began = 0
    for at in range(count):
        connection = await _connected(port, lambda *told: None)
        connection.send(wire(port, bodies.request(at, stream=True, hold=True)), perf_counter())
        opened.append(connection)
        if at % 20 == 19:
            await asyncio.sleep(0.02)
    for _ in range(600):
        began = sum(connection.received > 1000 for connection in opened)
        if began == count:
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    measured = measure()
    _close(opened)
    return began, measured


async def _connected(port: int, done: Callable[[Connection, int, int], None]) -> Connection:
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(lambda: Connection(done), "127.0.0.1", port)
    return protocol


def _close(opened: list[Connection]) -> None:
    for connection in opened:
        connection.busy = False
        connection.transport.abort()


async def one(port: int, body: bytes) -> tuple[float, int, bytes]:
    """One request on a connection of its own: seconds from the first byte sent, status, and the body's bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
    try:
        began = perf_counter()
        writer.write(wire(port, body))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.find(b"content-length:")
        if length >= 0:
            answer = await reader.readexactly(int(head[length + 15 :].split(b"\r", 1)[0]))
        else:
            answer = b""
            while size := int(await reader.readuntil(b"\r\n"), 16):
                answer += (await reader.readexactly(size + 2))[:-2]
        return perf_counter() - began, int(head[9:12]), answer
    finally:
        writer.close()
