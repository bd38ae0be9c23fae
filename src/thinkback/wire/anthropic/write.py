"""Request writer of the ``anthropic`` dialect: neutral values to the bytes of messages and bodies.

Promises: opaque values and tool inputs are spliced as they came, never re-encoded; the message array comes first in
the body, so that the bytes of one request begin with those of the last. Must not: decide what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import Carry
from thinkback.wire import bodies
from thinkback.wire.anthropic import media
from thinkback.wire.anthropic.blocks import NAME, wire_object
from thinkback.wire.call_ids import fitting
from thinkback.wire.sources import joined, members, string

start = b'{"messages":['
separator = b","
system_on_top = True
alternates = False
results_by_user = True
user_first: Literal["always", "calls", "never"] = "always"
custom_tools: Literal["all", "some", "none"] = "none"
strict_tools: Literal["said", "held", "none"] = "said"
tells_errors = True
prefill: Literal["last", "member", ""] = "last"
_string = canonical.string
call_id = fitting("a-zA-Z0-9_-", "toolu_")
# Chat completions offer a tool without parameters like this; an input schema has to be that of an object.
_ANY = ("", "{}")


def top(message: Message) -> bytes:
    """A system message as entries of ``system``."""
    return _parts(message)


def turn_over(before: str, role: str) -> tuple[bytes, int]:
    """Every message stands for itself: the provider merges neighbours of one role."""
    return b"", 1


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A user message, or a system message in the middle of a conversation."""
    if message.wire:
        return canonical.raw(message.wire)
    content = b"[%b]" % _parts(message) if message.parts else _string(message.text)
    return b'{"role":"%b","content":%b}' % (role.encode(), content)


def _parts(message: Message) -> bytes:
    # An empty text is refused; beside an image other dialects allow one.
    parts = [part for part in message.parts or (Text(message.text),) if not (isinstance(part, Text) and not part.text)]
    return b",".join(map(_part, parts))


def _part(part: Text | Media | Unknown) -> bytes:
    return media.block(part) if isinstance(part, Media) and not part.wire else canonical.raw(wire_object(part))


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
    """An assistant message with its blocks in order; none where nothing is left to say.

    An empty text is refused, white space alone is accepted only as the model's own. The content of an adopted message
    that was a plain string is one again.
    """
    is_own = response.origin.dialect == NAME
    kept = [block for block in blocks if not isinstance(block, Text) or _says(block, is_own)]
    if not kept:
        return ()
    first = kept[0]
    if is_own and response.content == "text" and len(kept) == 1 and isinstance(first, Text) and not first.wire:
        content = _string(first.text)
    else:
        content = b"[%b]" % b",".join(map(_block, kept))
    return (b'{"role":"assistant","content":%b}' % content,)


def _says(block: Text, is_own: bool) -> bool:
    return bool(block.text if is_own else block.text.strip())


def _block(block: Block) -> bytes:
    if isinstance(block, ToolCall):
        return _with_id("id", block)
    if isinstance(block, Media) and not block.wire:
        raise UnsupportedContent(
            "an assistant message of this dialect holds no media",
            details={"media_type": block.media_type, "dialect": NAME},
            next_actions=("give the image in a user message",),
        )
    return canonical.raw(wire_object(block))


def _with_id(field: str, block: ToolCall | ToolResult) -> bytes:
    """The block, with an id that fits."""
    source, id = wire_object(block), call_id(block.id)
    return canonical.raw(source if id == block.id else joined({**members(source), field: string(id)}))


def results(results: Sequence[ToolResult]) -> tuple[bytes, ...]:
    """The answers to the calls of a response, all in one user message."""
    if not results:
        return ()
    content = b",".join(_with_id("tool_use_id", result) for result in results)
    return (b'{"role":"user","content":[%b]}' % content,)


def end(model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
    """What follows the messages in the body: system, tools, model, parameters."""
    pieces = [b"]"]
    said = [entry for entry in system if entry]
    if said:
        pieces.append(b',"system":[%b]' % b",".join(said))
    if tools:
        pieces.append(b',"tools":[%b]' % b",".join(map(tool, tools)))
    if model:  # Vertex and Bedrock have it in the address, and refuse it here
        pieces.append(b',"model":' + _string(model))
    pieces.append(bodies.close(params))
    return b"".join(pieces)


def tool(tool: Tool) -> bytes:
    """A tool definition."""
    if tool.wire:
        return canonical.raw(tool.wire)
    fields = {"name": string(tool.name)}
    if tool.description:
        fields["description"] = string(tool.description)
    fields["input_schema"] = '{"type":"object"}' if tool.parameters in _ANY else tool.parameters
    if tool.strict is not None:
        fields["strict"] = canonical.source(tool.strict)
    return canonical.raw(joined(fields))
