"""What an editor is told of a turn, as it happens: thoughts, words, and calls of tools with what became of them.

Promises: updates go out one after the other, in the order in which things happened; a call that was announced is told
to have ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, assert_never

import acp

from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Commit
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, Status, TextDelta, ToolCallDelta
from thinkback.model.texts import BETWEEN_THOUGHTS
from thinkback.servers.acp import calls
from thinkback.servers.acp.calls import Update

# What a turn does besides, and is worth a note among the thoughts.
_NOTED = ("continuing", "retrying", "failing_over", "repairing", "compacting", "dropping_thoughts", "filling", "budget")


class Telling:
    """Tells ``client`` of the conversation ``id`` in ``workspace``. ``thoughts`` says whether it is shown reasoning."""

    def __init__(self, client: Any, id: str, workspace: str) -> None:
        self.thoughts = True
        # The response and the block that was thought last.
        self._thought = ("", -1)
        self._client = client
        self._id = id
        self._workspace = workspace
        self._loop = asyncio.get_running_loop()
        self._outbox: asyncio.Queue[Update] = asyncio.Queue()
        self._calls: dict[str, ToolCall] = {}
        self._open: set[str] = set()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """A turn: leaving it waits until everything is sent."""
        sender = asyncio.ensure_future(self._send())
        try:
            yield
        finally:
            self._close_calls()
            try:
                await self.flush()
            finally:
                sender.cancel()

    async def flush(self) -> None:
        """Wait until everything so far is sent."""
        await self._outbox.join()

    def note(self, text: str) -> None:
        """Tell something that is neither thought nor said, as a thought of its own line."""
        self._outbox.put_nowait(acp.update_agent_thought_text(f"({text})\n"))

    def notice(self, text: str) -> None:
        """The same for what the session reports; may come from any thread."""
        self._loop.call_soon_threadsafe(self.note, text)

    def context(self, used: int, size: int) -> None:
        """Tell how many tokens of the context are used, and how many it has."""
        self._outbox.put_nowait(acp.schema.UsageUpdate(session_update="usage_update", used=used, size=size))

    def delta(self, delta: Delta) -> None:
        """Tell a piece of the stream."""
        match delta:
            case ReasoningDelta():
                if self.thoughts and delta.text:
                    response, index = self._thought
                    is_another = delta.response == response and delta.index != index
                    self._thought = delta.response, delta.index
                    text = BETWEEN_THOUGHTS + delta.text if is_another else delta.text
                    self._outbox.put_nowait(acp.update_agent_thought_text(text))
            case TextDelta():
                if delta.text:
                    self._outbox.put_nowait(acp.update_agent_message_text(delta.text))
            case ToolCallDelta():
                if delta.id and delta.name and delta.id not in self._open:
                    self._open.add(delta.id)
                    self._outbox.put_nowait(calls.named(delta.id, delta.name))
            case Status():
                self._status(delta)
            case Reclassified():
                if self.thoughts:
                    self.note("what was said above was reasoning")
            case _:
                assert_never(delta)

    def stored(self, commits: Sequence[Commit]) -> None:
        """Tell of calls and results that are stored; may come from any thread."""
        for commit in commits:
            if isinstance(commit.value, ToolCall | ToolResult):
                self._loop.call_soon_threadsafe(self._block, commit.value)

    def _status(self, status: Status) -> None:
        if status.state == "tool_started" and status.call in self._open:
            self._outbox.put_nowait(acp.update_tool_call(status.call, status="in_progress"))
        elif status.state in _NOTED:
            self.note(f"{status.state.replace('_', ' ')}: {status.detail}")

    def _block(self, value: ToolCall | ToolResult) -> None:
        if isinstance(value, ToolResult):
            if value.id in self._open:
                self._open.discard(value.id)
                self._outbox.put_nowait(calls.ended(value, self._calls.pop(value.id, None), self._workspace))
            return
        self._calls[value.id] = value
        if value.id in self._open:
            self._outbox.put_nowait(
                acp.update_tool_call(value.id, **calls.described(value, self._workspace, live=True))
            )
        else:
            self._open.add(value.id)
            self._outbox.put_nowait(calls.announced(value, self._workspace, live=True))

    def _close_calls(self) -> None:
        """Calls that will never have a result are told to have failed."""
        for id in self._open:
            self._outbox.put_nowait(acp.update_tool_call(id, status="failed"))
        self._open.clear()
        self._calls.clear()

    async def _send(self) -> None:
        while True:
            update = await self._outbox.get()
            try:
                # where the editor is gone, standard input ends too, and with it the turn
                with contextlib.suppress(OSError):
                    await self._client.session_update(self._id, update)
            finally:
                self._outbox.task_done()
