"""Responses found by what is visible of them, in a log in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.stores.model.log import MemoryLog, Place, Session, head
from thinkback.errors import NotFoundError
from thinkback.log.leases import is_due
from thinkback.log.protocol import MAIN, AppendRequest, Seen
from thinkback.model.commits import Head
from thinkback.stores.errors import (
    EMPTY,
    check_entry,
    check_sealed,
    check_text,
    erased_since,
    id_taken,
    leased,
    name_taken,
)


class MemoryRecognition:
    """The sightings of one log."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def record(self, entry: AppendRequest) -> bool:
        """Append a step that may open its session and branch, with its sightings; ``False`` if the step was there."""
        check_text("step id", entry.step)
        check_sealed(entry.commits, entry.expected)
        sightings = check_entry(entry)
        with self._log.lock:
            self._log.refuse_closed()
            if entry.epoch not in (None, self._log.epoch):
                raise erased_since(entry.session, entry.epoch or 0, self._log.epoch)
            session, start = self._opened(entry)
            branches = {} if entry.branch in session.branches else {entry.branch: start}
            if entry.step in session.steps:
                return False
            lease = session.leases.get(entry.branch)
            if lease is not None and not is_due(lease.deadline, time.time_ns() // 1000):
                raise leased(session.id, entry.branch)
            session.branches |= branches
            if branches and entry.expected == EMPTY and self._has_conversation(session):
                session.branch = entry.branch
            self._log.append(session, entry.step, entry.commits, entry.expected, entry.branch)
            self._log.sessions.setdefault(session.id, session)
            self._log.names.setdefault(session.name, session)
            if (place := session.branches[entry.branch]) is not None:
                for scope, digest, back in sightings:
                    seen = place, entry.commits[-1 - back].response
                    self._log.sightings.setdefault((scope, digest), []).append(seen)
            return True

    def _has_conversation(self, session: Session) -> bool:
        current = session.branches[session.branch]
        places = (place for seen in self._log.sightings.values() for place, _ in seen)
        return current is None or any(place.segment is current.segment for place in places)

    def _opened(self, entry: AppendRequest) -> tuple[Session, Place | None]:
        """The session, which may not be in the log yet, and where a branch begins that is not in it."""
        log = self._log
        if entry.session not in log.sessions and entry.expected == EMPTY:
            if entry.name in log.names:
                raise name_taken(entry.name)
            if entry.session in log.gone:
                raise id_taken(entry.session)
            fresh: dict[str, Place | None] = {MAIN: None}
            return Session(
                entry.session, entry.name, entry.created, entry.session, branches=fresh, about=entry.about
            ), None
        session = log.session(entry.session)
        if entry.branch in session.branches or entry.step in session.steps:
            return session, None
        return session, self._standing(session, entry.expected, entry.via)

    def _standing(self, session: Session, at: Head, via: str) -> Place | None:
        """Where a commit stands, on the branch that it was seen on, or wherever it is if that has moved since."""
        try:
            return self._log.find(session, at, via)
        except NotFoundError:
            return self._log.find(session, at, "")

    def lookup(self, scope: bytes, digests: Sequence[bytes], limit: int = 3) -> list[Seen]:
        """The responses seen in ``scope`` under any of ``digests``, at most ``limit`` for each, newest first."""
        with self._log.lock:
            self._log.refuse_closed()
            return [
                Seen(digest, place.segment.session.id, _branch(place), head(place), response)
                for digest in digests
                for place, response in self._log.sightings.get((scope, digest), [])[: -limit - 1 : -1]
            ]


def _branch(place: Place) -> str:
    """A branch of its session that stands on a place: the first that ends in its segment, else the first by name."""
    found: list[tuple[bool, int, str]] = []
    for name, tip in place.segment.session.branches.items():
        at = tip
        while at is not None and at.segment is not place.segment:
            at = at.segment.parent
        if at is not None and tip is not None and at.position >= place.position:
            found.append((at is not tip, at.position if at is tip else 0, name))
    return min(found, default=(False, 0, ""))[2]
