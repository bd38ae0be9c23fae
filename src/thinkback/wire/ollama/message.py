"""A message under construction: thinking, content with the tags that may stand in it, images and tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, assert_never

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media
from thinkback.model.deltas import Reclassified, ToolCallDelta
from thinkback.model.think_tags import TagSegment, TagSplitter, Where
from thinkback.wire.block_accumulator import Arrival
from thinkback.wire.ollama.blocks import TextPart, ThoughtPart, WholePart, read_call


class MessageBuilder:
    """Give it pieces of fields or a whole message, ``take`` what to show, ``close`` it, then ask for ``blocks``.

    ``content`` says how the content field stood on the wire. ``keeps_index`` as in ``read_call``.
    """

    def __init__(self, response: str = "", *, keeps_index: bool = False, tags: Where = "start") -> None:
        self._arrival = Arrival(response)
        self.take = self._arrival.take
        self.parts = self._arrival.parts
        self._tags = TagSplitter(tags)
        self._tagged = ThoughtPart("content")
        self._thinks = False
        self._keeps_index = keeps_index
        self.content: Literal["absent", "null", "text"] = "absent"
        self.extra: dict[str, Any] = {}

    def add_thinking(self, text: str) -> None:
        """A piece of the ``thinking`` field, which goes on where the last block is such reasoning."""
        self._end_thought()
        part = self._arrival.current
        if not isinstance(part, ThoughtPart) or part.field != "thinking":
            part = ThoughtPart("thinking")
            self._arrival.open(part)
            self._thinks = True
        part.add(text, self._arrival)

    def add_content(self, text: str) -> None:
        """A piece of the ``content`` field."""
        for piece in self._tags.feed(text):
            if piece.kind == "text":
                self._say(piece.text)
            else:
                self._take(piece)

    def add_object(self, message: dict[str, Any], sources: Sequence[str] = ()) -> None:
        """A message, or a piece of one, with anything in it; ``sources``: the arguments of its calls as they came."""
        rest = {key: value for key, value in message.items() if key != "role"}
        if isinstance(rest.get("thinking"), str):
            thinking = rest.pop("thinking")
            if thinking:
                self.add_thinking(thinking)
        if isinstance(rest.get("content"), str):
            self.content = "text"
            self.add_content(rest.pop("content"))
        elif "content" in rest and rest["content"] is None and self.content == "absent":
            self.content = "null"
        images, calls = rest.get("images"), rest.get("tool_calls")
        if images or calls:
            self._end_thought()
        if isinstance(images, list) and all(isinstance(image, str) for image in images):
            for image in rest.pop("images"):
                self._arrival.open(WholePart(Media("image/*", data=image)))
        if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
            for at, call in enumerate(rest.pop("tool_calls")):
                self._add_call(call, sources[at] if len(sources) == len(calls) else "")
        self.extra.update((key, value) for key, value in rest.items() if value is not None)

    def close(self) -> None:
        """The message has ended: release what was held back."""
        for piece in self._tags.close():
            self._take(piece)

    def _end_thought(self) -> None:
        """Something else than content comes next."""
        for piece in self._tags.end_thought():
            self._take(piece)

    def blocks(self) -> list[Block]:
        """The blocks as far as they have come, in order of arrival."""
        return [part.block() for part in self._arrival.parts]

    def _add_call(self, call: dict[str, Any], source: str) -> None:
        function = call.get("function")
        arguments = function.get("arguments") if isinstance(function, dict) else None
        block = read_call(call, source or canonical.source(arguments), keeps_index=self._keeps_index)
        part, arrival = WholePart(block), self._arrival
        arrival.open(part)
        arrival.deltas.append(ToolCallDelta(part.at, block.id, block.name, block.arguments, arrival.response))

    def _say(self, text: str) -> None:
        part = self._arrival.current
        if not isinstance(part, TextPart):
            part = TextPart()
            self._arrival.open(part)
        part.add(text, self._arrival)

    def _take(self, piece: TagSegment) -> None:
        match piece.kind:
            case "text":
                self._say(piece.text)
            case "reasoning":
                self._tagged.add(piece.text, self._arrival)
            case "open":
                self._tagged = ThoughtPart("content", opening=piece.text)
                self._arrival.open(self._tagged)
            case "inner":
                self._tagged.inner.append((len(self._tagged.fragments), piece.text))
            case "close":
                self._tagged.closing = piece.text
                self._arrival.current = None
            case "lone_close":
                self._reclassify(piece.text)
            case _:
                assert_never(piece.kind)

    def _reclassify(self, tag: str) -> None:
        """A closing tag without an opening one (a model that thinks despite ``think: false``): the text was reasoning.

        Where the server already separates reasoning the tag is a slip of the model, and stays text.
        """
        if self._thinks:
            self._say(tag)
            return
        arrival = self._arrival
        texts = [part for part in arrival.parts if isinstance(part, TextPart)]
        if not texts:
            texts = [TextPart()]
            arrival.open(texts[0])
        for part in texts:
            part.closing = ""
            arrival.deltas.append(Reclassified("".join(part.fragments), part.at, arrival.response))
        texts[-1].closing = tag
        arrival.current = None
