"""Request writer of the ``openai-responses`` dialect: neutral values to the bytes of input items and bodies.

Promises: opaque values and arguments go on as they came; each item is a fragment of its own, in the order of its
response; the input comes first in the body, so that the bytes of one request begin with those of the last. What only
a response may have is removed here: the ``status`` of reasoning, messages and calls (Azure refuses it), and ``null``
members of reasoning. Must not: decide what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.custom_tools import definition_of, flat_source
from thinkback.model.plan import Carry
from thinkback.wire import bodies
from thinkback.wire.call_ids import fitting
from thinkback.wire.openai_responses import content
from thinkback.wire.openai_responses.blocks import CUSTOM, carrier, reasoning_parts
from thinkback.wire.sources import joined, members, string

start = b'{"input":['
separator = b","
system_on_top = False
alternates = False
results_by_user = False
user_first: Literal["always", "calls", "never"] = "never"
custom_tools: Literal["all", "some", "none"] = "all"
strict_tools: Literal["said", "held", "none"] = "held"
tells_errors = False
prefill: Literal["last", "member", ""] = ""
_string = canonical.string
# Bedrock's own ids have a colon.
call_id = fitting("A-Za-z0-9_:-", "call_")


def top(message: Message) -> bytes:
    """A system message as one of the ``instructions``, for hosts that want them there."""
    return _string(message.text)


def turn_over(before: str, role: str) -> tuple[bytes, int]:
    """Every item stands for itself."""
    return b"", 1


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A system or user message; an adopted one goes out as the program held it. Raises ``UnsupportedContent``."""
    return bodies.message(role, message, content.part)


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
    """The items of a response, each as far as its block still has what it came with."""
    return tuple(item for block in blocks if (item := write_item(block)))


def write_item(block: Block) -> bytes:
    """The input item of one block; nothing where there is nothing to say. Raises ``UnsupportedContent``."""
    match block:
        case ThinkingBlock():
            return _verbatim_reasoning(block.wire) if block.wire else _reasoning(block)
        case Text():
            return _without_status(block.wire) if block.wire else _write_message(block)
        case ToolCall():
            return _verbatim_call(block.wire) if block.wire else _call(block)
        case Media() if not block.wire:
            raise content.unsupported(block)
        case _:
            return canonical.raw(block.wire)


def _verbatim_reasoning(wire: str) -> bytes:
    kept = {key: source for key, source in members(wire).items() if key != "status" and source != "null"}
    return canonical.raw(joined({**kept, "summary": kept.get("summary", "[]")}))


def _reasoning(block: ThinkingBlock) -> bytes:
    id, encrypted = carrier(block, "item_id"), carrier(block, "encrypted")
    if not (id or encrypted or block.thought):
        return b""
    item = {"type": "reasoning", **({"id": id} if id else {}), **reasoning_parts(block)}
    if encrypted:
        item["encrypted_content"] = encrypted
    return canonical.source(item).encode()


def _without_status(wire: str) -> bytes:
    return canonical.raw(joined({key: source for key, source in members(wire).items() if key != "status"}))


def _write_message(block: Text) -> bytes:
    """A message; one that no longer has its id is told in the short form."""
    id, phase = carrier(block, "item_id"), carrier(block, "phase")
    phased = {"phase": phase} if phase else {}
    if id:
        part: dict[str, Any] = {"type": "output_text", "text": block.text, "annotations": []}
        if block.source_field == "refusal":
            part = {"type": "refusal", "refusal": block.text}
        item = {"type": "message", "id": id, "role": "assistant", "content": [part], **phased}
        return canonical.source(item).encode()
    return canonical.source({"role": "assistant", "content": block.text, **phased}).encode() if block.text else b""


def _verbatim_call(wire: str) -> bytes:
    call = members(wire)
    call.pop("status", None)
    return _with_fitting_id(call)


def _call(call: ToolCall) -> bytes:
    id = carrier(call, "item_id")
    tied = b'"id":%b,' % _string(id) if id else b""
    is_custom = call.source_field == CUSTOM
    return b'{"type":"%b",%b"call_id":%b,"name":%b,"%b":%b}' % (
        b"custom_tool_call" if is_custom else b"function_call",
        tied,
        _string(call_id(call.id)),
        _string(call.name),
        b"input" if is_custom else b"arguments",
        _string(call.arguments),
    )


def _with_fitting_id(item: dict[str, str]) -> bytes:
    """The item with the id that its call, or its result, goes by."""
    id = canonical.decode(item.get("call_id", "null"))
    if isinstance(id, str) and call_id(id) != id:
        item["call_id"] = string(call_id(id))
    return canonical.raw(joined(item))


def results(results: Sequence[ToolResult]) -> tuple[bytes, ...]:
    """The answers to the calls of a response, an item each."""
    return tuple(map(_result, results))


def _result(result: ToolResult) -> bytes:
    if result.wire:
        fits = call_id(result.id) == result.id
        return canonical.raw(result.wire) if fits else _with_fitting_id(members(result.wire))
    kind = b"custom_tool_call_output" if result.call_field == CUSTOM else b"function_call_output"
    return b'{"type":"%b","call_id":%b,"output":%b}' % (kind, _string(call_id(result.id)), _string(result.content))


def end(model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
    """What follows the input in the body: instructions, tools, model, parameters."""
    pieces = [b"]"]
    if system:
        pieces.append(b',"instructions":' + _string("\n\n".join(map(canonical.decode, system))))
    if tools:
        pieces.append(b',"tools":[%b]' % b",".join(map(_tool, tools)))
    pieces.append(b',"model":' + _string(model))
    pieces.append(bodies.close(params))
    return b"".join(pieces)


def _tool(tool: Tool) -> bytes:
    """A definition as it was written, unless in the shape of chat completions, which has it all one level down."""
    if tool.dialect == "" and definition_of(tool) is not None:
        return canonical.raw(flat_source(tool))
    if tool.wire and (tool.dialect or "function" not in members(tool.wire)):
        return canonical.raw(tool.wire)
    return b'{"type":"function","name":%b,"description":%b,"parameters":%b%b}' % (
        _string(tool.name),
        _string(tool.description),
        canonical.raw(tool.parameters),
        bodies.strict(tool),
    )
