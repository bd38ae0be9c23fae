"""The search index of a PostgreSQL log: its entries, and what becomes of them when commits are erased or removed.

An entry's words are a ``tsvector`` without positions: the words of its text, and a word for each thing that is filtered
by. Whoever changes entries holds the tenant's row of ``searched``. Must not: know what a payload means.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from thinkback.log import searching
from thinkback.log.protocol import Query
from thinkback.log.searching import PREFIX, IndexEntry, Phrases, Placed, PriorityChange
from thinkback.model import canonical
from thinkback.model.commits import Priority, decode_payload
from thinkback.stores.database import Family
from thinkback.stores.postgres.connections import Connection
from thinkback.stores.postgres.text import COLUMNS, SHORT, commits_of, raw
from thinkback.stores.reachability import Address
from thinkback.stores.rows import unpack

ANY = "§a"
"""In place of the words of a text that has more of them than a ``tsvector`` takes. No word of a text begins with §."""
MOST_BYTES = 900_000

_BEGIN = "INSERT INTO thinkback.searched (tenant, form, arrival) VALUES (%s, %s, 0) ON CONFLICT DO NOTHING"
_HOLD = "SELECT form, arrival FROM thinkback.searched WHERE tenant = %s FOR UPDATE"
_EMPTY = (
    "DELETE FROM thinkback.entries WHERE tenant = %(tenant)s",
    """
    INSERT INTO thinkback.unsearched (tenant, stored, family, segment, position, commits)
    SELECT tenant, stored, family, segment, position, commits FROM thinkback.steps
    WHERE tenant = %(tenant)s AND commits > 0 ON CONFLICT DO NOTHING
    """,
    "UPDATE thinkback.searched SET form = %(form)s, arrival = 0 WHERE tenant = %(tenant)s",
)
_OF = "tenant = %s AND family = %s AND segment = %s"
_ADD = """
INSERT INTO thinkback.entries (tenant, family, segment, position, arrival, time, tokens, priority, names, words)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s::tsvector)
"""
_TAKE = f"DELETE FROM thinkback.entries WHERE {_OF} AND position = %s RETURNING arrival, priority"
_PIECES = f"""
SELECT {COLUMNS} FROM thinkback.commits AS c WHERE {_OF} AND (position = %s OR response <> '' AND response = (
    SELECT response FROM thinkback.commits WHERE {_OF} AND position = %s
)) ORDER BY position
"""
_CUT = (
    f"DELETE FROM thinkback.entries WHERE {_OF} AND position > %s",
    f"DELETE FROM thinkback.unsearched WHERE {_OF} AND position > %s",
)
_SHORTEN = f"""
UPDATE thinkback.unsearched SET commits = %s + 1 - position
WHERE {_OF} AND position <= %s AND position + commits > %s + 1
"""
_NEAREST = """
SELECT e.segment, e.position, c.codec, c.payload FROM thinkback.commits AS c
JOIN thinkback.entries AS e
  ON e.tenant = c.tenant AND e.family = c.family AND e.segment = c.segment AND e.position = c.position
WHERE c.tenant = %s AND c.family = %s AND substring(c.hash FROM 1 FOR 6) = %s AND c.hash = %s AND e.arrival < %s
ORDER BY e.arrival DESC LIMIT 1
"""
_PRIORITISE = f"""
UPDATE thinkback.entries SET priority = %s, words = ts_delete(words, %s::text[]) || %s::tsvector
WHERE {_OF} AND position = %s
"""


class Indexed(NamedTuple):
    """An entry, and where its commit stands."""

    of: Family
    place: Address
    entry: IndexEntry


def hold(db: Connection, tenant: str) -> int:
    """Keep all others from changing the index; returns the last arrival it gave. Empties one of another form."""
    db.execute(_BEGIN, (tenant, searching.FORM))
    ((form, arrival),) = db.execute(_HOLD, (tenant,)).fetchall()
    if form != searching.FORM:
        empty(db, tenant)
        return 0
    return int(arrival)


def empty(db: Connection, tenant: str) -> None:
    """Forget all entries: every step is to be taken in again, in the order they were stored."""
    for sql in _EMPTY:
        db.execute(sql, {"tenant": tenant, "form": searching.FORM})


def add(db: Connection, new: Iterable[Indexed]) -> None:
    """Put entries in."""
    rows = [
        (*of, *place, entry.arrival, entry.time, entry.tokens, entry.priority, _names(entry), _words(of, entry))
        for of, place, entry in new
    ]
    db.cursor().executemany(_ADD, rows)


def renew(db: Connection, of: Family, places: Iterable[Address]) -> None:
    """Make the entries of these commits, and of all others of their responses, from what is stored now."""
    rows: dict[Address, tuple[Any, ...]] = {}
    for segment, position in places:
        values = (*of, segment, position) * 2
        for row in db.execute(_PIECES, values, binary=True).fetchall():
            rows[segment, row[0]] = row
    standing = sorted(rows)
    found = [db.execute(_TAKE, (*of, *place)).fetchone() for place in standing]
    commits = [commits_of([rows[place]], 0)[0] for place in standing]
    new: list[Indexed] = []
    for entry in searching.read(Placed(at, of[1], commit) for at, commit in enumerate(commits)).entries:
        place, old = standing[entry.arrival], found[entry.arrival]
        if old is not None:
            arrival, priority = old
            new.append(Indexed(of, place, msgspec.structs.replace(entry, arrival=arrival, priority=Priority(priority))))
    add(db, new)


def cut(db: Connection, of: Family, segment: int, after: int) -> None:
    """Forget what a segment had behind the position ``after``."""
    for sql in _CUT:
        db.execute(sql, (*of, segment, after))
    db.execute(_SHORTEN, (after, *of, segment, after, after))
    if after >= 0:
        renew(db, of, [(segment, after)])


def prioritise(db: Connection, of: Family, said: PriorityChange) -> None:
    """Give the commit that an annotation speaks of, the nearest before it, what it says."""
    hash = raw(said.target)
    row = db.execute(_NEAREST, (*of, hash[:SHORT], hash, said.arrival), binary=True).fetchone()
    if row is None:
        return
    segment, position, codec, stored = row
    priority = said.priority or searching.own_priority(decode_payload(unpack(codec, stored)))
    old = [_priority(priority) for priority in Priority]
    db.execute(_PRIORITISE, (priority, old, _vector([_priority(priority)]), *of, segment, position))


def question(of: Family | tuple[str], query: Query, wanted: Phrases) -> str:
    """The ``tsquery`` of what fits, but for what stands side by side, times and tokens."""
    parts = [[_tenant(of[0])]]
    if len(of) > 1:
        parts.append([_family(of[1])])
    parts += [[_priority(query.priority)]] if query.priority is not None else []
    parts += [[_name("t", query.tool)]] if query.tool else []
    parts += [[_name("m", query.model)]] if query.model else []
    parts += [[_kind(kind) for kind in query.kinds]] if query.kinds else []
    asked = " & ".join(f"( {' | '.join(map(_quoted, part))} )" for part in parts)
    words = dict.fromkeys(word for phrase in wanted for word in phrase)
    return f"{asked} & ( {_quoted(ANY)} | {' & '.join(map(_asked, words))} )" if words else asked


def _words(of: Family, entry: IndexEntry) -> str:
    """What the index holds of an entry: its filters and its words."""
    filters = [_tenant(of[0]), _family(of[1]), _kind(entry.kind), _priority(entry.priority)]
    filters += [_name("m", model) for model in entry.models]
    filters += [_name("t", tool) for tool in entry.tools]
    words = dict.fromkeys(searching.words(entry.text))
    if sum(len(word.encode()) for word in words) > MOST_BYTES:
        return _vector([*filters, ANY])
    return _vector([*filters, *words])


def _names(entry: IndexEntry) -> str:
    """The names that a hit shows, as JSON: they may hold any sign."""
    return canonical.encode((entry.models[:1], entry.tools[:1])).decode()


def _vector(words: Iterable[str]) -> str:
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """Words are letters, digits and marks: nothing in them ends a quotation."""
    return f"'{word}'"


def _asked(word: str) -> str:
    return f"{_quoted(word.removesuffix(PREFIX))}{':*' if word.endswith(PREFIX) else ''}"


def _tenant(tenant: str) -> str:
    return _name("x", tenant)


def _family(family: int) -> str:
    return f"§f{family}"


def _kind(kind: str) -> str:
    return f"§k{kind}"


def _priority(priority: Priority) -> str:
    return f"§p{priority}"


@lru_cache(4096)
def _name(of: str, name: str) -> str:
    return f"§{of}{canonical.digest(canonical.string(name))[:16]}"
