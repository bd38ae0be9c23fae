"""Kimi's tool-call section inside reasoning text (seen when the server's own parser misses it).

``<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}
<|tool_call_end|><|tool_calls_section_end|>``: the section is cut out and becomes calls; a malformed one stays text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from thinkback.wire.think_tags import partial_suffix

BEGIN = "<|tool_calls_section_begin|>"
END = "<|tool_calls_section_end|>"
_CALL = re.compile(
    r"<\|tool_call_begin\|>\s*(?P<id>[^<\s]+)\s*<\|tool_call_argument_begin\|>\s*(?P<arguments>.*?)\s*<\|tool_call_end\|>",
    re.DOTALL,
)


class Call(NamedTuple):
    """``id`` as on the wire, e.g. ``functions.get_weather:0``."""

    id: str
    name: str
    arguments: str


def parse_section(section: str) -> list[Call]:
    """The calls between the section marks; empty when anything else stands there."""
    body = section.removeprefix(BEGIN).removesuffix(END)
    calls = [Call(m["id"], _name(m["id"]), m["arguments"]) for m in _CALL.finditer(body)]
    return calls if not _CALL.sub("", body).strip() else []


def _name(id: str) -> str:
    return id.rpartition(":")[0].rpartition(".")[2] or id.partition(":")[0].rpartition(".")[2]


class SectionSplitter:
    """Feed reasoning text; get (is_section, text) pieces. Holds back only what may be a mark."""

    def __init__(self) -> None:
        self._held = ""
        self._section = False

    def feed(self, text: str) -> list[tuple[bool, str]]:
        if not self._held and "<" not in text:
            return [(False, text)]
        pieces: list[tuple[bool, str]] = []
        rest, self._held = self._held + text, ""
        while rest:
            mark = END if self._section else BEGIN
            at = rest.find(mark)
            if at < 0:
                keep = len(rest) if self._section else partial_suffix(rest, (BEGIN,))
                self._held = rest[len(rest) - keep :]
                pieces += [(False, rest[: len(rest) - keep])] if len(rest) > keep else []
                break
            cut = at + len(END) if self._section else at
            pieces += [(self._section, rest[:cut])] if cut else []
            rest = rest[cut:]
            self._section = not self._section
        return pieces

    def close(self) -> list[tuple[bool, str]]:
        """An unfinished section is text."""
        held, self._held = self._held, ""
        return [(False, held)] if held else []
