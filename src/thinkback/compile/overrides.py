"""What people override about commits, by the hash of the commit: contents, priorities, checkpoints, tombstones.

Promises: pure; ``at`` is always since when it is so, so that what was made before and after can be told apart.

A checkpoint replaces a run of commits by one message at the place of its first; what it keeps goes word for word behind
it. The unit is the response: its blocks and the results of its calls go with it, wherever they stand. System messages,
tools and repairs are no conversation and stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from thinkback.compile.units import NOBODY
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

_BLOCK_KINDS = frozenset({"assistant", "reasoning", "tool_call", "other", "media", "tool_result"})
_TALK = _BLOCK_KINDS | {"user", "content", "branch_summary", "response"}
_ALONG = frozenset({"request", "provider_usage"})


class Now(NamedTuple):
    """What a commit says now (``None``: nothing), why, and the ``seq`` of the commit that said so.

    ``erased``: what it said before is gone for good.
    """

    value: Payload | None
    why: str
    at: int
    erased: bool = False


class Marked(NamedTuple):
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
                found[commit.hash] = Now(last.value, curation.why_edited(commit), last.seq)
        elif isinstance(commit.value, Erased):
            found[commit.hash] = _erased(commit.value, commit, commits)
    return found


def _erased(tomb: Erased, erased: Commit, commits: Sequence[Commit]) -> Now:
    # A tombstone has no place in the history; what was made before its time was made with what it covers.
    at = next((commit.seq for commit in commits if commit.time > tomb.time), commits[-1].seq + 1)
    return Now(_remainder(tomb, erased), tomb.notice, at, erased=True)


def _remainder(tomb: Erased, erased: Commit) -> Payload | None:
    """What a tombstone left of a commit, if it is of the commit's kind."""
    left = surviving(tomb)
    return left if left is not tomb and fits(erased.kind, left) else None


def priorities(commits: Sequence[Commit], curation: Curation) -> dict[str, Marked]:
    """What annotations say, and content types where no annotation does."""
    found: dict[str, Marked] = {}
    for hash, mark in curation.marks.items():
        if mark.priority is not None:
            reason = f": {mark.reason}" if mark.reason else ""
            found[hash] = Marked(mark.priority, f"annotated as {mark.priority.value}{reason}", _since(mark))
    for commit in commits:
        value = surviving(commit.value)
        if isinstance(value, Content) and not commit.edit and commit.hash not in found:
            why = f"{value.content_type} is {value.priority.value} by its type"
            found[commit.hash] = Marked(value.priority, why, -1)
    return found


def _since(mark: Mark) -> int:
    """The ``seq`` of the annotation since which the priority is what it is."""
    at, priority = -1, None
    for commit in mark.history:
        said = surviving(commit.value)
        if isinstance(said, Annotation) and (said.default or said.priority is not None) and said.priority != priority:
            at, priority = commit.seq, said.priority
    return at


def checkpoints(curation: Curation, said: Mapping[str, Marked]) -> Iterator[tuple[Commit, Compaction]]:
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


def placed(commits: Sequence[Commit], curation: Curation) -> Sequence[Commit]:
    """``commits`` with system messages in the places that a program gave them."""
    moved: dict[str, list[Commit]] = {}
    known = {commit.hash for commit in commits}
    for commit in commits:
        value = curation.value(commit) if commit.kind == "system" and not commit.edit else None
        if isinstance(value, Message) and value.before in known and value.before != commit.hash:
            moved.setdefault(value.before, []).append(commit)
    if not moved:
        return commits
    away = {commit.hash for those in moved.values() for commit in those}
    order: list[Commit] = []
    waiting = [commit for commit in reversed(commits) if commit.hash not in away]
    while waiting:
        commit = waiting.pop()
        those = moved.pop(commit.hash, None)
        if those is None:
            order.append(commit)
        else:
            waiting += [commit, *reversed(those)]
    # Those that stand before each other, which nobody makes, stand where they came.
    return order if not moved else commits


class Run(NamedTuple):
    """What a checkpoint stands for: the positions of its first and last commit."""

    start: int
    end: int
    checkpoint: Commit
    value: Compaction


class Arranged(NamedTuple):
    """Commits in the order they are grouped in, and the checkpoint that covers each message or response header."""

    commits: list[Commit]
    covered: dict[str, Commit]


def arrange(commits: Sequence[Commit], checkpoints: Sequence[tuple[Commit, Compaction]]) -> Arranged:
    """``commits`` with each summary in the place of what it stands for; what is covered stands before it."""
    places = _Places(commits)
    runs = sorted(_uncovered(list(_runs(places, checkpoints))), key=lambda run: run.start)
    arranged: list[Commit] = []
    covered: dict[str, Commit] = {}
    done = 0
    while runs:
        zone = [runs.pop(0)]
        end = zone[0].end
        while runs and runs[0].start <= end:
            zone.append(runs.pop(0))
            end = max(end, zone[-1].end)
        arranged += _unmarked(commits[done : zone[0].start])
        arranged += _replaced(places, zone, end, covered)
        done = end + 1
    arranged += _unmarked(commits[done:])
    return Arranged(arranged, covered)


def _unmarked(commits: Sequence[Commit]) -> Iterator[Commit]:
    """Checkpoints stand at the place of what they replace, and nowhere else."""
    return (commit for commit in commits if commit.kind != "compaction")


class _Places:
    """Where commits stand: the position ``of`` each hash, and in ``homes`` for each commit the position of the header
    of the response that it belongs to; its own where it belongs to none.
    """

    def __init__(self, commits: Sequence[Commit]) -> None:
        self.commits = commits
        self.of = {commit.hash: at for at, commit in enumerate(commits)}
        self.homes: list[int] = []
        headers: dict[str, int] = {}
        callers: dict[str, int] = {}
        records: dict[str, int] = {}
        for at, commit in enumerate(commits):
            home = headers.get(commit.response, at)
            if commit.kind == "request":
                records[commit.response] = home = at
            elif commit.kind == "response":
                headers[commit.response] = home = at
                if commit.response in records:  # the record of a request comes before what it brought
                    self.homes[records.pop(commit.response)] = at
            elif isinstance(commit.value, ToolCall):
                callers[commit.value.id] = home
            elif isinstance(commit.value, ToolResult) and not commit.response:
                home = callers.get(commit.value.id, at)
            self.homes.append(home)


def _runs(places: _Places, checkpoints: Sequence[tuple[Commit, Compaction]]) -> Iterator[Run]:
    """The runs that are in this history. One that begins with a checkpoint begins where that one does."""
    firsts = {commit.hash: value.first for commit, value in checkpoints}
    for commit, value in checkpoints:
        first = value.first
        while firsts.get(first):
            first = firsts[first]
        start, end = places.of.get(first, -1), places.of.get(value.last, -1)
        if 0 <= start <= end:
            yield Run(start, end, commit, value)


def _uncovered(runs: Sequence[Run]) -> Iterator[Run]:
    """The runs that no later one takes in."""
    for at, run in enumerate(runs):
        if not any(later.start <= run.start and run.end <= later.end for later in runs[at + 1 :]):
            yield run


def _replaced(places: _Places, zone: Sequence[Run], end: int, covered: dict[str, Commit]) -> Iterator[Commit]:
    """What stands in place of runs that overlap: what they cover, then their summaries, then what they keep."""
    inside = range(zone[0].start, end + 1)
    keeping = {run: {places.homes[places.of[hash]] for hash in run.value.kept if hash in places.of} for run in zone}
    kept: list[Commit] = []
    for at in inside:
        commit, home = places.commits[at], places.homes[at]
        if commit.kind == "compaction":
            continue
        over = [run for run in zone if run.start <= home <= run.end]
        run = max(over, key=lambda run: run.checkpoint.seq, default=None)
        if run is None or not (_is_talk(commit) or commit.kind in _ALONG):
            yield commit
        elif home in keeping[run]:
            kept.append(commit)
        else:
            covered[commit.hash] = run.checkpoint
            yield commit
    for run in zone:
        yield msgspec.structs.replace(run.checkpoint, value=run.value)
    yield from kept
    # What is kept of finished turns is no turn under way.
    ends = (commit for commit in (places.commits[at] for at in reversed(inside)) if _is_end(commit) or _is_talk(commit))
    closing = next(ends, None)
    if closing is not None and _is_end(closing):
        yield closing


def _is_end(commit: Commit) -> bool:
    return commit.kind == "turn_ended"


def _is_talk(commit: Commit) -> bool:
    """Whether it is a part of the conversation; what a program says as a system message is none."""
    return commit.kind in _TALK and not (isinstance(commit.value, Content) and commit.value.role == "system")
