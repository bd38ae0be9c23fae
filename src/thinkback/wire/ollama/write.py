"""Request writer of the ``ollama`` dialect: neutral values to the bytes of messages and bodies.

Promises: arguments go as the object they came as, byte for byte; the message array comes first in the body. Reasoning
goes where it stood: the ``thinking`` field, or tags in ``content``. Must not: decide what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn, TypeGuard

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, content_slice
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import Carry
from thinkback.wire import bodies
from thinkback.wire.arguments import as_object

NAME = "ollama"
start = b'{"messages":['
separator = b","
system_on_top = False
alternates = False
results_by_user = False
user_first: Literal["always", "calls", "never"] = "never"
custom_tools: Literal["all", "some", "none"] = "none"
strict_tools: Literal["said", "held", "none"] = "none"
tells_errors = False
prefill: Literal["last", "member", ""] = "last"
_string = canonical.string


def top(message: Message) -> bytes:
    """A system message stands in the message array like any other."""
    return _written("system", message)


def turn_over(before: str, role: str) -> tuple[bytes, int]:
    """Every message stands for itself."""
    return b"", 1


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A system or user message; an adopted one goes out as the program held it."""
    return _written(role, message)


def _written(role: Literal["system", "user"], message: Message) -> bytes:
    if message.wire:
        return canonical.raw(message.wire)
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    said = "".join(texts) if message.parts else message.text
    images = [_image(part) for part in message.parts if not isinstance(part, Text)]
    return b'{"role":"%b","content":%b%b}' % (role.encode(), _string(said), _images(images))


def _image(part: Media | Unknown) -> bytes:
    if isinstance(part, Unknown):
        _refuse("a part of a kind that it does not know", "")
    if not part.data or part.media_type.partition("/")[0] != "image":
        _refuse(f"{part.media_type} by address" if part.url else part.media_type, part.media_type)
    return _string(part.data)


def _refuse(what: str, media_type: str) -> NoReturn:
    raise UnsupportedContent(
        f"Ollama takes images as data, not {what}",
        details={"media_type": media_type, "dialect": NAME},
        next_actions=("give the image itself in base64",),
    )


def _images(images: Sequence[bytes]) -> bytes:
    return b',"images":[%b]' % b",".join(images) if images else b""


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
    """An assistant message: its reasoning, or that of ``carry`` in its place, its content, images and calls."""
    thinking = "".join(content_slice(b) for b in blocks if isinstance(b, ThinkingBlock) and not _is_content(b))
    thinking = carry.text if carry.fields else thinking
    said = "".join(content_slice(block) for block in blocks if _is_content(block))
    images = [_image(block) for block in blocks if isinstance(block, Media)]
    calls = [_call(block) for block in blocks if isinstance(block, ToolCall)]
    if not (thinking or said or images or calls):
        return ()
    pieces = [b'{"role":"assistant"']
    if said or response.content == "text" or not (calls or images):
        pieces.append(b',"content":' + _string(said))
    elif response.content == "null":
        pieces.append(b',"content":null')
    if thinking:
        pieces.append(b',"thinking":' + _string(thinking))
    pieces.append(_images(images))
    if calls:
        pieces.append(b',"tool_calls":[%b]' % b",".join(calls))
    pieces.append(b"}")
    return (b"".join(pieces),)


def _is_content(block: Block) -> TypeGuard[Text | ThinkingBlock]:
    return isinstance(block, Text) or (isinstance(block, ThinkingBlock) and block.source_field == "content")


def _call(call: ToolCall) -> bytes:
    if call.wire:
        return canonical.raw(call.wire)
    named = b'"id":%b,' % _string(call.id) if call.id else b""
    return b'{%b"function":{"name":%b,"arguments":%b}}' % (named, _string(call.name), as_object(call.arguments))


def results(results: Sequence[ToolResult]) -> tuple[bytes, ...]:
    """The answers to the calls of a response, a message each, in the order of the calls."""
    return tuple(map(_result, results))


def _result(result: ToolResult) -> bytes:
    if result.wire:
        return canonical.raw(result.wire)
    tied = b',"tool_call_id":' + _string(result.id) if result.id else b""
    named = b',"tool_name":' + _string(result.name) if result.name else b""
    return b'{"role":"tool","content":%b%b%b}' % (_string(result.content), named, tied)


def end(model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
    """What follows the messages in the body: tools, model, parameters."""
    return bodies.end(model, list(map(bodies.function, tools)), params)
