"""Request writer of the ``gemini`` dialect: neutral values to the bytes of contents and bodies.

Promises: signatures and argument text are spliced as they came, never re-encoded; ``contents`` come first in the
body, so that the bytes of one request begin with those of the last. The model stands in the URL. Must not: decide
what is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ToolCall, ToolResult
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import Carry
from thinkback.wire import bodies
from thinkback.wire.gemini.blocks import signed, wire_object
from thinkback.wire.gemini.tools import tools_of

start = b'{"contents":['
separator = b","
system_on_top = True
alternates = False
results_by_user = False
user_first: Literal["always", "calls", "never"] = "calls"
custom_tools: Literal["all", "some", "none"] = "none"
strict_tools: Literal["said", "held", "none"] = "none"
tells_errors = True
prefill: Literal["last", "member", ""] = ""


def top(message: Message) -> bytes:
    """A system message as a ``systemInstruction``."""
    return canonical.raw(message.wire) if message.wire else b'{"parts":[%b]}' % _parts(message)


def turn_over(before: str, role: str) -> tuple[bytes, int]:
    """Every content stands for itself."""
    return b"", 1


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A user message; an adopted one goes out as the program held it. There is no other role for a system message."""
    return canonical.raw(message.wire) if message.wire else _content("user", [_parts(message)])


def _parts(message: Message) -> bytes:
    return b",".join(map(wire_object, message.parts or (Text(message.text),)))


def _content(role: Literal["user", "model"], parts: Sequence[bytes]) -> bytes:
    return b'{"role":"%b","parts":[%b]}' % (role.encode(), b",".join(parts))


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
    """The content of a response. Where ``carry`` has a dummy the first call gets it, if it is not signed."""
    parts: list[bytes] = []
    dummy = carry.dummy
    for block in blocks:
        if isinstance(block, Text) and not (block.text or block.carriers or block.wire):
            continue
        part = wire_object(block)
        if isinstance(block, ToolCall) and dummy:
            dummy = ""
            if not block.carriers:
                part = part[:-1] + signed(carry.dummy) + b"}"
        parts.append(part)
    return (_content("model", parts),) if parts else ()


def results(results: Sequence[ToolResult]) -> tuple[bytes, ...]:
    """The answers to all calls of a response, in one content in the order of the calls."""
    return (_content("user", list(map(wire_object, results))),) if results else ()


def end(model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
    """What follows the contents in the body: system instruction, tools, parameters."""
    pieces = [b"]"]
    if system:
        pieces.append(b',"systemInstruction":' + _system(system))
    if tools:
        pieces.append(b',"tools":[%b]' % b",".join(tools_of(tools)))
    pieces.append(bodies.close(params))
    return b"".join(pieces)


def _system(system: Sequence[bytes]) -> bytes:
    """There is place for one instruction: of several the parts are joined."""
    if len(system) == 1:
        return system[0]
    held = [canonical.decode(instruction).get("parts", []) for instruction in system]
    parts = [part for each in held for part in (each if isinstance(each, list) else [each])]
    return b'{"parts":%b}' % canonical.encode(parts)
