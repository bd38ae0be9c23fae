"""Templates: values to pages. Promises: whatever a template prints is escaped, and nothing invisible is in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from thinkback.drive.clock import now
from thinkback.servers.viewer import text
from thinkback.session.times import ago
from thinkback.session.transcripts.ink import iso, readable, short

_HERE = Path(__file__).parent
STATIC = _HERE / "static"


def page(name: str, writes: bool = False, **values: Any) -> bytes:
    """The template ``name`` filled in; ``writes``: of a viewer by which the log may be changed."""
    return b"".join(pieces(name, writes, **values))


def pieces(name: str, writes: bool = False, **values: Any) -> Iterator[bytes]:
    """The same a piece at a time."""
    for piece in _environment(writes).get_template(name).generate(now=now(), **values):
        yield piece.encode("utf-8", "backslashreplace")


@cache
def _environment(writes: bool) -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        finalize=text.shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    made.filters.update(
        {
            "markdown": lambda value, most=text.LONGEST: text.markdown(text.clipped(value, most)),
            "structured": lambda value, most=text.LONGEST: text.structured(text.clipped(value, most)),
            "call": lambda value, most=text.LONGEST: text.call(text.clipped(value, most)),
            "changed_to": lambda old, new: text.changed(text.clipped(old), text.clipped(new)),
            "as_json": text.as_json,
            "excerpt": text.excerpt,
            "clipped": text.clipped,
            "plain": text.plain,
            "pictures": text.pictures,
            "marked": text.highlighted,
            "marked_in": lambda words, html: text.marked(html, words),
            "short": short,
            "iso": iso,
            "clock": readable,
            "ago": ago,
            "count": _count,
            "brief": _brief,
            "seconds": _seconds,
            "usd": _usd,
            "percent": lambda share: "<1%" if 0 < share < 0.01 else f"{share:.0%}",
            "plural": lambda number, one: f"{_count(number)} {one}{'' if number == 1 else 's'}",
        }
    )
    made.globals.update({"LONGEST": text.LONGEST, "WRITES": writes})
    return made


def _count(number: int) -> str:
    return f"{number:,}"


def _brief(number: int) -> str:
    """A large number as people read it."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if number >= size:
            amount = number / (1_000 if unit == "k" else size)
            return f"{amount:.0f} {unit}" if amount >= 10 else f"{amount:.1f} {unit}"
    return _count(number)


def _seconds(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _usd(usd: float) -> str:
    if 0 < usd < 0.0001:
        return "<$0.0001"
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"
