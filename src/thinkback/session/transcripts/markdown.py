"""Transcripts as Markdown: roles as headings, calls and results fenced, reasoning quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import assert_never

from thinkback.log.protocol import SessionInfo
from thinkback.log.transcript import TranscriptEntry, TranscriptPart
from thinkback.session.transcripts.ink import clean, readable

_TICKS = re.compile("`+")


def opening(info: SessionInfo, branch: str, left_out: str = "") -> Iterator[str]:
    """The heading of a session; ``left_out`` says which of it is not in the file."""
    yield f"# {_inline(info.name)}\n\nSession `{info.id}`, branch `{branch}`.\n"
    if left_out:
        yield f"\n*{_inline(left_out)}*\n"


def entry(said: TranscriptEntry, depth: int = 2) -> Iterator[str]:
    """An entry under a heading of ``depth``; what it stands for comes behind it, one deeper."""
    title = " · ".join(word for word in (said.role.capitalize(), _inline(said.title)) if word)
    marks = f" ({_inline(', '.join(said.marks))})" if said.marks else ""
    yield f"\n{'#' * depth} {title}{marks}\n\n<sub>{readable(said.time)}</sub>\n"
    for piece in said.pieces:
        yield from _piece(piece)
    if said.inside:
        yield "\nIt stands for:\n"
        for each in said.inside:
            yield from entry(each, min(depth + 1, 6))


def _piece(piece: TranscriptPart) -> Iterator[str]:
    label = f"**{_inline(piece.label)}**" if piece.label else ""
    match piece.form:
        case "text":
            yield f"\n{_text(piece.text)}\n"
        case "reasoning":
            yield "\n> *Reasoning*\n>\n" + _quoted(piece.text)
        case "code":
            yield f"\n{label}\n\n{fenced(piece.text)}" if label else f"\n{fenced(piece.text)}"
        case "media":
            where = piece.text if piece.text.startswith(("https:", "http:")) else f"{len(piece.text)} characters"
            yield f"\n{label} ({_inline(where)})\n"
        case "note":
            yield f"\n*{_inline(piece.text)}*\n"
        case _:
            assert_never(piece.form)
    for text in piece.before:
        yield "\n> *Before*\n>\n" + _quoted(text)


def fenced(text: str) -> str:
    """``text`` as a fenced block that it cannot end itself."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{_text(text)}\n{fence}\n"


def _quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in _text(text).split("\n"))


def _text(text: str) -> str:
    return clean(text.replace("\r\n", "\n"))


def _inline(text: str) -> str:
    return " ".join(clean(text).split())
