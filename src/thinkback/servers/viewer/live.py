"""A conversation that grows while its page is open: what was stored since, as events with pieces of the page.

Promises: pieces are only added, each once, by the templates of the page; a page that comes back says where it was and
misses nothing; nothing is asked of the log but where the branch stands, until that moves. Must not: write.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

from thinkback.drive.clock import now
from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.log.leases import is_due
from thinkback.log.protocol import SessionInfo
from thinkback.model.commits import Head
from thinkback.servers.viewer.conversation import Entry, speaks_of_others
from thinkback.servers.viewer.lines import Line, Lines
from thinkback.session.store import SessionStore

MOST = 24
"""Streams at a time."""
_BEHIND = 200
"""Entries that a page is given after the fact: one that is further behind is better read anew."""
_PAUSE = 0.5
_QUIET = 60.0
"""Seconds without anything new after which only every fourth pause is followed by a look."""
_SILENCE = 15.0
"""Seconds after which a stream says that it is still there."""

_LINE = re.compile("\r\n|\r|\n")


class Piece(NamedTuple):
    """What is added to a page: a whole ``entry``, or what came to one behind the commit number ``at``."""

    number: int
    entry: Entry
    at: int
    is_new: bool


class Event(NamedTuple):
    """An event of a stream; ``place`` is where a page stands that has it."""

    name: str
    data: str
    place: str = ""

    def __bytes__(self) -> bytes:
        lines = "".join(f"data: {line}\n" for line in _LINE.split(self.data))
        place = f"id: {self.place}\n" if self.place else ""
        return f"event: {self.name}\n{lines}{place}\n".encode("utf-8", "backslashreplace")


def place_of(line: Line) -> str:
    """Where a page stands that shows all of ``line``."""
    return _place(line.head)


def _place(head: Head) -> str:
    return f"{head.seq}-{head.hash[:16]}"


def since(line: Line, place: str) -> list[Piece] | None:
    """What a page that stands at ``place`` lacks of ``line``; ``None`` where it must be read anew."""
    seq, _, hash = place.partition("-")
    at = int(seq) if seq.isascii() and seq.isdecimal() and len(seq) < 12 else -1
    if at >= len(line.commits) or (at >= 0 and not (hash and line.commits[at].hash.startswith(hash))):
        return None
    newer = line.commits[at + 1 :]
    if any(speaks_of_others(commit) for commit in newer):
        return None
    numbers = sorted({line.places[commit.hash] for commit in newer if commit.hash in line.places})
    if len(numbers) > _BEHIND:
        return None
    found = [(number, line.entries[number]) for number in numbers]
    return [Piece(number, entry, at, entry.first.seq > at) for number, entry in found]


class Watch:
    """One page's look at a branch: ``look`` is for a thread, ``events`` for the loop."""

    def __init__(
        self,
        store: SessionStore,
        lines: Lines,
        info: SessionInfo,
        branch: str,
        place: str,
        shown: Callable[[Line, Piece], str],
    ) -> None:
        self._store, self._lines, self._info, self._branch = store, lines, info, branch
        self._shown = shown
        self._state = ""
        self.place = place

    def look(self) -> list[Event]:
        """What there is to say since the last look."""
        try:
            found = [*self._look()]
            state = self._is_running()
        except (NotFoundError, RecursionError):  # the page itself says what is wrong
            return [Event("stale", "")]
        except ThinkbackError:  # a log that does not answer may do so again
            found, state = [], "failed"
        if state != self._state:
            self._state = state
            found.append(Event("state", state))
        return found

    def _look(self) -> Iterator[Event]:
        branches = self._store.log.refs.list(self._info.id)
        head = next((each.head for each in branches if each.name == self._branch), None)
        if head is not None and _place(head) == self.place:
            return
        line = self._lines.read(self._info, self._branch)
        pieces = since(line, self.place)
        if pieces is None:
            yield Event("stale", "")
            return
        for piece in pieces:
            yield Event("entry" if piece.is_new else "part", self._shown(line, piece))
        self.place = _place(line.head)  # a page has all of it, or asks for all of it again
        yield Event("here", "", self.place)

    def _is_running(self) -> str:
        lease = self._store.log.leases.find(self._info.id, self._branch, now())
        return "running" if lease is not None and not is_due(lease.deadline, lease.now) else "quiet"

    async def events(
        self,
        thread: Callable[[Callable[[], list[Event]]], Awaitable[list[Event]]],
        pause: Callable[[float], Awaitable[object]],
        is_over: Callable[[], bool],
    ) -> AsyncIterator[bytes]:
        """The stream, until the page must be read anew, whoever reads it goes, or the server ends."""
        quiet = silent = 0
        yield b"retry: 2000\n\n"
        while not is_over():
            if quiet * _PAUSE < _QUIET or quiet % 4 == 0:
                for event in await thread(self.look):
                    yield bytes(event)
                    if event.name == "stale":
                        return
                    quiet = silent = 0
            if silent * _PAUSE >= _SILENCE:
                yield b": \n\n"
                silent = 0
            await pause(_PAUSE)
            quiet, silent = quiet + 1, silent + 1
