"""An editor: the library's own client, which keeps what it is told and answers as it was set to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
from acp import schema

from tests.cli.command import Command


class Editor:
    """``updates`` in the order they came; ``answer`` is the option that permissions are answered with, and none of
    them where it is empty. ``files`` are those that are open in it, by path; ``None``: it does not offer its files.
    """

    def __init__(self, answer: str = "once", files: dict[str, str] | None = None) -> None:
        self.answer = answer
        self.files = files
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.patience: asyncio.Event | None = None
        self.agent: Any = None
        self.process: Any = None

    def on_connect(self, conn: Any) -> None:
        """Part of the client's protocol."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Keep what is told."""
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        """Answer, at once or when ``patience`` is over."""
        self.asked.append((tool_call, options))
        if self.patience is not None:
            await self.patience.wait()
        if not self.answer:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=self.answer)
        )

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> Any:
        """The text of an open file."""
        if self.files is None or path not in self.files:
            raise acp.RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=self.files[path])

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> Any:
        """Change an open file."""
        if self.files is None or path not in self.files:
            raise acp.RequestError.resource_not_found(path)
        self.files[path] = content
        return schema.WriteTextFileResponse()

    async def begin(self, workspace: Path, **options: Any) -> str:
        """A new conversation's id."""
        return str((await self.agent.new_session(cwd=str(workspace), mcp_servers=[], **options)).session_id)

    async def say(self, id: str, text: str, **meta: Any) -> Any:
        """Run a turn."""
        return await self.agent.prompt(session_id=id, prompt=[acp.text_block(text)], **meta)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the updates, each once in a row."""
        found = [update.session_update for update in self.updates]
        return [kind for at, kind in enumerate(found) if at == 0 or found[at - 1] != kind]

    def text(self, kind: str) -> str:
        """The text of all chunks of a kind."""
        return "".join(update.content.text for update in self.updates if update.session_update == kind)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until ``holds``; the test's own limit ends a wait in vain."""
        while not holds():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def edited(command: Command, editor: Editor, *options: str, **environment: str) -> AsyncIterator[Editor]:
    """``editor`` with ``thinkback acp`` behind it, initialized."""
    line = command.quick_line("acp", *options, **environment)
    client: Any = editor
    # An agent may take its time to end on a busy machine: the library would kill one that is just gone, and fail.
    transport = {"limit": 10_000_000, "shutdown_timeout": 30.0}
    async with acp.spawn_agent_process(
        client, *line, env={**command.environment, **environment}, transport_kwargs=transport
    ) as (agent, process):
        editor.agent, editor.process = agent, process
        files = editor.files is not None
        able = schema.ClientCapabilities(fs=schema.FileSystemCapabilities(read_text_file=files, write_text_file=files))
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=able)
        yield editor


def run(work: Awaitable[Any]) -> Any:
    """``work`` to its end."""
    return asyncio.run(asyncio.wait_for(work, 60))
