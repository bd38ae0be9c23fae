"""Steps of an interaction and blocks, there and back.

A block keeps its step (of a model's output: its content) verbatim only where ``wire_object`` would not rebuild the
same JSON value from its fields. Contents of the model that stand together are one ``model_output`` step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, assert_never

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.wire.arguments import as_object
from thinkback.wire.gemini_interactions import media

_B = TypeVar("_B", Text, ThinkingBlock, ToolCall, Media)
# What a model's output is made of, and what older interactions had as outputs of their own.
CONTENTS = frozenset({"text", "image", "audio", "video", "document"})
OUTPUT = "model_output"
# What stands between two texts of a summary.
BETWEEN = "\n\n"


def read_content(content: Mapping[str, Any]) -> Text | Media | Unknown:
    """A content of a model's output or of a user's input."""
    if content.get("type") == "text" and isinstance(content.get("text"), str):
        return kept(Text(content["text"]), content)
    found = media.read_media(content)
    return Unknown(canonical.source(dict(content))) if found is None else kept(found, content)


def contents_of(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The contents of a step."""
    contents = step.get("content")
    return [content for content in contents if isinstance(content, Mapping)] if isinstance(contents, list) else []


def read_part_of_output(content: Mapping[str, Any]) -> Text | Media | Unknown:
    """A content of a model's output; what is not understood is a step of its own."""
    block = read_content(content)
    if isinstance(block, Unknown):
        return Unknown(canonical.source({"type": OUTPUT, "content": [content]}))
    return block


def read_output(step: Mapping[str, Any], text: str) -> Text:
    """A model's output that says more than its contents; ``text`` came after them."""
    contents = [*contents_of(step), *([{"type": "text", "text": text}] if text else [])]
    wire = canonical.source({**step, "content": contents})
    return Text("".join(texts_of(contents)), carriers=_signature(step), wire=wire)


def read_thought(step: Mapping[str, Any]) -> ThinkingBlock:
    """A ``thought`` step: its signature, and its summary if it has one, the texts parted by a blank line."""
    signature, thought = step.get("signature"), BETWEEN.join(texts_of(step.get("summary")))
    block = ThinkingBlock(
        thought,
        source_field="thought",
        signature=signature if isinstance(signature, str) else "",
        kind="summary" if thought else "none",
    )
    return kept(block, step)


def texts_of(contents: Any) -> list[str]:
    """The texts of a ``summary``, or of other contents."""
    found = contents if isinstance(contents, list) else []
    texts = [content.get("text") for content in found if isinstance(content, Mapping)]
    return [text for text in texts if isinstance(text, str) and text]


def read_call(step: Mapping[str, Any], arguments: str) -> ToolCall:
    """A ``function_call`` step; ``arguments`` is the source text."""
    id, name = step.get("id"), step.get("name")
    call = ToolCall(
        id if isinstance(id, str) else "",
        name if isinstance(name, str) else "",
        arguments,
        carriers=_signature(step),
    )
    return kept(call, step)


def read_other(step: Mapping[str, Any]) -> Unknown:
    """Any other step: what the provider ran itself, and what is not known."""
    return Unknown(canonical.source(dict(step)), _signature(step))


def _signature(step: Mapping[str, Any]) -> tuple[Carrier, ...]:
    value = step.get("signature")
    return (Carrier("signature", value),) if isinstance(value, str) and value else ()


def kept(block: _B, object: Mapping[str, Any]) -> _B:
    """``block``, with its object verbatim where it would not be rebuilt."""
    if canonical.decode(wire_object(block)) == object:
        return block
    return msgspec.structs.replace(block, wire=canonical.source(dict(object)))


def wire_object(block: Block) -> bytes:
    """``block`` as a step, or as a content of one. Raises ``UnsupportedContent`` for media without content."""
    if block.wire or isinstance(block, Unknown):
        return canonical.raw(block.wire)
    match block:
        case Text():
            return b'{"type":"text","text":%b}' % canonical.string(block.text)
        case ThinkingBlock():
            text = b'{"type":"text","text":%b}' % canonical.string(block.thought)
            field = b',"summary":[%b]' % text if block.thought else b""
            return b'{"type":"thought"%b%b}' % (field, _signed(block.signature))
        case ToolCall():
            signature = "".join(carrier.value for carrier in block.carriers if carrier.kind == "signature")
            fields = (canonical.string(block.id), canonical.string(block.name), as_object(block.arguments))
            call = b'{"type":"function_call","id":%b,"name":%b,"arguments":%b' % fields
            return call + _signed(signature) + b"}"
        case ToolResult():
            named = b',"name":' + canonical.string(block.name) if block.name else b""
            failed = b',"is_error":true' if block.is_error else b""
            fields = (canonical.string(block.id), named, canonical.string(block.content))
            return b'{"type":"function_result","call_id":%b%b,"result":%b' % fields + failed + b"}"
        case Media():
            return media.written(block)
        case _:
            assert_never(block)


def _signed(value: str) -> bytes:
    return b',"signature":' + canonical.string(value) if value else b""


def steps_of(blocks: Iterable[Block]) -> list[bytes]:
    """The steps of a response."""
    steps: list[bytes] = []
    contents: list[bytes] = []
    for block in blocks:
        written = wire_object(block)
        if isinstance(block, Text | Media) and not _is_step(block.wire):
            contents.append(written)
            continue
        steps += [*output(contents), written]
        contents = []
    return [*steps, *output(contents)]


def output(contents: Iterable[bytes]) -> list[bytes]:
    """A ``model_output`` step of some contents, if there are any."""
    joined = b",".join(contents)
    return [b'{"type":"model_output","content":[%b]}' % joined] if joined else []


def _is_step(wire: str) -> bool:
    """Whether a verbatim object is a whole step and not a content."""
    return bool(wire) and canonical.decode(wire).get("type") == OUTPUT
