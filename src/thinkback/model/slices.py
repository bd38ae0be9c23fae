"""A text with reasoning between tags in it, as slices: a block each, which joined are the text again.

Each slice of text says by its ``source_field`` where it stood; the last one is always text, empty if need be, and has
what the whole block carried. Its ``wire`` is the provider's object without the text, so that reasoning which is left
out or erased stands nowhere else. Must not: know dialects, or what is a tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, content_slice

CONTENT = "content"
BEGINS, WITHIN, ENDS = "content_begins", "content_within", "content_ends"
_MARKS = frozenset({BEGINS, WITHIN, ENDS})


def sliced(block: Text, slices: Sequence[Text | ThinkingBlock]) -> list[Text | ThinkingBlock]:
    """``slices`` of ``block``, the last of them text, with their marks and what the block carried."""
    last = len(slices) - 1
    marked: list[Text | ThinkingBlock] = []
    for at, one in enumerate(slices):
        if isinstance(one, Text):
            mark = ENDS if at == last else WITHIN if at else BEGINS
            one = msgspec.structs.replace(one, source_field=mark)
        marked.append(one)
    wire = _replaced(block.wire, block.text, "") if block.wire else ""
    marked[-1] = msgspec.structs.replace(marked[-1], carriers=block.carriers, wire=wire)
    return marked


def is_sliced(blocks: Sequence[Block]) -> bool:
    """Whether a text among ``blocks`` is one in slices."""
    return not _MARKS.isdisjoint([block.source_field for block in blocks if type(block) is Text])


def whole(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """``blocks`` with the slices of each text put together as far as they are there, tags and all.

    Where a tag that the text began with is not there, the white space behind it goes with it. Tagged reasoning whose
    text is not there is a text by itself, as no dialect has a place for it but a text.
    """
    if not any(isinstance(block, Text | ThinkingBlock) and _is_slice(block) for block in blocks):
        return tuple(blocks)
    joined: list[Block] = []
    run: list[Text | ThinkingBlock] = []
    for block in blocks:
        if isinstance(block, Text | ThinkingBlock) and _is_slice(block):
            run.append(block)
            if isinstance(block, Text) and block.source_field == ENDS:
                joined.append(_joined(run, block))
                run = []
        else:
            # The texts of other dialects say in other words that they go on.
            joined += [*(run if isinstance(block, Text) else _alone(run)), block]
            run = []
    return (*joined, *_alone(run))


def _is_slice(block: Text | ThinkingBlock) -> bool:
    if isinstance(block, Text):
        return block.source_field in _MARKS
    return block.source_field == CONTENT and not block.wire


def _alone(run: Sequence[Text | ThinkingBlock]) -> list[Text]:
    return [Text("".join(map(content_slice, run)))] if run else []


def _joined(run: Sequence[Text | ThinkingBlock], last: Text) -> Text:
    text = "".join(map(content_slice, run))
    if run[0].source_field in (WITHIN, ENDS):
        text = text.lstrip()
    wire = _replaced(last.wire, "", text) if last.wire else ""
    return msgspec.structs.replace(last, text=text, source_field=CONTENT, wire=wire)


def _replaced(wire: str, old: str, new: str) -> str:
    """The object with the text ``new`` in place of ``old``; nothing where the text is not one of its members."""
    value = canonical.decode(wire)
    return canonical.source(value) if _replace(value, old, new) else ""


def _replace(value: Any, old: str, new: str) -> bool:
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            if value["text"] == old:
                value["text"] = new
                return True
            return False
        value = list(value.values())
    return isinstance(value, list) and any(_replace(inner, old, new) for inner in value)
