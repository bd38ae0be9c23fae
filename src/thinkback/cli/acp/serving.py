"""The two pipes to the editor: lines of JSON in, lines of JSON out, and nothing else.

Promises: whatever else this process or its children print goes to standard error, and none of them reads what the
editor says; a line that is no message is answered with an error, and the next one is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

from thinkback.cli.acp.agent import EditorAgent, Start
from thinkback.session.store import SessionStore

LONGEST_LINE = 64 * 1024 * 1024
_PIECE = 65_536
_PARSE_ERROR, _INVALID_REQUEST = (-32700, "Parse error"), (-32600, "Invalid request")


async def serve(store: SessionStore, start: Start) -> None:
    """Serve until standard input ends."""
    import acp

    with claimed() as (incoming, outgoing):
        agent: Any = EditorAgent(store, start)
        try:
            await acp.run_agent(agent, Lines(incoming, outgoing), use_unstable_protocol=True)
        finally:
            await agent.end()


@contextlib.contextmanager
def claimed() -> Iterator[tuple[int, int]]:
    """(descriptor to read from, descriptor to write to): standard input and output, which are taken from everybody
    else meanwhile.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield incoming, outgoing
    finally:
        os.dup2(outgoing, 1)


class Lines:
    """Messages as lines. Reading and writing happen in threads: an editor that is slow blocks nobody else."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(100)
        self._writing = asyncio.Lock()
        loop = asyncio.get_running_loop()
        # as a daemon, since nothing ends a read that waits for an editor
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()

    async def receive(self) -> dict[str, Any] | None:
        """The next message, ``None`` at the end."""
        while (line := await self._lines.get()) is not None:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                await self._refuse(*_PARSE_ERROR)
                continue
            if isinstance(message, dict) and _is_sound(message):
                return message
            await self._refuse(*_INVALID_REQUEST)
        return None

    async def send(self, message: dict[str, Any]) -> None:
        """Write one message. Raises ``ConnectionError`` where nobody reads any more."""
        # default: the library's errors may quote what JSON has no word for
        line = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        async with self._writing:
            await asyncio.get_running_loop().run_in_executor(None, _write, self._outgoing, line)

    async def close(self) -> None:
        """Nothing is held that would have to be given back."""

    async def _refuse(self, code: int, text: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}})

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody wants the line
            for line in _lines(self._incoming):
                asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(self._lines.put(None), loop).result()


def _is_sound(message: dict[str, Any]) -> bool:
    """Whether the library can take it: a request, a notification, or an answer to a request of ours."""
    id = message.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | None):
        return False
    if "method" in message:
        return isinstance(message["method"], str)
    return "id" in message and ("result" in message or isinstance(message.get("error"), dict))


def _lines(descriptor: int) -> Iterator[bytes]:
    """The lines of ``descriptor`` that are not empty; one that is too long is cut, so that it is no JSON."""
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
