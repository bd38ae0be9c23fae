"""Tables as HTML and as Markdown, for notebooks. No text of a cell is ever markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|!~&])")


def html_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of HTML; line ends of a cell stay."""
    from html import escape  # with all names of characters, which only who draws a table needs

    head = "".join(f"<th>{escape(word)}</th>" for word in headings)
    lines = (
        "".join(f'<td style="text-align:left;white-space:pre-wrap">{escape(cell)}</td>' for cell in r) for r in rows
    )
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"
    )


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; a cell is one line."""
    lines = [headings, ["---"] * len(headings), *([plain(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def plain(text: str) -> str:
    """``text`` as one line of Markdown that means itself."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))
