"""Request writer of the ``openai-chat`` dialect: neutral values to the bytes of messages and bodies.

Promises: opaque values and argument text are spliced as they came, never re-encoded; the message array comes first
in the body, so that the bytes of one request begin with those of the last. Must not: decide what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, content_slice
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import Carry

start = b'{"messages":['
separator = b","
_string = canonical.string


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A system or user message; an adopted one goes out as the program held it."""
    if message.wire:
        return message.wire.encode("utf-8", "surrogatepass")
    if not message.parts:
        return b'{"role":"%b","content":%b}' % (role.encode(), _string(message.text))
    parts = b",".join(_part(part) for part in message.parts)
    return b'{"role":"%b","content":[%b]}' % (role.encode(), parts)


def _part(part: Block) -> bytes:
    if isinstance(part, Text):
        return b'{"type":"text","text":%b}' % _string(part.text)
    return part.wire.encode() if isinstance(part, Media) else getattr(part, "wire", "").encode()


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> bytes:
    """An assistant message: content, the reasoning of ``carry``, tool calls."""
    texts: list[str] = []
    calls: list[bytes] = []
    tagged = False
    for block in blocks:
        kind = type(block)
        if kind is Text:
            texts.append(block.text)  # type: ignore[union-attr]
        elif kind is ToolCall:
            calls.append(_call(block))  # type: ignore[arg-type]
        elif kind is ThinkingBlock and block.source_field == "content":  # type: ignore[union-attr]
            tagged = True
            if carry.tagged:
                texts.append(content_slice(block))  # type: ignore[arg-type]
    content = "".join(texts)
    if tagged and not carry.tagged:
        content = content.lstrip()
    if carry.tagged and carry.text and not tagged:
        content = f"<think>\n{carry.text}\n</think>\n\n{content}"
    if carry.prefix:
        content = carry.prefix + content
    pieces = [b'{"role":"assistant"']
    if content or response.content == "text" or not calls:
        pieces.append(b',"content":' + _string(content))
    elif response.content == "null":
        pieces.append(b',"content":null')
    if carry.fields:
        text = _string(carry.text)
        pieces += [b',"%b":%b' % (field.encode(), text) for field in carry.fields]
    if carry.details is not None:
        pieces.append(b',"reasoning_details":[%b]' % ",".join(carry.details).encode())
    if calls:
        pieces.append(b',"tool_calls":[%b]' % b",".join(calls))
    pieces.append(b"}")
    return b"".join(pieces)


def _call(call: ToolCall) -> bytes:
    if call.wire:
        return call.wire.encode()
    return b'{"id":%b,"type":"function","function":{"name":%b,"arguments":%b}}' % (
        _string(call.id),
        _string(call.name),
        _string(call.arguments),
    )


def tool_result(result: ToolResult) -> bytes:
    """The answer to one call."""
    if result.wire:
        return result.wire.encode("utf-8", "surrogatepass")
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
        return tool.wire.encode()
    return b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}' % (
        _string(tool.name),
        _string(tool.description),
        tool.parameters.encode(),
    )
