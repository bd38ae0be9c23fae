"""What becomes of a tool's call where the editor refuses to say what is in a file, or says nothing at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import acp
import pytest
from acp import schema

from thinkback.errors import ToolFailed
from thinkback.servers.acp import buffers
from thinkback.servers.acp.buffers import EditorBuffers

BOTH = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)


class Refusing:
    """An editor that knows no file."""

    async def read_text_file(self, **_: Any) -> Any:
        raise acp.RequestError.resource_not_found("/x")

    async def write_text_file(self, **_: Any) -> Any:
        raise acp.RequestError.internal_error()


class Silent:
    """An editor that never answers."""

    async def read_text_file(self, **_: Any) -> Any:
        await asyncio.Event().wait()

    async def write_text_file(self, **_: Any) -> Any:
        await asyncio.Event().wait()


def from_a_thread(client: Any, fs: Any, ask: Callable[[EditorBuffers], object]) -> object:
    """What a tool gets, which runs in a thread of its own."""

    async def work() -> object:
        return await asyncio.to_thread(ask, EditorBuffers(client, "c", fs))

    return asyncio.run(work())


@pytest.mark.parametrize("fs", [BOTH, schema.FileSystemCapabilities(), None], ids=["refused", "not offered", "unsaid"])
def test_the_disk_serves_where_the_editor_does_not(fs: Any) -> None:
    """A file that the editor does not know, or an editor without files, leaves it to the disk."""
    assert None is from_a_thread(Refusing(), fs, lambda found: found.read("/x"))
    assert False is from_a_thread(Refusing(), fs, lambda found: found.write("/x", "text"))


def test_an_editor_that_is_silent_fails_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while the model is told; nothing is written behind the editor's back."""
    monkeypatch.setattr(buffers, "_SECONDS", 0.05)

    for ask in (lambda found: found.read("/x"), lambda found: found.write("/x", "text")):
        with pytest.raises(ToolFailed, match="did not answer"):
            from_a_thread(Silent(), BOTH, ask)
