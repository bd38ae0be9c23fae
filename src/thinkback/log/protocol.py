"""What a store offers: whole operations on sessions, sync on purpose.

All stores pass one conformance suite. ``append`` is one transaction, idempotent by step id, and compares the
branch's head with ``expected`` before it moves it. Async shells run these calls on the store's own executor.

A history is a line of commits along first parents. Commits stand in segments (docs/format.md), which only stores see:
callers name a place by its branch, or by the ``Head`` of a commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Literal, NamedTuple, Protocol

import msgspec

from thinkback.log.leases import Lease, Owner
from thinkback.log.progress import Progress
from thinkback.log.tally import Tally
from thinkback.model.commits import Commit, Head, Priority

MAIN = "main"

Durability = Literal["full", "normal"]
"""``full``: what ``append`` returned for survives a power cut. ``normal``: a crash of the process."""


# How the purpose of a sub-agent's session begins.
TASK_PURPOSE = "task: "
EXPORT_SOURCE = "export:"
"""Among the sources of a session: an export added to what the history of another program had."""
ERASED_MEMORY = "erased-imports"
"""The id and name of the session in which the log remembers what was erased; no list shows it."""


class SessionInfo(msgspec.Struct, frozen=True):
    """A session as listed, seen from its current ``branch``: ``commits`` counts those reachable from it, times are
    microseconds UTC. ``family`` is the id of the root it descends from, its own if it is one; ``parent`` the id of the
    session it was made from, ``purpose`` what for.
    """

    id: str
    name: str
    created: int
    updated: int
    commits: int
    head: Head
    settings: dict[str, str] = {}
    branch: str = MAIN
    family: str = ""
    parent: str = ""
    purpose: str = ""

    @property
    def is_task(self) -> bool:
        """Whether it is a sub-agent's: nobody's conversation, but a part of its parent's."""
        return self.parent != "" and self.purpose.startswith(TASK_PURPOSE)


class About(msgspec.Struct, frozen=True):
    """What programs say of a session: which ``program`` began it, in which ``project`` and ``directory``, of which
    ``sources`` it was made (ids in other programs' histories), and what it ``cost`` so far, in millionths of a US
    dollar; ``None`` where nobody said.
    """

    program: str = ""
    project: str = ""
    directory: str = ""
    sources: tuple[str, ...] = ()
    cost: int | None = None


class Summary(msgspec.Struct, frozen=True):
    """What a list of sessions shows of one: what was counted of it, and what programs say."""

    tally: Tally
    about: About


class BranchInfo(msgspec.Struct, frozen=True):
    """A branch: a name for a commit. ``updated`` is the time of that commit, of the session's making without one."""

    name: str
    head: Head
    updated: int


class Origin(msgspec.Struct, frozen=True):
    """Where a new session comes from. ``at`` is a commit of the parent session on its ``branch``: the new session's
    history begins with everything up to there, shared and not copied. ``None``: it begins empty.
    """

    session: str
    branch: str = MAIN
    at: Head | None = None
    purpose: str = ""


class Query(msgspec.Struct, frozen=True):
    """What to look for; every field that is set must hold. What was said last comes first, of one time what was stored
    last.

    ``text`` are words that must all be there, ``"words in quotes"`` side by side; empty for any. ``session`` is an id:
    what its branches reach, also where that was stored by the session it was forked from. ``tool`` is one that the
    same response called after it (of a call or result: its own); ``model`` the served or requested model. ``priority``
    is what was said last of the commit, on whatever branch, else what its content type says, else ``NORMAL``.
    ``since`` is inside, ``until`` is not; times are microseconds UTC. ``tokens`` are the commit's own, estimated.
    ``before`` is the ``arrival`` of the last hit of the page before. ``owners`` are ids of sessions: what they stored
    themselves, as ``Hit.session`` says; ``None`` for any.
    ``prefix``: the last word of ``text``, of three letters or more and not in quotes, may be the beginning of one.
    """

    text: str = ""
    kinds: tuple[str, ...] = ()
    session: str = ""
    model: str = ""
    tool: str = ""
    priority: Priority | None = None
    since: int | None = None
    until: int | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None
    limit: int = 50
    before: int | None = None
    owners: tuple[str, ...] | None = None
    prefix: bool = False


class Hit(msgspec.Struct, frozen=True):
    """One commit that a query found; ``excerpt`` is its text around the first match, at most 200 characters."""

    session: str
    hash: str
    kind: str
    time: int
    response: str
    model: str
    tool: str
    tokens: int
    excerpt: str
    arrival: int


class BareHit(NamedTuple):
    """What is counted of a hit: the ``session``, ``model`` and ``time`` that ``Hit`` has."""

    session: str
    model: str
    time: int


class Removed(msgspec.Struct, frozen=True):
    """What ``gc`` removed, or would: commits that no branch of any session reaches, and their bytes on disk."""

    commits: int
    bytes: int


class Problem(msgspec.Struct, frozen=True):
    """One finding of ``fsck``: where, and what disagrees."""

    where: str
    what: str


class Refs(Protocol):
    """The branches of sessions. A ``Head`` given as ``at`` or ``to`` must be a commit of the session's family, or the
    empty head; ``via`` names a branch of the session it stands on, which saves looking for it.
    """

    def list(self, session: str) -> list[BranchInfo]:
        """Its branches by name."""
        ...

    def create(self, session: str, name: str, at: Head, via: str = "") -> BranchInfo:
        """A branch at a commit. Costs the same at any depth. Raises ``StoreError`` for a name that is taken."""
        ...

    def move(self, session: str, name: str, expected: Head, to: Head, via: str = "") -> None:
        """Point a branch elsewhere, by compare-and-set: raises ``HeadMovedError`` if its head is not ``expected``."""
        ...

    def delete(self, session: str, name: str, expected: Head) -> None:
        """Forget the name; the commits stay until ``gc``. Raises ``StoreError`` for the current branch."""
        ...

    def switch(self, session: str, name: str) -> None:
        """Make it the branch that the session is opened on."""
        ...


class SearchIndex(Protocol):
    """Full text of what was said and thought. It lags behind the log and can be built again from it."""

    def fill(self, limit: int = 5000) -> int:
        """Take in ``limit`` commits that are not in it yet, and the rest of the response that the last belongs to, in
        one transaction; returns how many that were.
        """
        ...

    def find(self, query: Query) -> list[Hit]:
        """The commits that ``query`` describes, newest first, of those that are in the index."""
        ...

    def find_bare(self, query: Query) -> list[BareHit]:
        """What ``find`` gives, in its order, without reading texts that it need not read: for counting many hits."""
        ...

    def find_owners(self, text: str, *, prefix: bool = False) -> Set[str]:
        """The sessions, by id, in which ``find`` has hits of ``text``, however many those are."""
        ...

    def rebuild(self) -> None:
        """Empty it, so that ``fill`` begins at the first commit."""
        ...


class Care(Protocol):
    """What is done to a log by those who keep it."""

    def erase(self, session: str, payloads: Mapping[str, bytes], *, sweeps: bool = True) -> int:
        """Put tombstones (commit hash to the bytes of an ``Erased``) in place of payloads; returns how many.

        The old bytes are overwritten, in the search index too: without ``sweeps`` by the ``sweep`` that is to follow,
        once for many calls. Commits of the family that share the place are the same row. Raises ``NotFoundError`` for
        a hash that is not in the session.
        """
        ...

    def erase_all(self, payloads: Mapping[str, Mapping[str, bytes]], *, sweeps: bool = True) -> None:
        """The same in several families at once, by a session of each: all of it or nothing."""
        ...

    def family_sizes(self, before: int | None = None, ids: Collection[str] | None = None) -> list[tuple[str, int]]:
        """The families of the log, the oldest first: the id of each one's root, and how many commits its sessions show.

        With ``before`` those in which a commit is from before that time (microseconds UTC); with ``ids`` those of these
        sessions.
        """
        ...

    def family_infos(self, roots: Collection[str]) -> list[SessionInfo]:
        """The sessions of the families with these roots, the oldest first."""
        ...

    def begin_erasure(self) -> int:
        """Count the log's epoch up before it is read for what is to be erased; returns it.

        A step that names an earlier one is in the log when this returns, or is not stored.
        """
        ...

    def restore(self, session: str, commits: Sequence[Commit]) -> None:
        """Put back what an export had left out: each commit's payload is whole, or an ``Erased`` with more left.

        Raises ``NotFoundError`` for one that is not in the session, ``StoreError`` for a payload that is not its own.
        """
        ...

    def sweep(self) -> None:
        """Overwrite what is left in files of what was erased or deleted without that."""
        ...

    def ends(self, session: str) -> list[Head]:
        """The last commit of each segment of the session: what is stored is one of them or stands before one, on a
        branch or not.
        """
        ...

    def delete_session(self, session: str, *, sweeps: bool = True) -> int:
        """Forget the session with its branches; returns how many commits nothing else reached and which are gone.
        ``sweeps`` as for ``erase``.

        What forks of it still stand on stays.
        """
        ...

    def gc(self, older_than: int, *, dry_run: bool = False, progress: Progress | None = None) -> Removed:
        """Remove commits that no branch reaches and whose time is before ``older_than``, at the ends of segments.

        ``progress`` counts families: a session with its forks.
        """
        ...

    def backup(self, path: str, progress: Progress | None = None) -> None:
        """A whole copy of the log as of now, while others go on writing. Raises ``StoreError`` if ``path`` exists."""
        ...


class Sighting(msgspec.Struct, frozen=True):
    """A digest by which a response is found again (log/echo_digests.py), inside ``scope``: 16 bytes each.

    ``response`` is the id of a response of the step that it is stored with.
    """

    scope: bytes
    digest: bytes
    response: str


class AppendRequest(msgspec.Struct, frozen=True):
    """A step that may open its own session and branch: all of it is stored in one transaction, or nothing.

    ``name``, ``created`` and ``about`` are for the session ``session`` (an id) where it is not there yet. A ``branch``
    that is not there is made at ``expected``, which stands on the branch ``via`` (empty: wherever it is found). With
    ``epoch`` it is stored only while that is the log's, else ``ErasedSinceError`` is raised. The rest as for
    ``append``.
    """

    session: str
    name: str
    created: int
    step: str
    commits: Sequence[Commit]
    expected: Head
    branch: str = MAIN
    via: str = ""
    sightings: Sequence[Sighting] = ()
    about: About = About()
    epoch: int | None = None


class Tail(msgspec.Struct, frozen=True):
    """Commits, sealed on top of ``expected``, that go to ``branch``, which is made there where it is not.

    Where the branch stands at ``outgrown`` they take the place of what it has behind ``expected``: that is removed,
    unless something else stands on it.
    """

    step: str
    commits: Sequence[Commit]
    expected: Head
    branch: str = MAIN
    outgrown: Head | None = None
    sightings: Sequence[Sighting] = ()


class Arrival(msgspec.Struct, frozen=True):
    """A session that comes from elsewhere, with what is new on its branches: all of it is stored in one transaction.

    It is made where it ``is_new``, under ``name`` or that with a number behind it, with ``origin``, ``settings`` and
    ``about``. ``branch`` is the one to open it on, empty for no other than before. Behind the tails the branches of
    ``moves`` point where it says, and those of ``absorbed`` go, with what stood on them alone.
    """

    session: str
    name: str
    created: int
    tails: Sequence[Tail]
    branch: str = ""
    is_new: bool = False
    origin: Origin | None = None
    settings: Mapping[str, str] = {}
    about: About = About()
    moves: Mapping[str, Head] = {}
    absorbed: Mapping[str, Head] = {}


class Seen(msgspec.Struct, frozen=True):
    """A response that was found by ``digest``: its ``head`` is the last commit of the step it was stored with."""

    digest: bytes
    session: str
    branch: str
    head: Head
    response: str


class Recognition(Protocol):
    """Finds responses by what a client echoes of them."""

    def record(self, entry: AppendRequest) -> bool:
        """Store a step with its sightings; ``False`` when it was stored before. Raises as ``append``.

        A branch that a lease covers counts as one that has moved: its step goes on in a branch of its own.
        """
        ...

    def lookup(self, scope: bytes, digests: Sequence[bytes], limit: int = 3) -> list[Seen]:
        """The responses seen in ``scope`` under any of ``digests``, at most ``limit`` for each, newest first."""
        ...


class Leases(Protocol):
    """Who has a turn under way on which branch. ``term`` is how long a lease lasts that is not renewed.

    ``now`` is this host's clock (microseconds UTC), which is the clock of a file; a server goes by its own. What is
    written here need not survive a power cut: the processes do not either. All raise ``NotFoundError`` for an unknown
    session; the branch need not be there.
    """

    def find(self, session: str, branch: str, now: int) -> Lease | None:
        """The lease on a branch, whatever it is worth."""
        ...

    def take(
        self, session: str, branch: str, owner: Owner, term: int, now: int, instead_of: Lease | None = None
    ) -> Lease:
        """The lease on the branch as it is then: ``owner``'s, unless somebody else's is there.

        ``instead_of`` is one that is to be replaced, if it is still the same owner's and was not renewed.
        """
        ...

    def renew(self, session: str, branch: str, owner: Owner, term: int, now: int) -> bool:
        """Let it last from now on; ``False`` where ``owner`` has none."""
        ...

    def release(self, session: str, branch: str, owner: Owner) -> None:
        """End it, if ``owner`` has it."""
        ...


class Store(Protocol):
    """Append-only history of sessions."""

    @property
    def refs(self) -> Refs:
        """Branches."""
        ...

    @property
    def search(self) -> SearchIndex:
        """Full-text search."""
        ...

    @property
    def care(self) -> Care:
        """Erasing, collecting, copying."""
        ...

    @property
    def recognition(self) -> Recognition:
        """Responses by what a client echoes of them."""
        ...

    @property
    def leases(self) -> Leases:
        """Turns under way."""
        ...

    def create_session(
        self,
        id: str,
        name: str,
        time: int,
        origin: Origin | None = None,
        settings: Mapping[str, str] | None = None,
        about: About | None = None,
    ) -> SessionInfo:
        """Make the session ``name`` with ``settings``; an existing one of that name is returned as it is."""
        ...

    def summaries(self, ids: Collection[str] | None = None) -> dict[str, Summary]:
        """Summarise each session, or those of these ids, by its id."""
        ...

    def describe(self, session: str, about: About) -> None:
        """Replace what programs say of a session."""
        ...

    def find_session(self, name: str) -> SessionInfo | None:
        """The session of that name or id."""
        ...

    def list_sessions(self, most: int | None = None) -> list[SessionInfo]:
        """All sessions, last updated first, or the first so many of them."""
        ...

    def count_sessions(self) -> int:
        """Count the sessions."""
        ...

    def owned_sessions(self, program: str, project: str, *, is_own: bool = False) -> list[str]:
        """The ids of the sessions of a program and a project, where these are not empty; of a session of which nobody
        says them, those of the session that it was made from. ``is_own``: the program is that of all others.
        """
        ...

    def relabel(self, session: str, name: str, purpose: str) -> None:
        """Give a session another name and purpose. Raises ``StoreError`` for a name that another one has."""
        ...

    def write_settings(self, session: str, settings: dict[str, str]) -> None:
        """Replace the session layer of the settings (read live, never part of the history)."""
        ...

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str = MAIN) -> bool:
        """Append ``commits`` (sealed on top of ``expected``) to ``branch`` in one durable transaction.

        Returns ``False`` when the step was stored before. Raises ``HeadMovedError`` when the branch's head is no
        longer ``expected``: read again and seal on top of the new head.
        """
        ...

    def arrive(self, arrival: Arrival) -> SessionInfo:
        """Store a session from elsewhere, or what is new of it, in one durable transaction.

        Raises ``HeadMovedError`` where a branch is not where it was expected, is leased, or a new session is there;
        ``IdTakenError`` where the id is remembered for a session that was deleted.
        """
        ...

    def read(self, session: str, since: int = -1, branch: str = MAIN) -> list[Commit]:
        """Commits of a branch with ``seq`` greater than ``since``, in order."""
        ...

    def read_to(self, session: str, hash: str) -> list[Commit]:
        """The history that ends with the commit ``hash`` of the session's family, on a branch or not."""
        ...

    def find_commit(self, prefix: str, session: str = "") -> tuple[str, Commit]:
        """(session id, commit) of a hash prefix; with ``session``, among the commits of its family alone.

        Of a commit that stands several times it is the one stored first; what a deleted session left to its forks is
        said to be of the first session of the family that is there.

        Raises ``NotFoundError`` for none or several.
        """
        ...

    def fsck(self, progress: Progress | None = None) -> Iterator[Problem]:
        """Every disagreement between stored bytes, hashes, parents, positions and refs."""
        ...

    def count(self) -> int:
        """How many commits there are: what ``fsck`` checks, on a branch or not."""
        ...

    def epoch(self) -> int:
        """A number that each erasure and each deletion counts up, in the transaction that makes it.

        What was read before another number was seen is to be read again before it is sent or shown.
        """
        ...

    def close(self) -> None:
        """Close every connection; later calls raise ``StoreError``."""
        ...
