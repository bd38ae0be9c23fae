"""Messages as they were written: where each block stands, and what is left without reasoning."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

from thinkback.compile.decide import Choice
from thinkback.model.blocks import Block, Text, ThinkingBlock
from thinkback.model.commits import Response
from thinkback.model.plan import NOTHING, Writer
from thinkback.model.target import Decision

# A message without its reasoning: its bytes, or what they are written from; only digests need them.
Bare: TypeAlias = bytes | tuple[Response, tuple[Block, ...]]


class Written(NamedTuple):
    """A response as it was written: ``message`` is what the writer made of the blocks."""

    writer: Writer
    header: Response
    choice: Choice
    message: tuple[bytes, ...]

    def placed(self, decision: Decision) -> Decision:
        """Where the block of ``decision`` stands: writers leave empty texts out and put neighbours together."""
        if decision.part < 0:
            return decision
        blocks, part = self.choice.blocks, decision.part
        if len(self.message) == 1:
            left_out = sum(self._is_left_out(at) for at in range(part))
            return msgspec.structs.replace(decision, part=part - left_out)
        # Where each block is an item of the array, the item's index says it all.
        item = part if len(self.message) == len(blocks) else len(self._write(blocks[: part + 1])) - 1
        return msgspec.structs.replace(decision, message=decision.message + item, part=-1)

    def _is_left_out(self, at: int) -> bool:
        blocks = self.choice.blocks
        block = blocks[at]
        is_empty = isinstance(block, Text) and not block.text
        return is_empty and self._write((*blocks[:at], *blocks[at + 1 :])) == self.message

    def _write(self, blocks: tuple[Block, ...]) -> tuple[bytes, ...]:
        return self.writer.assistant(self.header, blocks, self.choice.carry)


def bare_bytes(item: Bare, writer: Writer) -> bytes:
    """The bytes of a message without its reasoning."""
    return item if isinstance(item, bytes) else b"\n".join(writer.assistant(*item, NOTHING))


def without_thoughts(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """What is left without reasoning, and without what ties it to its place."""
    left = (block for block in blocks if not isinstance(block, ThinkingBlock))
    return tuple(msgspec.structs.replace(block, carriers=()) if block.carriers else block for block in left)
