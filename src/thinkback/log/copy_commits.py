"""Copies of commits on another line, sealed one by one, so that what points at a copied commit points at its copy.

Must not: decide what is copied. What speaks of the line it was made on stays there: records of requests, that
usage counts without one, and a checkpoint whose run is not the same run here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from thinkback.log.seal import head_of, seal
from thinkback.model.commits import (
    Annotation,
    Commit,
    Compaction,
    Draft,
    Merge,
    Payload,
    Repair,
    Step,
    Usage,
    surviving,
)

# What is never said to a model; it may stand inside a run that a checkpoint has summarised.
UNSAID = frozenset(
    {
        "annotation",
        "compaction",
        "merge",
        "permission_decision",
        "provider_usage",
        "repair",
        "request",
        "turn_ended",
    }
)


def is_said(commit: Commit) -> bool:
    """Whether a model is told it: not a record, not a mark, not an edit of something else."""
    return commit.kind not in UNSAID and not commit.edit


class Copies:
    """What is added to ``line``; ``there`` is the history that is copied from.

    ``known`` says what of it is here already (hash there to hash here) beside what has the same hash, ``at`` what
    became of each copied commit. Response ids are kept unless the line has them; then ``ids`` gives fresh ones.
    """

    def __init__(
        self,
        line: Sequence[Commit],
        there: Sequence[Commit],
        known: Mapping[str, str],
        time: int,
        ids: Callable[[], str],
    ) -> None:
        self.added: list[Commit] = []
        self.at: dict[str, str] = {}
        self._line = list(line)
        self._there = {commit.hash: commit.seq for commit in there}
        self._history = there
        self._places = {commit.hash: commit.seq for commit in line}
        self._known = known
        self._time = time
        self._ids = ids
        self._taken = {commit.response for commit in line if commit.kind == "response"}
        self._responses: dict[str, str] = {}

    def here(self, hash: str) -> str:
        """The hash on this line of a commit of the other one; empty where it is not here."""
        found = self.at.get(hash) or self._known.get(hash, hash)
        return found if found in self._places else ""

    def add(self, draft: Draft) -> Commit:
        """One more commit at the end."""
        (commit,) = seal(Step("", (draft,), self._time), head_of(self._line))
        self._line.append(commit)
        self._places[commit.hash] = commit.seq
        self.added.append(commit)
        return commit

    def copy(self, commit: Commit, about: str = "") -> bool:
        """Copy ``commit``; ``about`` is what it edits or annotates, there. ``False`` where it says nothing here."""
        target = self.here(about) if about else ""
        value = self._value(surviving(commit.value), target) if target or not about else None
        if value is None:
            return False
        parents = commit.parents[1:] if commit.kind == "merge" else ()
        edit = target if commit.edit else ""
        response = self._response(commit)
        self.at[commit.hash] = self.add(Draft(commit.kind, value, response, commit.index, edit, parents)).hash
        return True

    def _response(self, commit: Commit) -> str:
        id = commit.response
        if commit.kind == "response":
            self._responses[id] = self._ids() if id in self._taken else id
            self._taken.add(self._responses[id])
        return self._responses.get(id, id)

    def _value(self, value: Payload, target: str) -> Payload | None:
        """``value`` with the hashes of this line; ``None`` where nothing is left of it."""
        if isinstance(value, Annotation):
            return msgspec.structs.replace(value, target=target) if target else None
        if isinstance(value, Usage):
            return msgspec.structs.replace(value, program="") if value.program else value
        if isinstance(value, Repair):
            blocks = tuple(filter(None, map(self.here, value.blocks)))
            return msgspec.structs.replace(value, blocks=blocks) if blocks or not value.blocks else None
        if isinstance(value, Compaction):
            return self._checkpoint(value)
        if isinstance(value, Merge):
            copies = tuple((there, here) for there, copy in value.copies if (here := self.here(copy)))
            return msgspec.structs.replace(value, copies=copies)
        return value

    def _checkpoint(self, value: Compaction) -> Compaction | None:
        """A checkpoint whose run here holds what it holds there, and nothing else that is said."""
        trimmed = tuple((here, text) for hash, text in value.trimmed if (here := self.here(hash)))
        kept = tuple(filter(None, map(self.here, value.kept)))
        thoughts = tuple(filter(None, map(self.here, value.shortened)))
        first, last = self.here(value.first), self.here(value.last)
        if value.first:
            if not (first and last and len(kept) == len(value.kept)):
                return None
            run = self._history[self._there[value.first] : self._there[value.last] + 1]
            wanted = {self.here(commit.hash) for commit in run if is_said(commit)}
            found = self._line[self._places[first] : self._places[last] + 1]
            if wanted != {commit.hash for commit in found if is_said(commit)}:
                return None
        elif not trimmed and not thoughts:
            return None
        return msgspec.structs.replace(value, first=first, last=last, kept=kept, trimmed=trimmed, shortened=thoughts)
