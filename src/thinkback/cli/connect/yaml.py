"""YAML as an agent's flat configuration has it: keys at the left margin, ours with a scalar on their line.

Text in, text out. What is indented belongs to the key above it and is not looked into, and so do the items of a list
at the margin; whatever else stands there (a second document, an anchor, the rest of a value) is refused with its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from thinkback.cli.connect.lines import Line, find, set_line, table_of, without
from thinkback.cli.connect.source import Damaged, Span, line_of, newline_of, quoted

_LINE = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[A-Za-z0-9_][\w.-]*)[ \t]*:(?=[ \t\r\n]|$)[ \t]*([^\r\n]*)""")
_SCALAR = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'|>&*!{\[%@`,?-](?:[^\s]|[ \t]+(?!#|\s*$))*""")
_ITEM = re.compile(r"-(?=\s|$)")
_PROPERTIES = re.compile(r"(?:[!&]\S*\s+)*")
_CLOSED = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'|(?<!\S)#[^\n]*""", re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None, "~": None}


class Other(str):
    """A value that is not read: its source text."""


def read(text: str) -> dict[str, object]:
    """Key to value, ``Other`` for what is no scalar on one line. Raises ``Damaged``."""
    return table_of(_rows(text))


def span(text: str, path: Sequence[str]) -> Span | None:
    """Where the value of the key stands."""
    row = find(text, _rows(text), path)
    return row.span if row else None


def put(text: str, path: Sequence[str], value: object) -> str:
    """``text`` with the key set. Raises ``Damaged`` where its value is no scalar on one line."""
    rows = _rows(text)
    row = find(text, rows, path)
    if row is not None and isinstance(row.value, Other):
        raise Damaged(line_of(text, row.start), f"{path[0]} is written in a form that is not changed here")
    written = quoted(value)
    if row is None and rows and isinstance(rows[-1].value, Other) and not text.endswith("\n"):
        # a block at the end of the text would get the line end that it lacks
        start = rows[-1].start
        return f"{text[:start]}{path[0]}: {written}{newline_of(text)}{text[start:]}"
    gap = " " if row is not None and row.span.start == row.span.end else ""
    return set_line(text, row, f"{gap}{written}", f"{path[0]}: {written}")


def drop(text: str, path: Sequence[str]) -> str:
    """``text`` without the line of the key."""
    return without(text, find(text, _rows(text), path))


def _rows(text: str) -> list[Line]:
    rows: list[Line] = []
    at, is_begun = 0, False
    for line in text.splitlines(keepends=True):
        start, at = at, at + len(line)
        bare = line.rstrip()
        if not bare or bare.lstrip().startswith("#") or (bare == "---" and not is_begun):
            continue
        is_begun = True
        if line[0] in " ]}" or (_ITEM.match(line) and rows and _has_items(rows[-1])):
            if not rows:
                raise Damaged(line_of(text, start), "a key is expected at the left margin")
            rows[-1] = _continued(rows[-1], line)
            continue
        if rows and _is_open(rows[-1]):
            key = rows[-1].key
            raise Damaged(line_of(text, start), f"the value of {key} goes on here, at the left margin: indent it")
        found = _LINE.fullmatch(line.rstrip("\r\n"))
        if found is None:
            raise Damaged(line_of(text, start), "a key and a colon are expected at the left margin")
        rows.append(_row(found, start))
    return rows


def _row(found: re.Match[str], start: int) -> Line:
    key = found[1]
    if key[0] == '"':
        key = _unquoted(key)
    elif key[0] == "'":
        key = key[1:-1].replace("''", "'")
    scalar = _SCALAR.match(found[2])
    begin = start + found.start(2)
    if scalar is None:
        is_empty = not found[2] or found[2].startswith("#")
        return Line(key, None if is_empty else Other(found[2]), start, Span(begin, begin))
    rest = found[2][scalar.end() :].strip()
    value: object = _plain(scalar[0]) if not rest or rest.startswith("#") else Other(found[2])
    return Line(key, value, start, Span(begin, begin + scalar.end()))


def _continued(row: Line, line: str) -> Line:
    """A key whose value goes on in the next line."""
    return row._replace(value=Other(f"{'' if row.value is None else row.value}\n{line.strip()}"))


def _has_items(row: Line) -> bool:
    """Whether a list at the margin may be the value of a key, or goes on there."""
    return row.value is None or (isinstance(row.value, Other) and row.value.startswith("\n-"))


def _is_open(row: Line) -> bool:
    """Whether a quote or bracket of the value does not end in what was read of it."""
    if not isinstance(row.value, Other):
        return False
    source = _PROPERTIES.sub("", row.value, count=1)
    rest = _CLOSED.sub("", source)
    is_flow = source.startswith(("[", "{")) and sum(map(rest.count, "[{")) > sum(map(rest.count, "]}"))
    return is_flow or (source.startswith(('"', "'")) and rest.startswith(('"', "'")))


def _plain(scalar: str) -> object:
    if scalar[0] == '"':
        return _unquoted(scalar)
    if scalar[0] == "'":
        return scalar[1:-1].replace("''", "'")
    return _WORDS.get(scalar.lower(), scalar)


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # an escape of YAML's own
        return Other(text)
