"""Kimi's tool-call section inside reasoning text, where the server's own parser misses it.

``<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}
<|tool_call_end|><|tool_calls_section_end|>``. Must not: decide whether a section is a call or a quotation.
"""

from __future__ import annotations

from typing import NamedTuple

from thinkback.model.think_tags import split_at

BEGIN = "<|tool_calls_section_begin|>"
END = "<|tool_calls_section_end|>"
_CALL = "<|tool_call_begin|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_CALL_END = "<|tool_call_end|>"


class Call(NamedTuple):
    """``id`` as on the wire, e.g. ``functions.get_weather:0``."""

    id: str
    name: str
    arguments: str


def parse_section(section: str) -> list[Call]:
    """The calls between the section marks; empty when anything else stands there."""
    before, *pieces = section.removeprefix(BEGIN).removesuffix(END).split(_CALL)
    calls = [_parse_call(piece) for piece in pieces]
    return [] if before.strip() or None in calls else [call for call in calls if call is not None]


def _parse_call(piece: str) -> Call | None:
    head, _, rest = piece.partition(_ARGUMENTS)
    arguments, mark, after = rest.partition(_CALL_END)
    id = head.strip()
    name = (id.rpartition(":")[0] or id).removeprefix("functions.")
    well_formed = mark and not after.strip() and name and not any(map(str.isspace, id))
    return Call(id, name, arguments.strip()) if well_formed else None


def split_sections(text: str) -> list[tuple[bool, str]]:
    """(is_section, text) pieces of a whole ``text``; the last section may lack its end mark."""
    before, *rest = text.split(BEGIN)
    pieces = [(False, before)]
    for piece in rest:
        section, mark, after = piece.partition(END)
        pieces += [(True, f"{BEGIN}{section}{mark}"), (False, after)]
    return [piece for piece in pieces if piece[1]]


class Holder:
    """Feed reasoning text; get what may be shown. From the first mark on all is held until ``release``."""

    __slots__ = ("_held", "_is_holding")

    def __init__(self) -> None:
        self._held: list[str] = []
        self._is_holding = False

    def feed(self, text: str) -> str:
        """What of ``text``, and of the beginning of a mark before it, is no section."""
        if self._is_holding:
            self._held.append(text)
            return ""
        text = self.release() + text
        at, begins = split_at(text, 0, BEGIN)
        self._is_holding = at >= 0
        if begins < len(text):
            self._held.append(text[begins:])
        return text[:begins]

    def release(self) -> str:
        """What is held; holding begins anew."""
        held, self._held, self._is_holding = "".join(self._held), [], False
        return held
