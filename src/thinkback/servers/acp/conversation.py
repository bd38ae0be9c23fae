"""One conversation with an editor: its session, its tools, and its turns, one at a time.

Promises: all of a turn is told before it is reported as over; one that the editor cancels, or that ends with it, is
stored as interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, aclosing, suppress
from typing import Any

import acp
from acp import schema

from thinkback.drive.tools import PythonTool
from thinkback.errors import ThinkbackError
from thinkback.servers import stdio
from thinkback.servers.acp import calls, content, options
from thinkback.servers.acp.buffers import EditorBuffers
from thinkback.servers.acp.telling import Telling
from thinkback.session import retry_reasoning_only
from thinkback.session.agents.toolbox import toolbox
from thinkback.session.masking import without_keys
from thinkback.session.reply import Reply
from thinkback.session.retry_reasoning_only import AsyncContinuedStream
from thinkback.session.session import Session
from thinkback.session.stream import busy
from thinkback.settings.apps import MCP, Server
from thinkback.turn.permissions import PermissionAnswer, PermissionRequest
from thinkback.turn.usage import summed

# The protocol's word for why a turn ended, by how its last response came out and by its state; else ``end_turn``.
_STOPS = {
    "max_tokens": "max_tokens",
    "max_tokens_in_reasoning": "max_tokens",
    "refused": "refusal",
    "safety": "refusal",
    "capped": "max_turn_requests",
    "interrupted": "cancelled",
}
_PERMISSIONS: tuple[tuple[str, str, schema.PermissionOptionKind], ...] = (
    ("once", "Allow", "allow_once"),
    ("always", "Always allow", "allow_always"),
    ("no", "Reject", "reject_once"),
)
_TOOLS = ("read", "list", "search", "write", "edit", "shell")
"""What a session without an app may use."""


class Conversation:
    """``session`` in ``workspace``, told to ``client`` as the conversation ``id``; ``models`` may be chosen, and
    ``buffers`` has what is open in the editor.
    """

    def __init__(
        self, client: Any, id: str, session: Session, workspace: str, models: Sequence[str], buffers: EditorBuffers
    ) -> None:
        self.id = id
        self.session = session
        self._client = client
        self._workspace = workspace
        self._models = models
        self._buffers = buffers
        self._home = options.home_of(session)
        self._telling = Telling(client, id, workspace)
        self._stream: AsyncContinuedStream | None = None
        self._cancelled = False
        self._needed = ExitStack()
        self._tools: list[PythonTool] = []
        session.on("post_commit", self._telling.stored)
        session.on("notice", self._telling.notice)

    @property
    def is_running(self) -> bool:
        """Whether a turn is under way."""
        return self._stream is not None

    async def begin(self, servers: Sequence[Any]) -> None:
        """Start what the turns will need: the tools of the session's app, and the MCP servers of the editor, as far as
        they can be used; the rest is told with the first turn.
        """
        app = self.session.app
        await self._open(*((app.tools, app.servers) if app is not None else (_TOOLS, {})))
        found = await asyncio.gather(
            *(self._open([f"{MCP}{given.name}"], {given.name: content.read_server(given)}) for given in servers),
            return_exceptions=True,
        )
        for error in found:
            if isinstance(error, ThinkbackError):
                stdio.complain(error.for_people())
                self._telling.note(without_keys(error.message))
            elif error is not None:
                raise error

    async def end(self) -> None:
        """End the turn that is under way, and what the turns needed; forget a session in which nothing was said."""
        await self.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self._needed.close)
        if not self.session.log():
            self.session.conversation.store.log.care.delete_session(self.session.id)

    async def prompt(self, blocks: Sequence[Any], settings: Mapping[str, object]) -> Any:
        """Run a turn; returns why it ended, and what it used. Raises ``ThinkbackError``."""
        if self.is_running:
            raise busy()
        said = content.prompt_of(blocks)
        self._cancelled = False
        self._telling.thoughts = self.session.settings.include_in_response
        stream = self._stream = retry_reasoning_only.stream_async(
            self.session,
            said,
            settings={**options.unsaid(self.session), **settings},
            tools=self._tools,
            approve=self._approve,
        )
        try:
            async with self._telling.turn():
                async with stream, aclosing(aiter(stream)) as deltas:
                    async for delta in deltas:
                        self._telling.delta(delta)
                        if self._cancelled:
                            break
                if self._cancelled:
                    return acp.PromptResponse(stop_reason="cancelled")
                self._send_ending(stream.reply)
                self._send_context()
        finally:
            self._stream = None
        return _response(stream.reply, stream.unanswered)

    async def cancel(self) -> None:
        """End the turn that is under way, if one is."""
        if self._stream is not None:
            self._cancelled = True
            await self._stream.aclose()

    async def replay(self) -> None:
        """Tell what was said and thought so far."""
        thoughts = self.session.settings.include_in_response
        for update in content.replayed(self.session.log(), self._workspace, thoughts=thoughts):
            await self._client.session_update(self.id, update)

    async def choose(self, option: str, value: object) -> list[Any]:
        """Set an option from the next request on; returns all of them as they are then. Raises ``ThinkbackError``."""
        options.choose(self.session, option, value, self._home)
        if option == options.MODE:
            mode = options.mode_of(self.session)
            told = schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode)
            await self._client.session_update(self.id, told)
        return options.config_options(self.session, self._models)

    def chosen(self) -> dict[str, Any]:
        """What may be chosen and is, as fields of the answer that opens the conversation."""
        found = options.config_options(self.session, self._models)
        return {"modes": options.modes(self.session), "config_options": found}

    def _send_ending(self, reply: Reply) -> None:
        """Tell why a turn ended otherwise than with an answer."""
        if retry_reasoning_only.is_unanswered(reply):
            self._telling.note(f"the model reasoned and gave no answer: {reply.reason}".rstrip(": "))
        elif reply.state not in ("completed", None):
            self._telling.note(f"the turn ended, {reply.state.replace('_', ' ')}: {reply.reason}".rstrip(": "))
        elif reply.ending:
            self._telling.note(reply.ending)

    def _send_context(self) -> None:
        """Tell how much of the model's context the next request will fill, where that is known."""
        with suppress(ThinkbackError):  # that it could not be sent is told when it is asked for
            counts = self.session.usage.context()
            if counts.limit:
                self._telling.context(counts.effective, counts.limit)

    async def _open(self, names: Sequence[str], servers: Mapping[str, Server]) -> None:
        """Add tools, which may have to be started."""
        box = toolbox(self.session, names, workspace=self._workspace, servers=servers, buffers=self._buffers)
        tools = await asyncio.get_running_loop().run_in_executor(None, box.__enter__)
        self._needed.push(box)
        self._tools += tools

    async def _approve(self, request: PermissionRequest) -> PermissionAnswer:
        """Ask the person at the editor, once all before it is told; no answer is a no."""
        await self._telling.flush()
        call = request.call
        asked = schema.ToolCallUpdate(
            tool_call_id=call.id,
            kind=calls.kind_of(call.name),
            status="pending",
            **calls.permission_fields(request, self._workspace),
        )
        choices = [
            schema.PermissionOption(
                option_id=id, name=f"{name}: {request.always}" if id == "always" else name, kind=kind
            )
            for id, name, kind in _PERMISSIONS
        ]
        answer = await self._client.request_permission(session_id=self.id, tool_call=asked, options=choices)
        chosen = answer.outcome.option_id if isinstance(answer.outcome, schema.AllowedOutcome) else ""
        return PermissionAnswer(chosen in ("once", "always"), always=chosen == "always")


def _response(reply: Reply, unanswered: Sequence[Reply]) -> Any:
    """How a turn ended, and what it used with those that it continues."""
    stop: Any = _STOPS.get(reply.outcome, "end_turn")
    if reply.state in _STOPS:
        stop = _STOPS[reply.state]
    use = summed(each.tokens for each in (*unanswered, reply) if each.tokens is not None)
    usage = None
    if use is not None and use.input is not None and use.output is not None:
        usage = schema.Usage(
            total_tokens=use.input + use.output,
            input_tokens=use.input,
            output_tokens=use.output,
            thought_tokens=use.reasoning,
            cached_read_tokens=use.cached,
        )
    return acp.PromptResponse(stop_reason=stop, usage=usage)
