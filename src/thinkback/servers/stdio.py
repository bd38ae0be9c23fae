"""Standard input and output of a server that speaks a protocol over them: lines in, lines out, and nothing else.

Promises: whatever else this process or its children print goes to standard error, and none of them reads what the
client says. Reading and writing happen in threads: a client that is slow blocks nobody else, and one that says nothing
does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

from thinkback.session.masking import without_keys
from thinkback.session.transcripts.ink import clean

LONGEST_LINE = 64 * 1024 * 1024
_PIECE = 65_536
# Lines that wait to be read; a client that says more waits too.
_AHEAD = 100


def serve(work: Coroutine[Any, Any, None]) -> None:
    """Run a server to its end: that of standard input, or a signal, which ends what is under way in good order."""

    async def until_told() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await work

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(until_told())


def complain(text: str) -> None:
    """A line for whoever started the server, on standard error, without keys."""
    print(f"thinkback: {clean(without_keys(text))}", file=sys.stderr)


@contextlib.contextmanager
def claimed() -> Iterator[tuple[Incoming, Outgoing]]:
    """Standard input and output, which are taken from everybody else meanwhile. Inside an event loop."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield Incoming(incoming), Outgoing(outgoing)
    finally:
        os.dup2(outgoing, 1)


class Incoming:
    """The lines that come in."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
        loop = asyncio.get_running_loop()
        # as a daemon, since nothing ends a read that waits for a client
        threading.Thread(target=self._read, args=(loop,), name="thinkback-input", daemon=True).start()

    async def line(self) -> bytes | None:
        """The next line that is not empty; ``None`` at the end."""
        return await self._lines.get()

    async def __aiter__(self) -> AsyncIterator[str]:
        """All lines as text; what is not UTF-8 is replaced."""
        while (line := await self.line()) is not None:
            yield line.decode("utf-8", "replace")

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody wants the line
            for line in lines(self._descriptor):
                asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(self._lines.put(None), loop).result()


class Outgoing:
    """Where lines go out, whole and one after the other."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = asyncio.Lock()

    async def write(self, text: str) -> None:
        """Write ``text``, which ends with a line. Raises ``OSError`` where nobody reads any more."""
        async with self._turn:
            await asyncio.get_running_loop().run_in_executor(None, _write, self._descriptor, text.encode())

    async def flush(self) -> None:
        """Nothing is kept back."""


def lines(descriptor: int) -> Iterator[bytes]:
    """The lines of ``descriptor`` that are not empty. Of one that is too long a piece is missing, so that it is no
    message of any protocol.
    """
    held = bytearray()
    while piece := os.read(descriptor, _PIECE):
        *ended, rest = piece.split(b"\n")
        for end in ended:
            held += end
            if held.strip():
                yield bytes(held)
            held.clear()
        if len(held) < LONGEST_LINE:
            held += rest
    if held.strip():
        yield bytes(held)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
