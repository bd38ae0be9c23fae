"""What a family of a PostgreSQL log can spare, and taking it out: ends of segments, with the steps that brought them.

To be called by whoever holds the family's row; to take something out, the index too. Appends that extend a segment go
on meanwhile, so what a segment ends with is read first: branches only grow from there, and nothing behind that end is
touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from thinkback.stores.postgres import index
from thinkback.stores.postgres.connections import Connection
from thinkback.stores.postgres.places import Family
from thinkback.stores.reach import Cut, Place, Reach, Run
from thinkback.stores.rows import hashes

_SEGMENTS = """
SELECT g.segment, g.base, g.parent_segment, g.parent_position, s.name IS NOT NULL,
       (SELECT coalesce(max(c.position), -1) FROM thinkback.commits AS c
        WHERE c.tenant = g.tenant AND c.family = g.family AND c.segment = g.segment)
FROM thinkback.segments AS g
JOIN thinkback.sessions AS s ON s.tenant = g.tenant AND s.family = g.family AND s.session = g.session
WHERE g.tenant = %s AND g.family = %s
"""
_BRANCHES = "SELECT segment, position FROM thinkback.branches WHERE tenant = %s AND family = %s"
_MERGES = """
SELECT segment, position, parents FROM thinkback.commits
WHERE tenant = %s AND family = %s AND length(parents) > 32
"""
_STANDING = """
SELECT segment, position FROM thinkback.commits
WHERE tenant = %s AND family = %s AND substring(hash FROM 1 FOR 6) = %s AND hash = %s
"""
_OF = "tenant = %s AND family = %s AND segment = %s"
_YOUNGEST = (
    f"SELECT max(position) FROM thinkback.commits WHERE {_OF} AND position > %s AND position <= %s AND time >= %s"
)
# A response that is begun is kept to its last block.
_WHOLE = f"""
SELECT max(n.position) FROM thinkback.commits AS n
WHERE {_OF} AND position > %s AND n.block >= 0 AND n.response = (
    SELECT response FROM thinkback.commits WHERE {_OF} AND position = %s AND response <> ''
)
"""
_SIZE = f"""
SELECT count(*), coalesce(sum(octet_length(payload)), 0) FROM thinkback.commits
WHERE {_OF} AND position > %s AND position <= %s
"""
_TRUNCATE = f"DELETE FROM thinkback.commits WHERE {_OF} AND position > %s AND position <= %s"
_UNSEE = f"DELETE FROM thinkback.sightings WHERE {_OF} AND position > %s AND position <= %s"
_FORGET = f"DELETE FROM thinkback.steps WHERE {_OF} AND position > %s AND position <= %s AND commits > 0"
_SHORTEN = f"""
UPDATE thinkback.steps SET commits = %s + 1 - position
WHERE {_OF} AND position <= %s AND position + commits > %s + 1 AND commits > 0
"""
_REMOVE = f"DELETE FROM thinkback.segments WHERE {_OF}"


class Spare(NamedTuple):
    """A cut, the end that was seen, and how many commits with how many stored bytes are between them."""

    cut: Cut
    end: int
    commits: int
    bytes: int


def unreached(db: Connection, of: Family, older_than: int) -> list[Spare]:
    """What no branch reaches and is older than that."""
    runs, _ = _runs(db, of)
    reach = _reach(db, of, runs)
    reach.add(db.execute(_BRANCHES, of).fetchall())
    while young := list(_younger(db, of, reach, runs, older_than)):
        reach.add(young)
    return list(_spares(db, of, reach, runs))


def left_over(db: Connection, of: Family) -> list[Spare]:
    """What deleted sessions have that nothing of the others stands on."""
    runs, live = _runs(db, of)
    reach = _reach(db, of, runs)
    reach.add(db.execute(_BRANCHES, of).fetchall())
    reach.add((segment, runs[segment].last) for segment in live)
    return list(_spares(db, of, reach, runs))


def cut(db: Connection, of: Family, spare: Spare) -> None:
    """Take it out."""
    segment, last = spare.cut
    after = -1 if last is None else last
    for sql in (_TRUNCATE, _UNSEE, _FORGET):
        db.execute(sql, (*of, segment, after, spare.end))
    db.execute(_SHORTEN, (after, *of, segment, after, after))
    if last is None:
        db.execute(_REMOVE, (*of, segment))
    index.cut(db, of, segment, after)


def _runs(db: Connection, of: Family) -> tuple[dict[int, Run], list[int]]:
    """The segments, and which of them are of sessions that are there."""
    rows = db.execute(_SEGMENTS, of).fetchall()
    runs = {
        segment: Run(base, None if above is None else (above, position), last)
        for segment, base, above, position, _, last in rows
    }
    return runs, [segment for segment, _, _, _, is_there, _ in rows if is_there]


def _reach(db: Connection, of: Family, runs: dict[int, Run]) -> Reach:
    joins: dict[int, list[tuple[int, list[Place]]]] = {}
    for segment, position, parents in db.execute(_MERGES, of, binary=True).fetchall():
        further = [bytes.fromhex(hash) for hash in hashes(parents)[1:]]
        places = [place for hash in further for place in db.execute(_STANDING, (*of, hash[:6], hash)).fetchall()]
        joins.setdefault(segment, []).append((position, [place for place in places if place[0] in runs]))
    return Reach(runs, joins)


def _younger(db: Connection, of: Family, reach: Reach, runs: dict[int, Run], older_than: int) -> Iterator[Place]:
    """Of each end that could go, the last commit that is too young."""
    for segment, last in reach.cuts():
        ends = (-1 if last is None else last, runs[segment].last)
        row = db.execute(_YOUNGEST, (*of, segment, *ends, older_than)).fetchone()
        if row is not None and row[0] is not None:
            yield segment, row[0]


def _spares(db: Connection, of: Family, reach: Reach, runs: dict[int, Run]) -> Iterator[Spare]:
    for segment, last in reach.cuts():
        end = runs[segment].last
        if last is not None and last >= 0:
            row = db.execute(_WHOLE, (*of, segment, last, *of, segment, last)).fetchone()
            last = last if row is None or row[0] is None else row[0]
        row = db.execute(_SIZE, (*of, segment, -1 if last is None else last, end)).fetchone()
        if row is not None and (row[0] or last is None):
            yield Spare(Cut(segment, last), end, row[0], int(row[1]))
