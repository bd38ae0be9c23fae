"""Transcripts as one HTML file: nothing is fetched, nothing runs, and no text is ever HTML; what models say is read as
Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib import resources
from string import Template
from typing import assert_never

from thinkback.log.protocol import SessionInfo
from thinkback.log.transcript import TranscriptEntry, TranscriptPart
from thinkback.session.transcripts.ink import clean, iso, readable
from thinkback.session.transcripts.markup import rendered

_IMAGE = re.compile(r"image/(png|jpeg|gif|webp)( .*)?", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_BODY = "$body"


def ends(title: str) -> tuple[str, str]:
    """What comes before all sessions, and after them."""
    text = resources.files("thinkback.session.transcripts").joinpath("templates", "page.html").read_text("utf-8")
    start, end = text.split(_BODY)
    return Template(start).substitute(title=_text(title)), end


def opening(info: SessionInfo, branch: str, left_out: str = "") -> Iterator[str]:
    """The heading of a session; ``left_out`` says which of it is not in the file."""
    yield f"<header><h1>{_text(info.name)}</h1>"
    yield f"<p>Session <code>{_text(info.id)}</code>, branch <code>{_text(branch)}</code></p>"
    yield f"<p>{_text(left_out)}</p></header>\n" if left_out else "</header>\n"


def entry(said: TranscriptEntry) -> Iterator[str]:
    """An entry as an article."""
    words = [said.role.capitalize(), said.title, *said.marks]
    shown = "".join(f"<span>{_text(word)}</span> " for word in words if word)
    yield f'<article class="{said.role}"><h2>{shown}{_time(said.time)}</h2>\n'
    for piece in said.pieces:
        yield from _piece(piece, said.role in ("assistant", "summary"))
    if said.inside:
        yield "<details><summary>It stands for</summary>\n"
        for each in said.inside:
            yield from entry(each)
        yield "</details>\n"
    yield "</article>\n"


def data_address(label: str, data: str) -> str:
    """The address that holds the picture ``data`` (base64) whole; empty for what is no picture, or not there.

    ``label`` begins with its media type.
    """
    if not (_IMAGE.fullmatch(label) and _BASE64.fullmatch(data)):
        return ""
    return f"data:{label.split()[0]};base64,{data}"


def _time(time: int) -> str:
    return f'<time datetime="{iso(time)}">{readable(time)}</time>'


def _piece(piece: TranscriptPart, is_markdown: bool) -> Iterator[str]:
    label, text = _text(piece.label), _text(piece.text)
    match piece.form:
        case "text" if is_markdown:
            yield f'<div class="said" dir="auto">{rendered(piece.text)}</div>\n'
        case "text":
            yield f'<div dir="auto">{text}</div>\n'
        case "reasoning":
            yield '<details class="reasoning"><summary>Reasoning</summary>'
            yield f'<div class="said" dir="auto">{rendered(piece.text)}</div></details>\n'
        case "code":
            yield f"<h3>{label}</h3><pre>\n{text}</pre>\n"
        case "media" if address := data_address(piece.label, piece.text):
            yield f'<img alt="{label}" src="{address}">\n'
        case "media":
            where = text if ":" in piece.text[:8] else f"{len(piece.text)} characters"
            yield f"<p><em>{label} ({where})</em></p>\n"
        case "note":
            yield f"<p><em>{text}</em></p>\n"
        case _:
            assert_never(piece.form)
    for before in piece.before:
        yield f'<details class="before"><summary>Before</summary><div dir="auto">{_text(before)}</div></details>\n'


def _text(text: str) -> str:
    """``text`` as characters of a page, and nothing else."""
    return escape(clean(text.replace("\r\n", "\n")))
