"""Files of one key a line: what YAML files (``.aider.conf.yml``) and environment files (``.env``) have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thinkback.cli.connect.source import Damaged, Span, end_of_line, line_of, newline_of


class Line(NamedTuple):
    """A key, its value, where the line begins and where the value stands."""

    key: str
    value: object
    start: int
    span: Span


def table_of(rows: Sequence[Line]) -> dict[str, object]:
    """Key to value."""
    return {row.key: row.value for row in rows}


def find(text: str, rows: Sequence[Line], path: Sequence[str]) -> Line | None:
    """The line of the key. Raises ``Damaged`` where it stands twice."""
    found = [row for row in rows if (row.key,) == tuple(path)]
    if len(found) > 1:
        first, second = (line_of(text, row.start) for row in found[:2])
        raise Damaged(second, f"the key {path[0]} stands here and on line {first}: remove one")
    return found[0] if found else None


def set_line(text: str, row: Line | None, written: str, line: str) -> str:
    """``text`` with the value of ``row`` replaced by ``written``; without one, with ``line`` at its end."""
    if row is not None:
        rest = text[row.span.end :]
        # behind an empty value a comment may begin at once
        return text[: row.span.start] + written + (" " if rest.startswith("#") else "") + rest
    newline = newline_of(text)
    gap = newline if text and not text.endswith("\n") else ""
    return f"{text}{gap}{line}{newline}"


def without(text: str, row: Line | None) -> str:
    """``text`` without the line."""
    return text if row is None else text[: row.start] + text[end_of_line(text, row.span.end) :]
