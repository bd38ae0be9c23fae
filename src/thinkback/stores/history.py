"""Where commits stand, and reading them: branches, and the segments that a history runs through.

Must not: change anything, or know what a payload means.
"""

from __future__ import annotations

from collections.abc import Sequence

from thinkback.log.protocol import MAIN, Seen
from thinkback.model.commits import Commit, Head
from thinkback.stores.database import CommitAddress, Family, Key, Rows, Tip
from thinkback.stores.errors import (
    EMPTY,
    ambiguous,
    damaged,
    no_branch,
    no_commit,
    no_session,
    on_branch,
    prefix_range,
    whole_hash,
)
from thinkback.stores.rows import from_rows


def key(rows: Rows, session: str) -> Key:
    """The session of that id. Raises ``NotFoundError``."""
    found = rows.key(session)
    if found is None:
        raise no_session(session)
    return found


def pointer(rows: Rows, of: Key, branch: str, hold: bool = False) -> Tip:
    """Where a branch points; with ``hold`` it stays there until the transaction ends. Raises ``NotFoundError``."""
    tip = rows.tip(of, branch, hold)
    if tip is None:
        names = [other.name for other in rows.branches(of)]
        # A session has at least the branch it is opened on.
        raise no_branch(branch, of.id, names) if names else no_session(of.id)
    return tip


def read(rows: Rows, session: str, since: int = -1, branch: str = MAIN) -> list[Commit]:
    """The commits of a branch with ``seq`` greater than ``since``."""
    of = key(rows, session)
    tip = pointer(rows, of, branch)
    return _line(rows, of[:2], tip.place, since) if tip.seq > since else []


def read_to(rows: Rows, session: str, hash: str) -> list[Commit]:
    """The history that ends with a commit of the session's family."""
    of = key(rows, session)
    return _line(rows, of[:2], locate(rows, of, hash))


def find(rows: Rows, of: Key, at: Head, via: str) -> tuple[Tip, int] | None:
    """Where a commit stands, on branch ``via`` or else in the family, and its time; ``None`` for the empty head.

    Walks the segments of the branch, not its commits. Raises ``NotFoundError``.
    """
    if at == EMPTY:
        return None
    if not via:
        place = locate(rows, of, at.hash)
        standing = _standing(rows, of, place)
        if standing is None:
            raise damaged(f"no commit is at position {place.position} of segment {place.segment}", session=of.id)
        return standing
    tip = pointer(rows, of, via)
    if 0 <= at.seq <= tip.seq:
        segment, base, _, _ = rows.ranges(of[:2], tip.place, at.seq - 1)[-1]
        standing = _standing(rows, of, CommitAddress(segment, at.seq - base))
        if standing is not None and standing[0].hash.hex() == at.hash:
            return standing
    raise on_branch(at, via)


def _standing(rows: Rows, of: Key, place: CommitAddress) -> tuple[Tip, int] | None:
    found = rows.commit_at(of[:2], place)
    return found and (Tip(*place, *found[:2]), found[2])


def locate(rows: Rows, of: Key, hash: str) -> CommitAddress:
    """Where the commit of that hash stands in the session's family, in the session's own segments if it can be."""
    place = rows.place_of(of, bytes.fromhex(hash)) if whole_hash(hash) else None
    if place is None:
        raise no_commit(hash, of.id)
    return place


def find_prefix(rows: Rows, prefix: str, session: str) -> tuple[str, Commit]:
    """(session id, commit) of a hash prefix; of a commit that is there several times, the one stored first."""
    low, high = prefix_range(prefix)
    found = rows.matches(low, high, key(rows, session)[:2] if session else None)
    commits = [from_rows([match.stored], match.base)[0] for match in found]
    if len(found) != 1:
        raise ambiguous(prefix, sorted(commit.hash for commit in commits))
    return found[0].session, commits[0]


def count(rows: Rows) -> int:
    """How many commits there are."""
    return rows.count()


def epoch(rows: Rows) -> int:
    """A number that each erasure and deletion counts up."""
    return rows.epoch()


def seen(rows: Rows, scope: bytes, digests: Sequence[bytes], limit: int) -> list[Seen]:
    """The responses seen in ``scope`` under any of ``digests``, at most ``limit`` for each, newest first."""
    return rows.seen(scope, digests, limit)


def _line(rows: Rows, within: Family, at: CommitAddress, since: int = -1) -> list[Commit]:
    """The commits up to a place, those with ``seq`` greater than ``since``."""
    ranges = [found for found in reversed(rows.ranges(within, at, since)) if found.first <= found.last]
    commits: list[Commit] = []
    for (segment, base, first, last), stored in zip(ranges, rows.commits(within, ranges), strict=True):
        if len(stored) != last + 1 - first:
            raise damaged(f"segment {segment} lacks commits between positions {first} and {last}", family=within[1])
        commits += from_rows(stored, base)
    return commits
