"""What the operations on a log ask of a database: transactions, and in each the queries by which they work.

An operation is a function whose first parameter is ``Rows``, one open transaction of one log; it is written once, for
every database. Places are named by tenant, family, segment and position, whatever a database makes of these. Must not:
decide anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar

from thinkback.log.leases import Lease, Owner
from thinkback.log.progress import Progress
from thinkback.log.protocol import About, Problem, Seen, SessionInfo
from thinkback.log.tally import Tally
from thinkback.model import canonical
from thinkback.model.commits import Head

P = ParamSpec("P")
T = TypeVar("T")

Family: TypeAlias = tuple[str, int]
"""A tenant and the number of a family. A file is one tenant, which has no name."""

Stored: TypeAlias = tuple[Any, ...]
"""A commit as ``rows.COLUMNS`` name its values."""


class Key(NamedTuple):
    """A session: its tenant, its family's number, its own number and its id."""

    tenant: str
    family: int
    session: int
    id: str


class CommitAddress(NamedTuple):
    """Where a commit stands; position -1 is before the first commit of a segment that follows nothing."""

    segment: int
    position: int


class Tip(NamedTuple):
    """Where a branch points, and the head that is there; without a commit the hash is empty."""

    segment: int
    position: int
    seq: int
    hash: bytes

    @property
    def head(self) -> Head:
        """As callers name it."""
        return Head(self.hash.hex(), self.seq)

    @property
    def place(self) -> CommitAddress:
        """Without its head."""
        return CommitAddress(self.segment, self.position)


class Branch(NamedTuple):
    """A branch with the time of its last commit, of the session's making without one."""

    name: str
    tip: Tip
    time: int


class Range(NamedTuple):
    """Commits of one segment, whose position 0 has ``seq`` ``base``."""

    segment: int
    base: int
    first: int
    last: int


class Segment(NamedTuple):
    """A run of commits of ``session``, which ``is_there`` if it was not deleted.

    ``above`` is what its position 0 follows, ``last`` the position of its last commit (-1: it has none), ``reached``
    the highest that a branch points at.
    """

    segment: int
    session: int
    is_there: bool
    base: int
    above: CommitAddress | None
    last: int
    reached: int | None


class Cut(NamedTuple):
    """Remove what a segment has after ``last``; ``last`` ``None``: and the segment itself."""

    segment: int
    last: int | None

    @property
    def after(self) -> int:
        """The position that everything behind goes of."""
        return -1 if self.last is None else self.last


class Tail(NamedTuple):
    """So many commits with so many stored bytes, and the position of the last whose time is not before some time."""

    commits: int
    bytes: int
    young: int | None


class Match(NamedTuple):
    """A commit that was looked for, with ``seq`` ``base`` at position 0 of its segment.

    ``session`` is the one that stored it; where that was deleted, the first of its family that is there.
    """

    session: str
    base: int
    stored: Stored


class RepeatError(Exception):
    """Another writer was first: the database undoes the transaction and runs the operation again."""


class Rows(Protocol):
    """One transaction of one log: a query or a change a method."""

    def key(self, session: str) -> Key | None:
        """The session of that id. One that was deleted may be found too: it has no branches, and ``hold`` says so."""

    def info(self, name: str) -> SessionInfo | None:
        """The session of that name or id; a name wins."""

    def infos(self, most: int | None = None) -> list[SessionInfo]:
        """All sessions, last updated first, or the first so many of them."""

    def family_sizes(self, before: int | None, ids: Collection[str] | None) -> list[tuple[str, int]]:
        """The families that have sessions: the id of the root, and how many commits their current branches have.

        Of those that have a commit from before a time, and of those with any of these sessions. The oldest first.
        """

    def family_infos(self, roots: Collection[str]) -> list[SessionInfo]:
        """The sessions of the families of these roots, the oldest first."""

    def owned(self, program: str, project: str, is_own: bool) -> list[str]:
        """The ids of the sessions of a program and a project, where these are not empty.

        A session of which nobody says them is of those that the session it was made from is of. ``is_own``: and of the
        program where nobody says one of that either.
        """

    def count_sessions(self) -> int:
        """Count the sessions."""

    def has_id(self, id: str) -> bool:
        """Whether a session has that id, one that was deleted too."""

    def has_name(self, name: str) -> bool:
        """Whether a session has that name."""

    def has_step(self, of: Key, id: str) -> bool:
        """Whether a step of that id was stored in the session."""

    def add_session(self, id: str, name: str, time: int, parent: Key | None, purpose: str, settings: str) -> Key:
        """A session without branches. Raises ``IdTakenError``, and ``RepeatError`` for a name that was just taken."""

    def write_settings(self, of: Key, text: str) -> bool:
        """Replace the session layer of the settings, a JSON object; ``False`` if the session is not there."""

    def relabel(self, of: Key, name: str, purpose: str) -> None:
        """Replace the name and the purpose of a session. Raises ``RepeatError`` for a name that was just taken."""

    def hold(self, of: Key) -> tuple[int, str] | None:
        """Keep out all others that change the shape of the session's family until the transaction ends.

        Returns when the session was made, and its current branch; ``None`` if it is not there.
        """

    def tip(self, of: Key, branch: str, hold: bool = False) -> Tip | None:
        """Where a branch points; with ``hold`` it stays there until the transaction ends."""

    def branches(self, of: Key) -> list[Branch]:
        """The branches of a session, in no order."""

    def put_branch(self, of: Key, branch: Branch) -> None:
        """Point a branch there, made if it is not there."""

    def delete_branch(self, of: Key, name: str) -> None:
        """Forget a branch."""

    def switch(self, of: Key, name: str) -> None:
        """Make it the branch that the session is opened on."""

    def add_segment(self, of: Key, base: int, above: CommitAddress | None) -> int:
        """The number of a new, empty segment."""

    def ranges(self, within: Family, at: CommitAddress, since: int) -> list[Range]:
        """The ranges that hold what is after the seq ``since``, up to ``at``, newest first. Never empty.

        Raises ``CorruptLogError`` where a segment does not exist.
        """

    def commits(self, within: Family, ranges: Sequence[Range]) -> Iterable[list[Stored]]:
        """What is stored in each of these ranges, in order."""

    def commit_at(self, within: Family, at: CommitAddress) -> tuple[int, bytes, int] | None:
        """Seq, hash and time of the commit that stands there."""

    def place_of(self, of: Key, hash: bytes) -> CommitAddress | None:
        """Where the commit of that hash stands in the session's family, in its own segments if it can be."""

    def matches(self, low: bytes, high: bytes, within: Family | None) -> list[Match]:
        """Up to 100 commits with hashes between these, each hash once: as it was stored first."""

    def count(self) -> int:
        """How many commits there are."""

    def epoch(self) -> int:
        """A number that each erasure of commits and each deletion of a session counts up."""

    def count_erasure(self) -> None:
        """Count the epoch up. Comes first in a transaction: nobody stores a step that names the one before any more."""

    def is_sighted(self, of: Key, segment: int) -> bool:
        """True if responses in a segment have sightings."""

    def seen(self, scope: bytes, digests: Sequence[bytes], limit: int) -> list[Seen]:
        """The responses seen in ``scope`` under any of ``digests``, at most ``limit`` for each, newest first.

        Each with a branch of its session that stands on it, empty where none does; without those of deleted sessions.
        """

    def suspects(self) -> list[Family]:
        """Families in which something may be spare: a segment ends behind all that stands on it, or is a deleted
        session's.
        """

    def segments_of_old_steps(self, before: int) -> list[tuple[Family, int]]:
        """Families and segments with several steps that were stored before a time, where the database joins steps."""

    def join_steps(self, within: Family, segment: int, before: int, most: int) -> int:
        """Make one step, of at most so many commits, of old ones that stand side by side; how many fewer there are."""

    def hold_family(self, within: Family) -> None:
        """Keep out all others that change the shape of a family until the transaction ends."""

    def segments(self, within: Family) -> list[Segment]:
        """The segments of a family."""

    def merges(self, within: Family) -> list[tuple[CommitAddress, bytes]]:
        """Its commits with several parents, and these side by side."""

    def standing(self, within: Family, hashes: Sequence[str]) -> dict[str, list[CommitAddress]]:
        """Where commits of these hashes stand in it."""

    def response_end(self, within: Family, at: tuple[int, int]) -> int:
        """The position where the response ends that the commit at a place belongs to; its own if to none."""

    def tail(self, within: Family, cut: Cut, older_than: int | None) -> Tail:
        """What a cut takes out."""

    def is_needed(self, within: Family, cut: Cut) -> bool:
        """Whether a branch or a segment stands on what a cut takes out."""

    def summaries(self, ids: Collection[str] | None = None) -> list[tuple[Key, Tally | None, About]]:
        """What is kept of each session, or of those of these ids: its tally, ``None`` where it is not counted, and what
        programs say of it.
        """

    def tallied(self, of: Key) -> Iterable[list[Stored]]:
        """The commits that a tally is made of, by the segments of the session, in order."""

    def latest(self, of: Key) -> int:
        """The latest time of a commit in the session's segments, 0 without one."""

    def uncounted(self, within: Family) -> list[Key]:
        """The sessions of a family that are not counted."""

    def hold_uncounted(self, of: Key) -> bool:
        """Whether the session is there and not counted; others that add to it then wait until the transaction ends."""

    def put_tally(self, of: Key, tally: Tally) -> None:
        """Replace the tally of a session, which is counted with this."""

    def put_about(self, of: Key, about: About) -> bool:
        """Replace what programs say of it; ``False`` if the session is not there."""

    def remove(self, within: Family, cut: Cut) -> None:
        """Take it out: commits, the steps that brought them, sightings, entries of the search index.

        The session is not counted then.
        """

    def lease(self, of: Key, branch: str, now: int) -> tuple[int, Lease | None]:
        """The time that leases go by (``now``, which is this host's, or the server's own), and the branch's lease."""

    def put_lease(self, of: Key, branch: str, lease: Lease, instead_of: Lease | None) -> bool:
        """Put a lease where none is, or in place of one that was just seen; ``False`` where it is another now."""

    def drop_lease(self, of: Key, branch: str, owner: Owner) -> None:
        """Forget the lease of ``owner``, if it is that."""

    def erase(self, of: Key, tombstones: Mapping[str, tuple[int, bytes]], *, unsees: bool) -> Collection[str]:
        """Put stored payloads (codec, bytes) in place of those of commits of the session's family, by their hashes.

        Forgets what the search index had of these commits, and, where it ``unsees``, the family's sightings, for what
        is visible is not what is stored any more; the sessions of the family are not counted then. Returns the hashes
        that were found.
        """

    def scrub(self) -> None:
        """Overwrite what the search index still holds of what was taken out of it."""

    def forget_session(self, of: Key) -> None:
        """Take its name, its branches and its sightings from a session."""

    def bury(self, within: Family) -> None:
        """Forget deleted sessions that have no segment and that nothing descends from."""


class Database(Protocol):
    """One log in one database. ``work`` may be called several times for one call; what it did before is undone."""

    def read(self, work: Callable[Concatenate[Rows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns, all of it seeing the log as it was at one moment."""

    def peek(self, work: Callable[Concatenate[Rows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``read``, of one query: no transaction need be around it."""

    def write(self, work: Callable[Concatenate[Rows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns, in one transaction that is durable when this returns."""

    def note(self, work: Callable[Concatenate[Rows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``write``, of what need not survive a power cut: nothing waits for a disk."""

    def is_writable(self) -> bool:
        """Tell whether a write would change nothing but what it is of: the log is no older format, nor read-only."""

    def problems(self, progress: Progress | None = None) -> Iterator[Problem]:
        """What ``fsck`` finds."""

    def sweep(self) -> None:
        """Bring what was overwritten out of the files that hold older bytes, as far as the database can do that."""

    def backup(self, path: str, progress: Progress | None = None) -> None:
        """Copy the log as of now into a new SQLite file. Raises ``StoreError`` if ``path`` exists."""

    def close(self) -> None:
        """Close every connection."""


def session_info(row: Sequence[Any]) -> SessionInfo:
    """A session as listed, from id, name, created, updated, seq, hash, settings, branch, family, parent, purpose."""
    id, name, created, updated, seq, hash, settings, branch, family, parent, purpose = row
    head = Head((hash or b"").hex(), seq)
    layer = canonical.decode(settings, dict[str, str])
    return SessionInfo(id, name, created, updated, seq + 1, head, layer, branch, family, parent, purpose)


def lease_of(row: Sequence[Any] | None, now: int) -> Lease | None:
    """A lease from owner, pid, started, boot, host, taken, deadline; seen at ``now``."""
    return None if row is None else Lease(Owner(*row[:5]), row[5], row[6], now)
