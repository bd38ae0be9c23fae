"""Request writer of the ``cohere`` dialect: neutral values to the bytes of messages and bodies.

Promises: the source text of arguments goes out as it came; the message array comes first in the body, so that the
bytes of one request begin with those of the last. Citations are output: they point at places in a content that the
next request may not repeat, and are not sent. Must not: decide what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import Carry
from thinkback.wire import bodies
from thinkback.wire.cohere.blocks import wire_object

start = b'{"messages":['
separator = b","
system_on_top = False
alternates = False
results_by_user = False
user_first: Literal["always", "calls", "never"] = "never"
custom_tools: Literal["all", "some", "none"] = "none"
strict_tools: Literal["said", "held", "none"] = "none"
tells_errors = False
prefill: Literal["last", "member", ""] = ""
_string = canonical.string


def turn_over(before: str, role: str) -> tuple[bytes, int]:
    """Every message stands for itself."""
    return b"", 1


def top(message: Message) -> bytes:
    """A system message stands in the message array like any other."""
    return bodies.message("system", message, wire_object)


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A system or user message; an adopted one goes out as the program held it."""
    return bodies.message(role, message, wire_object)


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
    """An assistant message; reasoning alone, or beside empty text, is none."""
    items = [block for block in blocks if not isinstance(block, ToolCall) and not _is_plan(block)]
    calls = [_call(block) for block in blocks if isinstance(block, ToolCall)]
    if not calls and not any(_says(block) for block in items):
        return ()
    pieces = [b'{"role":"assistant"']
    texts = [block.text for block in items if isinstance(block, Text) and not block.wire]
    if response.content == "text" and len(texts) == len(items) > 0:
        pieces.append(b',"content":' + _string("".join(texts)))
    elif items:
        pieces.append(b',"content":[%b]' % b",".join(map(wire_object, items)))
    plan = "".join(block.thought for block in blocks if isinstance(block, ThinkingBlock) and _is_plan(block))
    if plan:
        pieces.append(b',"tool_plan":' + _string(plan))
    if calls:
        pieces.append(b',"tool_calls":[%b]' % b",".join(calls))
    pieces.append(b"}")
    return (b"".join(pieces),)


def _says(block: Block) -> bool:
    """Whether a block is an answer by itself."""
    return not isinstance(block, ThinkingBlock) and (not isinstance(block, Text) or bool(block.text))


def _is_plan(block: Block) -> bool:
    return isinstance(block, ThinkingBlock) and block.source_field == "tool_plan"


def _call(call: ToolCall) -> bytes:
    """A call without arguments has an empty object of them."""
    return wire_object(call if call.arguments else msgspec.structs.replace(call, arguments="{}"))


def results(results: Sequence[ToolResult]) -> tuple[bytes, ...]:
    """The answers to the calls of a response, a message each. There is no word for those that are errors."""
    return tuple(map(_result, results))


def _result(result: ToolResult) -> bytes:
    if result.wire:
        return canonical.raw(result.wire)
    return b'{"role":"tool","tool_call_id":%b,"content":%b}' % (_string(result.id), _string(result.content))


def end(model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
    """What follows the messages in the body: tools, model, parameters."""
    return bodies.end(model, list(map(_tool, tools)), params)


def _tool(tool: Tool) -> bytes:
    if tool.wire:
        return canonical.raw(tool.wire)
    description = b',"description":%b' % _string(tool.description) if tool.description else b""
    return b'{"type":"function","function":{"name":%b%b,"parameters":%b}}' % (
        _string(tool.name),
        description,
        canonical.raw(tool.parameters),
    )
