"""What notebooks show of sessions and replies, and a stream that shows itself while it comes.

Promises: no text of a model becomes a tag, a link or a picture; opaque values are never shown. IPython is imported only
where it runs already.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from thinkback.log.transcript import transcript
from thinkback.model.commits import Commit
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, TextDelta
from thinkback.model.tables import plain
from thinkback.session.transcripts import ink, markdown, page
from thinkback.session.transcripts.markup import rendered

if TYPE_CHECKING:
    from thinkback.session.stream import ReplyStream

LAST = 20
"""Entries of a conversation that are shown; a whole one is what ``export`` is for."""
_EVERY = 0.1
"""Seconds between two pictures of a stream."""


def reply_html(text: str, reasoning: str | None, said: str, *, is_open: bool = False) -> str:
    """A reply: the reasoning folded away unless it ``is_open``, the answer, and a line of what else is ``said``."""
    opened = " open" if is_open else ""
    thought = ""
    if reasoning:
        inside = f'<div style="opacity:.7">{rendered(reasoning)}</div>'
        thought = f"<details{opened}><summary>Reasoning</summary>{inside}</details>"
    return f"<div>{thought}{rendered(text)}<p><small>{escape(ink.clean(said))}</small></p></div>"


def reply_markdown(text: str, reasoning: str | None, said: str) -> str:
    """The same as Markdown. The texts stand in fences: they may hold tags."""
    thought = f"*Reasoning*\n\n{markdown.fenced(reasoning)}\n" if reasoning else ""
    return f"{thought}{markdown.fenced(text)}\n{plain(said)}\n"


def session_html(name: str, said: str, commits: Sequence[Commit]) -> str:
    """A session: its name, what else is ``said`` of it, and the last entries of its conversation."""
    entries = list(transcript(commits))
    more = f", {len(entries) - LAST} entries before these" if len(entries) > LAST else ""
    shown = "".join(piece for entry in entries[-LAST:] for piece in page.entry(entry))
    return f"<div><p><b>{escape(ink.clean(name))}</b> {escape(ink.clean(said + more))}</p>{shown}</div>"


def session_markdown(name: str, said: str, commits: Sequence[Commit]) -> str:
    """The same as Markdown, in a fence."""
    entries = list(transcript(commits))[-LAST:]
    shown = markdown.fenced("".join(piece for entry in entries for piece in markdown.entry(entry)).strip())
    return f"**{plain(name)}** {plain(said)}\n\n{shown}"


def show(stream: ReplyStream) -> None:
    """Run a turn to its end and show it while it comes: in a notebook as its output, elsewhere as text."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "kernel"):
        _print(stream)
        return
    shown: Any = import_module("IPython.display")
    arrived = _Arrived()
    handle = shown.display(shown.HTML(""), display_id=True)
    drawn = 0.0
    try:
        for delta in stream:
            arrived.take(delta)
            if time.monotonic() - drawn >= _EVERY:
                handle.update(shown.HTML(reply_html(arrived.text, arrived.reasoning, "…", is_open=True)))
                drawn = time.monotonic()
    finally:
        handle.update(shown.HTML(reply_html(arrived.text, arrived.reasoning, "interrupted")))
    handle.update(shown.HTML(stream.reply._repr_html_()))


class _Arrived:
    """What has come of a response."""

    def __init__(self) -> None:
        self.text = self.reasoning = ""

    def take(self, delta: Delta) -> None:
        """The next piece."""
        match delta:
            case TextDelta():
                self.text += delta.text
            case ReasoningDelta():
                self.reasoning += delta.text
            case Reclassified():  # what was shown as the answer was reasoning
                self.text, self.reasoning = "", self.reasoning + delta.text
            case _:
                pass


def _print(stream: Iterable[Delta]) -> None:
    pen, last = ink.pen(sys.stdout), ""
    for delta in stream:
        if not isinstance(delta, TextDelta | ReasoningDelta) or not delta.text:
            continue
        kind = type(delta).__name__
        sys.stdout.write("\n\n" if last not in ("", kind) else "")
        sys.stdout.write(pen(ink.clean(delta.text), *(("dim",) if isinstance(delta, ReasoningDelta) else ())))
        sys.stdout.flush()
        last = kind
    sys.stdout.write("\n")
