"""Files that are open in the editor, for the tools: its reading and writing, from the threads that tools run in."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any

import acp

from thinkback.errors import ToolFailed

_SECONDS = 30


class EditorBuffers:
    """The editor's files, asked for the conversation ``id``; ``fs`` says what the editor can do."""

    def __init__(self, client: Any, id: str, fs: Any) -> None:
        self._client = client
        self._id = id
        self._reads = bool(fs is not None and fs.read_text_file)
        self._writes = bool(fs is not None and fs.write_text_file)
        self._loop = asyncio.get_running_loop()

    def read(self, path: str) -> str | None:
        """The text of a file as the editor has it; ``None`` where it does not say."""
        if not self._reads:
            return None
        try:
            answer = self._request(self._client.read_text_file(session_id=self._id, path=path))
        except acp.RequestError:
            return None
        return str(answer.content)

    def write(self, path: str, text: str) -> bool:
        """Let the editor replace a file's text; false where it cannot. Raises ``ToolFailed`` where it is silent."""
        if not self._writes:
            return False
        try:
            self._request(self._client.write_text_file(session_id=self._id, path=path, content=text))
        except acp.RequestError:
            return False
        return True

    def _request(self, request: Coroutine[Any, Any, Any]) -> Any:
        asked = asyncio.run_coroutine_threadsafe(request, self._loop)
        try:
            return asked.result(_SECONDS)
        except (TimeoutError, CancelledError, ConnectionError):
            asked.cancel()
            raise ToolFailed("the editor did not answer", next_actions=("Try again.",)) from None
