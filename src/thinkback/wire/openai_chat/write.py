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
from thinkback.model.custom_tools import definition_of, is_custom, nested_source
from thinkback.model.plan import Carry
from thinkback.wire import bodies
from thinkback.wire.openai_chat import media

start = b'{"messages":['
separator = b","
system_on_top = False
alternates = False
results_by_user = False
user_first: Literal["always", "calls", "never"] = "never"
custom_tools: Literal["all", "some", "none"] = "some"
strict_tools: Literal["said", "held", "none"] = "said"
tells_errors = False
prefill: Literal["last", "member", ""] = ""
_string = canonical.string


def top(message: Message) -> bytes:
    """A system message stands in the message array like any other."""
    return bodies.message("system", message, _part)


def turn_over(before: str, role: str) -> tuple[bytes, int]:
    """Every message stands for itself."""
    return b"", 1


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A system or user message; an adopted one goes out as the program held it."""
    return bodies.message(role, message, _part)


def _part(part: Text | Media | Unknown) -> bytes:
    if part.wire or isinstance(part, Unknown):
        return canonical.raw(part.wire)
    return _text_part(part.text) if isinstance(part, Text) else media.part(part)


def _text_part(text: str) -> bytes:
    return b'{"type":"text","text":%b}' % _string(text)


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
    """An assistant message: content, the reasoning of ``carry``, tool calls."""
    said, refusals, calls, has_tags = _sort(blocks, carry.tagged)
    content = _content(said, carry, has_tags)
    pieces = [b'{"role":"assistant"']
    if content:
        pieces.append(b',"content":' + content)
    elif response.content == "text" or not (calls or refusals):
        pieces.append(b',"content":""')
    elif response.content == "null":
        pieces.append(b',"content":null')
    if refusals:
        pieces.append(b',"refusal":' + _string("".join(refusals)))
    if carry.fields:
        text = _string(carry.text)
        pieces += [b",%b:%b" % (_string(field), text) for field in carry.fields]
    if carry.details is not None:
        pieces.append(b',"reasoning_details":[%b]' % canonical.raw(",".join(carry.details)))
    signatures = [value for block in blocks if isinstance(block, Text) for value in _signatures(block)]
    if signatures:
        pieces.append(_signed(signatures[-1]))
    if calls:
        if carry.dummy:
            calls[0] = calls[0][:-1] + _signed(carry.dummy) + b"}"
        pieces.append(b',"tool_calls":[%b]' % b",".join(calls))
    pieces.append(b"}")
    return (b"".join(pieces),)


def _sort(blocks: Sequence[Block], tagged: bool) -> tuple[list[str | bytes], list[str], list[bytes], bool]:
    """What is said in ``content`` (text, and other parts as bytes), refusals, calls, and whether tags stood there."""
    said: list[str | bytes] = []
    refusals: list[str] = []
    calls: list[bytes] = []
    has_tags = False
    for block in blocks:
        if isinstance(block, ThinkingBlock):
            if block.source_field == "content":
                has_tags = has_tags or tagged or not block.wire
                if tagged and not block.marker:
                    said.append(canonical.raw(block.wire) if block.wire else content_slice(block))
        elif isinstance(block, Text) and not block.wire:
            if block.source_field == "refusal":
                refusals.append(block.text)
            else:
                said.append(block.text)
        elif isinstance(block, ToolCall):
            calls.append(_call(block))
        else:
            said.append(canonical.raw(block.wire))
    return said, refusals, calls, has_tags


def _content(said: list[str | bytes], carry: Carry, has_tags: bool) -> bytes:
    """A string, or a list where other parts than plain text stand in it; empty when there is nothing to say."""
    runs = said if len(said) < 2 else _joined(said)
    if not runs or isinstance(runs[0], bytes):
        runs.insert(0, "")
    first = str(runs[0])
    if has_tags and not carry.tagged:
        first = first.lstrip()
    if carry.tagged and carry.text and not has_tags:
        first = f"<think>\n{carry.text}\n</think>\n\n{first}"
    if len(runs) == 1:
        return _string(first) if first else b""
    parts = [_text_part(run) if isinstance(run, str) else run for run in (first, *runs[1:]) if run]
    return b"[%b]" % b",".join(parts)


def _joined(said: list[str | bytes]) -> list[str | bytes]:
    """Neighbouring texts become one."""
    runs: list[str | bytes] = []
    for piece in said:
        last = runs[-1] if runs else None
        if isinstance(piece, str) and isinstance(last, str):
            runs[-1] = last + piece
        else:
            runs.append(piece)
    return runs


def _call(call: ToolCall) -> bytes:
    if call.wire:
        return canonical.raw(call.wire)
    fields = (_string(call.id), _string(call.name), _string(call.arguments))
    if is_custom(call):
        return b'{"id":%b,"type":"custom","custom":{"name":%b,"input":%b}}' % fields
    written = b'{"id":%b,"type":"function","function":{"name":%b,"arguments":%b}' % fields
    return written + b"".join(map(_signed, _signatures(call))) + b"}"


def _signatures(block: Text | ToolCall) -> list[str]:
    return [carrier.value for carrier in block.carriers if carrier.kind == "thought_signature"]


def _signed(value: str) -> bytes:
    """Where Google's host has the signature of a message, or of a call."""
    return b',"extra_content":{"google":{"thought_signature":%b}}' % _string(value)


def results(results: Sequence[ToolResult]) -> tuple[bytes, ...]:
    """The answers to the calls of a response, a message each."""
    return tuple(map(_result, results))


def _result(result: ToolResult) -> bytes:
    if result.wire:
        return canonical.raw(result.wire)
    return b'{"role":"tool","tool_call_id":%b,"content":%b}' % (_string(result.id), _string(result.content))


def end(model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
    """What follows the messages in the body: tools, model, parameters."""
    return bodies.end(model, list(map(_tool, tools)), params)


def _tool(tool: Tool) -> bytes:
    if tool.dialect == "" and definition_of(tool) is not None:
        return canonical.raw(nested_source(tool))
    return bodies.function(tool)
