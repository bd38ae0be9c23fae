"""Request writer of the ``mistral`` dialect: neutral values to the bytes of messages and bodies.

Promises: opaque values and argument text are spliced as they came; the chunks of a message keep their order; fields
that Mistral only gives (``closed``) or does not know are not sent. Must not: decide what is sent.

Mistral refuses a user or system message right behind tool results ("Unexpected role 'user' after role 'tool'"), which
is what a history holds where a turn ended before its answer. ``turn_over`` puts an assistant message in between. It
takes call ids of nine letters and digits only.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any, Literal

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Message, Response, Tool
from thinkback.model.plan import Carry
from thinkback.wire import bodies
from thinkback.wire.call_ids import digest
from thinkback.wire.mistral import media

_FITS = re.compile(r"[a-zA-Z0-9]{9}").fullmatch
_ALPHABET = string.digits + string.ascii_letters


def call_id(id: str) -> str:
    """``id`` where it fits, else one made of its hash: the same for the same id, always."""
    if _FITS(id):
        return id
    number = int.from_bytes(digest(id)[:12], "big")
    digits = []
    for _ in range(9):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def call_ids(ids: Sequence[str]) -> list[str]:
    """Fitting ids for the calls of one response, or for their results in the order of the calls.

    Calls that share an id (hosts that give none) are told apart by their place.
    """
    seen: dict[str, int] = {}
    fitting = []
    for id in ids:
        before = seen[id] = seen.get(id, -1) + 1
        fitting.append(call_id(f"{id} {before}" if before else id))
    return fitting


NAME = "mistral"
start = b'{"messages":['
separator = b""
system_on_top = False
alternates = True
results_by_user = False
user_first: Literal["always", "calls", "never"] = "always"
custom_tools: Literal["all", "some", "none"] = "none"
strict_tools: Literal["said", "held", "none"] = "said"
tells_errors = False
prefill: Literal["last", "member", ""] = "member"
_BRIDGE = b'{"role":"assistant","content":"(No answer was given.)"}'
_string = canonical.string


def top(message: Message) -> bytes:
    """A system message stands in the message array like any other."""
    return bodies.message("system", message, _part)


def turn_over(before: str, role: str) -> tuple[bytes, int]:
    """A comma, and an assistant message where Mistral wants one behind tool results."""
    if before == "tool" and role in ("user", "system"):
        return b"," + _BRIDGE + b",", 2
    return b"," if before else b"", 1


def message(role: Literal["system", "user"], message: Message) -> bytes:
    """A system or user message; an adopted one goes out as the program held it."""
    return bodies.message(role, message, _part)


def _part(part: Text | Media | Unknown) -> bytes:
    if part.wire or isinstance(part, Unknown):
        return canonical.raw(part.wire)
    return _text(part.text) if isinstance(part, Text) else media.chunk(part)


def _text(text: str) -> bytes:
    return b'{"type":"text","text":%b}' % _string(text)


def assistant(response: Response, blocks: Sequence[Block], carry: Carry) -> tuple[bytes, ...]:
    """An assistant message: its chunks in order, then the calls; nothing where thinking alone is left."""
    said = [block for block in blocks if not isinstance(block, ToolCall)]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    if not calls and not any(_says(block) for block in said):
        return ()
    pieces = [b'{"role":"assistant"']
    if said:
        pieces.append(b',"content":' + _content(said))
    elif response.content == "text":
        pieces.append(b',"content":""')
    elif response.content == "null":
        pieces.append(b',"content":null')
    if calls:
        ids = call_ids([call.id for call in calls])
        pieces.append(b',"tool_calls":[%b]' % b",".join(map(_call, calls, ids)))
    if '"prefix"' in response.message and response.origin.dialect == NAME:
        pieces.append(b',"prefix":' + canonical.encode(canonical.decode(response.message)["prefix"]))
    pieces.append(b"}")
    return (b"".join(pieces),)


def _says(block: Block) -> bool:
    """Whether a block is an answer by itself."""
    return not isinstance(block, ThinkingBlock) and (not isinstance(block, Text) or bool(block.text))


def _content(said: Sequence[Block]) -> bytes:
    """A string where it is plain text only, else the list of chunks."""
    texts = [block.text for block in said if isinstance(block, Text) and not block.wire]
    if len(texts) == len(said):
        return _string("".join(texts))
    return b"[%b]" % b",".join(map(_chunk, said))


def _chunk(block: Block) -> bytes:
    if isinstance(block, ThinkingBlock):
        return _thinking(block)
    return _part(block) if isinstance(block, Text | Media) else canonical.raw(block.wire)


def _thinking(block: ThinkingBlock) -> bytes:
    if block.wire:
        chunk = canonical.decode(block.wire)
        chunk.pop("closed", None)
        return canonical.raw(canonical.source(chunk))
    signed = b',"signature":' + _string(block.signature) if block.signature else b""
    return b'{"type":"thinking","thinking":[%b]%b}' % (_text(block.thought), signed)


def _call(call: ToolCall, id: str) -> bytes:
    if call.wire and id == call.id:
        return canonical.raw(call.wire)
    return b'{"id":%b,"function":{"name":%b,"arguments":%b}}' % (
        _string(id),
        _string(call.name),
        _string(call.arguments),
    )


def results(results: Sequence[ToolResult]) -> tuple[bytes, ...]:
    """The answers to the calls of a response, a message each."""
    return tuple(map(_result, results, call_ids([result.id for result in results])))


def _result(result: ToolResult, id: str) -> bytes:
    if result.wire and id == result.id:
        return canonical.raw(result.wire)
    named = b'"name":%b,' % _string(result.name) if result.name else b""
    return b'{"role":"tool","tool_call_id":%b,%b"content":%b}' % (_string(id), named, _string(result.content))


def end(model: str, tools: Sequence[Tool], system: Sequence[bytes], params: dict[str, Any]) -> bytes:
    """What follows the messages in the body: tools, model, parameters."""
    return bodies.end(model, list(map(bodies.function, tools)), params)
