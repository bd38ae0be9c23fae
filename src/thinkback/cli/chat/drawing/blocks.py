"""Where Markdown that arrives in pieces may be cut: after each block that nothing later changes.

Pure. The blocks joined are the text. A block is a heading, a paragraph, a table, an item of a list with what belongs
to it, or a fenced piece of code; the blank line behind it is its own. Only whole lines decide, so that blocks do not
depend on how the text was cut into pieces.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})(.*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}(?:\s|$)")
_ITEM = re.compile(r"^ ?(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
# what may follow a paragraph without a blank line
_FIRST_ITEM = re.compile(r"^ ?(?:[-*+]|1[.)])\s+\S")
_INDENTED = re.compile(r"^(?: {2,}|\t)\s*\S")


class Splitter:
    """``size`` is the length of the block under way, the unfinished line at its end included."""

    def __init__(self) -> None:
        self.size = 0
        self._lines: list[str] = []
        self._rest = ""
        self._fence = ""
        self._is_blank = True
        self._is_list = False

    @property
    def open(self) -> str:
        """The block under way."""
        return "".join(self._lines) + self._rest

    def feed(self, text: str) -> list[str]:
        """The blocks that ``text`` closes."""
        self.size += len(text)
        *lines, rest = text.split("\n")
        if not lines:
            self._rest += rest
            return []
        lines[0] = self._rest + lines[0]
        self._rest = rest
        closed = [block for line in lines for block in self._take(line)]
        self.size -= sum(map(len, closed))
        return closed

    @property
    def is_code(self) -> bool:
        """Whether the block under way is fenced code, and nothing else."""
        return bool(self._fence) and not self._is_list

    def chop(self) -> str:
        """The whole lines of the code under way, as a block; the fence stays open for what follows."""
        block = "".join(self._lines)
        self._lines = []
        self.size -= len(block)
        return block

    def end(self) -> str:
        """The block under way, which is the last."""
        last = self.open
        self._rest = ""
        self._cut()
        self.size = 0
        return last

    def _take(self, line: str) -> list[str]:
        """Take a whole line; the blocks that it closes, before it or with it."""
        if self._fence:
            self._lines.append(line + "\n")
            if _closes(line, self._fence):
                self._fence = ""
                # code inside an item of a list does not end the item
                return [] if self._is_list else [self._cut()]
            return []
        closed = [self._cut()] if self._ends_before(line) else []
        if self._is_blank:
            self._is_list = bool(_ITEM.match(line))
        begins, self._is_blank = self._is_blank, self._is_blank and not line.strip()
        self._lines.append(line + "\n")
        fence = _FENCE.match(line)
        if fence and (len(fence[1]) < 4 or self._is_list) and not (fence[2][0] == "`" and "`" in fence[3]):
            self._fence = fence[2]
        elif (begins and _HEADING.match(line)) or not (line.strip() or self._is_list or self._is_blank):
            closed.append(self._cut())
        return closed

    def _ends_before(self, line: str) -> bool:
        """Whether the block under way ends and ``line`` begins another."""
        if self._is_blank or not line.strip():
            return False
        if self._is_list:
            return bool(_ITEM.match(line)) or (
                not _INDENTED.match(line)
                and (not self._lines[-1].strip() or bool(_HEADING.match(line) or _FENCE.match(line)))
            )
        fence = _FENCE.match(line)
        return bool(_HEADING.match(line) or _FIRST_ITEM.match(line) or (fence and len(fence[1]) < 4))

    def _cut(self) -> str:
        block = "".join(self._lines)
        self._lines, self._fence, self._is_blank, self._is_list = [], "", True, False
        return block


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and set(mark) == {fence[0]}
