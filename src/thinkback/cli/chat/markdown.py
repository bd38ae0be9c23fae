"""Markdown as a terminal shows it: one block at a time, by rich.

Promises: every letter of the text is there in some form, links show where they lead, and no control character or
change of the direction of writing comes out, also none that an entity of the Markdown stands for.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from copy import copy
from typing import Any, ClassVar, Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown
from rich.segment import Segment, Segments
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme as Styles

from thinkback.cli.chat.theme import Depth, Theme
from thinkback.session.ink import clean

_COLOURS: dict[Depth, Literal["truecolor", "256", "standard"]] = {"true": "truecolor", "256": "256", "16": "standard"}
_STYLES = {
    "markdown.code": "bold",
    "markdown.code_block": "none",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold italic",
    "markdown.h5": "italic",
    "markdown.h6": "italic",
    "markdown.h7": "italic",
    "markdown.item.bullet": "none",
    "markdown.item.number": "none",
    "markdown.link": "underline",
    "markdown.link_url": "dim",
    "markdown.block_quote": "dim",
    "markdown.hr": "dim",
    "markdown.table.header": "bold",
    "markdown.table.border": "dim",
}
"""Attributes and no colours: they fit a light terminal as well as a dark one."""


class _Heading(Heading):
    LEVEL_ALIGN = dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "left")


class _Code(CodeBlock):
    """Code in the terminal's own colours, so that it can be read and copied as it is."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).removesuffix("\n")
        syntax = Syntax(
            code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 2), background_color="default"
        )
        yield syntax


class _Rule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * min(options.max_width, 20), style="dim")


class _Markdown(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "hr": _Rule,
    }

    def __init__(self, text: str, *, dark: bool) -> None:
        super().__init__(text, code_theme="ansi_dark" if dark else "ansi_light", hyperlinks=False)
        self.parsed = list(_readable(self.parsed))


def render(text: str, columns: int, theme: Theme) -> str:
    """``text`` as lines of at most ``columns`` with escape sequences, each ended by CR LF."""
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system=_COLOURS[theme.depth],
        width=columns,
        legacy_windows=False,
        theme=Styles(_STYLES),
        highlight=False,
        _environ={},
    )
    lines = console.render_lines(_Markdown(text, dark=theme.is_dark), pad=False)
    shown = [_fit(line) for line in lines]
    while shown and not _letters(shown[0]):
        shown.pop(0)
    while shown and not _letters(shown[-1]):
        shown.pop()
    pieces = [piece for line in shown for piece in (*line, Segment.line())]
    with console.capture() as capture:
        console.print(Segments(pieces), end="")
    return capture.get().replace("\n", "\r\n")


def _fit(line: list[Segment]) -> list[Segment]:
    """A line without anything that the terminal would obey, and without blanks at its end."""
    pieces = [Segment(clean(piece.text), piece.style) for piece in line if not piece.control]
    while pieces and not pieces[-1].text.strip():
        pieces.pop()
    if pieces:
        pieces[-1] = Segment(pieces[-1].text.rstrip(), pieces[-1].style)
    return pieces


def _letters(line: list[Segment]) -> str:
    return "".join(piece.text for piece in line).strip()


def _readable(tokens: list[Any]) -> Iterator[Any]:
    """``tokens`` with line ends kept, and with HTML as the text that it is: rich would leave it out."""
    for token in tokens:
        if token.type == "html_block":
            yield from _as_paragraph(token)
            continue
        if token.type == "html_inline":
            token.type = "text"
        elif token.type == "softbreak":
            token.type = "hardbreak"
        if token.children:
            token.children = list(_readable(token.children))
        yield token


def _as_paragraph(token: Any) -> Iterator[Any]:
    parts = (
        ("paragraph_open", "p", 1, ""),
        ("text", "", 0, token.content.rstrip("\n")),
        ("paragraph_close", "p", -1, ""),
    )
    for type, tag, nesting, content in parts:
        made = copy(token)
        made.type, made.tag, made.nesting, made.content, made.children = type, tag, nesting, content, None
        yield made
