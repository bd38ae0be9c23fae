"""The steps of a response under construction, in the order in which they began, and what there is to show of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.gemini_interactions import blocks
from thinkback.wire.pieces import joined

_Kind: TypeAlias = Literal["text", "content", "output", "thought", "call", "other"]
_KINDS: dict[Any, _Kind] = {"thought": "thought", "function_call": "call", blocks.OUTPUT: "output"}
# What the deltas of a stream are deltas of; any other delta names the step itself.
_STEP_OF = {
    "text": blocks.OUTPUT,
    "text_annotation_delta": blocks.OUTPUT,
    "thought_summary": "thought",
    "thought_signature": "thought",
    "arguments_delta": "function_call",
}


class _Item:
    """One block to be: what it began with and what came of it later, and what grows of it in ``fragments``.

    These are pieces of its text or its arguments; of a thought they are texts of its summary. ``is_shown``: some of
    the summary can be seen.
    """

    __slots__ = ("at", "fragments", "is_shown", "kind", "pieces")

    def __init__(self, kind: _Kind, at: int, begun: Mapping[str, Any]) -> None:
        self.kind = kind
        self.at = at
        self.pieces: list[dict[str, Any]] = [dict(begun)]
        self.fragments: list[str] = []
        self.is_shown = False

    def settle(self) -> None:
        """The texts of a summary so far become the list that they are on the wire."""
        if self.fragments:
            self.pieces.append({"summary": [{"type": "text", "text": text} for text in self.fragments]})
            self.fragments = []

    def block(self) -> Block:
        if self.kind == "thought":
            self.settle()
        whole: dict[str, Any] = joined(self.pieces)
        text = canonical.whole("".join(self.fragments))
        match self.kind:
            case "text":
                return blocks.read_content({**whole, "text": text})
            case "content":
                return blocks.read_part_of_output(whole)
            case "output":
                return blocks.read_output(whole, text)
            case "thought":
                return blocks.read_thought(whole)
            case "call":
                return blocks.read_call({**whole, **_arguments(text)}, text or "{}")
            case _:
                return blocks.read_other(whole)


def _arguments(text: str) -> dict[str, Any]:
    """Arguments that came in pieces as their step would have them; none while they are not JSON."""
    try:
        return {"arguments": canonical.decode(text)} if text else {}
    except msgspec.DecodeError:
        return {}


class Steps:
    """Give it steps and what is added to them, ``take`` what to show, ``close`` it, then ask for ``blocks``.

    What is added goes to the step of its index. A model's output has a block for each of its contents, and only one
    where the step says anything beside them.
    """

    __slots__ = ("_deltas", "_known", "_response", "items")

    def __init__(self, response: str = "") -> None:
        self.items: list[_Item] = []
        self._response = response
        # The item that grows; an output none of whose contents does has none.
        self._known: dict[int, _Item | None] = {}
        self._deltas: list[Delta] = []

    def add(self, step: Mapping[str, Any], arguments: str | None = None) -> None:
        """A step that came whole; ``arguments`` is the source text of a call's."""
        self.begin(-1, step, arguments)
        self.stop(-1)

    def begin(self, index: int, step: Mapping[str, Any], arguments: str | None = None) -> None:
        """The beginning of a step, or all of it."""
        self.stop(index)
        if str(step.get("type")) in blocks.CONTENTS:
            step = {"type": blocks.OUTPUT, "content": [step]}
        if step.get("type") == blocks.OUTPUT and step.keys() <= {"type", "content"}:
            self._known[index] = None
            for content in blocks.contents_of(step):
                self._add_content(index, content)
            return
        if step.get("type") == blocks.OUTPUT:
            step = {**step, "content": blocks.contents_of(step)}
        item = self._known[index] = self._open(_KINDS.get(str(step.get("type")), "other"), step)
        self._show_begun(item, step, arguments)

    def _show_begun(self, item: _Item, step: Mapping[str, Any], arguments: str | None) -> None:
        if item.kind == "thought":
            self._show_summary(item, step.get("summary"))
        elif item.kind == "output":
            for text in blocks.texts_of(step.get("content")):
                self._deltas.append(TextDelta(text, item.at, self._response))
        elif item.kind == "call":
            call = blocks.read_call(step, "{}")
            self._deltas.append(ToolCallDelta(item.at, call.id, call.name, "", self._response))
            begun = step.get("arguments")
            if begun not in (None, {}):
                self._say_arguments(item, arguments or canonical.source(begun))

    def _open(self, kind: _Kind, begun: Mapping[str, Any]) -> _Item:
        item = _Item(kind, len(self.items), begun)
        self.items.append(item)
        return item

    def add_text(self, index: int, text: str) -> None:
        """A piece of a text content."""
        item = self._known.get(index)
        if item is None or item.kind == "content":
            item = self._known[index] = self._open("text", {"type": "text"})
        if item.kind not in ("text", "output"):
            item.pieces.append({"text": text})
        elif text:
            item.fragments.append(text)
            self._deltas.append(TextDelta(text, item.at, self._response))

    def add_summary(self, index: int, text: str) -> None:
        """A plain text of the summary of a thought."""
        item = self._known.get(index)
        if item is None or item.kind != "thought" or not text:
            self.add_delta(index, {"type": "thought_summary", "content": {"type": "text", "text": text}})
            return
        if not item.fragments:
            # The place of the summary among the members of the step.
            item.pieces.append({"summary": []})
        item.fragments.append(text)
        self._show_thought(item, text)

    def add_arguments(self, index: int, text: str) -> None:
        """A piece of the arguments of a call."""
        item = self._known.get(index)
        if item is None or item.kind != "call":
            self.add_delta(index, {"type": "arguments_delta", "arguments": text})
        else:
            self._say_arguments(item, text)

    def _say_arguments(self, item: _Item, text: str) -> None:
        if text:
            item.fragments.append(text)
            self._deltas.append(ToolCallDelta(item.at, arguments=text, response=self._response))

    def add_delta(self, index: int, delta: Mapping[str, Any]) -> None:
        """What is added to a step, with anything in it."""
        kind = str(delta.get("type"))
        if index not in self._known:
            self.begin(index, {"type": _STEP_OF.get(kind, kind)})
        item = self._known[index]
        more = {key: value for key, value in delta.items() if key != "type"}
        if item is None or item.kind in ("text", "content"):
            self._add_to_output(index, item, kind, more)
        elif item.kind == "output":
            self._add_to_whole(item, {"type": kind, **more})
        elif item.kind == "thought" and kind == "thought_summary":
            item.settle()
            self._show_summary(item, [more.get("content")])
            item.pieces.append({"summary": [more.get("content")]})
        elif item.kind == "call" and "arguments" in more:
            said = more["arguments"]
            self._say_arguments(item, said if isinstance(said, str) else canonical.source(said))
        else:
            item.pieces.append(more)

    def _add_to_output(self, index: int, item: _Item | None, kind: str, more: dict[str, Any]) -> None:
        if kind == "text" and more.keys() == {"text"} and isinstance(more["text"], str):
            self.add_text(index, more["text"])
        elif kind == "text_annotation_delta" and item is not None:
            item.pieces.append(more)
        else:
            self._add_content(index, {"type": kind, **more})

    def _add_to_whole(self, item: _Item, content: Mapping[str, Any]) -> None:
        """A content that stands behind those an output already has."""
        if item.fragments:
            item.pieces.append({"content": [{"type": "text", "text": canonical.whole("".join(item.fragments))}]})
            item.fragments = []
        item.pieces.append({"content": [content]})
        for text in blocks.texts_of([content]):
            self._deltas.append(TextDelta(text, item.at, self._response))

    def _add_content(self, index: int, content: Mapping[str, Any]) -> None:
        """A content that came whole, or a text that may go on."""
        text = content.get("text")
        is_text = content.get("type") == "text" and isinstance(text, str)
        begun = {key: value for key, value in content.items() if key != "text"} if is_text else content
        self._known[index] = self._open("text" if is_text else "content", begun)
        if isinstance(text, str) and is_text:
            self.add_text(index, text)

    def _show_summary(self, item: _Item, summary: Any) -> None:
        for text in blocks.texts_of(summary):
            self._show_thought(item, text)

    def _show_thought(self, item: _Item, text: str) -> None:
        said = blocks.BETWEEN + text if item.is_shown else text
        item.is_shown = True
        self._deltas.append(ReasoningDelta(said, item.at, self._response))

    def stop(self, index: int) -> None:
        """Nothing is added to the step any more."""
        item = self._known.pop(index, None)
        if item is not None and item.kind == "call" and not item.fragments:
            self._deltas.append(ToolCallDelta(item.at, arguments="{}", response=self._response))

    def close(self) -> None:
        """There are no more steps."""
        for index in list(self._known):
            self.stop(index)

    def take(self) -> list[Delta]:
        """What there is to show since the last time."""
        deltas, self._deltas = self._deltas, []
        return deltas

    def blocks(self) -> list[Block]:
        """The blocks as far as they have come."""
        return [item.block() for item in self.items]
