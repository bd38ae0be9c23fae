"""What people said about commits, by the hash of the commit: contents, priorities, checkpoints, tombstones.

Promises: pure; ``at`` is always since when it is so, so that what was made before and after can be told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from thinkback.compile.grouping import NOBODY
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import (
    Annotation,
    Commit,
    Compaction,
    Content,
    Erased,
    Message,
    Payload,
    Priority,
    Response,
    TurnEnded,
    fits,
    surviving,
)
from thinkback.model.curation import Curation, Mark

_STAND_INS: Mapping[str, Payload] = {
    "system": Message(""),
    "user": Message(""),
    "assistant": Text(""),
    "reasoning": ThinkingBlock("", kind="none"),
    "tool_call": ToolCall("", "", "{}"),
    "tool_result": ToolResult("", ""),
    "media": Media(""),
    "other": Unknown(""),
    "response": Response(NOBODY, content="text"),
    "turn_ended": TurnEnded("completed"),
}


class Now(NamedTuple):
    """What a commit says now (``None``: nothing), why, and the ``seq`` of the commit that said so.

    ``erased``: what it said before is gone for good.
    """

    value: Payload | None
    why: str
    at: int
    erased: bool = False


class Said(NamedTuple):
    """The priority of a commit, why, and the ``seq`` of the commit that said so; -1: its content type does."""

    priority: Priority
    why: str
    at: int


def contents(commits: Sequence[Commit], curation: Curation) -> dict[str, Now]:
    """What edits and tombstones made of commits."""
    found: dict[str, Now] = {}
    for commit in commits:
        if commit.edit:
            continue
        edits = curation.edits.get(commit.hash)
        if edits is not None and curation.is_changed(commit):
            last = edits[-1]
            if isinstance(last.value, Erased):
                found[commit.hash] = _erased(last.value, commit, commits)
            else:
                found[commit.hash] = Now(last.value, f"edited by commit {last.hash[:12]}", last.seq)
        elif isinstance(commit.value, Erased):
            found[commit.hash] = _erased(commit.value, commit, commits)
    return found


def _erased(tomb: Erased, erased: Commit, commits: Sequence[Commit]) -> Now:
    # A tombstone has no place in the history; what was made before its time was made with what it covers.
    at = next((commit.seq for commit in commits if commit.time > tomb.time), commits[-1].seq + 1)
    why = f"erased: {tomb.reason}" if tomb.reason else "erased"
    return Now(_remainder(tomb, erased), why, at, erased=True)


def _remainder(tomb: Erased, erased: Commit) -> Payload | None:
    """What a tombstone left of a commit, if it is of the commit's kind."""
    left = surviving(tomb)
    return left if left is not tomb and fits(erased.kind, left) else None


def priorities(commits: Sequence[Commit], curation: Curation) -> dict[str, Said]:
    """What annotations say, and content types where no annotation does."""
    found: dict[str, Said] = {}
    for hash, mark in curation.marks.items():
        if mark.priority is not None:
            reason = f": {mark.reason}" if mark.reason else ""
            found[hash] = Said(mark.priority, f"annotated as {mark.priority.value}{reason}", _since(mark))
    for commit in commits:
        value = surviving(commit.value)
        if isinstance(value, Content) and not commit.edit and commit.hash not in found:
            why = f"{value.content_type} is {value.priority.value} by its type"
            found[commit.hash] = Said(value.priority, why, -1)
    return found


def _since(mark: Mark) -> int:
    """The ``seq`` of the annotation since which the priority is what it is."""
    at, priority = -1, None
    for commit in mark.history:
        said = surviving(commit.value)
        if isinstance(said, Annotation) and (said.default or said.priority is not None) and said.priority != priority:
            at, priority = commit.seq, said.priority
    return at


def checkpoints(curation: Curation, said: Mapping[str, Said]) -> Iterator[tuple[Commit, Compaction]]:
    """The checkpoints that hold, as last edited; one that was skipped does not."""
    for commit in curation.checkpoints:
        value, heard = curation.value(commit), said.get(commit.hash)
        if isinstance(value, Compaction) and not (heard is not None and heard.priority is Priority.SKIP):
            yield commit, _rooted(value, curation)


def _rooted(value: Compaction, curation: Curation) -> Compaction:
    """A checkpoint that names the commits themselves, where it names edits of them."""
    root = curation.root
    return msgspec.structs.replace(
        value, first=root(value.first), last=root(value.last), kept=tuple(map(root, value.kept))
    )


def stand_in(commit: Commit) -> Commit:
    """A commit that was erased, as what is left of it, or as something of its kind that says nothing."""
    if not isinstance(commit.value, Erased):
        return commit
    value = _remainder(commit.value, commit) or _STAND_INS.get(commit.kind, commit.value)
    return msgspec.structs.replace(commit, value=value)
