"""Reasoning as tags inside ``content``: an incremental splitter.

Promises: the pieces, joined, are the input again; results do not depend on where the stream was cut; reasoning is
released as it arrives, only a possible tag is held back (never more than its length), and white space behind a closing
tag; time is linear in the text. Rules:

- an opening tag counts at the start of the content, white space aside, with ``lines`` also at the start of a line, with
  ``anywhere`` also within one, but not right behind an opening quotation mark. After a first tagged block (models that
  think between the parts of an answer) it counts at the start of a line and right behind a word. Elsewhere it is
  literal, and so is its end. With ``off`` no tag counts;
- in code of the answer every tag is literal; inside reasoning only the closing tag counts;
- thoughts with nothing but white space between their tags are one;
- a closing tag that was never opened makes what came before it reasoning (its opening tag stood in the prompt), but not
  behind white space or an opening quotation mark within a line: an answer speaks of the tag there. As reasoning has odd
  backticks, a code span of earlier lines does not matter to it, unless its opening tag stands in the span;
- upper and lower case are alike.

Earlier editions of these rules find the visible text of what was recorded under them (log/echo_digests.py). The second
knew neither ``lines`` nor quotation marks, block quotes, indented code and spans over lines, and each tagged piece was
a thought; in the first, tags had one case.
Must not: know the dialect or build blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from thinkback.model.code_spans import CodeSpans
from thinkback.model.markdown_code import MarkdownCode

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
_SPACE = re.compile(r"\s+")
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

Kind: TypeAlias = Literal["text", "open", "reasoning", "inner", "close", "lone_close"]
Where: TypeAlias = Literal["start", "lines", "anywhere", "off"]
"""The places where a tag counts: where reasoning may begin, also at line starts, in all of an answer, or nowhere."""
Edition: TypeAlias = Literal[1, 2, 3]
"""The version of the rules that tags are read by; 3 are those of today."""
# What an opening tag stands right behind where a model begins to think again within a line.
_WORD_ENDS = frozenset(".!?…。！？,;，；)]}>\"'”’»`*_")  # noqa: RUF001


class TagSegment(msgspec.Struct, gc=False):
    """``open`` and ``close`` carry the tag, ``inner`` tags between which one thought goes on; ``lone_close`` says that
    all text before it was reasoning.
    """

    kind: Kind
    text: str


class TagSplitter:
    """Feed ``content`` in any cuts; get pieces. One splitter per message."""

    __slots__ = (
        "_begins",
        "_closing",
        "_code",
        "_edition",
        "_folded",
        "_fresh",
        "_gap",
        "_held",
        "_known",
        "_literal",
        "_opening",
        "_spans",
        "_tagged",
        "_tagged_span",
        "_thought",
        "_unfolded",
        "_where",
    )

    def __init__(self, where: Where = "start", *, edition: Edition = 3) -> None:
        self._known = _EXACT if edition == 1 else _EITHER_CASE
        self._edition = edition
        self._where = where
        self._held = ""
        self._opening = ""
        self._closing = ""
        # How the closing tag begins, in either case.
        self._begins = ""
        # The closing tag that came last, and the white space behind it, while the thought may go on.
        self._gap: list[str] = []
        # Nothing but white space came since the start, or since a thought.
        self._fresh = True
        self._tagged = False
        # Of the first editions, and of today.
        self._spans = CodeSpans()
        self._code = MarkdownCode()
        # Closing tags to come of opening ones that did not count.
        self._literal: dict[str, int] = {}
        # The last code span that an opening tag stood in.
        self._tagged_span = 0
        # The last piece of reasoning.
        self._thought = ""
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
                self._thought = text
                return [TagSegment("reasoning", text)]
        elif not (self._gap or "<" in text or "[" in text or "◁" in text):
            self._fresh = self._fresh and text.isspace()
            self._note(text)
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
        return not (self._fresh or self._held or self._closing or self._gap)

    def go_by(self, texts: Sequence[str]) -> str:
        """``texts`` joined, none of them doubtful: while text flows they are what ``feed`` gives back for each."""
        text = "".join(texts)
        self._note(text)
        return text

    def end_thought(self) -> list[TagSegment]:
        """Release what is held back behind a closing tag: something else comes next, no further part of the thought."""
        pieces: list[TagSegment] = []
        self._end_gap(pieces)
        return pieces

    def close(self) -> list[TagSegment]:
        """What was held back: at the end of the stream it is no tag."""
        pieces = self._split(self._held, final=True)
        self._end_gap(pieces)
        return pieces

    def _split(self, text: str, final: bool) -> list[TagSegment]:
        if self._where == "off":
            return [TagSegment("text", text)] if text else []
        pieces: list[TagSegment] = []
        position = 0
        self._held = ""
        while position < len(text):
            step = self._in_reasoning if self._closing else self._in_gap if self._gap else self._in_answer
            position = step(text, position, final, pieces)
        return pieces

    def _in_reasoning(self, text: str, start: int, final: bool, pieces: list[TagSegment]) -> int:
        closing = self._closing
        at = self._place_of(closing, text, start)
        if at < 0:
            end = len(text) if final else _held_from(text, start, closing, self._known.folded)
            if end > start:
                self._thought = text[start:end]
                pieces.append(TagSegment("reasoning", self._thought))
            self._held = text[end:]
            return len(text)
        end = at + len(closing)
        if at > start:
            self._thought = text[start:at]
            pieces.append(TagSegment("reasoning", self._thought))
        self._closing = ""
        # Behind half a character no thought goes on: joined with its other half it would be one.
        if self._edition < 3 or "\ud800" <= self._thought[-1:] <= "\udbff":
            pieces.append(TagSegment("close", text[at:end]))
        else:
            self._gap = [text[at:end]]
        self._begin_anew()
        return end

    def _in_gap(self, text: str, start: int, final: bool, pieces: list[TagSegment]) -> int:
        """Behind a closing tag: go on with the thought if it is opened again, else with the answer."""
        space = _SPACE.match(text, start)
        at = start if space is None else space.end()
        if at > start:
            self._gap.append(text[start:at])
        if at == len(text):
            return at
        found = self._known.after_tags.match(text, at)
        if found is not None and self._known.folded(found.group()) == self._opening:
            closing, *between = self._gap
            self._gap = []
            if between:
                pieces.append(TagSegment("inner", closing))
                pieces.append(TagSegment("reasoning", "".join(between)))
                closing = ""
            pieces.append(TagSegment("inner", closing + found.group()))
            self._think(self._opening)
            return found.end()
        if found is None and not final and self._tail(text, at) == at:
            self._held = text[at:]
            return len(text)
        self._end_gap(pieces)
        return at

    def _end_gap(self, pieces: list[TagSegment]) -> None:
        if self._gap:
            closing, *between = self._gap
            self._gap = []
            pieces.append(TagSegment("close", closing))
            if between:
                pieces.append(TagSegment("text", "".join(between)))

    def _think(self, opening: str) -> None:
        self._opening, self._closing = opening, self._closing_of(opening)
        self._begins = _caseless(self._closing)

    def _begin_anew(self) -> None:
        """The text goes on as if it began here: no code was open, and white space is not told from none."""
        if self._edition == 3:
            self._fresh = True
            self._code = MarkdownCode()
            self._tagged_span = 0

    def _note(self, text: str) -> None:
        (self._spans if self._edition < 3 else self._code).note(text)

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
                self._tagged, self._fresh = True, False
                if is_opening:
                    self._think(tag)
                else:
                    self._begin_anew()
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
        if is_opening and self._fresh:
            return True
        if self._edition < 3:
            return self._counted_once(tag, is_opening)
        if not is_opening:
            return self._closes(tag)
        if self._opens():
            return True
        self._expect_literal_closing(tag)
        return False

    def _opens(self) -> bool:
        """True if an opening tag behind text of the answer begins a thought."""
        code = self._code
        if code.inside():
            return False
        place = code.place()
        if self._where == "anywhere":
            return place != "quoted"
        if place == "line":
            return self._tagged or self._where == "lines"
        last = code.last
        return self._tagged and place == "touching" and (last in _WORD_ENDS or (last.isascii() and last.isalnum()))

    def _expect_literal_closing(self, tag: str) -> None:
        """The next closing tag of an opening one that did not count is literal, too."""
        if self._code.inside_span():
            self._tagged_span = self._code.spans
        elif not self._code.inside_block():
            closing = self._closing_of(tag)
            self._literal[closing] = self._literal.get(closing, 0) + 1

    def _closes(self, tag: str) -> bool:
        """True if a closing tag ends a thought whose opening tag did not come."""
        code = self._code
        if code.inside_block():
            return False
        if code.inside_span() and (code.span_began_here or code.spans == self._tagged_span):
            return False
        if self._literal.get(tag):
            self._literal[tag] -= 1
            return False
        place = code.place()
        return place != "quoted" and (place != "apart" or self._where == "anywhere")

    def _counted_once(self, tag: str, is_opening: bool) -> bool:
        """As ``_counts``, by the rules of the first editions."""
        if self._spans.inside():
            return False
        if not is_opening:
            if not self._literal.get(tag):
                return True
            self._literal[tag] -= 1
        elif self._tagged or self._where == "anywhere":
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
            self._fresh = self._fresh and passed.isspace()
            self._note(passed)

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


def is_plain(text: str, *, edition: Edition = 3) -> bool:
    """Whether ``text``, whole as it is, has no tag in it: all of it is answer."""
    if not ("<" in text or "[" in text or "◁" in text):
        return True
    return (_EXACT if edition == 1 else _EITHER_CASE).before_tags.search(text) is None


def untagged(text: str, where: Where = "start", *, edition: Edition = 3) -> str:
    """``text`` without the reasoning in it; of one that was untagged before it is the same.

    A text that was made to be read very often keeps what tags it then has.
    """
    again = max(_AGAIN, 4 * len(text))
    while not is_plain(text, edition=edition) and again > 0:
        left = outside(text, where, edition=edition)
        if left == text:
            break
        again -= len(text)
        text = left
    return text


def outside(text: str, where: Where, *, edition: Edition = 3) -> str:
    """``text`` as it is shown: without reasoning and its tags, read once."""
    splitter = TagSplitter(where, edition=edition)
    kept: list[str] = []
    for piece in (*splitter.feed(text), *splitter.close()):
        if piece.kind == "lone_close":
            kept = []
        elif piece.kind == "text":
            kept.append(piece.text)
    return "".join(kept)
