"""The agent and its editor, joined by lines of JSON.

Promises: a line that is no message is answered with an error, and the next one is read.
"""

from __future__ import annotations

import json
from typing import Any

import acp

from thinkback.servers.acp.agent import EditorAgent, Start
from thinkback.servers.stdio import Incoming, Outgoing, claimed
from thinkback.session.store import SessionStore

_PARSE_ERROR, _INVALID_REQUEST = (-32700, "Parse error"), (-32600, "Invalid request")


async def serve(store: SessionStore, start: Start) -> None:
    """Serve until standard input ends."""
    with claimed() as (incoming, outgoing):
        agent: Any = EditorAgent(store, start)
        try:
            await acp.run_agent(agent, Lines(incoming, outgoing), use_unstable_protocol=True)
        finally:
            await agent.end()


class Lines:
    """Messages as lines: the transport that the library wants."""

    def __init__(self, incoming: Incoming, outgoing: Outgoing) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> dict[str, Any] | None:
        """The next message, ``None`` at the end."""
        while (line := await self._incoming.line()) is not None:
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
        """Write one message. Raises ``OSError`` where nobody reads any more."""
        # default: the library's errors may quote what JSON has no word for
        await self._outgoing.write(json.dumps(message, separators=(",", ":"), default=str) + "\n")

    async def close(self) -> None:
        """Nothing is held that would have to be given back."""

    async def _refuse(self, code: int, text: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}})


def _is_sound(message: dict[str, Any]) -> bool:
    """Whether the library can take it: a request, a notification, or an answer to a request of ours."""
    id = message.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | None):
        return False
    if "method" in message:
        return isinstance(message["method"], str)
    return "id" in message and ("result" in message or isinstance(message.get("error"), dict))
