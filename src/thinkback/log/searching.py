"""What of the log can be searched, and how: from commits to entries of an index, from text to words.

Every store indexes these entries by these words, so that all find the same. Promises: reading commits piece by piece
gives what reading all at once does, where the pieces end as ``belongs_to`` says; whatever text is searched for is
words and nothing else. Must not: know how an index is kept.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from thinkback.log.protocol import Hit, Query
from thinkback.log.tally import left_of
from thinkback.model import canonical
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult, carriers_of, is_shown
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Commit,
    Compaction,
    Content,
    Message,
    Payload,
    Priority,
    Response,
    Usage,
)
from thinkback.model.curation import ABOUT

FORM = 1
"""Of entries and words. An index that was made in another form is to be made again."""
EXCERPT = 200
LONGEST_WORD = 64
PREFIX = "*"
"""Ends the word of a phrase that may be the beginning of one. No word of a text has it."""
SHORTEST_PREFIX = 3
"""Letters of the shortest one: what begins with fewer is a large part of an index."""
_CHARACTERS_PER_TOKEN = 4
# How far into a text a match is looked for to show it.
_LOOKED_AT = 100_000
UNREAD: frozenset[str] = frozenset(
    {"request", "turn_ended", "permission_decision", "repair", "tools", "media", "other"}
)
"""Kinds that ``read`` makes nothing of, so that stores need not unpack them."""
# Kinds that name a response without being a piece of it.
_APART = frozenset({"request", "response", "tool_result"})

Phrases: TypeAlias = tuple[tuple[str, ...], ...]

# Patterns, compiled when the first text is read: importing this costs no more than it must.
# Scripts without spaces (Thai, Lao, Burmese, Khmer, Han, kana): each character is a word, so that a part of a sentence
# is a phrase.
_DENSE = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
# Letters and digits, and the vowel signs of scripts whose words would fall apart without them.
_LETTER = "[\\w\u0900-\u0963\u0966-\u0eff\u1000-\u109f\u1780-\u17ff]"
_WORD = f"({_LETTER}{{1,{LONGEST_WORD}}}){_LETTER}*"
# Accents, and the points of Hebrew and Arabic.
_MARKS = "[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u065f\u0670]+"
_PIECE = r'"([^"]*)"?|([^\s"]+)'


class Placed(NamedTuple):
    """A commit as it stands in a store, in a family of sessions: another family may hold the very same one."""

    arrival: int
    family: int | str
    commit: Commit


class IndexEntry(msgspec.Struct, frozen=True):
    """A commit as an index keeps it. ``text`` is what people read of it, nothing where reasoning is hidden.

    ``models`` are the served and the requested one, each once. ``tools`` are those that the same response called after
    it, in order, each once; of a call or a result it is its own. ``tokens`` are estimated. ``priority`` is what was
    said of it, else what its content type says, else ``NORMAL``.
    """

    arrival: int
    hash: str
    kind: str
    time: int
    response: str
    text: str
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    tokens: int = 0
    priority: Priority = Priority.NORMAL


class PriorityChange(msgspec.Struct, frozen=True):
    """An annotation, by its arrival, that gives an earlier commit another priority; ``None`` gives it back its own."""

    arrival: int
    target: str
    priority: Priority | None


class Reading(msgspec.Struct, frozen=True):
    """What a piece of the log brings: new entries, then the priorities of entries from earlier pieces, in order."""

    entries: list[IndexEntry]
    said: list[PriorityChange]


class _Answer:
    """A response and its blocks: who minted it, what it called, and what was counted of it."""

    def __init__(self) -> None:
        self.models: tuple[str, ...] = ()
        self._calls: list[tuple[int, str]] = []
        self._usage = Usage()
        self._thought = self._other = 0

    def take(self, commit: Commit) -> None:
        match left_of(commit.value):
            case Response(origin=origin):
                names = (origin.served_model, origin.requested_model)
                self.models = tuple(dict.fromkeys(name for name in names if name))
            case Usage() as usage:
                self._usage = usage
            case ThinkingBlock() as block:
                self._thought += _weight(block)
            case value:
                self._other += _weight(value)
                if isinstance(value, ToolCall):
                    self._calls.append((commit.index, value.name))

    def tools_after(self, index: int) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for at, name in self._calls if at > index))

    def tokens(self, value: Payload) -> int:
        """The value's share of what the provider counted, where it is known what that is a count of."""
        usage, weight = self._usage, _weight(value)
        if isinstance(value, ThinkingBlock):
            if usage.reasoning and weight:
                return round(usage.reasoning * weight / self._thought)
        elif usage.output and weight:
            beside = "reasoning_beside_output" in usage.counted
            if beside or not (self._thought or usage.reasoning):
                return round(usage.output * weight / self._other)
        return _estimated(weight)


def read(commits: Iterable[Placed]) -> Reading:
    """The entries of ``commits``, which are in order of arrival."""
    known: dict[tuple[int | str, str], Commit] = {}
    places: dict[tuple[int | str, str], int] = {}
    entries: list[IndexEntry] = []
    said: list[PriorityChange] = []
    for placed, answer in _answered(commits):
        key = placed.family, placed.commit.hash
        known[key] = placed.commit
        entry = _entry(placed.arrival, placed.commit, answer)
        if entry is not None:
            places[key] = len(entries)
            entries.append(entry)
        elif (new := _priority_change(placed, known)) is None:
            continue
        elif (target := (placed.family, new.target)) in places:
            priority = new.priority or own_priority(known[target].value)
            entries[places[target]] = msgspec.structs.replace(entries[places[target]], priority=priority)
        else:
            said.append(new)
    return Reading(entries, said)


def belongs_to(before: str, kind: str, response: str) -> bool:
    """Whether a commit must be read in one piece with the one that arrived just before it, of response ``before``."""
    return kind == "annotation" or (response == before != "" and kind not in _APART)


def readable(value: Payload) -> str | None:
    """What people read of a payload; ``None`` for one that is not searched for."""
    match left_of(value):
        case ThinkingBlock() as block:
            return block.thought if is_shown(block) else None
        case ToolCall(name=name, arguments=arguments):
            return "\n".join((name, *_leaves(arguments)))
        case Message(text=text) | Text(text=text) | Content(text=text) | BranchSummary(text=text):
            return text or None
        case ToolResult(content=text) | Compaction(summary=text):
            return text or None
        case _:
            return None


def own_priority(value: Payload) -> Priority:
    """The priority of a commit that no annotation speaks of."""
    return value.priority if isinstance(value, Content) else Priority.NORMAL


def words(text: str) -> list[str]:
    """The words of ``text`` as an index has them: letters and digits without case and accents."""
    if not text.isascii():
        plain = re.sub(_MARKS, "", unicodedata.normalize("NFKD", text))
        text = re.sub(_DENSE, r" \g<0> ", unicodedata.normalize("NFC", plain.casefold()))
    return re.findall(_WORD, text.casefold().replace("_", " "))


def phrases(text: str, *, prefix: bool = False) -> Phrases:
    """What the text of a query asks for: phrases that must all be there, a single word being one too.

    What stands for several words (``read_file``) is a phrase. Nothing is left of text without letters and digits.
    ``prefix``: the last word may be the beginning of one, and ends with ``PREFIX``, unless it is short or in quotes.
    """
    pieces = re.findall(_PIECE, text)
    found = [tuple(words(quoted or plain)) for quoted, plain in pieces]
    if prefix and pieces and pieces[-1][1] and found[-1] and len(found[-1][-1]) >= SHORTEST_PREFIX:
        found[-1] = (*found[-1][:-1], found[-1][-1] + PREFIX)
    return tuple(dict.fromkeys(phrase for phrase in found if phrase))


def asked(query: Query) -> Phrases:
    """The ``phrases`` of a query."""
    return phrases(query.text, prefix=query.prefix)


def is_hopeless(query: Query, wanted: Phrases) -> bool:
    """Whether nothing can fit, because the text has no word in it: nothing is ``wanted``."""
    return query.text.strip() != "" and not wanted


def fits(entry: IndexEntry, query: Query) -> bool:
    """True if ``entry`` is what ``query`` describes, its text, session and page aside."""
    return (
        (not query.kinds or entry.kind in query.kinds)
        and (not query.model or query.model in entry.models)
        and (not query.tool or query.tool in entry.tools)
        and (query.priority is None or query.priority == entry.priority)
        and (query.since is None or query.since <= entry.time)
        and (query.until is None or entry.time < query.until)
        and (query.min_tokens is None or query.min_tokens <= entry.tokens)
        and (query.max_tokens is None or entry.tokens <= query.max_tokens)
    )


def joined(text: str) -> str:
    """The words of ``text`` with a space around each, as ``holds`` wants them."""
    return f" {' '.join(words(text))} "


def holds(joined_words: str, wanted: Phrases) -> bool:
    """Whether every phrase is there."""
    asked = (f" {' '.join(phrase)} " for phrase in wanted)
    return all(each.removesuffix(f"{PREFIX} ") in joined_words for each in asked)


def hit(session: str, entry: IndexEntry, wanted: Phrases) -> Hit:
    """What a query that asks for ``wanted`` gives of an entry; ``session`` is where its commit was stored."""
    return Hit(
        session=session,
        hash=entry.hash,
        kind=entry.kind,
        time=entry.time,
        response=entry.response,
        model=first(entry.models),
        tool=first(entry.tools),
        tokens=entry.tokens,
        excerpt=excerpt(entry.text, wanted),
        arrival=entry.arrival,
    )


def first(names: tuple[str, ...]) -> str:
    """The one of an entry's models, or tools, that a hit shows."""
    return names[0] if names else ""


def excerpt(text: str, wanted: Phrases) -> str:
    """``text`` around a match on one line, at most ``EXCERPT`` characters; its beginning where none is seen."""
    start, end = _match(text[:_LOOKED_AT], wanted)
    room = max(0, EXCERPT - (end - start))
    first = max(0, min(start - room // 2, len(text) - EXCERPT))
    shown = text[first : first + EXCERPT]
    if first:
        shown = f"…{shown[1:]}"
    if first + EXCERPT < len(text):
        shown = f"{shown[:-1]}…"
    return re.sub(r"\s+", " ", shown).strip()


def _answered(commits: Iterable[Placed]) -> list[tuple[Placed, _Answer | None]]:
    """Each commit with the response it is a piece of, once all pieces are known. A copy of a response is another."""
    answers: dict[tuple[int | str, str], _Answer] = {}
    found: list[tuple[Placed, _Answer | None]] = []
    for placed in commits:
        commit, answer = placed.commit, None
        key = placed.family, commit.response
        if commit.kind == "response":
            answer = answers[key] = _Answer()
        elif commit.response and commit.kind not in _APART:
            answer = answers.setdefault(key, _Answer())
        if answer is not None and not commit.edit:
            answer.take(commit)
        found.append((placed, answer))
    return found


def _entry(arrival: int, commit: Commit, answer: _Answer | None) -> IndexEntry | None:
    text = readable(commit.value)
    if text is None:
        return None
    value = left_of(commit.value)
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    tokens = _estimated(_weight(value))
    if answer is not None:
        models, tools = answer.models, answer.tools_after(commit.index)
        tokens = tokens if commit.edit else answer.tokens(value)
    if isinstance(value, ToolCall | ToolResult):
        tools = (value.name,) if value.name else ()
    priority = own_priority(value)
    return IndexEntry(
        arrival, commit.hash, commit.kind, commit.time, commit.response, text, models, tools, tokens, priority
    )


def _priority_change(placed: Placed, known: Mapping[tuple[int | str, str], Commit]) -> PriorityChange | None:
    """What an annotation says of a priority, and of which commit."""
    value, above = placed.commit.value, placed.commit
    if not isinstance(value, Annotation) or not (value.default or value.priority is not None):
        return None
    target = value.target
    while not target and above.parents:
        nearest = known.get((placed.family, above.parents[0]))
        if nearest is None or nearest.kind not in ABOUT:
            target = above.parents[0]
        else:
            above = nearest
    return PriorityChange(placed.arrival, target, value.priority) if target else None


def _weight(value: Payload) -> int:
    """Characters that the provider counts: of reasoning that cannot be read, those of its carriers."""
    match value:
        case ThinkingBlock() as block:
            if not is_shown(block):
                return 0
            return len(block.thought) or sum(len(carrier.value) for carrier in carriers_of(block))
        case ToolCall(name=name, arguments=arguments):
            return len(name) + len(arguments)
        case _:
            return len(readable(value) or "")


def _estimated(characters: int) -> int:
    return characters and (round(characters / _CHARACTERS_PER_TOKEN) or 1)


def _leaves(arguments: str) -> Iterator[str]:
    """A line for each value in a call's arguments; the source text where it is no JSON."""
    try:
        parsed: object = canonical.decode(arguments)
    except msgspec.DecodeError:
        yield arguments
        return
    waiting: list[tuple[str, object]] = [("", parsed)]
    while waiting:
        name, node = waiting.pop()
        match node:
            case dict():
                waiting += [(str(key), value) for key, value in reversed(node.items())]
            case list():
                waiting += [(name, value) for value in reversed(node)]
            case _:
                said = node if isinstance(node, str) else canonical.source(node)
                yield f"{name}: {said}" if name else said


def _match(text: str, wanted: Phrases) -> tuple[int, int]:
    """Where the first phrase that is seen in ``text`` begins and ends; (0, 0) for none."""
    plain = text.lower() if text.isascii() else text.translate(_FOLDED)
    for phrase in wanted:
        between = rf"[\W_]{'*' if any(re.search(_DENSE, word) for word in phrase) else '+'}"
        pattern = between.join(re.escape(word.removesuffix(PREFIX)) for word in phrase)
        end = "" if phrase[-1].endswith(PREFIX) else r"(?![^\W_])"
        found = re.search(rf"(?<![^\W_]){pattern}{end}", plain) or re.search(pattern, plain)
        if found:
            return found.span()
    return 0, 0


class _Folding(dict[int, str]):
    """One plain character for each, so that a match in folded text stands where it does in the text itself."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKD", chr(code))[:1].casefold())
        self[code] = plain[:1] or chr(code)
        return self[code]


_FOLDED = _Folding()
