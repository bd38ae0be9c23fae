"""Code in Markdown text: whether the place a text has come to is inside a code span or a fence.

Looks at text only when asked, and at each character once. A fence is a line that begins with three or more
backticks or tildes and ends with a line of at least as many; a span is text between two runs of as many backticks
on one line.
"""

from __future__ import annotations

import re

_MARK = re.compile(r"\n|``*|~~*")  # literal first characters: the search skips over plain text


class CodeSpans:
    """``note`` text as it goes by; ask ``inside`` at any point where no run of backticks is cut."""

    __slots__ = ("_blank", "_closes", "_fence", "_opens", "_span", "_unseen", "note")

    def __init__(self) -> None:
        self._unseen: list[str] = []
        self.note = self._unseen.append
        self._fence = ""  # the run that opened the fence we are in
        self._opens = ""  # the run at the start of this line, which opens a fence if the line is one
        self._closes = False  # this line is a closing one so far
        self._span = 0  # the length of the run that opened the span we are in
        self._blank = True  # nothing but white space on this line so far

    def inside(self) -> bool:
        """Whether what follows the noted text is code."""
        if self._unseen:
            text = "".join(self._unseen)
            self._unseen.clear()
            self._scan(text)
        return bool(self._fence or self._opens or self._span)

    def _scan(self, text: str) -> None:
        at = 0
        for found in _MARK.finditer(text):
            self._pass(text[at : found.start()])
            mark, at = found.group(), found.end()
            if mark == "\n":
                self._end_line()
            else:
                self._take_run(mark)
        self._pass(text[at:])

    def _pass(self, text: str) -> None:
        if text and not text.isspace():
            self._blank = self._closes = False

    def _take_run(self, run: str) -> None:
        """What a run of backticks or tildes means where it stands."""
        leads, self._blank = self._blank, False
        if self._fence:
            self._closes = leads and run.startswith(self._fence)
        elif leads and len(run) >= 3:
            self._opens = run
        elif run[0] == "`":
            if self._opens.startswith("`"):  # a line with more backticks is no fence but begins with a span
                self._span, self._opens = len(self._opens), ""
            if not self._span:
                self._span = len(run)
            elif self._span == len(run):
                self._span = 0

    def _end_line(self) -> None:
        if self._closes:
            self._fence = ""
        elif self._opens:
            self._fence = self._opens
        self._opens, self._closes, self._span, self._blank = "", False, 0, True
