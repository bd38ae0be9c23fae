"""Reasoning as tags inside ``content``: an incremental splitter.

Promises: the pieces, joined, are the input again; results do not depend on where the stream was cut; reasoning is
released as it arrives, only a possible tag is held back (never more than its length); time is linear in the text.
Rules (wire-formats 4.2):

- an opening tag counts at the start of the content, white space aside, and anywhere after a first tagged block
  (models that think between the parts of an answer); after untagged answer text it is literal, and so is its end;
- inside a code span or fence of the answer every tag is literal; inside reasoning only the closing tag counts;
- a closing tag that was never opened makes what came before it reasoning (its opening tag stood in the prompt).

Must not: know the dialect or build blocks.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal, TypeAlias

import msgspec

from thinkback.model.code_spans import CodeSpans

# Opening and closing delimiters seen on the wire (wire-formats 4.1).
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

_CLOSING_OF: dict[str, str] = dict(TAGS)
_LONGEST = max(len(tag) for pair in TAGS for tag in pair)
# <think signature="..."> and <think duration=...> occur; an attribute list longer than this is no tag.
_NAMES = r"<(?:think|thinking|thought|reasoning)\s{1,99}"
_WITH_ATTRIBUTES = _NAMES + r"[\w:-]{1,99}=[^<>]{0,4096}>"
_ATTRIBUTES_BEGIN = re.compile(_NAMES + r"(?:[\w:-]{1,99}(?:=[^<>]{0,4096})?)?\Z")


def _any_of(*patterns: str) -> re.Pattern[str]:
    """One alternative per first character: that is what lets the search skip over plain text."""
    by_first: dict[str, list[str]] = {}
    for pattern in patterns:
        first = pattern[:2] if pattern.startswith("\\") else pattern[0]
        by_first.setdefault(first, []).append(pattern.removeprefix(first))
    return re.compile("|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in by_first.items()))


_OPENINGS = (*map(re.escape, _CLOSING_OF), _WITH_ATTRIBUTES)
_AFTER_TAGS = _any_of(*_OPENINGS)
_BEFORE_TAGS = _any_of(*_OPENINGS, *map(re.escape, LONE_CLOSINGS))
_FIRST = re.compile(r"[<\[◁]")
# A text is read so often at most, so that no text takes long.
_TIMES = 4


def _beginnings(tags: tuple[str, ...]) -> frozenset[str]:
    return frozenset(tag[:length] for tag in tags for length in range(1, len(tag)))


_OPENING_BEGINS = _beginnings(tuple(_CLOSING_OF))
_LONE = frozenset(LONE_CLOSINGS)
_TAG_BEGINS = _OPENING_BEGINS | _beginnings(LONE_CLOSINGS)

Kind: TypeAlias = Literal["text", "open", "reasoning", "close", "lone_close"]


class Piece(msgspec.Struct, gc=False):
    """``open`` and ``close`` carry the tag; ``lone_close`` says that all text before it was reasoning."""

    kind: Kind
    text: str


class TagSplitter:
    """Feed ``content`` in any cuts; get pieces. One splitter per message."""

    __slots__ = ("_began", "_closing", "_code", "_held", "_literal", "_tagged")

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._began = False
        self._tagged = False
        self._code = CodeSpans()
        self._literal: Counter[str] = Counter()

    def feed(self, text: str) -> list[Piece]:
        """The pieces that ``text`` completes."""
        if not text:
            return []
        if self._held:
            text = self._held + text
        elif self._closing:
            if self._closing[0] not in text:
                return [Piece("reasoning", text)]
        elif self._began and not ("<" in text or "[" in text or "◁" in text):
            self._code.note(text)
            return [Piece("text", text)]
        return self._split(text, final=False)

    def close(self) -> list[Piece]:
        """What was held back: at the end of the stream it is no tag."""
        return self._split(self._held, final=True)

    def _split(self, text: str, final: bool) -> list[Piece]:
        pieces: list[Piece] = []
        position = 0
        self._held = ""
        while position < len(text):
            step = self._in_reasoning if self._closing else self._in_answer
            position = step(text, position, final, pieces)
        return pieces

    def _in_reasoning(self, text: str, start: int, final: bool, pieces: list[Piece]) -> int:
        closing = self._closing
        at = text.find(closing, start)
        if at < 0:
            end = len(text) if final else _held_from(text, start, closing)
            if end > start:
                pieces.append(Piece("reasoning", text[start:end]))
            self._held = text[end:]
            return len(text)
        if at > start:
            pieces.append(Piece("reasoning", text[start:at]))
        pieces.append(Piece("close", closing))
        self._closing = ""
        return at + len(closing)

    def _in_answer(self, text: str, start: int, final: bool, pieces: list[Piece]) -> int:
        """Release text up to the next tag that counts; returns where to go on."""
        search = (_AFTER_TAGS if self._tagged else _BEFORE_TAGS).search
        position = start
        while (found := search(text, position)) is not None:
            at, end = found.span()
            self._pass(text, position, at)
            tag = found.group()
            is_opening = tag not in _LONE
            if self._counts(tag, is_opening):
                if at > start:
                    pieces.append(Piece("text", text[start:at]))
                pieces.append(Piece("open" if is_opening else "lone_close", tag))
                self._closing = _closing_of(tag) if is_opening else ""
                self._tagged = self._began = True
                return end
            self._pass(text, at, end)
            position = end
        end = len(text) if final else self._tail(text, position)
        self._pass(text, position, end)
        if end > start:
            pieces.append(Piece("text", text[start:end]))
        self._held = text[end:]
        return len(text)

    def _counts(self, tag: str, is_opening: bool) -> bool:
        """Whether ``tag``, found where the text passed so far ends, is a tag and not part of the answer."""
        if is_opening and not self._began:
            return True
        if self._code.inside():
            return False
        if not is_opening:
            if not self._literal[tag]:
                return True
            self._literal[tag] -= 1
        elif self._tagged:
            return True
        else:
            self._literal[_closing_of(tag)] += 1
        return False

    def _pass(self, text: str, start: int, end: int) -> None:
        """Answer text that goes by."""
        if end > start:
            passed = text[start:end]
            self._began = self._began or not passed.isspace()
            self._code.note(passed)

    def _tail(self, text: str, start: int) -> int:
        """Where the end of ``text`` begins that may turn out to be a tag; its length if none."""
        last = text.rfind("<", start)
        if last >= 0 and _ATTRIBUTES_BEGIN.match(text, last):
            return last
        begins = _OPENING_BEGINS if self._tagged else _TAG_BEGINS
        for found in _FIRST.finditer(text, max(start, len(text) - _LONGEST + 1)):
            if text[found.start() :] in begins:
                return found.start()
        return len(text)


def _closing_of(opening: str) -> str:
    """The closing tag of an opening one, which may have attributes."""
    return _CLOSING_OF.get(opening) or f"</{opening[1:].split(None, 1)[0]}>"


def _held_from(text: str, start: int, mark: str) -> int:
    """Where the end of ``text`` begins that may turn out to be ``mark``; its length if none.

    The first character of a mark stands nowhere else in it, so only its last place matters.
    """
    at = text.rfind(mark[0], max(start, len(text) - len(mark) + 1))
    return at if at >= 0 and mark.startswith(text[at:]) else len(text)


def split_at(text: str, start: int, mark: str) -> tuple[int, int]:
    """(place, end) of the first ``mark``; without one, place -1 and where what may become one begins."""
    at = text.find(mark, start)
    return (at, at) if at >= 0 else (-1, _held_from(text, start, mark))


def is_plain(text: str) -> bool:
    """Whether ``text``, whole as it is, has no tag in it: all of it is answer."""
    return not ("<" in text or "[" in text or "◁" in text) or _BEFORE_TAGS.search(text) is None


def untagged(text: str) -> str:
    """``text`` without the reasoning in it; of one that was untagged before it is the same."""
    for _ in range(_TIMES):
        if is_plain(text):
            break
        left = _outside(text)
        if left == text:
            break
        text = left
    return text


def _outside(text: str) -> str:
    """What of ``text`` is no reasoning and no tag, read once."""
    splitter = TagSplitter()
    kept: list[str] = []
    for piece in (*splitter.feed(text), *splitter.close()):
        if piece.kind == "lone_close":
            kept = []
        elif piece.kind == "text":
            kept.append(piece.text)
    return "".join(kept)
