"""Appending to a PostgreSQL log: a step is one transaction of one shard.

Promises: of any number of processes that append to one branch at the same head, one succeeds and the others are told
that it moved; a branch grows in a segment of its own session and never in what another branch or session stands on.

A process remembers where the branches it appends to stand, so that an append is one statement, whose first part is the
compare-and-set of the branch's row. Where that finds the branch elsewhere, or a place is taken, the process looks
again. A step of very many commits, and a server that takes no such statement (Citus does not), get its parts one by
one, in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from psycopg import RawCursor, errors

from thinkback.errors import NotFoundError
from thinkback.log.leases import LONGEST, is_due
from thinkback.log.protocol import AppendRequest, Arrival, Seen, SessionInfo
from thinkback.log.seal import head_of
from thinkback.log.tally import tally, unasked
from thinkback.model.commits import Commit, Head
from thinkback.stores import history
from thinkback.stores.arriving import arrive, requests_of
from thinkback.stores.branches import open_for
from thinkback.stores.database import Key, RepeatError, Tip
from thinkback.stores.errors import check_entry, check_sealed, check_text, damaged, erased_since, head_moved, leased
from thinkback.stores.history import key, pointer
from thinkback.stores.postgres.connections import SNAPSHOT, Connection, transaction
from thinkback.stores.postgres.log import LOOKS, Log
from thinkback.stores.postgres.rows import CLOCK, PostgresRows, tally_row
from thinkback.stores.postgres.schema import FORMAT
from thinkback.stores.postgres.text import given, raw, stored
from thinkback.stores.rows import Basis, bases_of, to_rows
from thinkback.stores.summaries import settle

REMEMBERED = 4096
AT_ONCE = 100
"""Commits that go into one statement: a server takes 65,535 values in one, and keeps a plan for each length."""

_MOVE = """
UPDATE thinkback.branches SET segment = $1, position = $2, seq = $3, hash = $4, time = coalesce($5, time)
WHERE tenant = $6 AND family = $7 AND session = $8 AND name = $9
  AND segment = $10 AND position = $11 AND seq = $12 AND hash = $13
"""
# What is recorded goes where no lease stands that is not due.
_MOVE_UNLEASED = f"""{_MOVE} AND NOT EXISTS (
    SELECT 1 FROM thinkback.leases AS l
    WHERE l.tenant = $6 AND l.family = $7 AND l.session = $8 AND l.branch = $9
      AND l.deadline > {CLOCK} AND l.deadline <= {CLOCK} + {LONGEST}
)
"""
# The row is held from here on, and what is added is added to its newest version.
_SUM = """
UPDATE thinkback.summaries AS u
SET title = CASE WHEN u.title = '' AND u.counted THEN {0}::text ELSE u.title END,
    models = ARRAY(SELECT DISTINCT name FROM unnest(u.models || {1}::text[]) AS m (name)),
    turns = u.turns + {2}::bigint,
    -- an earlier version may have added up a number that cannot be
    tokens = CASE WHEN u.tokens BETWEEN 0 AND 1000000000000000 THEN u.tokens ELSE 0 END + {3}::bigint,
    reasoning = CASE WHEN u.reasoning BETWEEN 0 AND 1000000000000000 THEN u.reasoning ELSE 0 END + {4}::bigint,
    last = greatest(u.last, {5}::bigint)
"""
_SUM_ONE = _SUM.format("$1", "$2", "$3", "$4", "$5", "$6") + "WHERE tenant = $7 AND family = $8 AND session = $9"
_ADD_STEP = """
INSERT INTO thinkback.steps (tenant, family, session, segment, position, commits, id, written_by_format_5_or_later)
"""
_ADD_BASIS = """
INSERT INTO thinkback.bases (tenant, digest, codec, text, uses) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, digest) DO UPDATE SET uses = bases.uses + excluded.uses
"""
_ASKED = """
SELECT DISTINCT response FROM thinkback.commits
WHERE tenant = %s AND family = %s AND segment = %s AND kind = 'request' AND response = ANY(%s)
"""
_ADD_UNSEARCHED = "INSERT INTO thinkback.unsearched (tenant, stored, family, segment, position, commits)"
_OF_STEP = """
SELECT tenant, stored, family, segment, position, commits FROM thinkback.steps
WHERE tenant = $1 AND family = $2 AND session = $3 AND id = $4
"""
_ADD_COMMITS = """
INSERT INTO thinkback.commits (tenant, family, segment, position, hash, parents, kind, digest, time, response, block,
                               edit, codec, payload)
"""
_ADD_SIGHTING = """
INSERT INTO thinkback.sightings (tenant, time, family, segment, position, response, scope, digest)
"""
_TYPES = ("bytea", "bytea", "text", "bytea", "bigint", "text", "integer", "bytea", "smallint", "bytea")
# Fails, and the transaction with it, unless the branch was moved.
_IS_MOVED = """
SELECT 1 / count(*) FROM thinkback.branches
WHERE tenant = $1 AND family = $2 AND session = $3 AND name = $4 AND segment = $5 AND position = $6
"""
# Fails likewise, unless the log is at that epoch, which stays until the transaction ends.
_HOLDS_EPOCH = """
SELECT 1 / (epoch = $2::bigint)::integer
FROM (SELECT epoch FROM thinkback.erasures WHERE tenant = $1 FOR SHARE) AS e
"""
_IS_END = """
SELECT g.session = %s AND NOT EXISTS (
    SELECT 1 FROM thinkback.commits AS c
    WHERE c.tenant = g.tenant AND c.family = g.family AND c.segment = g.segment AND c.position = %s
) FROM thinkback.segments AS g WHERE g.tenant = %s AND g.family = %s AND g.segment = %s
"""
Sight: TypeAlias = tuple[bytes, bytes, int]
"""Scope, digest, and how far before the last commit of its step a response begins."""


class Step(NamedTuple):
    """One step on its way into the log."""

    of: Key
    branch: str
    id: str
    rows: list[tuple[Any, ...]]
    time: int | None
    expected: Head
    head: Head
    seen: list[Sight]
    commits: Sequence[Commit]
    unasked: list[str]
    bases: list[Basis]
    is_recorded: bool = False
    epoch: int | None = None

    def behind(self, segment: int, first: int) -> Tip:
        """The branch with this step behind it."""
        return Tip(segment, first + len(self.rows) - 1, self.head.seq, raw(self.head.hash))

    def move(self, tip: Tip, after: Tip) -> tuple[Any, ...]:
        """The values of ``_MOVE``."""
        return (*after[:4], self.time, *self.of[:3], stored(self.branch), *tip)

    def sightings(self) -> list[list[Any]]:
        """Scopes, digests, and how far before the step's end their responses begin."""
        return [list(column) for column in zip(*self.seen, strict=True)]


class Appends:
    """The appends of one process, and where the branches stood when they were last seen."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tips: dict[tuple[str, str], Tip] = {}
        self._in_parts = self._has_epoch = False

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str) -> bool:
        """Append ``commits``, sealed on top of ``expected``; ``False`` if the step was there."""
        check_text("step id", step)
        check_sealed(commits, expected)
        self._log.renew()
        return self._log.run(self._append, session, branch, step, commits, expected, None)

    def record(self, entry: AppendRequest) -> bool:
        """Append a step that may open its session and branch, with its sightings; ``False`` if the step was there."""
        check_text("step id", entry.step)
        check_sealed(entry.commits, entry.expected)
        seen = check_entry(entry)
        self._log.renew()
        if entry.epoch is not None and not self._has_epoch:
            self._log.run(PostgresRows.begin_epochs)
            self._has_epoch = True
        step = entry.branch, entry.step, entry.commits, entry.expected, seen, entry.epoch
        with suppress(NotFoundError):
            return self._log.run(self._append, entry.session, *step)
        opened = self._log.write(_open_and_append, entry, seen)
        if opened is not None:
            self._remember(*opened)
        return opened is not None

    def arrive(self, arrival: Arrival) -> SessionInfo:
        """Store a session from elsewhere in one transaction."""
        entries: dict[str, tuple[AppendRequest, Sequence[Sight]]] = {}
        for entry in requests_of(arrival):
            check_text("step id", entry.step)
            check_sealed(entry.commits, entry.expected)
            entries[entry.step] = entry, check_entry(entry)
        self._log.renew()
        return self._log.write(_arrive, arrival, entries)

    def lookup(self, scope: bytes, digests: Sequence[bytes], limit: int = 3) -> list[Seen]:
        """The responses seen in ``scope`` under any of ``digests``, at most ``limit`` for each, newest first."""
        return self._log.run(history.seen, scope, digests, limit)

    def _append(
        self,
        rows: PostgresRows,
        session: str,
        branch: str,
        id: str,
        commits: Sequence[Commit],
        expected: Head,
        seen: Sequence[Sight] | None,
        epoch: int | None = None,
    ) -> bool:
        of = key(rows, session)
        step = _step(of, branch, id, commits, expected, seen, epoch)
        tip = self._tips.pop((of.id, branch), None)
        after = self._write(rows, step, tip) if tip is not None and tip.head == expected else None
        for _ in range(LOOKS):
            if after is not None:
                break
            looked = _look(rows, step)
            if looked is None:
                return False
            after = self._write(rows, step, *looked)
        else:
            raise damaged(f"branch {branch} of session {of.id} rejected the append", session=of.id, branch=branch)
        if tip is None:  # the first step of this process
            with transaction(rows.db):
                settle(rows, of)
        self._remember(of, branch, after)
        return True

    def _remember(self, of: Key, branch: str, tip: Tip) -> None:
        """Where the branch stands now."""
        if len(self._tips) >= REMEMBERED:
            self._tips.clear()
        self._tips[of.id, branch] = tip

    def _write(self, rows: PostgresRows, step: Step, tip: Tip, opens: bool = False) -> Tip | None:
        """Store the step behind ``tip``, in a new segment if it ``opens`` one.

        ``None``: nothing is stored, because the branch is elsewhere, or its place or the step's id is taken.
        """
        if not (opens or self._in_parts or step.unasked or step.bases or len(step.rows) > AT_ONCE):
            try:
                return _write(rows.db, step, tip)
            except errors.FeatureNotSupported:
                self._in_parts = True
        return _write_in_parts(rows, step, tip, opens)


def _arrive(
    rows: PostgresRows, arrival: Arrival, entries: Mapping[str, tuple[AppendRequest, Sequence[Sight]]]
) -> SessionInfo:
    return arrive(rows, arrival, lambda step: _open_and_append(rows, *entries[step]))


def _open_and_append(rows: PostgresRows, entry: AppendRequest, seen: Sequence[Sight]) -> tuple[Key, str, Tip] | None:
    """Append a step that opens its session or branch: where these are now. ``None`` if the step was there."""
    if entry.epoch is not None:
        _refuse_erased(entry.session, entry.epoch, rows.hold_epoch())
    of = open_for(rows, entry)
    if of is None:
        return None
    step = _step(of, entry.branch, entry.step, entry.commits, entry.expected, seen, entry.epoch)
    tip, opens = _end(rows.db, step, pointer(rows, of, entry.branch, hold=True))
    try:
        return of, entry.branch, _add_parts(rows, step, tip, opens)
    except (errors.UniqueViolation, errors.DivisionByZero):
        raise RepeatError(f"session {entry.session} rejected the append") from None


def _look(rows: PostgresRows, step: Step) -> tuple[Tip, bool] | None:
    """The branch as it is, and whether it needs a new segment; ``None`` if the step is known."""
    with transaction(rows.db, SNAPSHOT):
        if rows.has_step(step.of, step.id):
            return None
        if step.epoch is not None:
            _refuse_erased(step.of.id, step.epoch, rows.epoch())
        if step.is_recorded:
            _refuse_leased(rows, step)
        return _end(rows.db, step, pointer(rows, step.of, step.branch))


def _refuse_erased(session: str, expected: int, actual: int) -> None:
    if expected != actual:
        raise erased_since(session, expected, actual)


def _refuse_leased(rows: PostgresRows, step: Step) -> None:
    _, lease = rows.lease(step.of, step.branch, 0)
    if lease is not None and not is_due(lease.deadline, lease.now):
        raise leased(step.of.id, step.branch)


def _end(db: Connection, step: Step, tip: Tip) -> tuple[Tip, bool]:
    """The branch, if the step goes behind it, and whether it needs a new segment."""
    if tip.head != step.expected:
        raise head_moved(step.of.id, step.expected, tip.head)
    found = db.execute(_IS_END, (step.of.session, tip.position + 1, *step.of[:2], tip.segment)).fetchone()
    if found is None:
        raise damaged(f"branch {step.branch} of session {step.of.id} points at a segment that does not exist")
    return tip, bool(step.rows) and not found[0]


def _write(db: Connection, step: Step, tip: Tip) -> Tip | None:
    """Store the step behind ``tip`` in its segment, by one statement."""
    after = step.behind(tip.segment, tip.position + 1)
    values = [*step.move(tip, after), tip.position + 1, len(step.rows), stored(step.id), *chain(*step.rows)]
    values += step.sightings()
    if step.rows:
        values += tally_row(tally(step.commits))
    if step.epoch is not None:
        values.append(step.epoch)
    try:
        sql = _whole(len(step.rows), bool(step.seen), step.is_recorded, step.epoch is not None)
        written = RawCursor(db).execute(sql, values).fetchone()
    except errors.UniqueViolation:
        return None
    return after if written else None


def _write_in_parts(rows: PostgresRows, step: Step, tip: Tip, opens: bool) -> Tip | None:
    """The same by one statement for each table, and in a new segment if it ``opens`` one."""
    db = rows.db
    try:
        with db.pipeline():
            db.execute("BEGIN")
            after = _add_parts(rows, step, tip, opens)
            db.execute("COMMIT")
    except (errors.UniqueViolation, errors.DivisionByZero):
        db.rollback()
        return None
    return after


def _add_parts(rows: PostgresRows, step: Step, tip: Tip, opens: bool) -> Tip:
    """The parts in a transaction. Raises what the server says where the branch is elsewhere or a place is taken."""
    of, branch = step.of[:3], stored(step.branch)
    asked = _requested_earlier(rows.db, step, tip.segment)
    with rows.db.pipeline():
        segment, first = tip.segment, tip.position + 1
        if opens:
            segment, first = rows.add_segment(step.of, tip.seq + 1, tip.place if tip.position >= 0 else None), 0
        after = step.behind(segment, first)
        cursor = RawCursor(rows.db)
        if step.epoch is not None:
            cursor.execute(_HOLDS_EPOCH, (of[0], step.epoch))
        # Its row is held from here on, so that those who come at the same time wait and see it moved.
        cursor.execute(_MOVE_UNLEASED if step.is_recorded else _MOVE, step.move(tip, after))
        cursor.execute(_ADD_STEP + _parameters(8), (*of, segment, first, len(step.rows), stored(step.id), FORMAT))
        if step.rows:
            cursor.execute(_SUM_ONE, (*tally_row(tally(step.commits, asked)), *of))
            cursor.execute(_ADD_UNSEARCHED + _OF_STEP, (*of, stored(step.id)))
            added = ((*of[:2], segment, position, *row) for position, row in enumerate(step.rows, first))
            cursor.executemany(_ADD_COMMITS + _parameters(14), added)
        if step.seen:
            place = (of[0], step.time, of[1], segment, after.position)
            seen = ((*place, after.position - back, scope, digest) for scope, digest, back in step.seen)
            cursor.executemany(_ADD_SIGHTING + _parameters(8), seen)
        for basis in step.bases:  # in their order, and last: many wait for the same ones
            cursor.execute(_ADD_BASIS, (of[0], *basis))
        cursor.execute(_IS_MOVED, (*of, branch, *after.place))
    return after


def _requested_earlier(db: Connection, step: Step, segment: int) -> list[str]:
    """Responses of the step whose requests came in an earlier one, as in a file that was imported in pieces."""
    if not step.unasked:
        return []
    values = (*step.of[:2], segment, list(map(stored, step.unasked)))
    return [given(response) for (response,) in db.execute(_ASKED, values).fetchall()]


def _step(
    of: Key,
    branch: str,
    id: str,
    commits: Sequence[Commit],
    expected: Head,
    seen: Sequence[Sight] | None,
    epoch: int | None = None,
) -> Step:
    """``seen`` are sightings of a step that is recorded, ``None`` of one that is appended."""
    time = commits[-1].time if commits else None
    head = head_of(commits) if commits else expected
    rest = commits, unasked(commits), bases_of(commits), seen is not None, epoch
    return Step(of, branch, id, _rows(commits), time, expected, head, list(seen or ()), *rest)


@cache
def _whole(count: int, seen: bool, is_recorded: bool, has_epoch: bool) -> str:
    """The statement that moves the branch and, if it moved, adds the step, ``count`` commits and what is ``seen``."""
    move, held = _MOVE_UNLEASED if is_recorded else _MOVE, ""
    if has_epoch:
        last = 16 + count * len(_TYPES) + (3 if seen and count else 0) + (6 if count else 0) + 1
        held = "held AS (SELECT epoch FROM thinkback.erasures WHERE tenant = $6 FOR SHARE), "
        move += f" AND (SELECT epoch FROM held) = ${last}::bigint"
    moved = f"WITH {held}moved AS ({move} RETURNING tenant, family, session, segment)"
    place = "tenant, family, session, segment, $14::integer, $15::integer, $16::text"
    step = f"{_ADD_STEP} SELECT {place}, {FORMAT} FROM moved"
    if not count:
        return f"{moved} {step} RETURNING 1"
    rows = ", ".join(_row(at, 17 + at * len(_TYPES)) for at in range(count))
    step += " RETURNING tenant, stored, family, segment, position, commits"
    unsearched = f"unsearched AS ({_ADD_UNSEARCHED} SELECT * FROM step)"
    next = 17 + count * len(_TYPES)
    if seen:
        sightings = f"unnest(${next}::bytea[], ${next + 1}::bytea[], ${next + 2}::integer[]) AS s (scope, digest, back)"
        columns = "tenant, $5::bigint, family, segment, $2::integer, $2::integer - s.back, s.scope, s.digest"
        unsearched += f", seen AS ({_ADD_SIGHTING} SELECT {columns} FROM moved, {sightings})"
        next += 3
    sums = (f"${at}" for at in range(next, next + 6))
    of = "u.tenant = moved.tenant AND u.family = moved.family AND u.session = moved.session"
    unsearched += f", summed AS ({_SUM.format(*sums)} FROM moved WHERE {of})"
    commits = f"{_ADD_COMMITS} SELECT tenant, family, segment, v.* FROM moved, (VALUES {rows}) AS v RETURNING 1"
    return f"{moved}, step AS ({step}), {unsearched} {commits}"


def _row(at: int, first: int) -> str:
    """A row ``at`` places behind $14, the others of its values from ``$first`` on."""
    values = (f"${number}::{type}" for number, type in enumerate(_TYPES, first))
    return f"($14::integer + {at}, {', '.join(values)})"


def _parameters(count: int) -> str:
    return f" VALUES ({', '.join(f'${number}' for number in range(1, count + 1))})"


def _rows(commits: Sequence[Commit]) -> list[tuple[Any, ...]]:
    return [(*row[:5], stored(row[5]), *row[6:]) for row in to_rows(commits)]
