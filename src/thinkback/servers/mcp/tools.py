"""What a tool of the MCP server is, and those that read the log, as a table; those that ask are in ``asking``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from thinkback.servers.mcp import reading
from thinkback.session.store import SessionStore

Tell = Callable[[str], Awaitable[None]]
Run = Callable[[SessionStore, Any, Tell], Awaitable[dict[str, Any]]]


class Tool(NamedTuple):
    """One tool. ``run`` gets the log, the arguments, and a function to which it may say how far it is. ``asks``: it
    sends requests to models, and adds sessions to the log; the others change nothing.
    """

    name: str
    description: str
    arguments: type[msgspec.Struct]
    run: Run
    asks: bool = False


async def _in_thread(
    read: Callable[[SessionStore, Any], dict[str, Any]], store: SessionStore, asked: Any, _: Tell
) -> dict[str, Any]:
    """``read`` on the store's executor: it may take a while, and others are served meanwhile."""
    return await asyncio.get_running_loop().run_in_executor(store.executor, partial(read, store, asked))


def _reading(
    read: Callable[[SessionStore, Any], dict[str, Any]], arguments: type[msgspec.Struct], description: str
) -> Tool:
    return Tool(read.__name__, description, arguments, partial(_in_thread, read))


READING = (
    _reading(
        reading.list_sessions,
        reading.ListSessions,
        "List the recorded conversations (sessions), last used first.",
    ),
    _reading(
        reading.search_reasoning,
        reading.SearchReasoning,
        "Search what models thought: by words or a quoted phrase, by model, by the tool that was called afterwards, by "
        "time, by session. Newest first, with excerpts; read_commit gives the whole text.",
    ),
    _reading(
        reading.read_session,
        reading.ReadSession,
        "Read a session page by page: messages, calls and results, and the reasoning before them.",
    ),
    _reading(
        reading.read_commit,
        reading.ReadCommit,
        "Read the whole text of one commit, such as a piece of reasoning that search_reasoning found.",
    ),
    _reading(
        reading.why,
        reading.Why,
        "Tell which reasoning led to a call, an answer or a result, and what the request behind it sent back of "
        "earlier reasoning, block by block, by which rule; without a commit, of the last request of a session.",
    ),
    _reading(
        reading.usage,
        reading.Usage,
        "Tokens used, reasoning included, by model: of one session, or of all and each.",
    ),
)
