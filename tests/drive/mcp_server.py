"""An MCP server for tests, as a process: ``python mcp_server.py`` on its streams, ``... PORT`` over HTTP."""

from __future__ import annotations

import os
import sys
import time

from mcp.server.mcpserver import Image, MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("test")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool()
def fail() -> str:
    """Never works."""
    raise ValueError("no luck")


@server.tool()
def picture() -> Image:
    """An image."""
    return Image(data=b"0123456789", format="png")


@server.tool()
def wait(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return "done"


@server.tool()
async def rest() -> str:
    """Never answer, and say when that was given up."""
    import anyio

    note("begun")
    try:
        await anyio.sleep_forever()
    except BaseException:
        note("cancelled")
        raise
    return ""


def note(text: str) -> None:
    with open(os.environ["NOTES"], "a") as file:
        file.write(f"{text}\n")


@server.tool()
def die() -> str:
    """Go away without a word."""
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool(name="odd.name/with spaces")
def odd() -> str:
    """A name that providers do not take."""
    return "odd"


@server.tool()
def environment() -> str:
    """The names of the variables."""
    return " ".join(sorted(os.environ))


@server.tool()
def place() -> str:
    """Where it runs, and as which process."""
    return f"{os.getpid()} {os.getcwd()}"


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        server.run("streamable-http", port=int(sys.argv[1]))
    elif "silent" in sys.argv:
        time.sleep(600)
    elif "broken" in sys.argv:
        print("no such module", file=sys.stderr)
        sys.exit(1)
    else:
        server.run("stdio")
