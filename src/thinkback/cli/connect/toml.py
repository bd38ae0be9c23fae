"""TOML: reads it, and changes one key at a time.

Text in, text out. The standard library parses; here statements are found in a text that it has accepted. What a
library that writes TOML would reorder or lose (comments, arrays of tables between tables) is not touched, because
only the lines of the key are. Keys inside inline tables are not changed: the error names their line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import NamedTuple

from thinkback.cli.connect.source import Damaged, Span, end_of_line, line_of, newline_of, quoted

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*""")
_FILLER = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
# what a value is made of: texts whole, comments in arrays, brackets, and anything else
_PIECE = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]|[^\[\]{}"\'#\n]+|\n',
    re.DOTALL,
)
_AT = re.compile(r"(.*) \(at line (\d+), column \d+\)")


class Statement(NamedTuple):
    """A key with its value, or the header of a table. ``header`` is the path of the table that a key stands in.

    ``path`` is ``None`` inside an array of tables, where nothing is changed.
    """

    path: tuple[str, ...] | None
    header: tuple[str, ...]
    start: int
    value: Span | None


def read(text: str) -> dict[str, object]:
    """The table that ``text`` is. Raises ``Damaged``."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT.fullmatch(str(error))
        if found is None:
            raise Damaged(line_of(text, len(text)), str(error)) from None
        raise Damaged(int(found[2]), found[1]) from None
    except RecursionError:
        raise Damaged(1, "values are nested too deep") from None


def span(text: str, path: Sequence[str]) -> Span | None:
    """Where the value of the key at ``path`` stands, where it has a line of its own."""
    return next((row.value for row in _statements(text) if row.path == tuple(path) and row.value), None)


def put(text: str, path: Sequence[str], value: object) -> str:
    """``text`` with the key at ``path`` set, made with its table where that is not there. Raises ``Damaged``."""
    path = tuple(path)
    rows, newline, table = _statements(text), newline_of(text), path[:-1]
    for row in rows:
        if row.value and row.path == path:
            return text[: row.value.start] + quoted(value) + text[row.value.end :]
        if row.value and row.path and row.path == path[: len(row.path)]:
            name = ".".join(row.path)
            raise Damaged(line_of(text, row.start), f"{name} is no table with lines of its own: write it as [{name}]")
    beside = [row for row in rows if row.value and row.path and row.path[: len(table)] == table]
    inside = [row for row in beside if row.header == table] or [row for row in beside if len(row.header) < len(table)]
    header = next((row for row in rows if not row.value and row.path == table), None)
    if inside:  # behind the last key of the same table, written as that one is
        last = inside[-1]
        line = f"{_dotted(path[len(last.header) :])} = {quoted(value)}{newline}"
        return _inserted(text, end_of_line(text, last.value.end if last.value else 0), line, newline)
    line = f"{_dotted(path[-1:])} = {quoted(value)}{newline}"
    if header is not None:
        return _inserted(text, end_of_line(text, header.start), line, newline)
    if table:
        gap = newline if text.strip() else ""
        return _inserted(text, len(text), f"{gap}[{_dotted(table)}]{newline}{line}", newline)
    return line + (newline if text.strip() else "") + text


def drop(text: str, path: Sequence[str]) -> str:
    """``text`` without the line of the key at ``path``, or without the header of a table that has no keys."""
    path = tuple(path)
    row = next((row for row in _statements(text) if row.path == path), None)
    if row is None:
        return text
    start = text.rfind("\n", 0, row.start) + 1
    end = end_of_line(text, row.value.end if row.value else row.start)
    if not row.value and text[:start].endswith(("\n\n", "\n\r\n")):
        start = text.rfind("\n", 0, start - 1) + 1
    text = text[:start] + text[end:]
    return text.removeprefix(newline_of(text)) if start == 0 and row.value else text


def _dotted(path: Sequence[str]) -> str:
    return ".".join(part if _BARE.fullmatch(part) else quoted(part) for part in path)


def _inserted(text: str, at: int, line: str, newline: str) -> str:
    gap = "" if not at or text[at - 1] == "\n" else newline
    return text[:at] + gap + line + text[at:]


def _statements(text: str) -> list[Statement]:
    """The statements of a text that is valid TOML, in their order."""
    rows: list[Statement] = []
    header: tuple[str, ...] = ()
    arrays: set[tuple[str, ...]] = set()
    at = _behind(_FILLER, text, 0)
    while at < len(text):
        if text.startswith("[", at):
            is_array = text.startswith("[[", at)
            header, end = _key(text, at + 1 + is_array)
            if is_array:
                arrays.add(header)
            path = None if _is_in(header, arrays) else header
            rows.append(Statement(path, header, at, None))
            at = end_of_line(text, end)
        else:
            key, end = _key(text, at)
            start = _behind(re.compile(r"[ \t]*"), text, end + 1)
            value = Span(start, _value_end(text, start))
            rows.append(Statement(None if _is_in(header, arrays) else header + key, header, at, value))
            at = end_of_line(text, value.end)
        at = _behind(_FILLER, text, at)
    return rows


def _is_in(header: tuple[str, ...], arrays: set[tuple[str, ...]]) -> bool:
    return any(header[:size] in arrays for size in range(1, len(header) + 1))


def _key(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """The parts of a dotted key, and the place behind it."""
    parts: list[str] = []
    while True:
        found = _KEY.match(text, at)
        assert found is not None
        parts.append(next(iter(tomllib.loads(f"{found[1]} = 0"))))
        at = found.end()
        if not text.startswith(".", at):
            return tuple(parts), at
        at += 1


def _value_end(text: str, at: int) -> int:
    depth, end = 0, at
    while at < len(text):
        found = _PIECE.match(text, at)
        assert found is not None
        piece, at = found[0], found.end()
        if not depth and piece[0] in "#\n":
            break
        depth += (piece in "[{") - (piece in "]}")
        if piece.strip():
            end = found.start() + len(piece.rstrip())
    return end


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    assert found is not None
    return found.end()
