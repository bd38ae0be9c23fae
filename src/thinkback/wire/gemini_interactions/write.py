"""Request writer of the ``gemini-interactions`` dialect: neutral values to the bytes of steps and bodies.

Promises: signatures and argument text are spliced as they came, never re-encoded; the steps come first in the body,
so that the bytes of one request begin with those of the last. Must not: decide what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ToolResult
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import Carry
from thinkback.wire import bodies
from thinkback.wire.gemini_interactions.blocks import steps_of, wire_object

NAME = "gemini-interactions"
start = b'{"input":['
separator = b","
system_on_top = True
alternates = False
results_by_user = False
user_first: Literal["always", "calls", "never"] = "never"
custom_tools: Literal["all", "some", "none"] = "none"
strict_tools: Literal["said", "held", "none"] = "none"
tells_errors = True
prefill: Literal["last", "member", ""] = ""


def top(message: Message) -> bytes:
    """A system message as a ``system_instruction``. Raises ``UnsupportedContent`` for media."""
    if any(isinstance(part, Media) for part in message.parts):
        raise UnsupportedContent(
            "a system instruction of an interaction is text",
            details={"dialect": NAME},
            next_actions=("put the media into a user message",),
        )
    return canonical.string(message.text)


def turn_over(before: str, role: str) -> tuple[bytes, int]:
    """Every step stands for itself."""
    return b"", 1


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A user message; an adopted one goes out as the program held it. There is no other step for a system message."""
    if message.wire:
        return canonical.raw(message.wire)
    contents = map(wire_object, message.parts or (Text(message.text),))
    return b'{"type":"user_input","content":[%b]}' % b",".join(contents)


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
    """The steps of a response."""
    return tuple(steps_of([block for block in blocks if not isinstance(block, Text) or _says(block)]))


def _says(text: Text) -> bool:
    return bool(text.text or text.wire)


def results(results: Sequence[ToolResult]) -> tuple[bytes, ...]:
    """The answers to the calls of a response, a step each."""
    return tuple(map(wire_object, results))


def end(model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
    """What follows the steps in the body: system instruction, tools, model, parameters."""
    pieces = [b"]"]
    if system:
        pieces.append(b',"system_instruction":' + _system(system))
    if tools:
        pieces.append(b',"tools":[%b]' % b",".join(map(_tool, tools)))
    if model:
        pieces.append(b',"model":' + canonical.string(model))
    pieces.append(bodies.close(params))
    return b"".join(pieces)


def _system(system: Sequence[bytes]) -> bytes:
    """There is place for one instruction: several are parted by a blank line."""
    if len(system) == 1:
        return system[0]
    return canonical.string("\n\n".join(canonical.decode(text) for text in system))


def _tool(tool: Tool) -> bytes:
    if tool.wire:
        return canonical.raw(tool.wire)
    described = b',"description":' + canonical.string(tool.description) if tool.description else b""
    fields = (canonical.string(tool.name), described, canonical.raw(tool.parameters))
    return b'{"type":"function","name":%b%b,"parameters":%b}' % fields
