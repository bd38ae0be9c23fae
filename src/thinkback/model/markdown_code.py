"""Code in Markdown text as it arrives, and the place on its line that the text has come to.

Fences are known in block quotes and list items too, indented code behind a blank line. A code span may run over lines
and ends with its paragraph at the latest; while nobody knows whether its end will come, what stands in it is code.
Looks at text only when asked, and at each character once.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Place: TypeAlias = Literal["line", "indented", "touching", "apart", "quoted"]
"""Where on a line: at its start (at most 3 spaces), behind more white space alone, right behind a word, behind white
space that follows text, or right behind an opening quotation mark or bracket.
"""

# What may stand in front of the text of a line, a fence with it: which it is, is known with the next character.
_HEAD = re.compile(r"[ \t>*+\-0-9.)`~#]*")
_QUOTE = re.compile(r" {0,3}> ?")
_CONTAINER = re.compile(r" {0,3}> ?|[ \t]*(?:[-+*]|\d{1,9}[.)])(?=[ \t])")
_RUN = re.compile(r"\n|\\?``*")
_FENCE = re.compile(r"```+|~~~+")
_INDENTED = 4
# So much of a line is kept to know what stands in front of a place.
_KEPT = 40
_OPEN_QUOTES = "“‘„‚«‹「『《〈（【([{=\\/<"  # noqa: RUF001
_MARKS = _OPEN_QUOTES + "\"'*_~|"


class MarkdownCode:
    """``note`` text as it goes by; ask at any point where no run of backticks is cut, and where the line goes on."""

    __slots__ = (
        "_after_blank",
        "_depth",
        "_fence",
        "_fence_depth",
        "_head",
        "_indented",
        "_line",
        "_listed",
        "_opens",
        "_quotes",
        "_span",
        "_unseen",
        "note",
        "span_began_here",
        "spans",
    )

    def __init__(self) -> None:
        self._unseen: list[str] = []
        self.note = self._unseen.append
        self._fence = ""  # the run that opened the fence we are in, and the block quotes that it stands in
        self._fence_depth = 0
        self._opens = ""  # the run at the start of this line, which opens a fence if the line is one
        self._span = 0  # the length of the run that opened the span we are in
        self.spans = 0  # how many have begun
        self.span_began_here = False  # on this line
        self._head: str | None = ""  # the start of this line while it is not known what it is
        self._depth = 0  # the block quotes that the paragraph stands in
        self._listed = False
        self._indented = False
        self._after_blank = True
        self._line = ""
        self._quotes = 0

    def inside(self) -> bool:
        """True if what follows the noted text is code."""
        self._look()
        return self.inside_block() or bool(self._span)

    def inside_block(self) -> bool:
        """True if it is so whatever becomes of a span: in a fence, or indented."""
        self._look()
        return bool(self._fence or self._opens or self._indented)

    def inside_span(self) -> bool:
        """True if it is in a span, as far as is known."""
        self._look()
        return bool(self._span)

    def place(self) -> Place:
        """The place on its line where the noted text ends."""
        self._look()
        line = self._line
        if not line or line.isspace():
            return "line" if not line.strip(" ") and len(line) < _INDENTED else "indented"
        if line[-1].isspace():
            return "apart"
        before = line.rstrip(_MARKS)
        is_opening = before != line and (not before or before[-1].isspace())
        if line[-1] in _OPEN_QUOTES or is_opening or (line[-1] == '"' and self._quotes % 2):
            return "quoted"
        return "touching"

    @property
    def last(self) -> str:
        """The last character of the line so far; nothing at its start."""
        return self._line[-1:]

    def _look(self) -> None:
        if self._unseen:
            text = "".join(self._unseen)
            self._unseen.clear()
            self._scan(text)
            at = text.rfind("\n") + 1
            if at:
                self._line, self._quotes = "", 0
            self._line = (self._line + text[max(at, len(text) - _KEPT) :])[-_KEPT:]
            self._quotes += text.count('"', at)
        if self._head is not None:
            self._begin_line(self._head)

    def _scan(self, text: str) -> None:
        at = 0
        while at < len(text):
            if self._head is not None:
                found = _HEAD.match(text, at)
                assert found is not None
                at = found.end()
                self._head += found.group()
                if at == len(text):
                    return
                if text[at] == "\n" and self._is_no_text(self._head):
                    at += 1
                    continue
                self._begin_line(self._head)
            end = text.find("\n", at)
            self._note_text(text[at : end if end >= 0 else len(text)])
            if end < 0:
                return
            self._end_line()
            at = end + 1

    def _is_no_text(self, head: str) -> bool:
        """Take in a whole line that is blank or closes a fence; whether it is one."""
        if self._fence and (inner := self._in_fence(head)) is not None:
            run = inner.strip()
            if not run.startswith(self._fence) or run.strip(self._fence[0]):
                return False
        elif head.strip(" \t>"):
            return False
        else:
            self._span, self._after_blank = 0, True
        self._fence = ""
        self._head, self.span_began_here = "", False
        return True

    def _in_fence(self, head: str) -> str | None:
        """A line's start without the block quotes of the fence; ``None`` where they, and the fence, have ended."""
        at = 0
        for _ in range(self._fence_depth):
            found = _QUOTE.match(head, at)
            if found is None:
                return None
            at = found.end()
        return head[at:]

    def _begin_line(self, head: str) -> None:
        """The line has text behind its ``head``."""
        self._head = None
        if self._fence:
            if self._in_fence(head) is not None:
                return
            self._fence = ""
        depth, begins, at = 0, False, 0
        while (found := _CONTAINER.match(head, at)) is not None:
            at = found.end()
            is_quote = found.group().rstrip().endswith(">")
            depth += is_quote
            begins = begins or not is_quote
        content = head[at:].lstrip()
        indent = len(head[at : len(head) - len(content)].expandtabs(_INDENTED))
        if begins or depth != self._depth or content.startswith("#"):
            self._span = 0
        self._depth = depth
        self._listed = begins or (self._listed and (indent > 0 or not self._after_blank))
        starts = self._after_blank or self._indented
        self._indented = indent >= _INDENTED and starts and not self._listed
        self._after_blank = False
        if self._indented:
            self._span = 0
            return
        fence = _FENCE.match(content)
        if fence is not None:
            self._opens, self._span = fence.group(), 0
            content = content[fence.end() :]
        self._note_text(content)

    def _note_text(self, text: str) -> None:
        """Text of a line behind its start."""
        if self._fence or self._indented:
            return
        for found in _RUN.finditer(text):
            length = len(found.group())
            if found.group().startswith("\\"):
                length -= 1 if self._span else 2
            if not length:
                continue
            if self._opens.startswith("`"):  # a line with more backticks is no fence but begins with a span
                self._open_span(len(self._opens))
                self._opens = ""
            if self._opens:
                return
            if not self._span:
                self._open_span(length)
            elif self._span == length:
                self._span = 0

    def _open_span(self, length: int) -> None:
        self._span = length
        self.spans += 1
        self.span_began_here = True

    def _end_line(self) -> None:
        if self._opens:
            self._fence, self._fence_depth, self._opens = self._opens, self._depth, ""
        self._head, self.span_began_here = "", False
