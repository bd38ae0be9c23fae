"""What the command line prints: lines, notes and complaints, JSON; no key in an error."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

import click

from thinkback.session.masking import without_keys as without_keys
from thinkback.session.transcripts.ink import CODES as CODES
from thinkback.session.transcripts.ink import SHORT_HASH as SHORT_HASH
from thinkback.session.transcripts.ink import Pen as Pen
from thinkback.session.transcripts.ink import Style as Style
from thinkback.session.transcripts.ink import clean as clean
from thinkback.session.transcripts.ink import clean_json as clean_json
from thinkback.session.transcripts.ink import clean_line as clean_line
from thinkback.session.transcripts.ink import clock as clock
from thinkback.session.transcripts.ink import columns_of as columns_of
from thinkback.session.transcripts.ink import fit as fit
from thinkback.session.transcripts.ink import fitted as fitted
from thinkback.session.transcripts.ink import iso as iso
from thinkback.session.transcripts.ink import one_line as one_line
from thinkback.session.transcripts.ink import pad as pad
from thinkback.session.transcripts.ink import pen as pen
from thinkback.session.transcripts.ink import short as short
from thinkback.session.transcripts.ink import table as table
from thinkback.session.transcripts.ink import width as width
from thinkback.session.transcripts.ink import wrap as wrap

NARROW = 60
"""Columns below which what belongs to a name stands under it instead of beside it."""

BRANCHED = "another process continued this session too: the next commits go to branch {}"


def out(text: str = "") -> None:
    """A line on standard output; nothing but our own colours in it is obeyed, whoever named what it tells of."""
    click.echo(fitted(clean_line(text), sys.stdout), color=True)


def note(text: str = "") -> None:
    """A dim line on standard error, without keys."""
    click.echo(pen(sys.stderr)(fitted(clean(without_keys(text)), sys.stderr), "dim"), err=True, color=True)


def complain(text: str) -> None:
    """An error on standard error, without keys."""
    line = f"{pen(sys.stderr)('thinkback:', 'red')} {clean(without_keys(text))}"
    click.echo(fitted(line, sys.stderr), err=True, color=True)


def print_json(value: Any) -> None:
    """A value on standard output, for programs."""
    click.echo(clean_json(json.dumps(value, indent=2, ensure_ascii=False)))


def tell(told: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """What a command did: ``told`` for programs, ``text`` for people."""
    if as_json:
        print_json(dict(told))
    else:
        out(text)


def print_error(
    kind: str, message: str, details: Mapping[str, object] | None = None, next_actions: Sequence[str] = ()
) -> None:
    """A failure on standard output, for programs, without keys: an object with ``error`` alone."""
    error = {"kind": kind, "message": message, "details": dict(details or {}), "next_actions": list(next_actions)}
    text = json.dumps({"error": error}, indent=2, ensure_ascii=False, default=str)
    click.echo(clean_json(without_keys(text)))


class Page(io.StringIO):
    """Text that is gathered for standard output, and painted as it is there."""

    def __init__(self) -> None:
        super().__init__()
        self._is_terminal = sys.stdout.isatty()

    def isatty(self) -> bool:
        """Whether standard output is a terminal."""
        return self._is_terminal


def show(text: str) -> None:
    """Whole ``text`` on standard output; on a terminal that it does not fit, through a pager."""
    lines = shutil.get_terminal_size((80, 24)).lines
    if not sys.stdout.isatty() or not sys.stdin.isatty() or text.count("\n") < lines:
        click.echo(clean_line(text), nl=False, color=True)
        return
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(clean_line(text), color=True)


@contextmanager
def paged() -> Iterator[None]:
    """What is printed inside, whole, as ``show`` does."""
    page = Page()
    with redirect_stdout(page):
        yield
    show(page.getvalue())


def plural(count: int, noun: str) -> str:
    """``1 block``, ``2 blocks``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class Flow:
    """Text that arrives in pieces, wrapped word by word into a column behind ``label``."""

    def __init__(self, stream: TextIO, label: str, indent: int, styles: Iterable[Style] = ()) -> None:
        self._stream = stream
        self._pen = pen(stream)
        self._styles = tuple(styles)
        self._indent = indent
        self._width = width()
        self._column = indent
        self._word = ""
        self._gap = False
        stream.write(self._pen(label, "bold") + " " * (indent - columns_of(label)))
        stream.flush()

    def feed(self, text: str) -> None:
        """A piece of the text; a word is written when the next one begins."""
        for part in re.split(r"(\s)", clean(text)):
            if not part.isspace():
                self._word += part
                continue
            self._write_word()
            if part == "\n":
                self._break()
            self._gap = self._column > self._indent

    def end(self) -> None:
        """The text is over."""
        self._write_word()
        self._stream.write("\n")
        self._stream.flush()

    def _write_word(self) -> None:
        word, self._word = self._word, ""
        if not word:
            return
        if self._column > self._indent and self._column + self._gap + columns_of(word) > self._width:
            self._break()
        gap = " " if self._gap else ""
        self._stream.write(gap + self._pen(word, *self._styles))
        self._stream.flush()
        self._column += len(gap) + columns_of(word)
        self._gap = False

    def _break(self) -> None:
        self._stream.write("\n" + " " * self._indent)
        self._column = self._indent
        self._gap = False
