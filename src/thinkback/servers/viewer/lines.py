"""The lines that are looked at: commits of a branch as read last, gone on with by what was stored since.

Promises: what others append is there at the next look, and what they take out of the log is not; only a few lines are
in memory. Must not: write.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import copy
from threading import Lock

import msgspec

from thinkback.errors import CorruptLogError, NotFoundError
from thinkback.log.protocol import BranchInfo, SessionInfo, Store
from thinkback.model.commits import Commit, Head, Request
from thinkback.servers.viewer.conversation import Growing, speaks_of_others

_MOST = 4


class Line:
    """A branch of a session as it was read: its ``commits`` up to ``head``, and what a page shows of them.

    What was read stays as it is: ``grown`` makes another one. ``epoch`` is that of the log before it was read.
    """

    def __init__(self, commits: Sequence[Commit], epoch: int) -> None:
        self.commits: list[Commit] = []
        self.epoch = epoch
        self._places: dict[str, int] | None = None
        self.requests: list[Commit] = []
        self._growing = Growing()
        self._take(commits)

    @property
    def head(self) -> Head:
        """The last commit."""
        return Head(self.commits[-1].hash, self.commits[-1].seq) if self.commits else Head()

    def grown(self, newer: Sequence[Commit]) -> Line:
        """The line with what was stored since. It takes over what this one is made with: grow each line once."""
        if any(speaks_of_others(commit) for commit in newer):
            return Line([*self.commits, *newer], self.epoch)
        made = copy(self)
        made.commits, made.requests = [*self.commits], [*self.requests]
        made._places = None if self._places is None else {**self._places}
        made._take(newer)
        return made

    @property
    def places(self) -> Mapping[str, int]:
        """Which entry each commit is in, of those that are in one."""
        if self._places is None:
            self._places = {hash: at for at in range(len(self.entries)) for hash in self.entries.hashes(at)}
        return self._places

    def opening(self, number: int) -> int:
        """The entry that opens the turn of the entry ``number``."""
        while number and not self.entries[number].opens:
            number -= 1
        return number

    def _take(self, commits: Sequence[Commit]) -> None:
        self.commits += commits
        changed = self._growing.take(commits)
        self.entries = self._growing.entries
        if self._places is not None:
            self._places.update((hash, at) for at in changed for hash in self.entries.hashes(at))
        # what was asked elsewhere, by a program whose history was taken in, cannot be built again
        self.requests += [
            commit
            for commit in commits
            if commit.kind == "request" and isinstance(record := commit.value, Request) and "endpoint" in record.target
        ]


class _Slot:
    """A line, and who may read it anew."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.line: Line | None = None


class Lines:
    """The lines of ``log``; any thread may ask."""

    def __init__(self, log: Store) -> None:
        self._log = log
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], _Slot] = OrderedDict()

    def forget(self) -> None:
        """Read everything anew: something was changed by way of the viewer."""
        with self._lock:
            self._known.clear()

    def read(self, info: SessionInfo, branch: str) -> Line:
        """The line of a branch as it is now.

        Raises ``NotFoundError`` for a branch that is not there, ``CorruptLogError`` for one that cannot be read.
        """
        found = next((other for other in self._log.refs.list(info.id) if other.name == branch), None)
        if found is None:
            raise NotFoundError(
                f"session {info.name} has no branch {branch!r}", next_actions=("its page lists its branches",)
            )
        with self._lock:
            slot = self._known.setdefault((info.id, branch), _Slot())
            self._known.move_to_end((info.id, branch))
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        with slot.lock:
            known, epoch = slot.line, self._log.epoch()
            if known is not None and known.epoch != epoch:  # words may have been taken out of it
                known = slot.line = None
            try:
                read = self._newer(info, branch, known, found) if known is not None else None
                slot.line = read = read or Line(self._log.read(info.id, branch=branch), epoch)
            except msgspec.DecodeError as error:  # the log itself does not look into tombstones
                raise CorruptLogError(
                    f"what is left of an erased commit cannot be read: {error}",
                    next_actions=("run `thinkback fsck` to see which one it is",),
                ) from error
            return read

    def _newer(self, info: SessionInfo, branch: str, known: Line, found: BranchInfo) -> Line | None:
        """The line as it goes on from what is known; ``None`` where it does not."""
        if known.head == found.head:
            return known
        newer = self._log.read(info.id, since=known.head.seq, branch=branch) if known.commits else []
        return known.grown(newer) if newer and newer[0].parents[:1] == (known.head.hash,) else None
