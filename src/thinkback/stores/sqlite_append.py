"""Appending to a SQLite log: one step, or those of several threads, in one transaction; finding responses again.

Promises: an append is on the disk when it returns (``durability="full"``); steps that share a transaction still fail
one by one; a branch grows in a segment of its own session and never in what another branch or session stands on.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from thinkback.errors import NotFoundError, StoreError
from thinkback.log.leases import is_due
from thinkback.log.protocol import MAIN, AppendRequest, Arrival, Seen, SessionInfo
from thinkback.log.tally import MOST, Tally, unasked
from thinkback.log.tally import tally as tally_of_step
from thinkback.model.commits import Commit, Head
from thinkback.stores import history
from thinkback.stores.arriving import arrive, requests_of
from thinkback.stores.branches import NO_SETTINGS, open_for
from thinkback.stores.database import Key, Rows
from thinkback.stores.errors import (
    EMPTY,
    check_entry,
    check_sealed,
    check_text,
    damaged,
    erased_since,
    head_moved,
    leased,
)
from thinkback.stores.grouping import Group
from thinkback.stores.history import key, pointer
from thinkback.stores.migrations import FORMAT
from thinkback.stores.packers import Packers
from thinkback.stores.rows import COLUMNS, bases_of, to_rows
from thinkback.stores.sqlite_open import Connection, named, transaction
from thinkback.stores.sqlite_rows import (
    ADD_SEGMENT,
    ADD_SESSION,
    ADD_SUMMARY,
    PUT_BRANCH,
    PUT_TALLY,
    SqliteDatabase,
    SqliteRows,
    about_row,
    tally_of,
    tally_row,
    texts,
)
from thinkback.stores.summaries import settle

# The seventh column: whether the branch ends where a segment of its own session ends. The eighth: until when the branch
# is leased. The rest is the tally.
_HEAD = """
SELECT s.session, b.segment, b.position, g.base + b.position, c.hash,
       EXISTS (SELECT 1 FROM steps AS t WHERE t.session = s.session AND t.id = ?),
       g.session = s.session
       AND NOT EXISTS (SELECT 1 FROM commits AS n WHERE n.segment = b.segment AND n.position = b.position + 1),
       (SELECT l.deadline FROM leases AS l WHERE l.session = s.session AND l.branch = b.name),
       u.counted >= 2, u.title, u.models, u.turns, u.tokens, u.reasoning, u.last
FROM sessions AS s
JOIN branches AS b ON b.session = s.session AND b.name = ?
JOIN segments AS g ON g.segment = b.segment
LEFT JOIN commits AS c ON c.segment = b.segment AND c.position = b.position
LEFT JOIN summaries AS u ON u.session = s.session
WHERE s.id = ?
"""
_ADD_COMMIT = f"INSERT INTO commits (segment, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_STEP = "INSERT INTO steps (session, id, segment, position, commits, format) VALUES (?, ?, ?, ?, ?, ?)"
_ADD_BASIS = """
INSERT INTO bases (digest, codec, text, uses) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET uses = uses + excluded.uses
"""
_ASKED = """
SELECT DISTINCT response FROM commits
WHERE segment = ? AND kind = 'request' AND response IN (SELECT value FROM json_each(?))
"""
_GROW = "UPDATE branches SET position = ? WHERE session = ? AND name = ?"
_POINT = "UPDATE branches SET segment = ?, position = ? WHERE session = ? AND name = ?"
# The row that was inserted last is the last commit of the step: tables without row numbers do not count.
_ADD_SIGHTING = """
INSERT OR IGNORE INTO sightings (scope, digest, head, response)
VALUES (?, ?, last_insert_rowid(), last_insert_rowid() - ?)
"""

# What is wrong with one step alone; anything else concerns the whole transaction.
_FAULTS = (StoreError, NotFoundError, sqlite3.IntegrityError, sqlite3.DataError, ValueError, OverflowError)


class _Append:
    """One step on its way into the file, and what became of it. ``sightings``: scope, digest, commits from the end."""

    __slots__ = (
        "bases",
        "branch",
        "commits",
        "entry",
        "expected",
        "failure",
        "rows",
        "session",
        "sightings",
        "step",
        "stored",
        "tally",
        "unasked",
    )

    def __init__(
        self,
        session: str,
        step: str,
        commits: Sequence[Commit],
        expected: Head,
        branch: str,
        packers: Packers | None = None,
    ) -> None:
        check_text("step id", step)
        check_sealed(commits, expected)
        self.session, self.step, self.expected, self.branch = session, step, expected, branch
        self.rows, self.bases, self.commits = to_rows(commits, packers), bases_of(commits), commits
        self.tally, self.unasked = tally_of_step(commits), unasked(commits)
        self.sightings: list[tuple[bytes, bytes, int]] = []
        self.entry: AppendRequest | None = None
        self.stored: bool | None = None
        self.failure: Exception | None = None


class Appends:
    """The appends to one log; those of threads that come together share a transaction."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database, self._file = database, database.file
        self._group: Group[_Append] = Group(self._commit)
        self._packers = Packers()

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str) -> bool:
        """Append ``commits``, sealed on top of ``expected``; ``False`` if the step was there."""
        return self._store(_Append(session, step, commits, expected, branch))

    def record(self, entry: AppendRequest) -> bool:
        """Append a step that may open its session and branch, with its sightings; ``False`` if the step was there."""
        return self._store(_recorded(entry))

    def record_all(self, entries: Sequence[AppendRequest]) -> list[bool | Exception]:
        """The same for many in one transaction: whether each is new, or why it alone cannot be stored."""
        items: list[_Append] = []
        outcomes: list[_Append | Exception] = []
        for entry in entries:
            try:
                items.append(_recorded(entry))
            except _FAULTS as error:
                outcomes.append(error)
            else:
                outcomes.append(items[-1])
        if items:
            self._commit(items)
        return [_outcome(one) if isinstance(one, _Append) else one for one in outcomes]

    def arrive(self, arrival: Arrival) -> SessionInfo:
        """Store a session from elsewhere in one transaction."""
        items = {entry.step: _recorded(entry, self._packers) for entry in requests_of(arrival)}

        def work(rows: Rows) -> SessionInfo:
            assert isinstance(rows, SqliteRows)
            return arrive(rows, arrival, lambda step: _add_step(rows.db, items[step]))

        return self._database.write(work)

    def lookup(self, scope: bytes, digests: Sequence[bytes], limit: int = 3) -> list[Seen]:
        """The responses seen in ``scope`` under any of ``digests``, at most ``limit`` for each, newest first."""
        return self._database.read(history.seen, scope, digests, limit)

    def _store(self, item: _Append) -> bool:
        self._group.run(item)
        outcome = _outcome(item)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _commit(self, batch: list[_Append]) -> None:
        """Store a batch of steps in one transaction. Outcomes count only once it is committed."""
        outcomes: Sequence[bool | Exception]
        try:
            with self._file.changer() as db, transaction(db):
                outcomes = [_attempt(db, item, alone=len(batch) == 1) for item in batch]
        except (sqlite3.Error, *_FAULTS) as error:
            outcomes = [error] * len(batch)
        for item, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, bool):
                item.stored = outcome
            elif isinstance(outcome, sqlite3.Error):
                item.failure = named(outcome, self._file.path)
            else:
                item.failure = outcome


def _recorded(entry: AppendRequest, packers: Packers | None = None) -> _Append:
    item = _Append(entry.session, entry.step, entry.commits, entry.expected, entry.branch, packers)
    item.entry, item.sightings = entry, check_entry(entry)
    return item


def _outcome(item: _Append) -> bool | Exception:
    if item.failure is not None:
        return item.failure
    if item.stored is not None:
        return item.stored
    return StoreError(
        "the append was interrupted", next_actions=("append the same step again: it is stored at most once",)
    )


def _attempt(db: Connection, item: _Append, alone: bool) -> bool | Exception:
    """Add one step of a batch; if it fails, it takes nothing of the others with it."""
    if alone:
        return _add_step(db, item)
    db.execute("SAVEPOINT step")
    try:
        return _add_step(db, item)
    except _FAULTS as error:
        db.execute("ROLLBACK TO step")
        return error
    finally:
        if db.in_transaction:  # a full disk undoes the whole transaction
            db.execute("RELEASE step")


_UNCOUNT = "UPDATE summaries SET counted = 0 WHERE session = ?"


def _add_step(db: Connection, item: _Append) -> bool:
    if item.entry is not None and item.entry.epoch is not None:
        epoch = SqliteRows(db).epoch()
        if epoch != item.entry.epoch:
            raise erased_since(item.session, item.entry.epoch, epoch)
    if item.entry is not None and _begin(db, item, item.entry):
        return True
    found = db.execute(_HEAD, (item.step, item.branch, item.session)).fetchone()
    if found is None:
        return _without_branch(db, item) if item.entry is None else _open(db, item, item.entry)
    session, segment, position, seq, hash, is_known, is_end, deadline, is_counted, *kept = found
    if is_known:
        return False
    if item.entry is not None and deadline is not None and not is_due(deadline, time.time_ns() // 1000):
        raise leased(item.session, item.branch)
    actual = Head((hash or b"").hex(), seq)
    if actual != item.expected:
        raise head_moved(item.session, item.expected, actual)
    first = position + 1
    if item.rows:
        if is_end:
            db.execute(_GROW, (position + len(item.rows), session, item.branch))
        else:
            above = (segment, position) if position >= 0 else (None, None)
            ((segment,),) = db.execute(ADD_SEGMENT, (session, seq + 1, *above)).fetchall()
            first = 0
            db.execute(_POINT, (segment, len(item.rows) - 1, session, item.branch))
    _insert(db, item, session, segment, first)
    if item.rows:
        if is_counted and (tally := tally_of(kept)).tokens <= MOST and tally.reasoning <= MOST:
            _count(db, item, session, segment, tally)
        else:
            if is_counted:  # an earlier version added up a number that cannot be
                db.execute(_UNCOUNT, (session,))
            settle(SqliteRows(db), Key("", 0, session, item.session))
    return True


def _begin(db: Connection, item: _Append, entry: AppendRequest) -> bool:
    """Add a session's first step together with the session, which nobody needs to look at then.

    ``False``, and nothing is stored, where it is no first step, or the session's id or name is there already.
    """
    if entry.expected != EMPTY or entry.branch != MAIN:
        return False
    made = db.execute(ADD_SESSION, (entry.session, entry.name, None, entry.created, NO_SETTINGS, None, "")).fetchall()
    if not made:
        return False
    session = made[0][2]
    ((segment,),) = db.execute(ADD_SEGMENT, (session, 0, None, None)).fetchall()
    db.execute(PUT_BRANCH, (session, MAIN, segment, len(item.rows) - 1))
    db.execute(ADD_SUMMARY, (*tally_row(item.tally, session), *about_row(entry.about)))
    _insert(db, item, session, segment, 0)
    return True


def _insert(db: Connection, item: _Append, session: int, segment: int, first: int) -> None:
    """The commits of a step at ``first`` and the positions behind it, and what is stored beside them."""
    if item.rows:
        db.executemany(_ADD_COMMIT, [(segment, at, *row) for at, row in enumerate(item.rows, first)])
    if item.bases:
        db.executemany(_ADD_BASIS, item.bases)
    if item.sightings:
        db.executemany(_ADD_SIGHTING, item.sightings)
    db.execute(_ADD_STEP, (session, item.step, segment, first, len(item.rows), FORMAT))


def _count(db: Connection, item: _Append, session: int, segment: int, kept: Tally) -> None:
    """Add what was stored to the summary of its session, which was ``kept`` before."""
    tally = item.tally
    if item.unasked:  # a request may stand before the step, as in a file that was imported in pieces
        asked = db.execute(_ASKED, (segment, texts(tuple(item.unasked)))).fetchall()
        tally = tally_of_step(item.commits, [response for (response,) in asked]) if asked else tally
    db.execute(PUT_TALLY, tally_row(kept.plus(tally), session))


def _open(db: Connection, item: _Append, entry: AppendRequest) -> bool:
    """Make the session and the branch that a step begins, and add it."""
    return open_for(SqliteRows(db), entry) is not None and _add_step(db, item)


def _without_branch(db: Connection, item: _Append) -> bool:
    """A step of a branch that is not there: it may have been stored before the branch was deleted."""
    rows = SqliteRows(db)
    of = key(rows, item.session)
    if rows.has_step(of, item.step):
        return False
    pointer(rows, of, item.branch)
    raise damaged(f"branch {item.branch} points at a segment that does not exist")
