"""Where commits stand in a PostgreSQL log: sessions, branches, and the segments that a history runs through.

Every query but the look-up of a session names one tenant and one family, so that on a sharding PostgreSQL it touches
one shard. Must not: change anything, or know what a payload means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from thinkback.errors import StoreError
from thinkback.log.protocol import SessionInfo
from thinkback.model import canonical
from thinkback.model.commits import Commit, Head
from thinkback.stores.postgres.connections import Connection
from thinkback.stores.rows import from_rows
from thinkback.stores.sealed import (
    ambiguous,
    damaged,
    no_branch,
    no_commit,
    no_session,
    on_branch,
    prefix_range,
)

EMPTY = Head()
Family: TypeAlias = tuple[str, int]
"""A tenant and the number of a family."""

COLUMNS = "c.position, c.hash, c.parents, c.kind, c.digest, c.time, c.response, c.block, c.edit, c.codec, c.payload"
SHORT = 6
"""Bytes of a hash that the index holds."""

_KEY = "SELECT family, session FROM thinkback.keys WHERE tenant = %s AND key = %s AND is_name = %s"
_KEYS = "SELECT family, session FROM thinkback.keys WHERE tenant = %s AND key = %s ORDER BY is_name DESC LIMIT 1"
_INFO = """
SELECT s.id, s.name, s.created, b.time, b.seq, b.hash, s.settings, s.branch, s.root, s.parent, s.purpose
FROM thinkback.sessions AS s
JOIN thinkback.branches AS b
  ON b.tenant = s.tenant AND b.family = s.family AND b.session = s.session AND b.name = s.branch
WHERE s.tenant = %s
"""
_ONE = _INFO + "AND s.family = %s AND s.session = %s"
_ALL = _INFO + "ORDER BY b.time DESC, s.made DESC"
_POINTER = """
SELECT segment, position, seq, hash FROM thinkback.branches
WHERE tenant = %s AND family = %s AND session = %s AND name = %s
"""
_NAMES = "SELECT name FROM thinkback.branches WHERE tenant = %s AND family = %s AND session = %s"
_ANCESTRY = """
WITH RECURSIVE line (segment, base, last, parent_segment, parent_position) AS (
    SELECT segment, base, %(position)s::integer, parent_segment, parent_position FROM thinkback.segments
    WHERE tenant = %(tenant)s AND family = %(family)s AND segment = %(segment)s
    UNION ALL
    SELECT g.segment, g.base, l.parent_position, g.parent_segment, g.parent_position
    FROM line AS l JOIN thinkback.segments AS g
      ON g.tenant = %(tenant)s AND g.family = %(family)s AND g.segment = l.parent_segment
    WHERE l.base > %(first)s
)
SELECT segment, base, last, parent_segment FROM line ORDER BY base DESC, last DESC
"""
_RANGE = f"""
SELECT {COLUMNS} FROM thinkback.commits AS c
WHERE c.tenant = %s AND c.family = %s AND c.segment = %s AND c.position BETWEEN %s AND %s ORDER BY c.position
"""
_HASH = "SELECT hash FROM thinkback.commits WHERE tenant = %s AND family = %s AND segment = %s AND position = %s"
_PLACE = """
SELECT c.segment, c.position FROM thinkback.commits AS c
JOIN thinkback.segments AS g ON g.tenant = c.tenant AND g.family = c.family AND g.segment = c.segment
WHERE c.tenant = %s AND c.family = %s AND substring(c.hash FROM 1 FOR 6) = %s AND c.hash = %s
ORDER BY g.session <> %s, c.segment LIMIT 1
"""
_PREFIX = f"""
SELECT s.made, c.segment, c.family, s.id, s.name IS NOT NULL, g.base, {COLUMNS} FROM thinkback.commits AS c
JOIN thinkback.segments AS g ON g.tenant = c.tenant AND g.family = c.family AND g.segment = c.segment
JOIN thinkback.sessions AS s ON s.tenant = c.tenant AND s.family = c.family AND s.session = g.session
WHERE c.tenant = %s AND {{}} substring(c.hash FROM 1 FOR 6) BETWEEN %s AND %s AND c.hash BETWEEN %s AND %s
ORDER BY s.made, c.segment LIMIT 100
"""


_FIRST = """
SELECT id FROM thinkback.sessions WHERE tenant = %s AND family = %s AND name IS NOT NULL ORDER BY session LIMIT 1
"""


class Key(NamedTuple):
    """A session of a tenant: its family's number and its own number in the family."""

    tenant: str
    family: int
    session: int
    id: str


class Place(NamedTuple):
    """Where a commit stands; position -1 is before the first commit of a segment that follows nothing."""

    segment: int
    position: int


class Tip(NamedTuple):
    """A branch: where it points, and the head that is there."""

    segment: int
    position: int
    seq: int
    hash: bytes

    @property
    def head(self) -> Head:
        """As callers name it."""
        return Head(self.hash.hex(), self.seq)

    @property
    def place(self) -> Place:
        """Without its head."""
        return Place(self.segment, self.position)


def stored(text: str) -> str:
    """``text`` as a column holds it: PostgreSQL takes every character but NUL."""
    return text.replace("\\", "\\\\").replace("\0", "\\0") if "\0" in text or "\\" in text else text


def given(text: str) -> str:
    """The text that a column holds."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def family_of(tenant: str, id: str) -> int:
    """The number of the family that a session begins: spread evenly, and found without asking anybody."""
    digest = hashlib.sha256(f"{tenant}\n{id}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def key(db: Connection, tenant: str, id: str) -> Key:
    """The session of that id. Raises ``NotFoundError``."""
    row = db.execute(_KEY, (tenant, stored(id), False)).fetchone()
    if row is None:
        raise no_session(id)
    return Key(tenant, row[0], row[1], id)


def info(db: Connection, tenant: str, name: str) -> SessionInfo | None:
    """The session of that name or id; a name wins."""
    at = db.execute(_KEYS, (tenant, stored(name))).fetchone()
    row = None if at is None else db.execute(_ONE, (tenant, *at), binary=True).fetchone()
    return None if row is None else _info(row)


def infos(db: Connection, tenant: str) -> list[SessionInfo]:
    """All sessions, last updated first."""
    return [_info(row) for row in db.execute(_ALL, (tenant,), binary=True).fetchall()]


def pointer(db: Connection, of: Key, branch: str, *, hold: bool = False) -> Tip:
    """Where a branch points; with ``hold`` it stays there until the transaction ends. Raises ``NotFoundError``."""
    query = _POINTER + "FOR UPDATE" if hold else _POINTER
    row = db.execute(query, (*of[:3], stored(branch)), binary=True).fetchone()
    if row is None:
        names = db.execute(_NAMES, of[:3]).fetchall()
        if not names:  # a session has at least the branch it is opened on
            raise no_session(of.id)
        raise no_branch(branch, of.id, [given(name) for (name,) in names])
    return Tip(*row)


def history(db: Connection, of: Key, branch: str, since: int) -> list[Commit]:
    """The commits of a branch with ``seq`` greater than ``since``. To be called in a snapshot."""
    tip = pointer(db, of, branch)
    return line(db, of, tip.place, since) if tip.seq > since else []


def line(db: Connection, of: Key, at: Place, since: int = -1) -> list[Commit]:
    """The commits up to a place, those with ``seq`` greater than ``since``. To be called in a snapshot."""
    found = [run for run in reversed(_runs(db, of, at, since)) if run[2] <= run[3]]
    with db.pipeline():
        ranges = [
            db.execute(_RANGE, (of.tenant, of.family, segment, first, last), binary=True)
            for segment, _, first, last in found
        ]
    commits: list[Commit] = []
    for (segment, base, first, last), cursor in zip(found, ranges, strict=True):
        rows = cursor.fetchall()
        if len(rows) != last + 1 - first:
            raise damaged(f"segment {segment} of family {of.family} lacks commits between {first} and {last}")
        commits += commits_of(rows, base)
    return commits


def find(db: Connection, of: Key, at: Head, via: str) -> Place | None:
    """Where a commit stands; ``None`` for the empty head. With ``via``, on that branch, else in the family.

    Walks the segments of the branch, not its commits. Raises ``NotFoundError``.
    """
    if at == EMPTY:
        return None
    if not via:
        return locate(db, of, at.hash)
    tip = pointer(db, of, via)
    if 0 <= at.seq <= tip.seq:
        segment, base, _, _ = _runs(db, of, tip.place, at.seq - 1)[-1]
        place = Place(segment, at.seq - base)
        if db.execute(_HASH, (of.tenant, of.family, *place), binary=True).fetchone() == (raw(at.hash),):
            return place
    raise on_branch(at, via)


def locate(db: Connection, of: Key, hash: str) -> Place:
    """Where the commit of that hash stands in the session's family, in the session's own segments if it can be."""
    wanted = raw(hash)
    row = db.execute(_PLACE, (of.tenant, of.family, wanted[:SHORT], wanted, of.session)).fetchone()
    if row is None:
        raise no_commit(hash, of.id)
    return Place(*row)


def find_prefix(db: Connection, tenant: str, prefix: str, of: Key | None) -> tuple[str, Commit]:
    """(session id, commit) of a hash prefix; of a commit that several sessions hold, the oldest session's."""
    low, high = prefix_range(prefix)
    within, family = ("", ()) if of is None else ("c.family = %s AND", (of.family,))
    parameters = (tenant, *family, low[:SHORT], high[:SHORT], low, high)
    rows = db.execute(_PREFIX.format(within), parameters, binary=True).fetchall()
    found = {row[7]: row for row in reversed(rows)}
    if len(found) != 1:
        raise ambiguous(prefix, sorted(hash.hex() for hash in found))
    ((_, _, number, id, is_there, base, *row),) = found.values()
    return owner(db, (tenant, number), id, is_there), commits_of([tuple(row)], base)[0]


def owner(db: Connection, of: Family, id: str, is_there: bool) -> str:
    """The session that a commit is said to be of: its own, or the first of the family where that was deleted."""
    row = None if is_there else db.execute(_FIRST, of).fetchone()
    return given(id if row is None else row[0])


def commits_of(rows: list[tuple[Any, ...]], base: int) -> list[Commit]:
    """The commits of rows with ``COLUMNS``."""
    return from_rows(_unescaped(rows), base)


def raw(hash: str) -> bytes:
    """The bytes of a hash, none of what is no hash."""
    try:
        return bytes.fromhex(hash)
    except ValueError:
        return b""


def refuse_tenant(tenant: str) -> None:
    """Raise ``StoreError`` for a tenant that cannot be a key."""
    if not tenant or "\0" in tenant or len(tenant.encode(errors="replace")) > 200:
        raise StoreError(
            f"{tenant!r} is no name of a tenant", next_actions=("use 1 to 200 bytes of text; short names save space",)
        )


def _unescaped(rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        yield (*row[:6], given(row[6]), *row[7:]) if "\\" in row[6] else row


def _runs(db: Connection, of: Key, at: Place, since: int) -> list[tuple[int, int, int, int]]:
    """(segment, base, first position, last position) of the runs that hold what is after ``since``, newest first."""
    parameters = {"tenant": of.tenant, "family": of.family, "first": since + 1, **at._asdict()}
    rows = db.execute(_ANCESTRY, parameters).fetchall()
    if not rows or (rows[-1][1] > since + 1 and rows[-1][3] is not None):
        raise damaged(f"a segment that segment {at.segment} of family {of.family} stands on does not exist")
    return [(segment, base, max(0, since + 1 - base), last) for segment, base, last, _ in rows]


def _info(row: tuple[Any, ...]) -> SessionInfo:
    id, name, created, updated, seq, hash, settings, branch, family, parent, purpose = row
    layer = canonical.decode(settings, dict[str, str])
    return SessionInfo(
        given(id),
        given(name),
        created,
        updated,
        seq + 1,
        Head(hash.hex(), seq),
        layer,
        given(branch),
        given(family),
        given(parent),
        given(purpose),
    )
