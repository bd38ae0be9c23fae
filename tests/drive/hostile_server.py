"""An MCP server that tells too much of its tools, as a process: ``python hostile_server.py HOW``."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

HOW = sys.argv[1]


async def list_tools(_context: Any, asked: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """One with a ``large`` schema, ``many`` at once, or pages that are ``endless``."""
    page = int((asked.cursor if asked else None) or 0)
    schema = {"type": "object", "description": "x" * (5_000_000 if HOW == "large" else 1)}
    names = range(5_000 if HOW == "many" else 1)
    tools = [types.Tool(name=f"t{page}_{at}", description="", input_schema=schema) for at in names]
    return types.ListToolsResult(tools=tools, next_cursor=str(page + 1) if HOW == "endless" else None)


async def main() -> None:
    """Serve until standard input ends."""
    server: Server[Any] = Server("hostile", on_list_tools=list_tools)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


asyncio.run(main())
