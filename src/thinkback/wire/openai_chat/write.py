"""Request writer of the ``openai-chat`` dialect: neutral values to the bytes of messages and bodies.

Promises: opaque values and argument text are spliced as they came, never re-encoded; the message array comes first
in the body, so that the bytes of one request begin with those of the last. Must not: decide what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, content_slice
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import Carry

start = b'{"messages":['
separator = b","
_string = canonical.string


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A system or user message; an adopted one goes out as the program held it."""
    if message.wire:
        return canonical.raw(message.wire)
    if not message.parts:
        return b'{"role":"%b","content":%b}' % (role.encode(), _string(message.text))
    parts = b",".join(_part(part) for part in message.parts)
    return b'{"role":"%b","content":[%b]}' % (role.encode(), parts)


def _part(part: Text | Media | Unknown) -> bytes:
    return _text_part(part.text) if isinstance(part, Text) and not part.wire else canonical.raw(part.wire)


def _text_part(text: str) -> bytes:
    return b'{"type":"text","text":%b}' % _string(text)


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> bytes:
    """An assistant message: content, the reasoning of ``carry``, tool calls."""
    calls = [_call(block) for block in blocks if isinstance(block, ToolCall)]
    refusal = "".join([block.text for block in blocks if isinstance(block, Text) and block.source_field == "refusal"])
    content = _content(blocks, carry)
    pieces = [b'{"role":"assistant"']
    if content:
        pieces.append(b',"content":' + content)
    elif response.content == "text" or not (calls or refusal):
        pieces.append(b',"content":""')
    elif response.content == "null":
        pieces.append(b',"content":null')
    if refusal:
        pieces.append(b',"refusal":' + _string(refusal))
    if carry.fields:
        text = _string(carry.text)
        pieces += [b",%b:%b" % (_string(field), text) for field in carry.fields]
    if carry.details is not None:
        pieces.append(b',"reasoning_details":[%b]' % canonical.raw(",".join(carry.details)))
    if calls:
        pieces.append(b',"tool_calls":[%b]' % b",".join(calls))
    pieces.append(b"}")
    return b"".join(pieces)


def _content(blocks: Sequence[Block], carry: Carry) -> bytes:
    """A string, or a list where other parts than plain text stand in it; empty when there is nothing to say."""
    texts: list[list[str]] = [[]]
    others: list[bytes] = []
    has_tags = False
    for block in blocks:
        if isinstance(block, ThinkingBlock) and block.source_field == "content":
            has_tags = True
            if carry.tagged and not block.marker:
                texts[-1].append(content_slice(block))
        elif isinstance(block, Unknown) or (isinstance(block, Text) and block.wire):
            others.append(canonical.raw(block.wire))
            texts.append([])
        elif isinstance(block, Text) and block.source_field != "refusal":
            texts[-1].append(block.text)
    first, *later = ("".join(pieces) for pieces in texts)
    if has_tags and not carry.tagged:
        first = first.lstrip()
    if carry.tagged and carry.text and not has_tags:
        first = f"<think>\n{carry.text}\n</think>\n\n{first}"
    first = carry.prefix + first
    if not others:
        return _string(first) if first else b""
    parts = [_text_part(first)] if first else []
    for other, text in zip(others, later, strict=True):
        parts += [other, _text_part(text)] if text else [other]
    return b"[%b]" % b",".join(parts)


def _call(call: ToolCall) -> bytes:
    if call.wire:
        return canonical.raw(call.wire)
    return b'{"id":%b,"type":"function","function":{"name":%b,"arguments":%b}}' % (
        _string(call.id),
        _string(call.name),
        _string(call.arguments),
    )


def tool_result(result: ToolResult) -> bytes:
    """The answer to one call."""
    if result.wire:
        return canonical.raw(result.wire)
    return b'{"role":"tool","tool_call_id":%b,"content":%b}' % (_string(result.id), _string(result.content))


def end(model: str, tools: Sequence[Tool], params: dict[str, Any]) -> bytes:
    """What follows the messages in the body: tools, model, parameters."""
    pieces = [b"]"]
    if tools:
        pieces.append(b',"tools":[%b]' % b",".join(map(_tool, tools)))
    pieces.append(b',"model":' + _string(model))
    pieces += [b",%b:%b" % (_string(key), canonical.encode(value)) for key, value in params.items()]
    pieces.append(b"}")
    return b"".join(pieces)


def _tool(tool: Tool) -> bytes:
    if tool.wire:
        return canonical.raw(tool.wire)
    return b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}' % (
        _string(tool.name),
        _string(tool.description),
        canonical.raw(tool.parameters),
    )
