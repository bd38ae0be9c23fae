"""What people said about commits: priorities, tags, notes, edits and checkpoints, gathered from a history.

Pure and cheap where there is none of it. Who decides what follows from it is compile; who checks it is log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Annotation, Commit, Compaction, Content, Payload, Priority, surviving

# Commits that speak about others and are said to nobody themselves: an annotation without a target is not of these.
ABOUT: frozenset[str] = frozenset({"annotation", "compaction", "merge", "turn_ended"})


class Mark(msgspec.Struct, frozen=True):
    """All that annotations say of one commit. ``priority=None``: none of them names one."""

    priority: Priority | None = None
    reason: str = ""
    retain: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    message: str = ""
    metadata: str = ""
    history: tuple[Commit, ...] = ()


UNMARKED = Mark()


class Curation(msgspec.Struct):
    """``marks`` by commit hash; ``edits`` by the hash of the commit that was first edited, oldest edit first;
    ``checkpoints`` in order, as they were made.
    """

    marks: dict[str, Mark] = {}
    edits: dict[str, list[Commit]] = {}
    checkpoints: list[Commit] = []
    _roots: dict[str, str] = {}
    _last: str = ""

    def take(self, commits: Iterable[Commit]) -> None:
        """More commits of the history, in order."""
        for commit in commits:
            value = surviving(commit.value)
            if commit.edit:
                root = self._roots.get(commit.edit, commit.edit)
                self._roots[commit.hash] = root
                self.edits.setdefault(root, []).append(commit)
                self._last = commit.hash
            elif isinstance(value, Annotation):
                target = self.root(value.target or self._last)
                self.marks[target] = _marked(self.marks.get(target, UNMARKED), value, commit)
            elif commit.kind not in ABOUT:
                self._last = commit.hash
            if isinstance(value, Compaction) and not commit.edit:
                self.checkpoints.append(commit)

    def root(self, hash: str) -> str:
        """The commit that an edit is of, be it an edit of an edit; any other hash is its own."""
        return self._roots.get(hash, hash)

    def mark(self, hash: str) -> Mark:
        """What is said of a commit."""
        return self.marks.get(hash, UNMARKED)

    def priority(self, commit: Commit) -> Priority | None:
        """What was said explicitly, else what the commit's own content type says; ``None`` for neither."""
        said = self.mark(commit.hash).priority
        value = surviving(commit.value)
        return value.priority if said is None and isinstance(value, Content) else said

    def value(self, commit: Commit) -> Payload:
        """The payload as last edited, or what is left of it where it was erased."""
        edits = self.edits.get(commit.hash)
        return surviving(edits[-1].value if edits else commit.value)

    def compaction_of(self, commit: Commit) -> str:
        """Give the hash of the compaction that made the last edit of a commit; empty where none did."""
        edits = self.edits.get(commit.hash)
        if not edits:
            return ""
        earlier = edits[-2].seq if len(edits) > 1 else commit.seq
        for found in reversed(self.checkpoints):
            value = surviving(found.value)
            if earlier < found.seq < edits[-1].seq and isinstance(value, Compaction) and commit.hash in value.shortened:
                return found.hash
        return ""

    def why_edited(self, commit: Commit) -> str:
        """Name the last edit of a commit, and the compaction that made it; empty where there is none."""
        edits, made_by = self.edits.get(commit.hash), self.compaction_of(commit)
        by = f", made by compaction {made_by[:12]}" if made_by else ""
        return f"edited by commit {edits[-1].hash[:12]}{by}" if edits else ""

    def is_changed(self, commit: Commit) -> bool:
        """Whether it says something else now than what is stored of it; restoring the original takes that back, unless
        one of the two was erased.
        """
        edits = self.edits.get(commit.hash)
        return edits is not None and (edits[-1].digest != commit.digest or edits[-1].value != commit.value)


def curate(commits: Sequence[Commit]) -> Curation:
    """What ``commits`` say about each other."""
    curation = Curation()
    curation.take(commits)
    return curation


def matching(
    commits: Sequence[Commit], kinds: Collection[str], tags: frozenset[str], metadata: Mapping[str, Any] | None = None
) -> list[Commit]:
    """The commits of ``kinds`` (none: of any) that have all ``tags`` and all members of ``metadata``."""
    found = [commit for commit in commits if not kinds or commit.kind in kinds]
    if not tags and not metadata:
        return found
    curation, wanted = curate(commits), dict(metadata or {})
    marks = [(commit, curation.mark(commit.hash)) for commit in found]
    return [commit for commit, mark in marks if tags <= mark.tags and wanted == _part(read_metadata(mark), wanted)]


def read_metadata(mark: Mark) -> dict[str, Any]:
    """What programs said of a commit; empty where none did."""
    return canonical.decode(mark.metadata, dict[str, Any]) if mark.metadata else {}


def _part(metadata: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: metadata[name] for name in names if name in metadata}


def _marked(mark: Mark, said: Annotation, commit: Commit) -> Mark:
    """``mark`` with one more annotation."""
    names_priority = said.default or said.priority is not None
    return Mark(
        priority=said.priority if names_priority else mark.priority,
        reason=said.reason if names_priority else mark.reason,
        retain=said.retain if names_priority else mark.retain,
        tags=(mark.tags | set(said.tags)) - set(said.untag),
        message=said.message or mark.message,
        metadata=said.metadata or mark.metadata,
        history=(*mark.history, commit),
    )
