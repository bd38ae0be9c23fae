"""Environment files: ``NAME=VALUE`` a line. Text in, text out; lines that are none are left as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from thinkback.cli.connect.lines import Line, find, set_line, table_of, without
from thinkback.cli.connect.source import Damaged, Span, line_of

_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*=[ \t]*")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|`[^`]*`""", re.DOTALL)
_BARE = re.compile(r"[^\r\n#]*(?:(?<=\S)#[^\r\n#]*)*")


def read(text: str) -> dict[str, object]:
    """Name to value. Raises ``Damaged`` for a quote that does not end."""
    return table_of(_rows(text))


def span(text: str, path: Sequence[str]) -> Span | None:
    """Where the value stands."""
    row = find(text, _rows(text), path)
    return row.span if row else None


def put(text: str, path: Sequence[str], value: object) -> str:
    """``text`` with the variable set. ``value`` is of plain characters, which need no quotes."""
    return set_line(text, find(text, _rows(text), path), str(value), f"{path[0]}={value}")


def drop(text: str, path: Sequence[str]) -> str:
    """``text`` without the line of the variable."""
    return without(text, find(text, _rows(text), path))


def _rows(text: str) -> list[Line]:
    rows: list[Line] = []
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        found = _NAME.match(text, at, end)
        if found is None:
            at = end
            continue
        start = found.end()
        if text[start : start + 1] in ("'", '"', "`"):
            value = _QUOTED.match(text, start)
            if value is None:
                raise Damaged(line_of(text, start), "a quote does not end")
            rows.append(Line(found[1], value[0][1:-1], at, Span(start, value.end())))
            at = text.find("\n", value.end()) + 1 or len(text)
            continue
        bare = _BARE.match(text, start)
        assert bare is not None
        kept = bare[0].rstrip()
        rows.append(Line(found[1], kept, at, Span(start, start + len(kept))))
        at = end
    return rows
