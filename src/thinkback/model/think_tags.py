"""Reasoning as tags inside ``content``: an incremental splitter.

Promises: the pieces, joined, are the input again; results do not depend on where the stream was cut; reasoning is
released as it arrives, only a possible tag is held back (never more than its length); time is linear in the text.
Rules:

- an opening tag counts at the start of the content, white space aside, and anywhere after a first tagged block
  (models that think between the parts of an answer); after untagged answer text it is literal, and so is its end.
  With ``anywhere`` it counts there too; with ``off`` no tag counts;
- inside a code span or fence of the answer every tag is literal; inside reasoning only the closing tag counts;
- a closing tag that was never opened makes what came before it reasoning (its opening tag stood in the prompt);
- upper and lower case are alike, but for ``exact``: so tags were read when format 1 of visible digests was made.

Must not: know the dialect or build blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from thinkback.model.code_spans import CodeSpans

# Opening and closing delimiters seen on the wire.
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

_LONGEST = max(len(tag) for pair in TAGS for tag in pair)
# <think signature="..."> and <think duration=...> occur; an attribute list longer than this is no tag.
_NAMES = r"<(?:think|thinking|thought|reasoning)\s{1,99}"
_WITH_ATTRIBUTES = _NAMES + r"[\w:-]{1,99}=[^<>]{0,4096}>"
_ATTRIBUTES_BEGIN = _NAMES + r"(?:[\w:-]{1,99}(?:=[^<>]{0,4096})?)?\Z"
_FIRST = re.compile(r"[<\[◁]")
# So much of a tag tells it from nearly all other text in brackets.
_TELLING = 4
# Stands behind each of several texts that are looked at in one go; no tag has it.
_END = "\0"
# So many characters are read again at most until a text has no reasoning left in it, so that no text takes long.
_AGAIN = 1 << 18


class _Delimiters:
    """The tags as they are looked for, in the one or in either case; the texts among them are as ``folded``.

    Each pattern is made for the first text that needs it: most texts have no bracket, and compiling all patterns takes
    longer than importing everything else.
    """

    def __init__(self, folded: Callable[[str], str], flags: re.RegexFlag) -> None:
        self.folded, self._flags = folded, flags
        self.closing_of = {folded(opening): folded(closing) for opening, closing in TAGS}
        self.lone = frozenset(map(folded, LONE_CLOSINGS))

    @cached_property
    def closing(self) -> dict[str, re.Pattern[str]]:
        """What finds each closing tag."""
        return {closing: re.compile(re.escape(closing), self._flags) for closing in self.closing_of.values()}

    @cached_property
    def before_tags(self) -> re.Pattern[str]:
        """What finds the first tag."""
        return _any_of(self._flags, *self._openings, *map(re.escape, sorted(self.lone)))

    @cached_property
    def after_tags(self) -> re.Pattern[str]:
        """What finds a further one."""
        return _any_of(self._flags, *self._openings)

    @cached_property
    def attributes_begin(self) -> re.Pattern[str]:
        """What finds the beginning of a tag with attributes."""
        return re.compile(_ATTRIBUTES_BEGIN, self._flags)

    @cached_property
    def opening_begins(self) -> frozenset[str]:
        """How opening tags begin."""
        return _beginnings(self.closing_of)

    @cached_property
    def tag_begins(self) -> frozenset[str]:
        """How tags begin."""
        return self.opening_begins | _beginnings(self.lone)

    @cached_property
    def may_begin(self) -> re.Pattern[str]:
        """Finds any of the tags by how it begins, and any text ended by ``_END`` whose end may turn out to be one.

        In all letters' cases: what it finds is looked at again.
        """
        tags = (*self.closing_of, *self.lone)
        cut = {re.escape(tag[:length]) + _END for tag in tags for length in range(1, _TELLING)}
        return _any_of(re.IGNORECASE, *sorted(cut | {re.escape(tag[:_TELLING]) for tag in tags}))

    @property
    def _openings(self) -> tuple[str, ...]:
        return (*map(re.escape, self.closing_of), _WITH_ATTRIBUTES)


def _any_of(flags: re.RegexFlag, *patterns: str) -> re.Pattern[str]:
    """One alternative per first character: that is what lets the search skip over plain text."""
    by_first: dict[str, list[str]] = {}
    for pattern in patterns:
        first = pattern[:2] if pattern.startswith("\\") else pattern[0]
        by_first.setdefault(first, []).append(pattern.removeprefix(first))
    return re.compile("|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in by_first.items()), flags)


def _beginnings(tags: Iterable[str]) -> frozenset[str]:
    return frozenset(tag[:length] for tag in tags for length in range(1, len(tag)))


# Of other letters than those of ASCII a few are one of them in another case; they make no tag.
_EITHER_CASE = _Delimiters(str.lower, re.IGNORECASE | re.ASCII)
_EXACT = _Delimiters(str, re.NOFLAG)

Kind: TypeAlias = Literal["text", "open", "reasoning", "close", "lone_close"]
Where: TypeAlias = Literal["start", "anywhere", "off"]
"""Where a tag counts: where reasoning may begin, in all of an answer, or nowhere."""


class TagSegment(msgspec.Struct, gc=False):
    """``open`` and ``close`` carry the tag; ``lone_close`` says that all text before it was reasoning."""

    kind: Kind
    text: str


class TagSplitter:
    """Feed ``content`` in any cuts; get pieces. One splitter per message. ``exact``: tags are case-sensitive."""

    __slots__ = (
        "_anywhere",
        "_began",
        "_begins",
        "_closing",
        "_code",
        "_folded",
        "_held",
        "_known",
        "_literal",
        "_off",
        "_tagged",
        "_unfolded",
    )

    def __init__(self, where: Where = "start", *, exact: bool = False) -> None:
        self._known = _EXACT if exact else _EITHER_CASE
        self._anywhere = where == "anywhere"
        self._off = where == "off"
        self._held = ""
        self._closing = ""
        # How the closing tag begins, in either case.
        self._begins = ""
        self._began = False
        self._tagged = False
        self._code = CodeSpans()
        # Closing tags to come of opening ones that did not count.
        self._literal: dict[str, int] = {}
        self._unfolded = self._folded = ""

    def feed(self, text: str) -> list[TagSegment]:
        """The pieces that ``text`` completes."""
        if not text:
            return []
        if self._held:
            text = self._held + text
        elif self._closing:
            first = self._closing[0]
            if first not in text or (self._begins not in text and text[-1] != first):
                return [TagSegment("reasoning", text)]
        elif not ("<" in text or "[" in text or "◁" in text):
            self._began = self._began or not text.isspace()
            self._code.note(text)
            return [TagSegment("text", text)]
        return self._split(text, final=False)

    def doubtful(self, texts: Sequence[str]) -> list[int]:
        """Which of ``texts``, in order, may have a tag in them or be held back where they end."""
        text = "".join(texts)
        if not ("<" in text or "[" in text or "◁" in text):
            return []
        if _END in text:
            return list(range(len(texts)))
        text = _END.join((*texts, ""))
        found: list[int] = []
        number = at = 0
        for match in self._known.may_begin.finditer(text):
            number, at = number + text.count(_END, at, match.start()), match.start()
            if number not in found[-1:]:
                found.append(number)
        return found

    @property
    def flows(self) -> bool:
        """Whether what follows is answer, if there is no tag in it, and nothing is held back in front of it."""
        return self._began and not (self._held or self._closing)

    def go_by(self, texts: Sequence[str]) -> str:
        """``texts`` joined, none of them doubtful: while text flows they are what ``feed`` gives back for each."""
        text = "".join(texts)
        self._code.note(text)
        return text

    @property
    def thinks(self) -> bool:
        """Whether the text so far ends within reasoning."""
        return bool(self._closing)

    def close(self) -> list[TagSegment]:
        """What was held back: at the end of the stream it is no tag."""
        return self._split(self._held, final=True)

    def _split(self, text: str, final: bool) -> list[TagSegment]:
        if self._off:
            return [TagSegment("text", text)] if text else []
        pieces: list[TagSegment] = []
        position = 0
        self._held = ""
        while position < len(text):
            step = self._in_reasoning if self._closing else self._in_answer
            position = step(text, position, final, pieces)
        return pieces

    def _in_reasoning(self, text: str, start: int, final: bool, pieces: list[TagSegment]) -> int:
        closing = self._closing
        at = self._place_of(closing, text, start)
        if at < 0:
            end = len(text) if final else _held_from(text, start, closing, self._known.folded)
            if end > start:
                pieces.append(TagSegment("reasoning", text[start:end]))
            self._held = text[end:]
            return len(text)
        end = at + len(closing)
        if at > start:
            pieces.append(TagSegment("reasoning", text[start:at]))
        pieces.append(TagSegment("close", text[at:end]))
        self._closing = ""
        return end

    def _place_of(self, closing: str, text: str, start: int) -> int:
        """Where the closing tag stands, -1 if nowhere; folding may change the length of what is not ASCII."""
        if text.isascii() or self._known is _EXACT:
            if self._unfolded is not text:  # once for all tags in it
                self._unfolded, self._folded = text, self._known.folded(text)
            return self._folded.find(closing, start)
        found = self._known.closing[closing].search(text, start)
        return -1 if found is None else found.start()

    def _in_answer(self, text: str, start: int, final: bool, pieces: list[TagSegment]) -> int:
        """Release text up to the next tag that counts; returns where to go on."""
        known = self._known
        search = (known.after_tags if self._tagged else known.before_tags).search
        position = start
        while (found := search(text, position)) is not None:
            at, end = found.span()
            self._pass(text, position, at)
            tag = known.folded(found.group())
            is_opening = tag not in known.lone
            if self._counts(tag, is_opening):
                if at > start:
                    pieces.append(TagSegment("text", text[start:at]))
                pieces.append(TagSegment("open" if is_opening else "lone_close", found.group()))
                self._closing = self._closing_of(tag) if is_opening else ""
                self._begins = _caseless(self._closing)
                self._tagged = self._began = True
                return end
            self._pass(text, at, end)
            position = end
        end = len(text) if final else self._tail(text, position)
        self._pass(text, position, end)
        if end > start:
            pieces.append(TagSegment("text", text[start:end]))
        self._held = text[end:]
        return len(text)

    def _counts(self, tag: str, is_opening: bool) -> bool:
        """Whether ``tag``, found where the text passed so far ends, is a tag and not part of the answer."""
        if is_opening and not self._began:
            return True
        if self._code.inside():
            return False
        if not is_opening:
            if not self._literal.get(tag):
                return True
            self._literal[tag] -= 1
        elif self._tagged or self._anywhere:
            return True
        else:
            closing = self._closing_of(tag)
            self._literal[closing] = self._literal.get(closing, 0) + 1
        return False

    def _closing_of(self, opening: str) -> str:
        """The closing tag of an opening one, which may have attributes."""
        return self._known.closing_of.get(opening) or f"</{opening[1:].split(None, 1)[0]}>"

    def _pass(self, text: str, start: int, end: int) -> None:
        """Answer text that goes by."""
        if end > start:
            passed = text[start:end]
            self._began = self._began or not passed.isspace()
            self._code.note(passed)

    def _tail(self, text: str, start: int) -> int:
        """Where the end of ``text`` begins that may turn out to be a tag; its length if none."""
        last = text.rfind("<", start)
        known = self._known
        if last >= 0 and known.attributes_begin.match(text, last):
            return last
        begins = known.opening_begins if self._tagged else known.tag_begins
        for found in _FIRST.finditer(text, max(start, len(text) - _LONGEST + 1)):
            if known.folded(text[found.start() :]) in begins:
                return found.start()
        return len(text)


def _caseless(closing: str) -> str:
    """So much of a closing tag's first two characters as has no case."""
    return closing[:1] if closing[1:2].isalpha() else closing[:2]


def _held_from(text: str, start: int, mark: str, folded: Callable[[str], str] = str) -> int:
    """Where the end of ``text`` begins that may turn out to be ``mark``; its length if none.

    The first character of a mark stands nowhere else in it, so only its last place matters.
    """
    at = text.rfind(mark[0], max(start, len(text) - len(mark) + 1))
    return at if at >= 0 and mark.startswith(folded(text[at:])) else len(text)


def split_at(text: str, start: int, mark: str) -> tuple[int, int]:
    """(place, end) of the first ``mark``; without one, place -1 and where what may become one begins."""
    at = text.find(mark, start)
    return (at, at) if at >= 0 else (-1, _held_from(text, start, mark))


def is_plain(text: str, *, exact: bool = False) -> bool:
    """Whether ``text``, whole as it is, has no tag in it: all of it is answer."""
    if not ("<" in text or "[" in text or "◁" in text):
        return True
    return (_EXACT if exact else _EITHER_CASE).before_tags.search(text) is None


def untagged(text: str, where: Where = "start", *, exact: bool = False) -> str:
    """``text`` without the reasoning in it; of one that was untagged before it is the same.

    A text that was made to be read very often keeps what tags it then has.
    """
    again = max(_AGAIN, 4 * len(text))
    while not is_plain(text, exact=exact) and again > 0:
        left = _outside(text, TagSplitter(where, exact=exact))
        if left == text:
            break
        again -= len(text)
        text = left
    return text


def _outside(text: str, splitter: TagSplitter) -> str:
    """What of ``text`` is no reasoning and no tag, read once."""
    kept: list[str] = []
    for piece in (*splitter.feed(text), *splitter.close()):
        if piece.kind == "lone_close":
            kept = []
        elif piece.kind == "text":
            kept.append(piece.text)
    return "".join(kept)
