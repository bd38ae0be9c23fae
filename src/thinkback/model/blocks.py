"""Typed pieces of a message, in neutral form.

A block keeps two things apart: what people read (``text``, ``thought``, ``arguments``) and what goes back to the
provider byte for byte (``carriers`` and ``wire``). ``wire`` is the provider's own object as JSON source text; it
is left empty where ``wire_object`` can rebuild it exactly from the other fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from thinkback.model import canonical

# What names or labels an item; every other opaque value goes out once in a request.
_NAMES = frozenset({"item_id", "phase"})

CarrierKind: TypeAlias = Literal["signature", "encrypted", "redacted", "item_id", "phase", "thought_signature"]
ThoughtKind: TypeAlias = Literal["raw", "summary", "none"]


class Origin(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Who minted a response. ``endpoint`` is a normalised URL; ``request`` the response id its request record shares.

    ``account_known`` is false where the account is only the salted hash of a key: two of those that differ are
    unknown to be different.
    """

    dialect: str
    endpoint: str
    requested_model: str
    served_model: str = ""
    account: str = ""
    account_known: bool = False
    end_user: str = ""
    request: str = ""


class Carrier(msgspec.Struct, frozen=True, gc=False):
    """An opaque value that must go back exactly as it came, or not at all."""

    kind: CarrierKind
    value: str

    def __repr__(self) -> str:
        return f"Carrier({self.kind}, {len(self.value)} characters)"


class _Part(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What blocks have in common: none shows what is opaque, or a wire object that may hold it."""

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in _UNSEEN)
        told = [f"{name}={value!r}" for name in shown if (value := getattr(self, name)) not in ("", (), None, False)]
        lengths = [f"{name}: {len(text)} characters" for name in _UNSEEN if (text := getattr(self, name, ""))]
        return f"{type(self).__name__}({', '.join((*told, *lengths))})"


_UNSEEN = ("signature", "data", "wire")


class Text(_Part, frozen=True, tag="text"):
    """Visible text. ``source_field`` is the wire field it came in (``content``, ``refusal``)."""

    text: str
    source_field: str = "content"
    carriers: tuple[Carrier, ...] = ()
    wire: str = ""
    origin: Origin | None = None


class ThinkingBlock(_Part, frozen=True, tag="thinking"):
    """One piece of reasoning.

    ``kind`` says what ``thought`` is: the model's raw reasoning, a provider's summary, or nothing readable.
    ``is_hidden``: repeats what another block of the response says, so that it is kept but not shown.
    ``marker``: a provider's placeholder ("Thinking...") and nothing else, never shown and never replayed.
    ``opening`` and ``closing`` are the tags that stood around ``thought`` inside ``content``; placeholders in front of
    it, which are not shown either, are the end of ``opening``. ``inner`` are tags between which it went on, each with
    the number of characters of ``thought`` in front of it.
    """

    thought: str
    is_hidden: bool = False
    source_field: str = ""
    signature: str = ""
    kind: ThoughtKind = "raw"
    marker: bool = False
    opening: str = ""
    closing: str = ""
    carriers: tuple[Carrier, ...] = ()
    wire: str = ""
    origin: Origin | None = None
    inner: tuple[tuple[int, str], ...] = ()


class ToolCall(_Part, frozen=True, tag="tool_call"):
    """A call of a client-side tool. ``arguments`` is the source text as it came, never re-encoded.

    ``source_field`` is ``tool_calls`` or ``custom_tool_call`` unless the call leaked: then it is the field of reasoning
    whose text held its markers.
    """

    id: str
    name: str
    arguments: str
    source_field: str = "tool_calls"
    carriers: tuple[Carrier, ...] = ()
    wire: str = ""
    origin: Origin | None = None


NO_CALL = ""
"""The ``call_field`` of a result whose call is not in its conversation."""


class ToolResult(_Part, frozen=True, tag="tool_result"):
    """What a tool gave back for the call ``id``; ``status`` says when it is not the tool's own word.

    ``dialect`` is the one that ``wire`` is written in, ``call_field`` the ``source_field`` of the call: ``NO_CALL`` for
    a result that a program of ``dialect`` sent without the call that it answers.
    ``source_field`` is the member of an object that ``content`` came in, where a dialect has several names for it;
    the object is part of ``content`` where that has no other member (``within``).
    """

    id: str
    content: str
    name: str = ""
    is_error: bool = False
    status: Literal["run", "not_run", "interrupted"] = "run"
    call_field: str = "tool_calls"
    carriers: tuple[Carrier, ...] = ()
    wire: str = ""
    dialect: str = ""
    origin: Origin | None = None
    source_field: str = ""


class Media(_Part, frozen=True, tag="media"):
    """An image, sound, video or file: ``data`` in base64, or a ``url`` to fetch it from.

    ``media_type`` is its MIME type, with ``*`` for what is not known (``image/*``). ``name`` is a file name. A part
    that is known by an id of its provider only has neither data nor URL. ``wire`` is the part as its dialect wrote it.
    """

    media_type: str
    data: str = ""
    url: str = ""
    name: str = ""
    carriers: tuple[Carrier, ...] = ()
    wire: str = ""
    origin: Origin | None = None


class Unknown(_Part, frozen=True, tag="unknown"):
    """A wire item this version does not know; passed through verbatim to the origin that made it.

    ``text`` is what it says in words, where it does (the summary of a compaction): others get that.
    """

    wire: str
    carriers: tuple[Carrier, ...] = ()
    origin: Origin | None = None
    text: str = ""


Block: TypeAlias = Text | ThinkingBlock | ToolCall | ToolResult | Media | Unknown


THOUGHT_FORMATS = (
    *("parsed", "raw", "think_tags", "anthropic"),
    *("reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "content"),
    *("thinking", "redacted_thinking", "thought", "reasoningText", "redactedContent", "tool_plan"),
)
"""What reasoning by hand may say that it is from: how it was got, or the field that a dialect has it in."""

CUSTOM_CALL = "custom_tool_call"
"""The ``source_field`` of a call whose tool takes any text, not an object."""

_CALL_FIELDS = frozenset({"tool_calls", CUSTOM_CALL})


def is_leaked(call: ToolCall) -> bool:
    """Whether the markers of ``call`` stood in reasoning: the provider did not say that it is a call."""
    return call.source_field not in _CALL_FIELDS


def is_shown(block: ThinkingBlock) -> bool:
    """Whether it is a thought of its own, and neither a repeat of another block nor a placeholder."""
    return not (block.is_hidden or block.marker)


def is_place(block: ThinkingBlock) -> bool:
    """Whether it only holds the place of reasoning that was not to be kept: without a word, a carrier, or an object."""
    return block.kind == "none" and not (block.thought or block.signature or block.carriers or block.wire)


def carriers_of(block: Block) -> tuple[Carrier, ...]:
    """Every opaque value of ``block``, a thinking block's signature first."""
    if isinstance(block, ThinkingBlock) and block.signature:
        return (Carrier("signature", block.signature), *block.carriers)
    return block.carriers


def opaque_values(carriers: Iterable[Carrier]) -> list[str]:
    """The values among ``carriers`` that must not go out twice.

    An item's id counts only where nothing else is opaque about it: hosts give two items of a response the same one.
    """
    values = [carrier.value for carrier in carriers if carrier.kind not in _NAMES]
    return values or [carrier.value for carrier in carriers if carrier.kind == "item_id"]


def within(result: ToolResult) -> str | None:
    """What stands in the object that ``content`` is, where that is nothing but the member it came in: a text as it is,
    anything else as JSON. ``None`` where ``content`` is what the tool said.
    """
    if not (result.source_field and result.content.startswith("{")):
        return None
    try:
        value = canonical.decode(result.content)
    except msgspec.DecodeError:
        return None
    if not isinstance(value, dict) or value.keys() != {result.source_field}:
        return None
    inner = value[result.source_field]
    return inner if isinstance(inner, str) else canonical.source(inner)


def content_slice(block: Text | ThinkingBlock) -> str:
    """The piece of ``content`` this block came from; joining the slices of a response gives ``content`` back."""
    if isinstance(block, Text):
        return block.text
    if not block.inner:
        return f"{block.opening}{block.thought}{block.closing}"
    pieces, at = [block.opening], 0
    for place, tags in block.inner:
        pieces += (block.thought[at:place], tags)
        at = place
    return "".join((*pieces, block.thought[at:], block.closing))


def wire_object(block: Block) -> str:
    """The provider's own object for ``block`` as JSON source text."""
    if block.wire:
        return block.wire
    match block:
        case Text():
            body: object = {block.source_field: block.text}
        case ThinkingBlock():
            body = {block.source_field or "reasoning_content": content_slice(block)}
        case ToolCall():
            function = {"name": block.name, "arguments": block.arguments}
            body = {"id": block.id, "type": "function", "function": function}
        case ToolResult():
            body = {"role": "tool", "tool_call_id": block.id, "content": block.content}
        case _:
            body = None
    return canonical.encode(body).decode()
