"""The words of the index in a SQLite log: those of a text, and filters as words that no text can have.

Promises: what is searched for is never read as syntax. Must not: know tables.
"""

from __future__ import annotations

from collections.abc import Iterable

from thinkback.log import searching
from thinkback.log.protocol import Query
from thinkback.log.searching import PREFIX, IndexEntry, Phrases
from thinkback.model.commits import Priority

# No word of a text begins with it.
_MARK = "§"
_MOST_BITS = 31


def held(entry: IndexEntry, segment: int) -> str:
    """What the index holds of an entry whose commit is in ``segment``, but for its label: filters, then words."""
    filters = [_kind(entry.kind), _segment(segment), _size(entry.kind, entry.tokens.bit_length())]
    if entry.priority != Priority.NORMAL:
        filters.append(_priority(entry.priority))
    return f"{' '.join(filters)}{searching.joined(entry.text)}"


def labelled(label: int, words: str) -> str:
    """All that the index holds of it."""
    return f"{_label(label)} {words}"


def match_expression(
    query: Query, wanted: Phrases, kinds: Iterable[str], segments: Iterable[int] | None, labels: Iterable[int] | None
) -> str | None:
    """What FTS5 is asked for: phrases and filters, all in quotation marks; empty for anything, ``None`` for nothing.

    ``kinds`` are those that there are, ``segments`` those of the session, ``labels`` those of the kinds, the model and
    the tool; ``None`` where none is asked for.
    """
    # What few entries have comes first: the rest is looked up only there.
    parts: list[str] = []
    if segments is not None:
        parts.append(_any(_segment(segment) for segment in sorted(segments)))
    if query.priority is not None and query.priority != Priority.NORMAL:
        parts.append(_any([_priority(query.priority)]))
    if labels is not None:
        parts.append(_any(_label(label) for label in labels))
    parts += map(_phrase, wanted)
    if query.min_tokens is not None or query.max_tokens is not None:
        parts.append(_any(_size(kind, bits) for kind in query.kinds or kinds for bits in _sizes(query)))
    elif query.kinds and labels is None:
        parts.append(_any(_kind(kind) for kind in query.kinds))
    return None if "" in parts else " AND ".join(parts)


def _phrase(phrase: tuple[str, ...]) -> str:
    asked = " ".join(phrase)
    return f'"{asked.removesuffix(PREFIX)}"{" *" if asked.endswith(PREFIX) else ""}'


def _any(filters: Iterable[str]) -> str:
    said = " OR ".join('"{}"'.format(filter.replace('"', '""')) for filter in filters)
    return f"({said})" if said else ""


def _kind(kind: str) -> str:
    return f"{_MARK}k{kind.replace('_', '')}"


def _segment(segment: int) -> str:
    return f"{_MARK}g{segment}"


def _label(label: int) -> str:
    return f"{_MARK}l{label}"


def _size(kind: str, bits: int) -> str:
    """The power of two that the tokens are below, apart for each kind: kinds differ in how long they are."""
    return f"{_MARK}z{min(bits, _MOST_BITS)}{kind.replace('_', '')}"


def _sizes(query: Query) -> range:
    """The powers of two that a range of tokens needs."""
    least = max(0, query.min_tokens or 0)
    last = _MOST_BITS if query.max_tokens is None else min(_MOST_BITS, max(0, query.max_tokens).bit_length())
    return range(min(_MOST_BITS, least.bit_length()), last + 1)


def _priority(priority: Priority) -> str:
    return f"{_MARK}p{priority}"
