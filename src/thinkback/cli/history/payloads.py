"""Payloads for people and programs, with opaque values told as kind and length only.

A carrier is meant for its provider alone, so nothing prints one by accident: known values, fields named like one, and
long strings that look like one inside verbatim wire objects all give way to a note of their length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from thinkback.cli import terminal
from thinkback.session.transcripts.wording import lengths, with_media

if TYPE_CHECKING:
    from thinkback.model.commits import Commit

_OPAQUE_NAME = re.compile(r"signature|encrypted|redacted|^data$", re.IGNORECASE)
_OPAQUE_VALUE = re.compile(r"[A-Za-z0-9+/=_-]{120,}")
# Fields that hold JSON as source text, verbatim from a provider or a program.
_SOURCE = frozenset({"wire", "message", "envelope", "params", "parameters", "basis", "remainder"})

Line = tuple[str, tuple[terminal.Style, ...]]


def payload_json(commit: Commit) -> Any:
    """The payload as it is stored, opaque values included."""
    return json.loads(commit.payload.decode("utf-8", "surrogatepass"))


def concealed(commit: Commit) -> Any:
    """The payload without opaque values; source text is taken apart."""
    return _conceal(payload_json(commit), "", verbatim=False)


def _conceal(value: Any, name: str, *, verbatim: bool) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"kind", "value"} and name == "carriers":
            return {"kind": value["kind"], "length": len(value["value"])}
        return {key: _conceal(item, key, verbatim=verbatim) for key, item in value.items()}
    if isinstance(value, list):
        return [_conceal(item, name, verbatim=verbatim) for item in value]
    if not isinstance(value, str) or not value:
        return value
    if _OPAQUE_NAME.search(name) or (verbatim and _OPAQUE_VALUE.fullmatch(value)):
        return {"kind": name, "length": len(value)}
    if name in _SOURCE and value[0] in "{[":
        try:
            return _conceal(json.loads(value), "", verbatim=True)
        except ValueError:
            return value
    return value


def readable(commit: Commit) -> Iterator[Line]:
    """A payload as lines with their styles: its text as text, everything else as indented fields."""
    from thinkback.model import blocks, commits

    payload = commit.value
    match payload:
        case blocks.ThinkingBlock():
            yield from ((line, ("dim", "italic")) for line in terminal.wrap(payload.thought).splitlines())
            yield from ((line, ("dim",)) for line in lengths(payload))
        case commits.Message():
            yield terminal.wrap(with_media(payload)), ()
        case blocks.Text():
            yield terminal.wrap(payload.text), ()
        case blocks.ToolCall():
            yield terminal.wrap(f"{payload.name}({payload.arguments})"), ()
            yield terminal.clean(f"id {payload.id}"), ("dim",)
            yield from ((line, ("dim",)) for line in lengths(payload))
        case blocks.ToolResult():
            yield terminal.wrap(payload.content), ()
            told = "" if payload.status == "run" else f", {payload.status.replace('_', ' ')}"
            yield (
                terminal.clean(f"of {payload.name} {payload.id}{told}{', an error' if payload.is_error else ''}"),
                ("dim",),
            )
        case commits.Erased():
            yield terminal.wrap(f"({payload.notice})"), ("dim",)
            if payload.remainder:
                text = json.dumps(concealed(commit)["remainder"], indent=2, ensure_ascii=False)
                yield terminal.clean(f"what is left of it: {text}"), ()
        case _:
            text = json.dumps(concealed(commit), indent=2, ensure_ascii=False)
            yield terminal.clean(text), ()
