"""What a SQLite log can spare, and taking it out: ends of segments, with the steps that brought them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from thinkback.log.protocol import Removed
from thinkback.stores.reach import Cut, Place, Reach, Run
from thinkback.stores.rows import hashes
from thinkback.stores.sqlite_open import Connection
from thinkback.stores.sqlite_search import changing

_SEGMENTS = """
SELECT g.segment, g.base, g.parent_segment, g.parent_position, s.family, s.name IS NOT NULL,
       (SELECT coalesce(max(c.position), -1) FROM commits AS c WHERE c.segment = g.segment)
FROM sessions AS s JOIN segments AS g ON g.session = s.session
"""
_BRANCHES = "SELECT b.segment, b.position FROM sessions AS s JOIN branches AS b ON b.session = s.session "
_MERGES = """
SELECT c.segment, c.position, c.parents FROM sessions AS s JOIN segments AS g ON g.session = s.session
JOIN commits AS c INDEXED BY merges_by_segment ON c.segment = g.segment AND length(c.parents) > 32
"""
_FAMILY = "WHERE s.family = ?"
_STANDING = """
SELECT hash, segment, position FROM commits
WHERE arrival IN (SELECT arrival FROM commits INDEXED BY commits_by_arrival WHERE hash IN ({}))
"""
_YOUNGEST = "SELECT max(position) FROM commits WHERE segment = ? AND position > ? AND time >= ?"
# A response that is begun is kept to its last block.
_WHOLE = """
SELECT max(n.position) FROM commits AS c
JOIN commits AS n ON n.segment = c.segment AND n.position > c.position AND n.response = c.response AND n.block >= 0
WHERE c.segment = ? AND c.position = ? AND c.response <> ''
"""
_SIZE = "SELECT count(*), coalesce(sum(length(payload)), 0) FROM commits WHERE segment = ? AND position > ?"
_IS_NEEDED = """
SELECT EXISTS (SELECT 1 FROM branches WHERE segment = ? AND position > ?)
OR EXISTS (SELECT 1 FROM segments WHERE parent_segment = ? AND parent_position > ?)
OR EXISTS (SELECT 1 FROM commits WHERE segment = ? AND position > ? AND time >= ?)
"""
_ARRIVALS = "SELECT arrival FROM commits WHERE segment = ? AND position > ?"
_TRUNCATE = (
    """
    DELETE FROM sightings WHERE head IN (SELECT arrival FROM commits WHERE segment = ? AND position > ?)
    """,
    "DELETE FROM commits WHERE segment = ? AND position > ?",
    """
    DELETE FROM steps WHERE session = (SELECT session FROM segments WHERE segment = ?)
    AND segment = ? AND position > ? AND commits > 0
    """,
    """
    UPDATE steps SET commits = ? + 1 - position WHERE session = (SELECT session FROM segments WHERE segment = ?)
    AND segment = ? AND position + commits > ? + 1 AND commits > 0
    """,
)
_REMOVE = (
    # Steps without commits are remembered as long as their session: they go where it is now, or with it.
    """
    UPDATE steps SET (segment, position) = (
        SELECT b.segment, b.position + 1 FROM sessions AS s
        JOIN branches AS b ON b.session = s.session AND b.name = s.branch WHERE s.session = steps.session
    )
    WHERE segment = ? AND session IN (
        SELECT s.session FROM segments AS g JOIN sessions AS o ON o.session = g.session
        JOIN sessions AS s ON s.family = o.family WHERE g.segment = ?
    )
    """,
    "DELETE FROM segments WHERE segment = ?",
)
_CHUNK = 500


class Spare(NamedTuple):
    """A cut, and how many commits with how many stored bytes it takes out."""

    cut: Cut
    commits: int
    bytes: int


def unreached(db: Connection, older_than: int) -> list[Spare]:
    """What no branch reaches and is older than that, of the whole file."""
    segments = db.execute(_SEGMENTS).fetchall()
    reach = _reach(db, segments, db.execute(_MERGES).fetchall())
    reach.add(db.execute(_BRANCHES).fetchall())
    while young := list(_younger(db, reach, older_than)):
        reach.add(young)
    return _spares(db, reach)


def left_over(db: Connection, family: int) -> list[Spare]:
    """What deleted sessions of a family have that nothing of the others stands on."""
    segments = db.execute(_SEGMENTS + _FAMILY, (family,)).fetchall()
    reach = _reach(db, segments, db.execute(_MERGES + _FAMILY, (family,)).fetchall())
    reach.add(db.execute(_BRANCHES + _FAMILY, (family,)).fetchall())
    reach.add((segment, last) for segment, *_, is_there, last in segments if is_there)
    return _spares(db, reach)


def pieces(db: Connection, spare: Spare, most: int) -> list[Cut]:
    """Cuts that together are this one, the end first, each of about ``most`` commits."""
    segment, last = spare.cut
    first = -1 if last is None else last
    ends = range(first + most, first + spare.commits, most)
    return [*(Cut(segment, _whole(db, segment, end)) for end in reversed(ends)), spare.cut]


def cut(db: Connection, where: Cut, older_than: int | None = None) -> Removed:
    """Take that out, if it is still spare; what was taken out."""
    segment, last = where
    after = -1 if last is None else last
    kept = segment, -2 if last is None else after
    ((needed,),) = db.execute(_IS_NEEDED, (*kept, *kept, *kept, older_than)).fetchall()
    if needed:
        return Removed(0, 0)
    removed = _size(db, segment, after)
    with changing(db, [arrival for (arrival,) in db.execute(_ARRIVALS, (segment, after))]):
        behind = segment, after
        for sql, parameters in zip(
            _TRUNCATE, (behind, behind, (segment, *behind), (after, segment, *behind)), strict=True
        ):
            db.execute(sql, parameters)
    if last is None:
        for sql, parameters in zip(_REMOVE, ((segment, segment), (segment,)), strict=True):
            db.execute(sql, parameters)
    return removed


def _reach(
    db: Connection,
    segments: list[tuple[int, int, int | None, int, int, bool, int]],
    merges: list[tuple[int, int, bytes]],
) -> Reach:
    runs = {
        segment: Run(base, None if above is None else (above, position), last)
        for segment, base, above, position, _, _, last in segments
    }
    family = {segment: family for segment, _, _, _, family, _, _ in segments}
    further = [(segment, position, hashes(parents)[1:]) for segment, position, parents in merges]
    standing = _standing(db, sorted({hash for _, _, parents in further for hash in parents}))
    joins: dict[int, list[tuple[int, list[Place]]]] = {}
    for segment, position, parents in further:
        places = [
            place for hash in parents for place in standing.get(hash, ()) if family.get(place[0]) == family[segment]
        ]
        joins.setdefault(segment, []).append((position, places))
    return Reach(runs, joins)


def _standing(db: Connection, wanted: list[str]) -> dict[str, list[Place]]:
    """Where commits of these hashes stand."""
    found: dict[str, list[Place]] = {}
    for at in range(0, len(wanted), _CHUNK):
        raw = [bytes.fromhex(hash) for hash in wanted[at : at + _CHUNK]]
        for hash, segment, position in db.execute(_STANDING.format(", ".join("?" * len(raw))), raw):
            found.setdefault(hash.hex(), []).append((segment, position))
    return found


def _younger(db: Connection, reach: Reach, older_than: int) -> Iterator[Place]:
    """Of each end that could go, the last commit that is too young."""
    for segment, last in reach.cuts():
        ((position,),) = db.execute(_YOUNGEST, (segment, -1 if last is None else last, older_than)).fetchall()
        if position is not None:
            yield segment, position


def _spares(db: Connection, reach: Reach) -> list[Spare]:
    spares: list[Spare] = []
    for segment, last in reach.cuts():
        if last is not None:
            last = _whole(db, segment, last)
        removed = _size(db, segment, -1 if last is None else last)
        if removed.commits or last is None:
            spares.append(Spare(Cut(segment, last), removed.commits, removed.bytes))
    return spares


def _whole(db: Connection, segment: int, last: int) -> int:
    """Where the response ends that is begun at ``last`` or before."""
    ((end,),) = db.execute(_WHOLE, (segment, last)).fetchall()
    return last if end is None else int(end)


def _size(db: Connection, segment: int, after: int) -> Removed:
    return Removed(*db.execute(_SIZE, (segment, after)).fetchone())
