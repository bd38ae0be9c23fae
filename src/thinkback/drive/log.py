"""Appends a step to a store: seals it on top of the head, and again when another writer was first."""

from __future__ import annotations

from typing import NamedTuple

from thinkback.errors import HeadMovedError
from thinkback.log.protocol import Store
from thinkback.log.seal import seal
from thinkback.model.commits import Commit, Head, Step

_ATTEMPTS = 50


class Stored(NamedTuple):
    """``between`` are commits of another writer that came before ours."""

    commits: tuple[Commit, ...]
    between: tuple[Commit, ...]


def append(store: Store, session: str, step: Step, head: Head) -> Stored:
    """Store ``step`` on top of ``head`` or of whatever has become the head. Raises ``StoreError``."""
    between: list[Commit] = []
    for attempt in range(_ATTEMPTS):
        commits = seal(step, head)
        try:
            store.append(session, step.id, commits, head)
        except HeadMovedError:
            if attempt == _ATTEMPTS - 1:
                raise
            newer = store.read(session, head.seq)
            between += newer
            head = Head(newer[-1].hash, newer[-1].seq) if newer else head
            continue
        return Stored(tuple(commits), tuple(between))
    raise AssertionError("unreachable")
