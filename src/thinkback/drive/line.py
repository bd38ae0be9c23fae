"""The line of commits that a session goes on with: reads its branch, seals steps on its head, loses no race.

A step that another writer was quicker than is sealed again on the new head, unless it holds what was minted under the
old one (a response, a tool's result), or belongs to a turn that lost its lease: that opens a branch where it was made,
and the session goes on there. What is said by hand is not appended where somebody else has a turn under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thinkback.drive.hooks import NO_HOOKS, Hooks
from thinkback.drive.leases import Holder
from thinkback.errors import DetachedError, HeadMovedError, StoreError
from thinkback.log.protocol import Store
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Commit, Draft, Head, Step

_ATTEMPTS = 50
_MINTED = frozenset({"response", "permission_decision", "tool_result"})
_OPENS = frozenset({"system", "tools", "user"})


class Stored(NamedTuple):
    """``between`` are commits of another writer that came before ours; ``opened`` the branch that the step opened."""

    commits: tuple[Commit, ...]
    between: tuple[Commit, ...]
    opened: str = ""


class Line:
    """Where a session stands: ``branch``, or, detached, the commit ``looks_at`` that it can only read from. ``before``
    is the branch it stood on before. ``holder`` has the leases of the session object.
    """

    def __init__(
        self, log: Store, session: str, branch: str, hooks: Hooks = NO_HOOKS, holder: Holder | None = None
    ) -> None:
        self._log = log
        self._session = session
        self.branch = branch
        self.before = ""
        self.looks_at = ""
        self.hooks = hooks
        self.holder = holder

    def read(self) -> list[Commit]:
        """The whole line."""
        if self.looks_at:
            return self._log.read_to(self._session, self.looks_at)
        return self._log.read(self._session, branch=self.branch)

    def newer(self, head: Head) -> list[Commit] | None:
        """What came after ``head``; ``None`` where the branch no longer holds it, because somebody moved it."""
        if self.looks_at:
            return []
        found = self._log.read(self._session, head.seq - 1, self.branch)
        if head.seq < 0:
            return found
        return found[1:] if found and found[0].hash == head.hash else None

    def append(self, step: Step, head: Head) -> Stored:
        """Store ``step`` on top of ``head`` or of whatever has become the head. Raises ``StoreError``, ``Veto``.

        A step that was stored before, because an earlier attempt was cut short, is found again where it is. Raises
        ``BusyError`` where somebody else has a turn under way.
        """
        self.refuse_detached()
        self.refuse_leased()
        self.hooks.run("pre_commit", step.drafts)
        stored = self._append(step, head)
        if self.holder is not None and self.is_held():
            self.holder.head = head_of(stored.commits)
        self.hooks.stored(stored.commits)
        return stored

    def put(self, step: str, commits: Sequence[Commit], head: Head, branch: str = "") -> None:
        """Store copies that are sealed on ``head``, on this branch or another. Raises as ``append``, and
        ``HeadMovedError``.
        """
        self.refuse_detached()
        self.refuse_leased(branch)
        drafts = (Draft(c.kind, c.value, c.response, c.index, c.edit, c.parents[1:]) for c in commits)
        self.hooks.run("pre_commit", tuple(drafts))
        self._log.append(self._session, step, commits, head, branch or self.branch)
        self.hooks.stored(commits)

    def refuse_detached(self) -> None:
        """Raise ``DetachedError`` where there is no branch to change."""
        if self.looks_at:
            raise DetachedError(
                f"the session is detached at commit {self.looks_at[:12]}",
                details={"commit": self.looks_at},
                next_actions=("make a branch there: session.branches.branch(name, switch=True)", "or switch to one"),
            )

    def refuse_leased(self, branch: str = "") -> None:
        """Wait, or raise ``BusyError``, while somebody else has a turn under way on the branch, or on this one."""
        if self.holder is not None:
            self.holder.refuse_leased(branch or self.branch)

    def is_held(self) -> bool:
        """Whether a turn of this session object has the lease on the branch, or had it when it began."""
        return self.holder is not None and self.holder.branch == self.branch

    def _append(self, step: Step, head: Head) -> Stored:
        between: list[Commit] = []
        attempt = 0
        if self._is_lost(head):
            return self._aside(step, head, between)
        while True:
            attempt += 1
            commits = seal(step, head)
            try:
                fresh = self._log.append(self._session, step.id, commits, head, self.branch)
            except HeadMovedError:
                newer = self.newer(head)
                if not _MINTED.isdisjoint(draft.kind for draft in step.drafts):
                    return self._open(step, commits, head, between)
                if self._is_lost(head, asks=True):
                    return self._aside(step, head, between)
                if attempt == _ATTEMPTS or newer is None:
                    raise
                between += newer
                head = head_of(newer) if newer else head
                continue
            if fresh:
                return Stored(tuple(commits), tuple(between))
            return self._again(step, head)

    def _is_lost(self, head: Head, *, asks: bool = False) -> bool:
        """Whether the turn that appends behind ``head`` has lost its branch to somebody else."""
        if self.holder is None or not self.is_held():
            return False
        self.holder.head = head
        return not self.holder.is_sure(asks=asks)

    def _aside(self, step: Step, head: Head, between: Sequence[Commit]) -> Stored:
        """A step of a turn that lost its branch: its place is where the turn stood. One that begins is refused."""
        assert self.holder is not None
        if not _OPENS.isdisjoint(draft.kind for draft in step.drafts):
            raise self.holder.lost_to()
        return self._open(step, seal(step, head), head, between)

    def _open(self, step: Step, commits: Sequence[Commit], head: Head, between: Sequence[Commit]) -> Stored:
        """A branch at ``head`` with ``step`` on it. Made again after a crash in between, it is the same one."""
        name = self._name(step)
        refs = self._log.refs
        if name not in {branch.name for branch in refs.list(self._session)}:
            refs.create(self._session, name, head)
        self._log.append(self._session, step.id, commits, head, name)
        self._follow(name)
        return Stored(tuple(commits), tuple(between), name)

    def _again(self, step: Step, head: Head) -> Stored:
        """Where an earlier attempt put ``step``: behind ``head``, or on a branch that it opened there."""
        stored = _find_stored(step, self.newer(head) or ())
        name = self._name(step)
        if stored is None and name in {branch.name for branch in self._log.refs.list(self._session)}:
            stored = _find_stored(step, self._log.read(self._session, head.seq, name))
            stored = stored and stored._replace(opened=name)
        if stored is None:
            raise StoreError(f"step {step.id} was stored before, and not behind the head it was given for")
        self._follow(stored.opened or self.branch)
        return stored

    def _follow(self, branch: str) -> None:
        """Go on in a branch, with the lease if there is one."""
        if self.holder is not None and self.is_held() and branch != self.branch:
            self.holder.follow(branch)
        self.branch = branch

    def _name(self, step: Step) -> str:
        return f"{self.branch}-{step.id[:8]}"


def _find_stored(step: Step, newer: Sequence[Commit]) -> Stored | None:
    """``step`` among the commits behind the head it was meant for."""
    wanted = [(draft.kind, draft.response, draft.index, step.time) for draft in step.drafts]
    sealed = [(commit.kind, commit.response, commit.index, commit.time) for commit in newer]
    for at in range(len(newer) - len(wanted) + 1):
        if sealed[at : at + len(wanted)] == wanted:
            return Stored(tuple(newer[at : at + len(wanted)]), tuple(newer[:at]))
    return None
