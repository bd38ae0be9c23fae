"""Appends a step to a store: seals it on top of the head, and again when another writer was first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thinkback.errors import HeadMovedError, StoreError
from thinkback.log.protocol import Store
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Commit, Head, Step

_ATTEMPTS = 50


class Stored(NamedTuple):
    """``between`` are commits of another writer that came before ours."""

    commits: tuple[Commit, ...]
    between: tuple[Commit, ...]


def append(store: Store, session: str, step: Step, head: Head) -> Stored:
    """Store ``step`` on top of ``head`` or of whatever has become the head. Raises ``StoreError``.

    A step that was stored before, because an earlier attempt was cut short, is found again where it is.
    """
    between: list[Commit] = []
    attempt = 0
    while True:
        attempt += 1
        commits = seal(step, head)
        try:
            fresh = store.append(session, step.id, commits, head)
        except HeadMovedError:
            if attempt == _ATTEMPTS:
                raise
            newer = store.read(session, head.seq)
            between += newer
            head = head_of(newer) if newer else head
            continue
        return Stored(tuple(commits), tuple(between)) if fresh else _found(step, store.read(session, head.seq))


def _found(step: Step, newer: Sequence[Commit]) -> Stored:
    """``step`` among the commits behind the head it was meant for."""
    wanted = [(draft.kind, draft.response, draft.index, step.time) for draft in step.drafts]
    sealed = [(commit.kind, commit.response, commit.index, commit.time) for commit in newer]
    for at in range(len(newer) - len(wanted) + 1):
        if sealed[at : at + len(wanted)] == wanted:
            return Stored(tuple(newer[at : at + len(wanted)]), tuple(newer[:at]))
    raise StoreError(f"step {step.id} was stored before, and not behind the head it was given for")
