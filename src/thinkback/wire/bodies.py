"""What the request writers of the dialects share: messages, tools and the end of a body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, Unknown
from thinkback.model.commits import Message, Tool

_string = canonical.string


def message(role: str, message: Message, part: Callable[[Text | Media | Unknown], bytes]) -> bytes:
    """A system or user message; an adopted one goes out as the program held it. ``part`` writes a part of it."""
    if message.wire:
        return canonical.raw(message.wire)
    content = b"[%b]" % b",".join(map(part, message.parts)) if message.parts else _string(message.text)
    return b'{"role":"%b","content":%b}' % (role.encode(), content)


def function(tool: Tool) -> bytes:
    """A tool definition as chat completions have it, verbatim where it came so."""
    if tool.wire:
        return canonical.raw(tool.wire)
    return b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b%b}}' % (
        _string(tool.name),
        _string(tool.description),
        canonical.raw(tool.parameters),
        strict(tool),
    )


def strict(tool: Tool) -> bytes:
    """The member of a definition that says whether calls are held to its schema; nothing where nothing is said."""
    return b"" if tool.strict is None else b',"strict":' + canonical.encode(tool.strict)


def end(model: str, tools: Sequence[bytes], params: Mapping[str, Any]) -> bytes:
    """What follows the messages in a body: tools, model, parameters."""
    offered = b',"tools":[%b]' % b",".join(tools) if tools else b""
    return b']%b,"model":%b%b' % (offered, _string(model), close(params))


def close(params: Mapping[str, Any]) -> bytes:
    """The parameters, and the end of the object that they are the last members of."""
    return b"".join(b",%b:%b" % (_string(key), canonical.encode(value)) for key, value in params.items()) + b"}"
