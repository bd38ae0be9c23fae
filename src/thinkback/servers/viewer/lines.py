"""The lines that are looked at: commits of a branch as read last, gone on with by what was stored since.

Promises: what others append is there at the next look, what they take out of the log after some seconds at the latest;
only a few lines are in memory. Must not: write.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from thinkback.errors import NotFoundError
from thinkback.log.protocol import SessionInfo, Store
from thinkback.model.commits import Commit, Head, Request
from thinkback.servers.viewer.conversation import Entry, entries_of

_MOST = 4
_FRESH = 10.0
"""Seconds for which commits that were read are taken as they are: words may be taken out of them meanwhile."""


class Line:
    """A branch of a session as it was read: its ``commits`` up to ``head``, and what a page shows of them."""

    def __init__(self, commits: Sequence[Commit], head: Head, at: float) -> None:
        self.commits = commits
        self.head = head
        self.at = at
        self.entries: Sequence[Entry] = entries_of(commits)
        self.places = {commit.hash: number for number, entry in enumerate(self.entries) for commit in entry.commits}
        # what was asked elsewhere, by a program whose history was taken in, cannot be built again
        self.requests = [
            commit for commit in commits if isinstance(record := commit.value, Request) and "endpoint" in record.target
        ]


class Lines:
    """The lines of ``log``; any thread may ask."""

    def __init__(self, log: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], Line] = OrderedDict()

    def read(self, info: SessionInfo, branch: str) -> Line:
        """The line of a branch as it is now. Raises ``NotFoundError`` for a branch that is not there."""
        found = next((other for other in self._log.refs.list(info.id) if other.name == branch), None)
        if found is None:
            raise NotFoundError(
                f"session {info.name} has no branch {branch!r}", next_actions=("its page lists its branches",)
            )
        key, now = (info.id, branch), self._clock()
        with self._lock:
            known = self._known.get(key)
        if known is not None and known.head == found.head and now - known.at < _FRESH:
            return known
        commits = self._newer(info, branch, known, now) or self._log.read(info.id, branch=branch)
        head = Head(commits[-1].hash, commits[-1].seq) if commits else Head()
        read = Line(commits, head, known.at if known is not None and now - known.at < _FRESH else now)
        with self._lock:
            self._known[key] = read
            self._known.move_to_end(key)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return read

    def _newer(self, info: SessionInfo, branch: str, known: Line | None, now: float) -> list[Commit]:
        """The whole line, where it goes on from what is known; else nothing."""
        if known is None or not known.commits or now - known.at >= _FRESH:
            return []
        newer = self._log.read(info.id, since=known.head.seq, branch=branch)
        if not newer or newer[0].parents[:1] != (known.head.hash,):
            return []
        return [*known.commits, *newer]
