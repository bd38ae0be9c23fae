"""Markdown as a terminal shows it: one block at a time, by rich.

Promises: every letter of the text is there in some form, links show where they lead, and no control character or
change of the direction of writing comes out, also none that an entity of the Markdown stands for.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from copy import copy
from typing import Any, ClassVar, Literal

from rich import box
from rich import markdown as rich_markdown
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, ListItem, Markdown, TableElement
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme as Styles

from thinkback.cli.chat.drawing.column import Column
from thinkback.cli.chat.drawing.theme import Depth, Theme
from thinkback.session.transcripts.ink import clean
from thinkback.session.transcripts.markup import keep_formulas

_COLOURS: dict[Depth, Literal["truecolor", "256", "standard"]] = {"true": "truecolor", "256": "256", "16": "standard"}
_SYSTEMS = {"true": ColorSystem.TRUECOLOR, "256": ColorSystem.EIGHT_BIT, "16": ColorSystem.STANDARD}
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
    "markdown.link": "underline",
    "markdown.link_url": "dim",
    "markdown.block_quote": "dim",
    "markdown.hr": "dim",
    "markdown.table.header": "bold",
    "markdown.table.border": "dim",
}
"""Attributes and no colours: they fit a light terminal as well as a dark one."""
# the parser leaves out what is nested more deeply than twenty levels; a list takes two of them and three columns
_DEEPEST, _COLUMNS_PER_LEVEL, _COLUMNS_PER_CELL = 17, 4, 5


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


class _Item(ListItem):
    """An item that stands alone: its number as it was written, its mark also where there is nothing behind it."""

    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._behind(" • ", console, options)

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        yield from self._behind(f" {number}. ", console, options)

    def _behind(self, mark: str, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self.elements, options.update(width=options.max_width - len(mark)))
        for at, line in enumerate(lines or [[]]):
            yield Segment(" " * len(mark) if at else mark)
            yield from line
            yield Segment.line()


class _Table(TableElement):
    """A table whose cells break long words rather than cut them off."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(
            box=box.SIMPLE, show_edge=False, pad_edge=False, style="markdown.table.border", collapse_padding=True
        )
        for cell in self.header.row.cells if self.header and self.header.row else ():
            heading = cell.content.copy()
            heading.stylize("markdown.table.header")
            table.add_column(heading, overflow="fold")
        for row in self.body.rows if self.body else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield table


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
        "list_item_open": _Item,
        "table_open": _Table,
    }

    def __init__(self, text: str, *, dark: bool) -> None:
        # not super().__init__, which makes a parser for each text: that costs as much as a block does
        self.markup = text
        self.parsed = list(_readable(_parser().parse(text)))
        self.code_theme = self.inline_code_theme = "ansi_dark" if dark else "ansi_light"
        self.justify = self.inline_code_lexer = None
        self.style = "none"
        self.hyperlinks = False


def render(text: str, columns: int, theme: Theme) -> str:
    """``text`` as lines of at most ``columns`` with escape sequences, each ended by CR LF."""
    console = _console(columns, theme.depth)
    markdown = _Markdown(text, dark=theme.is_dark)
    is_empty = [(token.type, token.content) for token in markdown.parsed] == [("fence", "")]
    if is_empty or not _has_room(markdown.parsed, columns):
        return _as_it_is(text, columns)
    lines = console.render_lines(markdown, pad=False)
    shown = [_fit(line) for line in lines]
    if shown and not shown[0] and markdown.parsed[0].type not in ("fence", "code_block"):
        # rich parts what holds paragraphs from a paragraph that does not stand above
        del shown[0]
    return "".join(f"{''.join(_painted(piece, theme.depth) for piece in line)}\r\n" for line in shown)


@functools.lru_cache(maxsize=4)
def _console(columns: int, depth: Depth) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system=_COLOURS[depth],
        width=columns,
        legacy_windows=False,
        theme=Styles(_STYLES),
        highlight=False,
        _environ={},
    )


def _painted(piece: Segment, depth: Depth) -> str:
    return piece.style.render(piece.text, color_system=_SYSTEMS[depth]) if piece.style else piece.text


def _has_room(tokens: list[Any], columns: int) -> bool:
    """Whether all of it can be shown: what is nested too deeply, or has too many columns, would be left out."""
    deepest = max((token.level for token in tokens), default=0)
    cells = most = 0
    for token in tokens:
        cells = 0 if token.type == "tr_open" else cells + (token.type in ("th_open", "td_open"))
        most = max(most, cells)
    return deepest <= min(columns // _COLUMNS_PER_LEVEL, _DEEPEST) and most * _COLUMNS_PER_CELL <= columns


def _as_it_is(text: str, columns: int) -> str:
    column = Column(columns + 1)
    return column.feed(text.rstrip("\n")) + column.end()


def _fit(line: list[Segment]) -> list[Segment]:
    """A line without anything that the terminal would obey, and without blanks at its end."""
    pieces = [Segment(clean(piece.text), piece.style) for piece in line if not piece.control]
    while pieces and not pieces[-1].text.strip():
        pieces.pop()
    if pieces:
        pieces[-1] = Segment(pieces[-1].text.rstrip(), pieces[-1].style)
    return pieces


@functools.cache
def _parser() -> Any:
    """The parser that rich makes for itself."""
    return keep_formulas(vars(rich_markdown)["MarkdownIt"]().enable("strikethrough").enable("table"))


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
