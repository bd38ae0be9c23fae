"""Tools of MCP servers, through the official package, which is imported only here and only when it is needed.

Owns an event loop in a thread of its own, so that both drivers can call. Promises: a call ends with its turn, with its
time limit, or with its server, and each of them is a result for the model; a server that went away is started again by
the next call; what a server says is bounded. A local server gets of the environment only what the package deems safe
and what its table names.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from thinkback.drive.bounds import bounded
from thinkback.drive.mcp_text import named, output_of
from thinkback.drive.stopping import STOP
from thinkback.drive.tools import PythonTool, ToolOutput
from thinkback.errors import MissingPackageError, ToolFailed, ToolServerError, install_hint
from thinkback.model import canonical
from thinkback.model.commits import Tool
from thinkback.settings.apps import Server

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as Listed

T = TypeVar("T")
CONNECT_SECONDS = 30
# How long leaving may take: the package gives a server that does not end by itself six seconds.
_CLOSE_SECONDS = 20
# What every request would carry.
_MOST_TOOLS = 500
_LARGEST_SCHEMA = 50_000
_DESCRIPTION_TOKENS = 1_000
_SAID_CHARACTERS = 500
# A process that is gone has said everything; one of its children may still hold the line.
_LISTEN_SECONDS = 0.5
_SHORTEST_SECRET = 8
# JSON-RPC says so of a connection that is closed, and of a session that the server has forgotten.
_LOST = (-32000, -32600)


class McpServers:
    """The servers ``servers`` while in it; ``tools`` are then theirs. One call gives at most ``tokens``.

    Entering raises ``MissingPackageError``, and ``ToolServerError`` where one of them cannot be used.
    """

    def __init__(self, servers: Mapping[str, Server], tokens: int, cwd: str | None = None) -> None:
        self._connections = [_Connection(name, server, cwd) for name, server in servers.items()]
        self._tokens = tokens
        self._begun, self._over = threading.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="thinkback-mcp", daemon=True)
        self.tools: list[PythonTool] = []

    def __enter__(self) -> McpServers:
        _check_package()
        self._thread.start()
        self._begun.wait()
        try:
            for connection, tools in self._wait(self._list_all()):
                self.tools += [self._tool(connection, tool, name) for name, tool in named(connection.name, tools)]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the servers that were started here, and the connections to others."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(self._over.set)
            self._thread.join(_CLOSE_SECONDS)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        await self._over.wait()
        await asyncio.gather(*(connection.close() for connection in self._connections))

    async def _list_all(self) -> list[tuple[_Connection, list[Listed]]]:
        tools = await asyncio.gather(*(connection.list() for connection in self._connections))
        return list(zip(self._connections, tools, strict=True))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` gives in the servers' event loop."""
        if self._loop is None:
            work.close()
            raise ToolFailed("the tool's server was closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)

        def end() -> None:
            future.cancel()

        with STOP.get().calls(end):
            try:
                return future.result()
            except CancelledError:
                raise ToolFailed("the turn was interrupted") from None
            finally:
                end()  # nobody waits for it any more

    def _tool(self, connection: _Connection, listed: Listed, name: str) -> PythonTool:
        schema = canonical.encode({"type": "object", "properties": {}, **listed.input_schema}).decode()
        if len(schema) > _LARGEST_SCHEMA:
            raise ToolServerError(
                f"the tool {listed.name!r:.80} of the MCP server {connection.name} describes its arguments in "
                f"{len(schema):,} characters, of which at most {_LARGEST_SCHEMA:,} are taken",
                details={"server": connection.name},
                next_actions=("leave the server out",),
            )
        description = bounded(listed.description or listed.title or "", _DESCRIPTION_TOKENS)
        hints = listed.annotations
        return PythonTool(
            Tool(name, description, schema),
            partial(self._call, connection, listed.name),
            None,
            "reads" if hints is not None and hints.read_only_hint else "runs",
        )

    def _call(self, connection: _Connection, tool: str, arguments: dict[str, Any]) -> ToolOutput:
        output = output_of(self._wait(connection.call(tool, arguments)))
        return output._replace(content=bounded(output.content, self._tokens))


class _Connection:
    """One server: connected when it is first needed, and again when it was lost. Lives in the servers' loop."""

    def __init__(self, name: str, server: Server, cwd: str | None) -> None:
        self.name = name
        self._server = server
        self._cwd = cwd
        self._client: Client | None = None
        self._holder: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._said: deque[str] = deque(maxlen=20)
        self._listener: threading.Thread | None = None

    async def list(self) -> list[Listed]:
        """The tools of the server."""
        client = await self._open()
        found: list[Listed] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                while len(found) <= _MOST_TOOLS:
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if not cursor and len(found) <= _MOST_TOOLS:
                        return found
        except Exception as error:  # whatever the package raises, the server does not work
            raise self._failed("does not list its tools", error) from None
        raise self._failed("does not list its tools", None, f"they are more than {_MOST_TOOLS}")

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """What the server says to a call. Raises ``ToolFailed``."""
        from mcp import MCPError

        seconds = self._server.timeout
        try:
            client = await self._open()
            async with asyncio.timeout(seconds):
                return await client.call_tool(tool, arguments)
        except ToolServerError as error:
            raise ToolFailed(error.message) from None
        except TimeoutError:
            raise ToolFailed(
                f"the MCP server {self.name} did not answer within {seconds} seconds",
                next_actions=("It may still be at work: check before you call it again.",),
            ) from None
        except MCPError as error:
            if error.code not in _LOST:
                raise ToolFailed(f"the MCP server {self.name} refused the call: {error.message}") from None
            raise await self._lost(error.message) from None
        except Exception as error:  # whatever the package raises where a connection breaks
            raise await self._lost(_reason(error)) from None

    async def close(self) -> None:
        """Leave the server; one that was started here is ended."""
        holder, self._holder, self._client = self._holder, None, None
        if holder is not None:
            holder.cancel()
            await asyncio.wait([holder], timeout=_CLOSE_SECONDS)

    async def _open(self) -> Client:
        async with self._opening:
            if self._client is None:
                opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
                self._holder = asyncio.create_task(self._hold(opened))
                try:
                    async with asyncio.timeout(CONNECT_SECONDS):
                        self._client = await opened
                except BaseException as error:  # whatever the package raises, the server does not work
                    await self.close()
                    if not isinstance(error, Exception):
                        raise
                    raise self._failed("could not be started or reached", error) from None
            return self._client

    async def _hold(self, opened: asyncio.Future[Client]) -> None:
        """A client is entered and left by one task, which waits in between until it is cancelled."""
        try:
            async with self._connected() as client:
                opened.set_result(client)
                await asyncio.Event().wait()
        except Exception as error:  # whatever the package raises; told where the opening is waited for
            if not opened.done():
                opened.set_exception(error)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        server = self._server
        if server.command:
            async with self._process() as transport, Client(transport) as client:
                yield client
            return
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=server.timeout)
        async with (
            httpx2.AsyncClient(headers=server.headers, timeout=timeout) as http,
            Client(streamable_http_client(server.url, http_client=http)) as client,
        ):
            yield client

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[Any]:
        """The transport to a process of our own, whose complaints are kept for error texts."""
        from mcp.client.stdio import StdioServerParameters, stdio_client

        server = self._server
        given = StdioServerParameters(command=server.command, args=list(server.args), env=server.env, cwd=self._cwd)
        reading, writing = os.pipe()
        self._listener = threading.Thread(
            target=_listen, args=(reading, self._said), name="thinkback-mcp-errors", daemon=True
        )
        self._listener.start()
        with os.fdopen(writing, "w") as complaints:
            yield stdio_client(given, complaints)

    async def _lost(self, reason: str) -> ToolFailed:
        await self.close()
        failed = self._failed("has gone away", None, reason)
        return ToolFailed(failed.message, next_actions=("The next call starts it again.",))

    def _failed(self, what: str, error: Exception | None, reason: str = "") -> ToolServerError:
        if self._listener is not None:
            self._listener.join(_LISTEN_SECONDS)
        said = _without(self._server, "".join(self._said))[-_SAID_CHARACTERS:].strip()
        reason = _without(self._server, reason or (_reason(error) if error is not None else ""))
        more = f"; it said: {said}" if said else ""
        return ToolServerError(
            f"the MCP server {self.name} {what}: {reason}{more}",
            details={"server": self.name},
            next_actions=("check its command or url",),
        )


def _check_package() -> None:
    try:
        import mcp
    except ModuleNotFoundError:
        raise MissingPackageError(
            "MCP servers are reached through the package mcp, which is not installed",
            details={"package": "mcp", "extra": "mcp"},
            next_actions=(install_hint("mcp"),),
        ) from None
    # Without a handler its complaints would be printed over whatever is on the screen.
    logging.getLogger(mcp.__name__).addHandler(logging.NullHandler())


def _listen(descriptor: int, said: deque[str]) -> None:
    """Keep the last of what comes; nothing that a server complains of may fill the disk or block it."""
    with open(descriptor, "rb", buffering=0) as file:
        while piece := file.read(4096):
            said.append(piece.decode("utf-8", "replace"))


def _without(server: Server, text: str) -> str:
    """``text`` without what the server was given to sign in with: it goes to the model and into the log."""
    for name, value in {**server.env, **server.headers}.items():
        for word in (value, *value.split()):
            if len(word) >= _SHORTEST_SECRET:
                text = text.replace(word, f"<{name}>")
    return text


def _reason(error: BaseException) -> str:
    """What went wrong in words: of a group, the first of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_SECONDS} seconds"
    return str(error) or type(error).__name__
