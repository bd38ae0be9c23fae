"""Request writer of the ``bedrock`` dialect: neutral values to the bytes of content blocks and bodies.

Neighbours of one role must be one message, so what is written are content blocks, and ``turn_over`` closes a message
and opens the next. A conversation begins with the user; ``start`` opens that message already, so that a body without
messages is JSON as well.

Promises: opaque values and the source text of inputs are spliced as they came; the messages come first in the body,
so that the bytes of one request begin with those of the last. Must not: decide what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import Carry
from thinkback.wire import bodies
from thinkback.wire.bedrock.blocks import content_objects, wire_object
from thinkback.wire.call_ids import fitting

start = b'{"messages":[{"role":"user","content":['
separator = b""
system_on_top = True
alternates = True
results_by_user = True
user_first: Literal["always", "calls", "never"] = "always"
custom_tools: Literal["all", "some", "none"] = "none"
strict_tools: Literal["said", "held", "none"] = "said"
tells_errors = True
prefill: Literal["last", "member", ""] = "last"
_string = canonical.string
# Kimi's ids (``functions.name:0``) come from Bedrock and are taken back by it: hence the dot and the colon.
call_id = fitting("a-zA-Z0-9_.:-", "tooluse_")


def turn_over(before: str, role: str) -> tuple[bytes, int]:
    """Results and whatever else is not the assistant's come from the user."""
    side, side_before = _side(role), _side(before)
    if side != side_before:
        return b']},{"role":"%b","content":[' % side, 1 if before else 2
    return (b",", 0) if before else (b"", 1)


def _side(role: str) -> bytes:
    return b"assistant" if role == "assistant" else b"user"


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """The content blocks of a message; Converse takes no system message among the others."""
    return _written(message)


def top(message: Message) -> bytes:
    """The blocks of a system message."""
    return _written(message)


def _written(message: Message) -> bytes:
    parts: tuple[Text | Media | Unknown, ...] = message.parts or (Text(message.text),)
    return b",".join(map(wire_object, parts))


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
    """The content blocks of a response. A text without anything to read is refused unless it came with reasoning."""
    reasons = any(isinstance(block, ThinkingBlock) and block.source_field != "content" for block in blocks)
    fitting = [_fitting(block) for block in blocks]
    written = [source for source, is_blank in content_objects(fitting) if reasons or not is_blank]
    return (b",".join(written),) if written else ()


def _fitting(block: Block) -> Block:
    if isinstance(block, ToolCall) and not block.wire and (id := call_id(block.id)) != block.id:
        return msgspec.structs.replace(block, id=id)
    return block


def results(results: Sequence[ToolResult]) -> tuple[bytes, ...]:
    """The answers to the calls of a response, together."""
    return (b",".join(map(_result, results)),) if results else ()


def _result(result: ToolResult) -> bytes:
    if result.wire:
        return canonical.raw(result.wire)
    status = b',"status":"error"' if result.is_error else b""
    return b'{"toolResult":{"toolUseId":%b,"content":[{"text":%b}]%b}}' % (
        _string(call_id(result.id)),
        _string(result.content),
        status,
    )


def end(model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
    """What follows the messages in the body; the model stands in the address of the request."""
    pieces = [b"]}]"]
    if system:
        pieces.append(b',"system":[%b]' % b",".join(system))
    if tools:
        params = dict(params)
        given = params.pop("toolConfig", None)
        pieces.append(b',"toolConfig":' + _tool_config(tools, given if isinstance(given, dict) else {}))
    pieces.append(bodies.close(params))
    return b"".join(pieces)


def _tool_config(tools: Sequence[Tool], given: dict[str, Any]) -> bytes:
    """The tools, and what the caller gave beside them."""
    offered = [*map(_tool, tools), *(canonical.encode(tool) for tool in given.get("tools") or ())]
    rest = [b",%b:%b" % (_string(key), canonical.encode(value)) for key, value in given.items() if key != "tools"]
    return b'{"tools":[%b]%b}' % (b",".join(offered), b"".join(rest))


def _tool(tool: Tool) -> bytes:
    if tool.wire:
        return canonical.raw(tool.wire)
    description = b',"description":%b' % _string(tool.description) if tool.description else b""
    return b'{"toolSpec":{"name":%b%b,"inputSchema":{"json":%b}%b}}' % (
        _string(tool.name),
        description,
        canonical.raw(tool.parameters),
        bodies.strict(tool),
    )
