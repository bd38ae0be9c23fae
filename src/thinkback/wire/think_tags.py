"""Reasoning as tags inside ``content``: an incremental splitter.

Promises: the pieces, joined, are the input again; results do not depend on where the stream was cut; reasoning is
released as it arrives, only a possible tag is held back (never more than its length). Rules (wire-formats 4.2):

- an opening tag counts at the start of the content, white space aside, and anywhere after a first tagged block
  (models that think between the parts of an answer); after untagged answer text it is literal;
- inside a code span or fence of the answer every tag is literal; inside reasoning only the closing tag counts;
- a closing tag that was never opened makes what came before it reasoning (its opening tag stood in the prompt).

Must not: know the dialect or build blocks.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

# Opening and closing delimiters seen on the wire (wire-formats 4.1). Order matters only for equal prefixes.
TAGS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<analysis>", "</analysis>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("[THINK]", "[/THINK]"),
    ("<mm:think>", "</mm:think>"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("<ifm|think>", "</ifm|think>"),
    ("<ifm|think_fast>", "</ifm|think_fast>"),
    ("<ifm|think_faster>", "</ifm|think_faster>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
)
# A lone closing tag is believed only for delimiters that stand for nothing else.
LONE_CLOSINGS: tuple[str, ...] = tuple(close for _, close in TAGS if close != "<|end|>")
OPENINGS: dict[str, str] = dict(TAGS)
_FIRST = "".join(sorted({tag[0] for pair in TAGS for tag in pair}))
_START = re.compile(f"[{re.escape(_FIRST)}]")
# <think signature="..."> and <think duration=...> occur; an attribute list longer than this is no tag.
_ATTRIBUTES_LIMIT = 4096
_WITH_ATTRIBUTES = re.compile(r"<(think|thinking|thought|reasoning)\s[^<>]*>")
_ATTRIBUTES_BEGIN = re.compile(r"<(think|thinking|thought|reasoning)\s[^<>]*\Z")


class Piece(NamedTuple):
    """``open`` and ``close`` carry the tag; ``lone_close`` says that all text before it was reasoning."""

    kind: Literal["text", "open", "reasoning", "close", "lone_close"]
    text: str


class TagSplitter:
    """Feed ``content`` in any cuts; get pieces. One splitter per message."""

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._began = False
        self._tagged = False
        self._code = CodeSpans()

    def feed(self, text: str) -> list[Piece]:
        if not self._held and self._began and not self._closing and not _START.search(text):
            self._code.note(text)
            return [Piece("text", text)]
        return self._split(self._held + text, final=False)

    def close(self) -> list[Piece]:
        """What was held back: at the end of the stream it is no tag."""
        return self._split(self._held, final=True) if self._held else []

    @property
    def inside(self) -> bool:
        """Whether the last tag is still open."""
        return bool(self._closing)

    def _split(self, text: str, final: bool) -> list[Piece]:
        pieces: list[Piece] = []
        self._held = ""
        while text:
            step = self._in_reasoning if self._closing else self._in_answer
            text = step(text, final, pieces)
            if self._held:
                break
        return pieces

    def _in_reasoning(self, text: str, final: bool, pieces: list[Piece]) -> str:
        at = text.find(self._closing)
        if at >= 0:
            if at:
                pieces.append(Piece("reasoning", text[:at]))
            pieces.append(Piece("close", self._closing))
            rest = text[at + len(self._closing) :]
            self._closing = ""
            return rest
        keep = 0 if final else partial_suffix(text, (self._closing,))
        self._held = text[len(text) - keep :]
        if len(text) > keep:
            pieces.append(Piece("reasoning", text[: len(text) - keep]))
        return ""

    def _in_answer(self, text: str, final: bool, pieces: list[Piece]) -> str:
        """Release text up to the next tag; returns what follows the tag."""
        position = 0
        while (found := _START.search(text, position)) is not None:
            at = found.start()
            if not self._began and text[:at].strip():
                self._began = True
            tag, closing = self._tag_at(text, at, final)
            if tag is None:
                self._release(text[:at], pieces)
                self._held = text[at:]
                return ""
            if tag and not self._is_literal(text[:at], closing):
                self._release(text[:at], pieces)
                pieces.append(Piece("open" if closing else "lone_close", tag))
                self._tagged, self._began, self._closing = True, True, closing
                return text[at + len(tag) :]
            position = at + 1
        self._release(text, pieces)
        return ""

    def _tag_at(self, text: str, at: int, final: bool) -> tuple[str | None, str]:
        """(tag, its closing), ("", "") for no tag, (None, "") when more text must decide."""
        opening_allowed = self._tagged or not self._began
        if opening_allowed:
            for opening, closing in TAGS:
                if text.startswith(opening, at):
                    return opening, closing
            if (found := _WITH_ATTRIBUTES.match(text, at)) is not None:
                return found.group(), f"</{found.group(1)}>"
        if not self._tagged:
            for closing in LONE_CLOSINGS:
                if text.startswith(closing, at):
                    return closing, ""
        if final:
            return "", ""
        rest = text[at:]
        wanted = (tuple(OPENINGS) if opening_allowed else ()) + (() if self._tagged else LONE_CLOSINGS)
        if any(tag.startswith(rest) for tag in wanted):
            return None, ""
        attributes = opening_allowed and len(rest) < _ATTRIBUTES_LIMIT and _ATTRIBUTES_BEGIN.match(rest)
        return (None, "") if attributes else ("", "")

    def _is_literal(self, before: str, closing: str) -> bool:
        if closing and not self._began:
            return False
        return self._code.inside(before)

    def _release(self, text: str, pieces: list[Piece]) -> None:
        if not text:
            return
        if not self._began and text.strip():
            self._began = True
        self._code.note(text)
        pieces.append(Piece("text", text))


class CodeSpans:
    """Whether a position in Markdown text is inside a code span or fence; looks at text only when asked.

    A fence is a line that begins with three backticks or tildes; a span is a pair of backticks on one line.
    """

    def __init__(self) -> None:
        self._unseen: list[str] = []
        self._fence = ""
        self._line = ""

    def note(self, text: str) -> None:
        """More text passed by."""
        self._unseen.append(text)

    def inside(self, upcoming: str) -> bool:
        """Whether what follows the noted text and ``upcoming`` is code."""
        self._scan("".join(self._unseen))
        self._unseen.clear()
        fence, line = self._fence, self._line
        self._scan(upcoming)
        answer = bool(self._fence) or self._line.count("`") % 2 == 1
        self._fence, self._line = fence, line
        return answer

    def _scan(self, text: str) -> None:
        *lines, last = (self._line + text).split("\n")
        for line in lines:
            self._end_line(line)
        self._line = last

    def _end_line(self, line: str) -> None:
        mark = line.lstrip()[:3]
        if self._fence:
            if mark == self._fence:
                self._fence = ""
        elif mark in ("```", "~~~"):
            self._fence = mark


def partial_suffix(text: str, wanted: tuple[str, ...]) -> int:
    """Length of the longest suffix of ``text`` that begins one of ``wanted`` without completing it."""
    longest = min(len(text), max(map(len, wanted)) - 1)
    if not any(tag[0] in text[len(text) - longest :] for tag in wanted):
        return 0
    for length in range(longest, 0, -1):
        suffix = text[len(text) - length :]
        if any(tag.startswith(suffix) for tag in wanted):
            return length
    return 0
