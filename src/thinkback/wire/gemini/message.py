"""The parts of a response under construction, in the order in which they began, and what there is to show of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.gemini.blocks import call_key, read_part
from thinkback.wire.gemini.partial_args import PartialArguments

_PLAIN = frozenset({"text", "thought"})
# What says that a call comes in pieces.
_PIECES = ("partialArgs", "willContinue")


class _Part(Protocol):
    def block(self) -> Block: ...


class _Run:
    """Text, or a summary, from one unsigned part or several."""

    __slots__ = ("fragments", "thought")

    def __init__(self, thought: bool) -> None:
        self.thought = thought
        self.fragments: list[str] = []

    def block(self) -> Text | ThinkingBlock:
        text = canonical.whole("".join(self.fragments))
        return ThinkingBlock(text, source_field="thought", kind="summary") if self.thought else Text(text)


class _Whole:
    """A part that came in one piece."""

    __slots__ = ("_block",)

    def __init__(self, block: Block) -> None:
        self._block = block

    def block(self) -> Block:
        return self._block


class _Call:
    """A call that comes in pieces: its name first, then arguments by path, then an empty piece."""

    __slots__ = ("arguments", "at", "call", "part")

    def __init__(self, at: int, part: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        self.at = at
        self.part: dict[str, Any] = {}
        self.call: dict[str, Any] = {}
        self.arguments = PartialArguments(call.get("args"))
        self.add(part, call)

    def add(self, part: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        """A piece; what was said once stays."""
        self.part = {**part, **self.part}
        self.call = {**call, **self.call}
        pieces = call.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, Mapping):
                self.arguments.add(piece)

    def block(self) -> Block:
        source = self.arguments.source()
        call = {key: value for key, value in self.call.items() if key not in _PIECES}
        return read_part({**self.part, call_key(self.part): {**call, "args": canonical.decode(source)}}, source)


class Parts:
    """Give it parts, ``take`` what to show, ``close`` it, then ask for ``blocks``.

    In a stream unsigned neighbours of one kind are pieces of one part, and an empty one says nothing. Signed parts
    are never merged with others: a signature belongs to the part it came on.
    """

    __slots__ = ("_call", "_deltas", "_response", "_run", "_streams", "parts")

    def __init__(self, response: str = "", streams: bool = True) -> None:
        self.parts: list[_Part] = []
        self._response = response
        self._streams = streams
        self._run: _Run | None = None
        self._call: _Call | None = None
        self._deltas: list[Delta] = []

    def add_text(self, text: str, thought: bool) -> None:
        """A piece of unsigned text or summary."""
        if not text:
            return
        run = self._run
        if run is None or run.thought is not thought:
            run = self._run = _Run(thought)
            self.parts.append(run)
        run.fragments.append(text)
        at = len(self.parts) - 1
        show = ReasoningDelta if thought else TextDelta
        self._deltas.append(show(text, at, self._response))

    def add(self, part: Mapping[str, Any], arguments: str | None = None) -> None:
        """A part with anything in it; ``arguments`` is the source text of its ``args``."""
        if not self._streams:
            self._add_whole(part, arguments)
            return
        call = part.get(call_key(part))
        if isinstance(call, Mapping) and self._is_piece(call):
            self._add_piece(part, call)
        elif (
            part.keys() <= _PLAIN and isinstance(part.get("text"), str) and isinstance(part.get("thought", False), bool)
        ):
            self.add_text(part["text"], part.get("thought", False))
        else:
            self._add_whole(part, arguments)

    def _is_piece(self, call: Mapping[str, Any]) -> bool:
        """Whether ``call`` begins one that comes in pieces, or goes on with it."""
        if isinstance(call.get("name"), str):
            return any(call.get(name) for name in _PIECES)
        return self._call is not None

    def _add_piece(self, part: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        growing = self._call
        if growing is None or isinstance(call.get("name"), str):
            self._end_call()
            begun = self._call = _Call(len(self.parts), part, call)
            self.parts.append(begun)
            self._run = None
        else:
            growing.add(part, call)
        if not call.get("willContinue"):
            self._end_call()

    def _end_call(self) -> None:
        """The call is complete, or the stream is at its end: only now its arguments are JSON that can be shown."""
        call, self._call = self._call, None
        if call is not None:
            self._show(call.block(), call.at)

    def _add_whole(self, part: Mapping[str, Any], arguments: str | None) -> None:
        block = read_part(part, arguments)
        self._run = None
        self._show(block, len(self.parts))
        self.parts.append(_Whole(block))

    def _show(self, block: Block, at: int) -> None:
        match block:
            case Text() if block.text:
                self._deltas.append(TextDelta(block.text, at, self._response))
            case ThinkingBlock() if block.thought:
                self._deltas.append(ReasoningDelta(block.thought, at, self._response))
            case ToolCall():
                self._deltas.append(ToolCallDelta(at, block.id, block.name, block.arguments, self._response))
            case _:
                pass

    def take(self) -> list[Delta]:
        """What there is to show since the last time."""
        deltas, self._deltas = self._deltas, []
        return deltas

    def close(self) -> None:
        """There are no more parts."""
        self._end_call()

    def blocks(self) -> list[Block]:
        """The blocks as far as they have come."""
        return [part.block() for part in self.parts]
