"""A message under construction: chunks of content in order, then tool calls, and what to show as it comes."""

from __future__ import annotations

from typing import Any, Literal, TypeGuard

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block
from thinkback.wire.block_accumulator import Arrival
from thinkback.wire.mistral import chunks
from thinkback.wire.mistral.blocks import CallPart, TextPart, ThinkPart, UnknownPart
from thinkback.wire.values import plain

_NO_ID = ("", "null")


class MessageBuilder:
    """Give it deltas or a whole message, ``take`` what to show, then ask for ``blocks``.

    ``content`` says how the content field stood on the wire. The ``index`` of a call ties the fragments of a stream
    together; it is kept only with ``keeps_index``, for messages that are to go out again exactly as they came.
    """

    def __init__(self, response: str = "", *, keeps_index: bool = False) -> None:
        self._arrival = Arrival(response)
        self.take = self._arrival.take
        self.parts = self._arrival.parts
        self._thought: ThinkPart | None = None
        self._calls: dict[int, CallPart] = {}
        self._call: CallPart | None = None
        self._keeps_index = keeps_index
        self.content: Literal["absent", "null", "text"] = "absent"
        self.extra: dict[str, Any] = {}

    def add(self, delta: chunks.Delta) -> None:
        """One streamed delta with known keys."""
        content = delta.content
        if content is None:
            return
        self.content = "text"
        if isinstance(content, str):
            self._say(content)
            return
        for chunk in content:
            if isinstance(chunk, chunks.TextChunk):
                self._say(chunk.text)
            else:
                self._think(chunk)

    def add_object(self, delta: dict[str, Any], complete: bool = False) -> None:
        """One streamed delta, or a ``complete`` message, with anything in it."""
        rest = {key: value for key, value in delta.items() if key != "role" and value is not None}
        content = rest.pop("content", None)
        if isinstance(content, str | list):
            self.content = "text"
            if isinstance(content, str):
                self._say(content)
            else:
                self._add_list(content, complete)
        elif content is not None:
            rest["content"] = content
        elif complete and "content" in delta:
            self.content = "null"
        calls = rest.pop("tool_calls", None)
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._add_call(call, complete)
        self.extra.update(rest)

    def blocks(self) -> list[Block]:
        """The blocks as far as they have come, in order of arrival."""
        return [part.block() for part in self._arrival.parts]

    def _say(self, text: str) -> None:
        """Visible text, which goes on where the last block is such text."""
        if text:
            part = self._arrival.current
            if not isinstance(part, TextPart):
                part = TextPart()
                self._arrival.open(part)
            part.add(text, self._arrival)

    def _think(self, chunk: chunks.ThinkChunk) -> None:
        signature = chunk.signature
        texts = [inner.text for inner in chunk.thinking]
        part = self._thinking(any(texts), signature)
        if part is None:
            return
        for text in texts:
            part.add(text, self._arrival)
        if signature is not msgspec.UNSET:
            part.sign(signature)
        if chunk.closed is not msgspec.UNSET:
            part.rest["closed"] = chunk.closed

    def _thinking(self, says: bool, signature: object) -> ThinkPart | None:
        """The thinking that a streamed chunk goes on with, or a new one; ``None`` where it brings nothing.

        Neighbours are one. A chunk without text belongs to the last thinking, whatever came in between.
        """
        part = self._thought
        if part is not None and (not says or self._arrival.current is part) and part.takes(says, signature):
            return part
        if not says and not (isinstance(signature, str) and signature):
            return None
        return self._open_thinking()

    def _open_thinking(self) -> ThinkPart:
        self._thought = part = ThinkPart()
        self._arrival.open(part)
        return part

    def _add_list(self, content: list[Any], complete: bool) -> None:
        """A list of chunks. In a complete message each is a block of its own; texts without thinking stay chunks."""
        verbatim = complete and all(_is_text(chunk) for chunk in content)
        for chunk in content:
            if _is_text(chunk):
                self._add_text(chunk, complete, verbatim)
            elif _is_thinking(chunk):
                self._add_thinking(chunk, complete)
            else:
                self._arrival.open(UnknownPart(chunk))

    def _add_text(self, chunk: dict[str, Any], complete: bool, verbatim: bool) -> None:
        if not complete and len(chunk) == 2:
            self._say(chunk["text"])
            return
        part = TextPart()
        self._arrival.open(part)
        part.add(chunk["text"], self._arrival)
        if verbatim or len(chunk) > 2:
            part.wire = canonical.source(chunk)
        self._arrival.current = None

    def _add_thinking(self, chunk: dict[str, Any], complete: bool) -> None:
        says = any(_is_text(inner) and inner["text"] for inner in chunk["thinking"])
        part = self._open_thinking() if complete else self._thinking(says, chunk.get("signature"))
        if part is None:
            return
        for inner in chunk["thinking"]:
            if complete:
                part.run = None
            if _is_text(inner) and len(inner) == 2:
                part.add(inner["text"], self._arrival)
            else:
                part.add_other(inner, self._arrival)
        for key, value in chunk.items():
            if key == "signature" and (value is None or isinstance(value, str)):
                part.sign(value)
            elif key not in ("type", "thinking"):
                part.rest[key] = value

    def _add_call(self, call: dict[str, Any], complete: bool) -> None:
        known = call.get("function")
        function = dict(known) if isinstance(known, dict) else {}
        name, arguments = plain(function.pop("name", "")), function.pop("arguments", "")
        index, id = call.get("index"), plain(call.get("id"))
        part = None if complete else self._find(index, id, name)
        if part is None:
            part = CallPart()
            self._arrival.open(part)
        self._call = self._arrival.current = part
        if isinstance(index, int):
            self._calls[index] = part
        if not isinstance(arguments, str):
            function["arguments"] = arguments
            arguments = canonical.source(arguments)
        part.add(id, name, arguments, self._arrival)
        part.function.update(function)
        read = {"id", "function"} if self._keeps_index else {"id", "function", "index"}
        part.extra.update((key, value) for key, value in call.items() if key not in read and value is not None)

    def _find(self, index: object, id: str, name: str) -> CallPart | None:
        """The call a fragment goes on with: that of its index, else the last; another id, or name, is another call."""
        part = self._calls.get(index) if isinstance(index, int) else self._call
        if part is None or (id not in _NO_ID and part.id not in (id, "")):
            return None
        return None if name and part.name and not isinstance(index, int) else part


def _is_text(chunk: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(chunk, dict) and chunk.get("type") == "text" and isinstance(chunk.get("text"), str)


def _is_thinking(chunk: Any) -> TypeGuard[dict[str, Any]]:
    if not isinstance(chunk, dict) or chunk.get("type") != "thinking":
        return False
    inner = chunk.get("thinking")
    return isinstance(inner, list) and all(isinstance(piece, dict) for piece in inner)
