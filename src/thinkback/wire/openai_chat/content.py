"""The ``content`` of a message: visible text, and reasoning that stands in it as tags."""

from __future__ import annotations

from typing import Any, assert_never

from thinkback.model import canonical
from thinkback.model.deltas import Reclassified
from thinkback.model.think_tags import TagSegment, TagSplitter, Where
from thinkback.wire.block_accumulator import Arrival
from thinkback.wire.openai_chat import listed
from thinkback.wire.openai_chat.blocks import TextPart, ThoughtPart, UnknownPart
from thinkback.wire.openai_chat.reasoning import Reasoning


class Content:
    """The content channel."""

    __slots__ = ("_arrival", "_echo", "_reasoning", "_tagged", "_tags")

    def __init__(self, arrival: Arrival, reasoning: Reasoning, tags: Where = "start") -> None:
        self._arrival = arrival
        self._reasoning = reasoning
        self._tags = TagSplitter(tags)
        self._tagged = ThoughtPart("content")
        self._echo: _Echo | None = None

    def add(self, text: str) -> None:
        """A piece of the text."""
        for piece in self._tags.feed(text):
            if piece.kind == "text":
                self.append(piece.text)
            else:
                self._take(piece)

    def add_list(self, parts: list[Any], complete: bool = False) -> None:
        """Content that comes as a list of parts: texts and reasoning are read, other parts are kept as they are."""
        for part in parts:
            is_text = isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
            if not is_text:
                self.end_thought()
            if listed.is_reasoning(part):
                listed.add(part, self._arrival, complete)
            elif not is_text:
                self._arrival.open(UnknownPart(canonical.source(part)))
            elif len(part) == 2:
                self.add(part["text"])
            else:
                self._arrival.current = None
                self.add(part["text"])
                if isinstance(self._arrival.current, TextPart):
                    self._arrival.current.wire = canonical.source(part)
                self._arrival.current = None

    def append(self, text: str, field: str = "content") -> None:
        """Visible text, which goes on where the last block is such text."""
        arrival, part = self._arrival, self._arrival.current
        if not isinstance(part, TextPart) or part.field != field:
            part = TextPart(field)
            arrival.open(part)
        part.parts.append(text)
        arrival.show_text(part, text)

    def end_thought(self) -> None:
        """Something else than text of the content comes next."""
        for piece in self._tags.end_thought():
            self._take(piece)

    def close(self) -> None:
        """Release what was held back."""
        for piece in self._tags.close():
            self._take(piece)
        self._end_echo()

    def _take(self, piece: TagSegment) -> None:
        match piece.kind:
            case "text":
                self.append(piece.text)
            case "reasoning":
                self._append_tagged(piece.text)
            case "open":
                self._tagged = ThoughtPart("content", opening=piece.text)
                self._arrival.open(self._tagged)
                self._echo = _Echo(self._reasoning.said) if self._reasoning.said else None
            case "inner":
                self._tagged.inner.append((len(self._tagged.parts), piece.text))
            case "close":
                self._end_echo()
                self._tagged.closing = piece.text
                self._arrival.current = None
            case "lone_close":
                self._reclassify(piece.text)
            case _:
                assert_never(piece.kind)

    def _append_tagged(self, text: str) -> None:
        self._tagged.parts.append(text)
        if self._echo is None:
            self._arrival.show_reasoning(self._tagged, text)
        elif not self._echo.goes_on(text):
            self._show_echo()

    def _end_echo(self) -> None:
        """The tagged text is complete: it repeats a field as a whole and stays hidden, or it does not."""
        if self._echo is not None:
            self._tagged.hidden = self._echo.is_whole(self._tagged.text())
            if not self._tagged.hidden:
                self._show_echo()
        self._echo = None

    def _show_echo(self) -> None:
        self._echo = None
        for text in self._tagged.parts:
            self._arrival.show_reasoning(self._tagged, text)

    def _reclassify(self, tag: str) -> None:
        """A closing tag without an opening one: the visible text so far was reasoning.

        Where the host already separates reasoning into a field the tag is a slip of the model, and stays text.
        """
        if self._reasoning.came:
            self.append(tag)
            return
        texts = [part for part in self._arrival.parts if isinstance(part, TextPart) and part.field == "content"]
        if not texts:
            texts = [TextPart()]
            self._arrival.open(texts[0])
        for part in texts:
            part.closing = ""
            self._arrival.deltas.append(Reclassified("".join(part.parts), part.at, self._arrival.response))
        texts[-1].closing = tag
        self._arrival.current = None


class _Echo:
    """Tagged text that so far repeats what a field already said (llama.cpp ``deepseek-legacy``)."""

    def __init__(self, said: list[str]) -> None:
        self._said = said
        self._piece = 0
        self._place = 0
        self._began = False

    def goes_on(self, text: str) -> bool:
        """Whether ``text`` is what the field said next, white space at both ends aside."""
        if not self._began:
            text = text.lstrip()
        at = 0
        while at < len(text):
            if self._piece == len(self._said):
                return text[at:].isspace()
            said = self._said[self._piece][self._place :]
            if not self._began:
                said = said.lstrip()
                self._place = len(self._said[self._piece]) - len(said)
            length = min(len(said), len(text) - at)
            if said[:length] != text[at : at + length]:
                return False
            self._began = self._began or length > 0
            at += length
            self._place += length
            if self._place == len(self._said[self._piece]):
                self._piece, self._place = self._piece + 1, 0
        return True

    def is_whole(self, text: str) -> bool:
        """Whether ``text`` is all the field said."""
        return text.strip() == "".join(self._said).strip()
