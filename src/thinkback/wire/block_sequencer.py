"""Deltas to blocks in a row: for dialects that show one block after another, each with a beginning and an end.

Promises: one block is open at a time, and each begins once unless more of its text comes when it has ended; the state
of each block that only its maker can read is given once the block is final: with a thought, or by itself, before the
next block begins or, of a whole response, at its end. A stream never ends in it: what is known too late is left to the
record. Where there is none, calls begin once they are whole, behind the state of what came before. Must not: know how a
dialect writes any of it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, assert_never

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, is_shown
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, Status, TextDelta, ToolCallDelta
from thinkback.wire.writing import Shown, closing_tag

Kind: TypeAlias = Literal["text", "thought", "call"]
_Growing: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta

_TYPES: dict[Kind, type[_Growing]] = {"text": TextDelta, "thought": ReasoningDelta, "call": ToolCallDelta}


class Begun(NamedTuple):
    """The block at index ``at`` begins; ``block`` is what is known of it, ``id`` and ``name`` are those of a call."""

    kind: Kind
    at: int
    block: Block | None
    id: str = ""
    name: str = ""


class BlockText(NamedTuple):
    """A piece of the text of the open block, or of its arguments."""

    text: str


class Ended(NamedTuple):
    """The open block ends; ``state`` is that of a thought, empty where there is none."""

    state: str


class Kept(NamedTuple):
    """The state of blocks that have no place for it."""

    state: str


Step: TypeAlias = Begun | BlockText | Ended | Kept


class Order:
    """Give it deltas (``take``), then the blocks that they came to (``end``).

    ``at`` is the index of the open block, ``pieces`` are those of it that were shown. A delta for ``at`` of the class
    ``grows`` is a piece and nothing else: whoever writes it without asking adds its text to ``pieces`` of a call.
    """

    __slots__ = (
        "_block",
        "_called",
        "_done",
        "_given",
        "_held",
        "_is_begun",
        "_kind",
        "_late",
        "_next",
        "_shown",
        "at",
        "pieces",
    )

    def __init__(self, shown: Shown) -> None:
        self.at = -1
        self.pieces: list[str] = []
        self._shown = shown
        self._block = shown.block
        self._kind: Kind | None = None
        # A call begins for those who read it with its first argument: its id and name may come in pieces.
        self._is_begun = False
        self._called = ("", "")
        # Deltas of other blocks that came before the arguments of the open call were whole.
        self._held: list[_Growing] = []
        # Blocks that began; the first that may still come; those whose state waits, or was given, as it was then.
        self._done: set[int] = set()
        self._next = 0
        self._late: dict[int, Block] = {}
        self._given: dict[int, Block] = {}

    @property
    def grows(self) -> type[_Growing] | None:
        """The class of deltas of the open block that are a piece of it and nothing else."""
        is_silent = self._kind == "thought" and not self._shown.reasoning
        return None if is_silent or self._held or not self._is_begun or self._kind is None else _TYPES[self._kind]

    def take(self, delta: Delta) -> list[Step]:
        """What one delta leads to."""
        match delta:
            case TextDelta():
                return self._take_text(delta, "text")
            case ReasoningDelta():
                return self._take_text(delta, "thought")
            case ToolCallDelta():
                return self._take_call(delta)
            case Reclassified():
                return self._take_text(TextDelta(closing_tag(delta, self._shown), delta.index), "text")
            case Status():
                return []
            case _:
                assert_never(delta)

    def end(self, blocks: Sequence[Block]) -> list[Step]:
        """What was not shown of ``blocks``, and the state of those whose state was not given."""
        self._block = lambda index: blocks[index] if index < len(blocks) else None
        steps = self._close()
        while self._held:
            steps += self._release()
            steps += self._close()
        last = max((at for at, block in enumerate(blocks) if self._says(block)), default=len(blocks))
        for index, block in enumerate(blocks):
            if index == last and isinstance(block, ToolCall):
                for at in range(last + 1, len(blocks)):
                    self._keep(at, blocks[at])
            is_behind = index < self._next or index > last
            # A thought without words is nothing but its state.
            if index not in self._done and not (
                is_behind and isinstance(block, ThinkingBlock) and not self._says(block)
            ):
                steps += self._whole(index, block)
            self._keep(index, block)
        return steps + self._flush()

    def end_of_stream(self, blocks: Sequence[Block]) -> list[Step]:
        """As ``end``, without a state behind what the model said last."""
        steps = self.end(blocks)
        return steps[:-1] if self._done and steps and isinstance(steps[-1], Kept) else steps

    def _says(self, block: Block) -> bool:
        """Whether anything of a block can be read."""
        match block:
            case ThinkingBlock():
                return bool(block.thought) and is_shown(block) and self._shown.reasoning
            case Text():
                return bool(block.text)
            case _:
                return isinstance(block, ToolCall)

    # -- pieces ----------------------------------------------------------------------------------------------------

    def _take_text(self, delta: TextDelta | ReasoningDelta, kind: Kind) -> list[Step]:
        if not delta.text or self._waits(delta):
            return []
        steps: list[Step] = []
        if kind != self._kind or delta.index != self.at:
            steps = self._open(kind, delta.index)
            steps.append(Begun(kind, delta.index, self._block(delta.index)))
            self._is_begun = True
        if kind == "text" or self._shown.reasoning:
            self.pieces.append(delta.text)
            steps.append(BlockText(delta.text))
        return steps

    def _take_call(self, delta: ToolCallDelta) -> list[Step]:
        if not self._shown.recorded or self._waits(delta):
            return []
        steps: list[Step] = []
        if self._kind != "call" or delta.index != self.at:
            if delta.index in self._done:  # its arguments were whole: what follows cannot belong to them
                return []
            steps = self._open("call", delta.index)
        id, name = self._called
        self._called = (id or delta.id, name + delta.name)
        if delta.arguments:
            steps += self._name()
            self.pieces.append(delta.arguments)
            steps.append(BlockText(delta.arguments))
        return steps + self._release() if self._held and _is_whole(self.pieces) else steps

    def _name(self) -> list[Step]:
        if self._is_begun:
            return []
        self._is_begun = True
        return [Begun("call", self.at, self._block(self.at), *self._called)]

    def _waits(self, delta: _Growing) -> bool:
        """Whether ``delta`` has to wait for the rest of the open call; then it is held."""
        if self._kind != "call" or delta.index == self.at:
            return False
        if not self._held and _is_whole(self.pieces):
            return False
        self._held.append(delta)
        return True

    def _release(self) -> list[Step]:
        held, self._held = self._held, []
        return [step for delta in held for step in self.take(delta)]

    # -- blocks ----------------------------------------------------------------------------------------------------

    def _open(self, kind: Kind, index: int) -> list[Step]:
        """The block at ``index`` is the open one, behind whatever stands before it."""
        steps = self._close()
        while self._next < index:
            self._next += 1
            steps += self._pass(self._next - 1)
        self._next = max(self._next, index + 1)
        block = self._block(index)
        if isinstance(block, ToolCall) and _is_whole((block.arguments,)):
            self._keep(index, block)
        steps += self._flush()
        self._done.add(index)
        self.at, self._kind, self.pieces = index, kind, []
        self._is_begun, self._called = False, ("", "")
        return steps

    def _close(self) -> list[Step]:
        """The open block ends, if there is one."""
        if not self._kind:
            return []
        steps = self._name()
        block, state = self._block(self.at), ""
        if self._kind == "thought" and isinstance(block, ThinkingBlock) and not block.is_hidden:
            state = self._state(self.at, block)
        elif block is not None:
            self._keep(self.at, block)
        self._kind = None
        return [*steps, Ended(state)]

    def _pass(self, index: int) -> list[Step]:
        """A block that the stream went on behind without a piece of it: it may have a state all the same."""
        block = self._block(index)
        is_held = isinstance(block, ToolCall) and not self._shown.recorded and _is_whole((block.arguments,))
        if block is not None and (is_held or (isinstance(block, ThinkingBlock) and not block.thought)):
            return self._whole(index, block)
        if block is not None:
            self._keep(index, block)
        return []

    def _whole(self, index: int, block: Block) -> list[Step]:
        """A block from its beginning to its end, if there is anything of it to show."""
        state, id, name = "", "", ""
        match block:
            case ThinkingBlock() if is_shown(block):
                kind: Kind = "thought"
                text = block.thought if self._shown.reasoning else ""
                state = self._state(index, block)
            case Text():
                kind, text = "text", block.text
            case ToolCall():
                kind, text, id, name = "call", block.arguments, block.id, block.name
            case _:
                return []
        if not (text or state or kind == "call"):
            return []
        steps = self._open(kind, index)
        self._kind = None
        return [*steps, Begun(kind, index, block, id, name), *([BlockText(text)] if text else []), Ended(state)]

    # -- states ----------------------------------------------------------------------------------------------------

    def _state(self, index: int, block: Block) -> str:
        """The state of one block, in its place; empty where it was given."""
        bare = _bare(block)
        if self._given.get(index) == bare:
            return ""
        self._given[index] = bare
        self._late.pop(index, None)
        return self._shown.state((block,))

    def _keep(self, index: int, block: Block) -> None:
        """The state of ``block`` is to be given, unless it was, or has none."""
        holds = block.carriers if isinstance(block, Text | ToolCall) else True
        if holds and self._given.get(index) != _bare(block):
            self._late[index] = block

    def _flush(self) -> list[Step]:
        """The states that wait, all in one."""
        if not self._late:
            return []
        late, self._late = self._late, {}
        self._given.update({index: _bare(block) for index, block in late.items()})
        state = self._shown.state(tuple(late[index] for index in sorted(late)))
        return [Kept(state)] if state else []


def _bare(block: Block) -> Block:
    """The block without its origin, which is known only when the response has ended."""
    return msgspec.structs.replace(block, origin=None) if block.origin is not None else block


def _is_whole(arguments: Sequence[str]) -> bool:
    """Whether the arguments that came in these pieces are one JSON object."""
    if not (arguments and arguments[-1].rstrip().endswith("}")):
        return False
    try:
        canonical.decode("".join(arguments), dict[str, Any])
    except msgspec.DecodeError:
        return False
    return True
