"""The words of the index in a SQLite log: those of a text, and filters as words that no text can have.

Promises: what is searched for is never read as syntax. Must not: know tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from thinkback.log import searching
from thinkback.log.protocol import Query
from thinkback.log.searching import Entry, Phrases
from thinkback.model import canonical
from thinkback.model.commits import Priority

# No word of a text begins with it.
_MARK = "§"
_MOST_TOKENS = 2**31 - 1


def held(entry: Entry, segment: int) -> str:
    """What the index holds of an entry whose commit is in ``segment``: its filters, then its words."""
    filters = [_kind(entry.kind), _segment(segment), _size(entry.tokens)]
    filters += [_name("m", model) for model in entry.models]
    filters += [_name("t", tool) for tool in entry.tools]
    if entry.priority != Priority.NORMAL:
        filters.append(_priority(entry.priority))
    return f"{' '.join(filters)}{searching.joined(entry.text)}"


def asked(query: Query, wanted: Phrases, segments: Iterable[int] | None) -> str | None:
    """What FTS5 is asked for: phrases and filters, all in quotation marks; empty for anything, ``None`` for nothing."""
    # What few entries have comes first: the rest is looked up only there.
    parts: list[str] = []
    if segments is not None:
        parts.append(_any(_segment(segment) for segment in sorted(segments)))
    if query.priority is not None and query.priority != Priority.NORMAL:
        parts.append(_any([_priority(query.priority)]))
    parts += [f'"{" ".join(phrase)}"' for phrase in wanted]
    if query.tool:
        parts.append(_any([_name("t", query.tool)]))
    if query.model:
        parts.append(_any([_name("m", query.model)]))
    if query.min_tokens is not None or query.max_tokens is not None:
        least = max(0, query.min_tokens or 0)
        most = _MOST_TOKENS if query.max_tokens is None else min(_MOST_TOKENS, max(0, query.max_tokens))
        parts.append(_any(_size(1 << bits >> 1) for bits in range(least.bit_length(), most.bit_length() + 1)))
    if query.kinds:
        parts.append(_any(_kind(kind) for kind in query.kinds))
    return None if "" in parts else " AND ".join(parts)


def _any(filters: Iterable[str]) -> str:
    said = " OR ".join('"{}"'.format(filter.replace('"', '""')) for filter in filters)
    return f"({said})" if said else ""


def _kind(kind: str) -> str:
    return f"{_MARK}k{kind.replace('_', '')}"


def _segment(segment: int) -> str:
    return f"{_MARK}g{segment}"


def _size(tokens: int) -> str:
    """The power of two that the tokens are below: a range of tokens is a handful of these."""
    return f"{_MARK}z{min(tokens, _MOST_TOKENS).bit_length()}"


def _priority(priority: Priority) -> str:
    return f"{_MARK}p{priority}"


@lru_cache(4096)
def _name(of: str, name: str) -> str:
    """A model or tool: names may hold any sign, and the index parts words at signs."""
    return f"{_MARK}{of}{canonical.digest(canonical.string(name))[:16]}"
