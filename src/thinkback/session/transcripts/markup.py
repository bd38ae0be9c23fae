"""Markdown as HTML that may stand in anybody's page: the text of a model is hostile.

Promises: no tag, address or picture of the text gets through; what it has of them is shown as it was written.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from thinkback.session.transcripts.ink import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

LONGEST = 200_000
"""Characters beyond which a text is shown as it is: nobody reads so much, and parsing it takes seconds."""
_FORMULA = re.compile(r"\\\(.{1,500}?\\\)|\\\[.{1,500}?\\\](?!\()", re.DOTALL)
"""Bounded, as a text may have many beginnings and no end."""
_ADDRESSES = ("image", "link", "autolink", "reference", "html_inline", "html_block")


def rendered(text: str) -> str:
    """``text``, read as Markdown, as HTML without attributes but of tables and of code."""
    plain = clean(text.replace("\r\n", "\n"))
    if len(plain) > LONGEST:
        return f"<pre>\n{escape(plain)}</pre>\n"
    found: str = _parser().render(plain)
    return found


def keep_formulas(parser: MarkdownIt) -> MarkdownIt:
    """Have ``parser`` leave formulas as they are: Markdown reads the backslashes of ``\\(a_1\\)`` as escapes."""
    parser.inline.ruler.before("escape", "formula", _formula)
    return parser


def _formula(state: StateInline, silent: bool) -> bool:
    found = _FORMULA.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.pending += found[0]
    state.pos = found.end()
    return True


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    options = {"html": False, "breaks": True, "maxNesting": 20}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).disable(_ADDRESSES)
    return keep_formulas(parser)
