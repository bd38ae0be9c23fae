"""``session.branches``: where a session stands, and every operation on its lines.

Promises: nothing is ever removed, a branch is only pointed elsewhere; what would tear or lose something is refused.
Names of commits are as in git (``log.names``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, get_args

import msgspec

from thinkback.drive.clock import now
from thinkback.errors import BranchError, HeadMovedError, NotFoundError
from thinkback.log import cherry_pick
from thinkback.log.diff import Compared, Diff, compare, diff
from thinkback.log.lines import common, holds, turn_start
from thinkback.log.merge import MergeResult, Strategy, merge
from thinkback.log.names import PREVIOUS, check_branch
from thinkback.log.protocol import BranchInfo, Origin, SessionInfo, Store
from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Head
from thinkback.session.history.children import descend
from thinkback.session.history.revisions import ResolvedRevision, branches, family, find, find_whole, has, lines_with
from thinkback.session.ids import new_id

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation
    from thinkback.session.session import Session

T = TypeVar("T")

_ATTEMPTS = 20


class BranchNode(msgspec.Struct, frozen=True):
    """A branch in a tree. It left ``parent`` ((session name, branch), the one that was listed first) after ``fork``."""

    name: str
    head: Head
    fork: Head
    parent: tuple[str, str] | None = None


class SessionNode(msgspec.Struct, frozen=True):
    """A session in a tree, with its branches; ``parent`` is the name of the session it was made from, or empty."""

    name: str
    id: str
    parent: str
    purpose: str
    created: int
    current: str
    branches: tuple[BranchNode, ...]


class Branches:
    """The branches of one session. What changes where it stands is refused while a turn is under way."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._log = conversation.store.log
        self._id = conversation.info.id

    @property
    def current(self) -> str:
        """The branch that the session goes on with; empty while it looks at a commit."""
        return "" if self._conversation.line.looks_at else self._conversation.line.branch

    def list(self) -> Sequence[BranchInfo]:
        """The session's branches by name."""
        return self._log.refs.list(self._id)

    def branch(self, name: str, at: str = "HEAD", *, switch: bool = False) -> BranchInfo:
        """Make a branch at a commit; a commit inside a response stands for the end of that response.

        Raises ``BranchError`` for a name that cannot be one, ``StoreError`` for one that is taken.
        """
        check_branch(name)
        self._ready()
        found = find_whole(self._conversation, at)
        info = self._log.refs.create(self._id, name, found.head, self._via(found))
        if switch:
            self.switch(name)
        return info

    def before(self, hash: str, name: str) -> BranchInfo:
        """Make the branch ``name``, which ends before the commit ``hash`` of this line, and go on there: to say it
        again or otherwise. Raises as ``branch``, and ``NotFoundError`` for a commit that is not on this line.
        """
        self._conversation.refresh()
        commits = self._conversation.history.commits
        at = next((at for at, commit in enumerate(commits) if commit.hash == hash), None)
        if at is None:
            raise NotFoundError(
                f"commit {hash[:12]} is not on this branch", next_actions=("`thinkback log` lists the commits",)
            )
        if at:
            return self.branch(name, commits[at - 1].hash, switch=True)
        info = self._log.refs.create(self._id, check_branch(name), Head())
        self.switch(name)
        return info

    def beside(self, name: str = "") -> BranchInfo:
        """Make a branch that ends before the turn under way, and go on there: whoever runs that turn is not disturbed.

        Raises as ``branch``.
        """
        self._ready()
        line, commits = self._conversation.line, self._conversation.history.commits
        name, at = check_branch(name or f"{line.branch}-{new_id()[:8]}"), head_of(commits[: turn_start(commits)])
        info = self._log.refs.create(self._id, name, at)
        self.switch(name)
        return info

    def switch(self, name: str) -> None:
        """Go on with another branch (``-``: the one before), or only look at a commit: then appends are refused."""
        self._ready()
        conversation, line = self._conversation, self._conversation.line
        wanted = line.before if name == PREVIOUS else name
        branch = wanted if wanted in {one.name for one in self.list()} else ""
        looks_at = "" if branch else find(conversation, name).head.hash
        if not branch and not looks_at:
            raise BranchError(
                f"there is nothing before {name}",
                next_actions=("begin a new session, or make a branch there: branch(NAME, at)",),
            )
        if branch:
            self._log.refs.switch(self._id, branch)
        if branch != line.branch:
            line.before = line.branch
        line.branch, line.looks_at = branch or line.branch, looks_at
        conversation.reload()

    def fork(self, name: str | None = None, at: str = "HEAD", *, purpose: str = "") -> Session:
        """A new session that begins with this one's history up to ``at``, which stays as it is.

        Endpoint, model, HTTP options and settings are this session's. Raises ``BranchError`` for a name that is taken.
        """
        from thinkback.session.session import Session

        self._ready()
        found = find_whole(self._conversation, at)
        origin = Origin(self._id, self._via(found), found.head, purpose)
        return Session(descend(self._conversation, name, origin))

    def reset(self, to: str) -> Head:
        """Point the current branch at another commit; what it leaves behind stays in the log until ``gc``."""
        self._ready(changes=True)
        found = find_whole(self._conversation, to)
        self._move(self._conversation.history.head, found)
        return found.head

    def merge(self, source: str, strategy: Strategy = "auto", *, no_ff: bool = False) -> MergeResult:
        """Take another branch into the current one. With conflicts nothing is stored: fill in the result's
        ``resolutions`` and give it to ``commit_merge``, or say ``strategy="ours"`` or ``"theirs"``.

        Raises ``OpenTurnError`` while calls of either side have no results.
        """
        if strategy not in get_args(Strategy):
            raise ValueError(f"strategy must be one of {', '.join(get_args(Strategy))}, not {strategy!r}")
        self._ready(changes=True)
        return self._merge(find(self._conversation, source), source, {}, strategy, no_ff)

    def commit_merge(self, result: MergeResult) -> MergeResult:
        """Merge again what had conflicts, with its ``resolutions``; new conflicts come back as before."""
        self._ready(changes=True)
        theirs = ResolvedRevision(self._log.read_to(self._id, result.theirs.hash))
        return self._merge(theirs, result.branch, result.resolutions, "auto", False)

    def cherry_pick(self, *names: str) -> tuple[Commit, ...]:
        """Copy commits onto the current branch; of a response, all of it with its results.

        Raises ``BranchError`` for one that did not complete or that speaks of its own line.
        """
        self._ready(changes=True)
        conversation = self._conversation
        named = [find(conversation, name).head for name in names]
        picks = [(self._whole_line(head), head.hash) for head in named]

        def attempt() -> tuple[Commit, ...]:
            ours = conversation.line.read()
            made = cherry_pick.cherry_pick(ours, picks, now(), new_id)
            conversation.line.put(new_id(), made, head_of(ours))
            return tuple(made)

        made = _repeated(attempt)
        conversation.reload()
        return made

    def rebase(self, onto: str) -> tuple[Commit, ...]:
        """Copy what the current branch added onto another head, and point the branch there; returns the copies.

        Raises ``MergeConflictError`` where both sides changed the same commit.
        """
        self._ready(changes=True)
        conversation, refs = self._conversation, self._log.refs
        ours, base = conversation.line.read(), find(conversation, onto)
        if common(ours, base.commits) == len(base.commits):
            return ()
        made = cherry_pick.rebase(ours, base.commits, now(), new_id)
        if not made:
            self._move(head_of(ours), base)
            return ()
        place = f"{conversation.line.branch}-rebase-{new_id()[:8]}"
        refs.create(self._id, place, base.head, base.branch)
        try:
            conversation.line.put(new_id(), made, base.head, place)
            self._move(head_of(ours), ResolvedRevision([*base.commits, *made], place))
        finally:
            refs.delete(self._id, place, head_of(self._log.read(self._id, base.head.seq - 1, place)))
        return tuple(made)

    def delete(self, name: str, *, force: bool = False) -> None:
        """Forget a branch. Raises ``BranchError`` for the current one, and for one whose commits no other branch of
        the family reaches, unless ``force``."""
        conversation = self._conversation
        self._ready()
        if name == conversation.line.branch:
            raise BranchError(f"{name} is the current branch", next_actions=("switch to another one first",))
        head = next((branch.head for branch in self.list() if branch.name == name), None)
        if head is None:
            raise NotFoundError(
                f"there is no branch {name!r}",
                next_actions=("`thinkback branch` lists them (in a program session.branches.list())",),
            )
        if not force:
            others = (other for other in branches(self._log, conversation.info) if other != (self._id, name))
            if not any(has(self._log, *other, head) for other in others):
                raise BranchError(
                    f"no other branch has the commits of {name}: without it they are gone at the next gc",
                    details={"branch": name, "head": head.hash},
                    next_actions=("delete it with force=True", "or make another branch at its head first"),
                )
        self._conversation.line.refuse_leased(name)
        self._log.refs.delete(self._id, name, head)

    def tree(self) -> tuple[SessionNode, ...]:
        """The family: its sessions, their branches, and where each left another. Reads every branch."""
        seen: dict[tuple[str, str], Sequence[Commit]] = {}
        members = family(self._log, self._conversation.info.family)
        names = {info.id: info.name for info in members}
        return tuple(
            SessionNode(
                info.name,
                info.id,
                names.get(info.parent, info.parent),
                info.purpose,
                info.created,
                info.branch,
                tuple(self._leaves(info, seen)),
            )
            for info in members
        )

    def _leaves(self, info: SessionInfo, seen: dict[tuple[str, str], Sequence[Commit]]) -> Iterator[BranchNode]:
        """A session's branches, the current one first; ``seen`` are the lines of those that were listed before."""
        for branch in sorted(self._log.refs.list(info.id), key=lambda one: one.name != info.branch):
            line = self._log.read(info.id, branch=branch.name)
            shared = {place: common(line, other) for place, other in seen.items()}
            parent = max(shared, key=shared.__getitem__, default=None)
            fork = Head() if parent is None else head_of(line[: shared[parent]])
            yield BranchNode(branch.name, branch.head, fork, parent if fork.hash else None)
            seen[info.name, branch.name] = line

    def diff(self, old: str, new: str = "HEAD") -> Diff:
        """What is said differently at ``new``; ``log.diff.render`` makes lines of it."""
        return diff(find(self._conversation, old).commits, find(self._conversation, new).commits)

    def compare(self, ours: str, theirs: str) -> Compared:
        """How far two branches are apart."""
        return compare(find(self._conversation, ours).commits, find(self._conversation, theirs).commits)

    def _ready(self, *, changes: bool = False) -> None:
        """No turn is under way; where a branch ``changes``, there is one."""
        if changes:
            self._conversation.line.refuse_detached()
        self._conversation.last_turn.settle()
        self._conversation.refresh()

    def _via(self, found: ResolvedRevision) -> str:
        """A branch that the commit stands on, where one is known: then the store need not look for it."""
        line, commits = self._conversation.line, self._conversation.history.commits
        return found.branch or (line.branch if not line.looks_at and holds(commits, found.head) else "")

    def _whole_line(self, head: Head) -> Sequence[Commit]:
        """A history where what is picked with ``head`` is whole; else the first that holds it, for the error."""
        lines = list(lines_with(self._conversation, head))
        return next((line for line in lines if cherry_pick.is_whole(line, head.hash)), lines[0])

    def _move(self, expected: Head, to: ResolvedRevision) -> None:
        """Point the current branch at ``to``."""
        self._conversation.line.refuse_leased()
        self._log.refs.move(self._id, self._conversation.line.branch, expected, to.head, to.branch)
        self._conversation.reload()

    def _merge(
        self, theirs: ResolvedRevision, name: str, resolutions: Mapping[str, str], strategy: Strategy, no_ff: bool
    ) -> MergeResult:
        """Merge into whatever is the head."""
        conversation = self._conversation
        label = conversation.line.before if name == PREVIOUS else name

        def attempt() -> MergeResult:
            ours = conversation.line.read()
            result = merge(
                ours, theirs.commits, label, now(), new_id, resolutions=resolutions, strategy=strategy, no_ff=no_ff
            )
            if result.kind in ("fast_forward", "clean"):
                conversation.line.hooks.run("pre_merge", result)
                if result.kind == "fast_forward":
                    self._move(result.ours, theirs)
                else:
                    conversation.line.put(new_id(), result.commits, result.ours)
                result.stored = True
            return result

        result = _repeated(attempt)
        conversation.reload()
        return result


def unshown_branches(log: Store, session: str, shown: Sequence[Commit]) -> list[BranchInfo]:
    """The branches of a session with commits that the line ``shown`` has not, the newest first."""
    others = (branch for branch in log.refs.list(session) if not holds(shown, branch.head))
    return sorted(others, key=lambda branch: (-branch.updated, branch.name))


def _repeated(attempt: Callable[[], T]) -> T:
    """``attempt``, again where another writer moved the head meanwhile."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(HeadMovedError):
            return attempt()
    return attempt()
