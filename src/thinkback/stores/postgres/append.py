"""Appending to a PostgreSQL log: a step is one transaction of one shard.

Promises: of any number of processes that append to one branch at the same head, one succeeds and the others are told
that it moved; a branch grows in a segment of its own session and never in what another branch or session stands on.

A process remembers where the branches it appends to stand, so that an append is two round trips: everything it
writes, and the commit. What it remembers is checked by the compare-and-set of the branch's row; where that fails, or
the place is taken, it looks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg import Cursor, errors

from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Head
from thinkback.stores.postgres.connections import SNAPSHOT, Connection, transaction
from thinkback.stores.postgres.places import Key, Place, Tip, pointer, raw, stored
from thinkback.stores.rows import to_rows
from thinkback.stores.sealed import damaged, head_moved

REMEMBERED = 4096
LOOKS = 20

_MOVE = """
UPDATE thinkback.branches SET segment = %s, position = %s, seq = %s, time = coalesce(%s, time), hash = %s
WHERE tenant = %s AND family = %s AND session = %s AND name = %s
  AND segment = %s AND position = %s AND seq = %s AND hash = %s
"""
_ADD_STEP = """
INSERT INTO thinkback.steps (tenant, family, session, segment, position, commits, id)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""
_ADD_COMMIT = """
INSERT INTO thinkback.commits (tenant, family, segment, position, hash, parents, kind, digest, time, response, block,
                               edit, codec, payload)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_IS_KNOWN = "SELECT 1 FROM thinkback.steps WHERE tenant = %s AND family = %s AND session = %s AND id = %s"
_IS_END = """
SELECT g.session = %s AND NOT EXISTS (
    SELECT 1 FROM thinkback.commits AS c
    WHERE c.tenant = g.tenant AND c.family = g.family AND c.segment = g.segment AND c.position = %s
) FROM thinkback.segments AS g WHERE g.tenant = %s AND g.family = %s AND g.segment = %s
"""
_NUMBER = """
UPDATE thinkback.families SET segments = segments + 1 WHERE tenant = %s AND family = %s RETURNING segments
"""
_ADD_SEGMENT = """
INSERT INTO thinkback.segments (tenant, family, segment, session, base, parent_segment, parent_position)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""


class Step(NamedTuple):
    """One step on its way into the log."""

    of: Key
    branch: str
    id: str
    rows: list[tuple[Any, ...]]
    time: int | None
    expected: Head
    head: Head


class Appends:
    """The appends of one process, and where the branches stood when they were last seen."""

    def __init__(self) -> None:
        self._tips: dict[tuple[str, str], Tip] = {}

    def append(self, db: Connection, of: Key, branch: str, id: str, commits: Sequence[Commit], expected: Head) -> bool:
        """Append ``commits``, sealed on top of ``expected``; ``False`` if the step was there."""
        time = commits[-1].time if commits else None
        step = Step(of, branch, id, _rows(commits), time, expected, head_of(commits) if commits else expected)
        tip = self._tips.pop((of.id, branch), None)
        after = _write(db, step, tip) if tip is not None and tip.head == expected else None
        for _ in range(LOOKS):
            if after is not None:
                break
            seen = _look(db, step)
            if seen is None:
                return False
            after = _write(db, step, *seen)
        else:
            raise damaged(f"branch {branch} of session {of.id} takes no step", session=of.id, branch=branch)
        if len(self._tips) >= REMEMBERED:
            self._tips.clear()
        self._tips[of.id, branch] = after
        return True


def open_segment(db: Connection, of: Key, base: int, above: Place | None) -> int:
    """The number of a new, empty segment. Holds the family's row, and with it all that changes the family's shape."""
    row = db.execute(_NUMBER, of[:2]).fetchone()
    if row is None:
        raise damaged(f"family {of.family} is not counted", session=of.id)
    parent = (None, None) if above is None or above.position < 0 else above
    db.execute(_ADD_SEGMENT, (*of[:2], row[0], of.session, base, *parent))
    return int(row[0])


def _look(db: Connection, step: Step) -> tuple[Tip, bool] | None:
    """The branch as it is, and whether it needs a new segment; ``None`` if the step is known."""
    with transaction(db, SNAPSHOT):
        if db.execute(_IS_KNOWN, (*step.of[:3], stored(step.id))).fetchone():
            return None
        tip = pointer(db, step.of, step.branch)
        if tip.head != step.expected:
            raise head_moved(step.of.id, step.expected, tip.head)
        found = db.execute(_IS_END, (step.of.session, tip.position + 1, *step.of[:2], tip.segment)).fetchone()
    if found is None:
        raise damaged(f"branch {step.branch} of session {step.of.id} points at a segment that does not exist")
    return tip, bool(step.rows) and not found[0]


def _write(db: Connection, step: Step, tip: Tip, opens: bool = False) -> Tip | None:
    """Store the step behind ``tip``. ``None``: nothing is stored, the branch is elsewhere or a place was taken."""
    with db.pipeline() as pipeline:
        db.execute("BEGIN")
        try:
            segment, first = tip.segment, tip.position + 1
            if opens:
                segment, first = open_segment(db, step.of, tip.seq + 1, tip.place), 0
            after = Tip(segment, first + len(step.rows) - 1, step.head.seq, raw(step.head.hash))
            moved = _send(db, step, tip, after, first)
            pipeline.sync()
            if moved.rowcount == 1:
                db.execute("COMMIT")
                return after
        except errors.UniqueViolation:
            pass
    db.rollback()
    return None


def _send(db: Connection, step: Step, tip: Tip, after: Tip, first: int) -> Cursor[tuple[Any, ...]]:
    """Everything that a step writes; what comes back is the update of the branch, which must be of one row.

    That comes first: it holds the branch's row, so that those who come at the same time wait and see it moved.
    """
    of = step.of
    row = (*of[:3], stored(step.branch))
    moved = db.execute(_MOVE, (*after[:3], step.time, after.hash, *row, *tip))
    db.execute(_ADD_STEP, (*of[:3], after.segment, first, len(step.rows), stored(step.id)))
    if step.rows:
        rows = [(*of[:2], after.segment, at, *row) for at, row in enumerate(step.rows, first)]
        db.cursor().executemany(_ADD_COMMIT, rows)
    return moved


def _rows(commits: Sequence[Commit]) -> list[tuple[Any, ...]]:
    return [(*row[:5], stored(row[5]), *row[6:]) for row in to_rows(commits)]
