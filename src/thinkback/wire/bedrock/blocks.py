"""Content blocks of Converse from blocks: the objects that stand in a message's ``content``.

``source_field`` of a block names where it came from: ``reasoningText`` and ``redactedContent`` of reasoning,
``text`` of a text that is a content block of its own, ``citationsContent`` of one with citations. Reasoning that stood
in a text between tags has ``content``, and the pieces of text around it say which of their neighbours they go with:
joined, they are that text again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from thinkback.model import canonical
from thinkback.model.blocks import (
    Block,
    Carrier,
    Media,
    Text,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    Unknown,
    content_slice,
)
from thinkback.wire.arguments import as_object
from thinkback.wire.bedrock import media

TEXT_BEGINS, TEXT_WITHIN, TEXT_ENDS = "text_begins", "text_within", "text_ends"
_string = canonical.string


def wire_object(block: Block) -> bytes:
    """The content block that ``block`` is. Raises ``UnsupportedContent`` for media there is none for."""
    if block.wire or isinstance(block, ToolResult | Unknown):
        return canonical.raw(block.wire)
    match block:
        case ThinkingBlock() if block.source_field != "content":
            return _reasoning(block)
        case Text() | ThinkingBlock():
            return b'{"text":%b}' % _string(content_slice(block))
        case ToolCall():
            head = _string(block.id), _string(block.name), as_object(block.arguments)
            return b'{"toolUse":{"toolUseId":%b,"name":%b,"input":%b}}' % head
        case Media():
            return media.part(block)
        case _:
            assert_never(block)


def _reasoning(block: ThinkingBlock) -> bytes:
    redacted = redacted_of(block.carriers)
    if redacted is not None:
        return b'{"reasoningContent":{"redactedContent":%b}}' % _string(redacted)
    signature = b',"signature":%b' % _string(block.signature) if block.signature else b""
    return b'{"reasoningContent":{"reasoningText":{"text":%b%b}}}' % (_string(block.thought), signature)


def redacted_of(carriers: Iterable[Carrier]) -> str | None:
    """The redacted reasoning among ``carriers``."""
    return next((carrier.value for carrier in carriers if carrier.kind == "redacted"), None)


def content_objects(blocks: Sequence[Block]) -> Iterator[tuple[bytes, bool]]:
    """The content blocks that ``blocks`` are, and whether each is a text without anything to read."""
    at = 0
    while at < len(blocks):
        run = _run(blocks, at)
        if len(run) < 2:
            block = blocks[at]
            yield wire_object(block), isinstance(block, Text) and not (block.wire or block.text.strip())
        else:
            yield b'{"text":%b}' % _string(canonical.whole("".join(map(content_slice, run)))), False
        at += len(run) or 1


def _run(blocks: Sequence[Block], start: int) -> list[Text | ThinkingBlock]:
    """The blocks from ``start`` on that were one text: text and tagged reasoning in turns."""
    run: list[Text | ThinkingBlock] = []
    for at in range(start, len(blocks)):
        block = blocks[at]
        if not isinstance(block, Text | ThinkingBlock) or block.wire or (run and not _goes_on(run[-1], block)):
            break
        run.append(block)
    return run


def _goes_on(before: Text | ThinkingBlock, block: Text | ThinkingBlock) -> bool:
    if isinstance(before, Text):
        is_open = before.source_field in (TEXT_BEGINS, TEXT_WITHIN)
        return is_open and isinstance(block, ThinkingBlock) and block.source_field == "content"
    return before.source_field == "content" and block.source_field in (TEXT_WITHIN, TEXT_ENDS)
