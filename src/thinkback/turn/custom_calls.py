"""Calls of custom tools that went to a host as functions: what it calls is read as a call of the custom tool.

Promises: blocks and deltas say the same, whole and at any cut; of such a call the name is shown at once and its text
when the response has ended, because half a JSON string is no text yet.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from thinkback.model.blocks import Block, ToolCall
from thinkback.model.commits import Failure
from thinkback.model.custom_tools import call_from_function
from thinkback.model.deltas import Delta, ToolCallDelta
from thinkback.wire.dialect import ResponseReader
from thinkback.wire.result import ReadResult


class CustomCalls:
    """A ``ResponseReader`` over another one; ``names`` are those of the custom tools."""

    def __init__(self, reader: ResponseReader, names: Collection[str]) -> None:
        self._reader = reader
        self._names = names
        # Deltas of calls whose names may still become one of ``names``, and the calls that are custom.
        self._waiting: dict[int, list[ToolCallDelta]] = {}
        self._custom: set[int] = set()
        self._response = ""

    def feed(self, data: bytes) -> list[Delta]:
        return self._shown(self._reader.feed(data))

    def close(self) -> list[Delta]:
        shown = self._shown(self._reader.close())
        for index in list(self._waiting):
            shown += self._decide(index)
        for index in sorted(self._custom):
            block = self.block(index)
            if isinstance(block, ToolCall) and block.arguments:
                shown.append(ToolCallDelta(index, arguments=block.arguments, response=self._response))
        return shown

    def fail(self, failure: Failure) -> None:
        self._reader.fail(failure)

    def result(self) -> ReadResult:
        result = self._reader.result()
        return msgspec.structs.replace(result, blocks=tuple(map(self._read, result.blocks)))

    def block(self, index: int) -> Block | None:
        block = self._reader.block(index)
        return None if block is None else self._read(block)

    @property
    def finish(self) -> str | None:
        return self._reader.finish

    def _read(self, block: Block) -> Block:
        is_ours = isinstance(block, ToolCall) and block.name in self._names
        return call_from_function(block) if is_ours and isinstance(block, ToolCall) else block

    def _shown(self, deltas: list[Delta]) -> list[Delta]:
        shown: list[Delta] = []
        for delta in deltas:
            if not isinstance(delta, ToolCallDelta):
                shown.append(delta)
            elif delta.index not in self._custom:
                self._waiting.setdefault(delta.index, []).append(delta)
                name = "".join(waiting.name for waiting in self._waiting[delta.index])
                if delta.arguments or not any(known.startswith(name) for known in self._names):
                    shown += self._decide(delta.index)
        return shown

    def _decide(self, index: int) -> list[Delta]:
        """Take what waited of a call whose name is whole."""
        waiting = self._waiting.pop(index)
        name = "".join(delta.name for delta in waiting)
        if name not in self._names:
            return list(waiting)
        self._custom.add(index)
        self._response = waiting[0].response
        id = "".join(delta.id for delta in waiting)
        return [ToolCallDelta(index, id, name, "", waiting[0].response)]
