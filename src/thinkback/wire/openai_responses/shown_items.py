"""Output items as they are written: their shapes, their ids, and what their events say of them."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, assert_never

from thinkback.model import canonical
from thinkback.model.blocks import Text, ToolCall
from thinkback.wire.block_sequencer import Begun
from thinkback.wire.openai_responses.blocks import CUSTOM
from thinkback.wire.writing import Shown, call_id

Kind: TypeAlias = Literal["text", "refusal", "thought", "call", "custom"]
KEPT = Begun("thought", -1, None)
"""The beginning of an item that has nothing but the state of others."""

_string = canonical.string


class Shape(NamedTuple):
    """How items of a kind are written.

    ``events`` begins the names of the events of its text, ``place`` says in them where the text belongs, ``beside``
    stands with it, ``field`` is the name of the whole text. ``parts`` begins the names of the events of the ``part``
    that holds it; both are empty where the item holds it itself.
    """

    id: str
    events: bytes
    place: bytes
    beside: bytes
    field: bytes
    parts: bytes
    part: bytes


_CONTENT = b'"content_index":0,'
_SHAPES: dict[Kind, Shape] = {
    "text": Shape(
        "msg",
        b"response.output_text",
        _CONTENT,
        b'"logprobs":[],',
        b"text",
        b"response.content_part",
        b'{"type":"output_text","annotations":[],"logprobs":[],"text":%b}',
    ),
    "refusal": Shape(
        "msg",
        b"response.refusal",
        _CONTENT,
        b"",
        b"refusal",
        b"response.content_part",
        b'{"type":"refusal","refusal":%b}',
    ),
    "thought": Shape(
        "rs",
        b"response.reasoning_summary_text",
        b'"summary_index":0,',
        b"",
        b"text",
        b"response.reasoning_summary_part",
        b'{"type":"summary_text","text":%b}',
    ),
    "call": Shape("fc", b"response.function_call_arguments", b"", b"", b"arguments", b"", b""),
    "custom": Shape("ctc", b"response.custom_tool_call_input", b"", b"", b"input", b"", b""),
}


class Item(NamedTuple):
    """An item under way: what it is of, its number and what its events say of it."""

    kind: Kind
    begun: Begun
    number: int
    id: bytes

    @property
    def shape(self) -> Shape:
        return _SHAPES[self.kind]

    @property
    def place(self) -> bytes:
        """What says in an event which item it is of, and where in it."""
        return b'"item_id":%b,"output_index":%d,%b' % (self.id, self.number, self.shape.place)


def item_of(begun: Begun, number: int, shown: Shown) -> Item:
    """An item that begins, with the id that it has in all events."""
    kind: Kind = begun.kind
    if isinstance(begun.block, Text) and begun.block.source_field == "refusal":
        kind = "refusal"
    elif isinstance(begun.block, ToolCall) and begun.block.source_field == CUSTOM:
        kind = "custom"
    return Item(kind, begun, number, _string(f"{_SHAPES[kind].id}_{shown.id}_{number}"))


def source_of(item: Item, shown: Shown, status: bytes, text: str = "", state: str = "") -> bytes:
    """The item itself, as far as it has come."""
    parts = item.shape.part % _string(text) if text and item.shape.part else b""
    match item.kind:
        case "text" | "refusal":
            message = b'{"id":%b,"type":"message","status":"%b","role":"assistant","content":[%b]}'
            return message % (item.id, status, parts)
        case "thought":
            encrypted = b',"encrypted_content":' + _string(state) if state else b""
            return b'{"id":%b,"type":"reasoning","summary":[%b]%b}' % (item.id, parts, encrypted)
        case "call" | "custom":
            kind = b"function_call" if item.kind == "call" else b"custom_tool_call"
            id = _string(call_id(item.begun.id, shown.id, item.begun.at))
            called = (item.id, kind, status, id, _string(item.begun.name), item.shape.field, _string(text))
            return b'{"id":%b,"type":"%b","status":"%b","call_id":%b,"name":%b,"%b":%b}' % called
        case _:
            assert_never(item.kind)
