"""Kimi's tool-call section inside reasoning text (seen when the server's own parser misses it).

``<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}
<|tool_call_end|><|tool_calls_section_end|>``: the section is cut out and becomes calls; a malformed one stays text.
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


class SectionSplitter:
    """Feed reasoning text; get (is_section, text) pieces. Holds back only a section, and what may be its mark."""

    __slots__ = ("_held", "_section")

    def __init__(self) -> None:
        self._held = ""
        self._section: list[str] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held back."""
        return not self._held and self._section is None

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """The pieces that ``text`` completes."""
        pieces: list[tuple[bool, str]] = []
        text, self._held = self._held + text, ""
        start = 0
        while start < len(text):
            mark = BEGIN if self._section is None else END
            at, begins = split_at(text, start, mark)
            if self._section is None:
                if begins > start:
                    pieces.append((False, text[start:begins]))
                if at >= 0:
                    self._section = [mark]
            else:
                self._section.append(text[start:begins])
                if at >= 0:
                    pieces.append((True, "".join([*self._section, mark])))
                    self._section = None
            start = at + len(mark) if at >= 0 else len(text)
            self._held = "" if at >= 0 else text[begins:]
        return pieces

    def close(self) -> list[tuple[bool, str]]:
        """What was held back; a section that only lacks its end mark is one."""
        is_section, held = self._section is not None, "".join([*(self._section or ()), self._held])
        self._section, self._held = None, ""
        return [(is_section, held)] if held else []
