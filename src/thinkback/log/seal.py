"""From history values to commits: gives drafts their place, digest and hash."""

from __future__ import annotations

from collections.abc import Sequence

from thinkback.model import canonical
from thinkback.model.commits import Commit, Head, Step, commit_hash


def seal(step: Step, head: Head) -> list[Commit]:
    """The commits of ``step`` on top of ``head``. Pure: the same step and head give the same hashes."""
    commits: list[Commit] = []
    parent, seq = head.hash, head.seq
    for draft in step.drafts:
        payload = canonical.encode(draft.value)
        digest = canonical.digest(payload)
        parents = ((parent,) if parent else ()) + draft.parents
        parent = commit_hash(parents, draft.kind, digest, draft.edit, draft.response, draft.index, step.time)
        seq += 1
        commits.append(
            Commit(
                hash=parent,
                parents=parents,
                seq=seq,
                kind=draft.kind,
                value=draft.value,
                payload=payload,
                digest=digest,
                time=step.time,
                response=draft.response,
                index=draft.index,
                edit=draft.edit,
            )
        )
    return commits


def head_of(commits: Sequence[Commit]) -> Head:
    """The head after the last of ``commits``."""
    return Head(commits[-1].hash, commits[-1].seq) if commits else Head()
