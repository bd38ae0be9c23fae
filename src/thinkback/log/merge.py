"""Taking one line into another: where the two contradict each other, and the commits that result.

A branch is a line, so a merge copies (ADR 0005). Promises: lines that only append never conflict, unless both answered
the same call; nothing that both have changed is decided silently; nothing comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.errors import OpenTurnError
from thinkback.log import drafting
from thinkback.log.copy_commits import Copies, is_said
from thinkback.log.lines import open_calls, subjects
from thinkback.log.merge_base import Meeting, meet
from thinkback.log.seal import head_of
from thinkback.model.blocks import ToolResult
from thinkback.model.commits import Annotation, Commit, Draft, Head, Merge, Payload, Priority, surviving
from thinkback.model.curation import Curation, curate
from thinkback.model.texts import text_of

Strategy: TypeAlias = Literal["auto", "ours", "theirs"]
ConflictKind: TypeAlias = Literal["both_edit", "skip_vs_edit", "edit_plus_append"]


class Side(msgspec.Struct, frozen=True):
    """What one line says of a commit now; ``edited`` and ``skipped`` are since the two lines last met."""

    value: Payload
    text: str
    priority: Priority | None
    edited: bool
    skipped: bool


class Conflict(msgspec.Struct, frozen=True):
    """A commit that two lines contradict each other about. ``target`` is its hash in ours, ``there`` in theirs;
    ``before`` is its text when they last met.

    ``both_edit``: both gave it a text of their own, also as the result of a call, of which there was nothing before
    (``there`` is then another commit with another text). ``skip_vs_edit``: one wants it away, the other changed it.
    ``edit_plus_append``: one changed it, the other went on from what it said before.
    """

    kind: ConflictKind
    target: str
    there: str
    before: str
    ours: Side
    theirs: Side


class MergeResult(msgspec.Struct):
    """What a merge of ``branch`` is, or will be. ``commits`` are to be appended to ``ours``, in one step.

    ``resolutions``, to be filled in for ``conflicts``: target hash to ``"ours"``, ``"theirs"``, or a text that the
    commit is to have. ``left_out`` are hashes in theirs that say nothing here. ``stored``: it was done.
    """

    kind: Literal["up_to_date", "fast_forward", "clean", "conflicts"]
    branch: str
    ours: Head
    theirs: Head
    base: Head
    conflicts: tuple[Conflict, ...] = ()
    resolutions: dict[str, str] = {}
    commits: tuple[Commit, ...] = ()
    left_out: tuple[str, ...] = ()
    stored: bool = False

    @property
    def unresolved(self) -> tuple[Conflict, ...]:
        """The conflicts without a resolution."""
        return tuple(conflict for conflict in self.conflicts if conflict.target not in self.resolutions)


class _CommitState(NamedTuple):
    value: Payload
    digest: str
    priority: Priority | None


class _Point(NamedTuple):
    """A commit that both lines have and one of them spoke about, or a call's result that each has for itself.

    ``recent``: ours edited it since they last met.
    """

    commit: Commit
    there: str
    base: _CommitState
    ours: _CommitState
    theirs: _CommitState
    recent: bool

    def side(self, said: _CommitState) -> Side:
        skipped = said.priority is Priority.SKIP and self.base.priority is not Priority.SKIP
        return Side(said.value, text_of(said.value), said.priority, said.digest != self.base.digest, skipped)


class Spoken(NamedTuple):
    """What theirs is ``about`` (edit or annotation to its commit, by hash), the points, and the conflicts."""

    about: dict[str, str]
    points: dict[str, _Point]
    conflicts: tuple[Conflict, ...]


def merge(
    ours: Sequence[Commit],
    theirs: Sequence[Commit],
    branch: str,
    time: int,
    ids: Callable[[], str],
    *,
    resolutions: Mapping[str, str] | None = None,
    strategy: Strategy = "auto",
    no_ff: bool = False,
) -> MergeResult:
    """Take ``theirs``, known as ``branch``, into ``ours``. ``strategy`` resolves what ``resolutions`` does not.

    ``time`` and ``ids`` are for the copies. Raises ``OpenTurnError`` where calls have no results yet, and
    ``UnsupportedContent`` for a text in place of what has none.
    """
    met = meet(ours, theirs)
    result = MergeResult("clean", branch, head_of(ours), head_of(theirs), head_of(met.base))
    forward = met.shared == len(ours) and not no_ff
    if met.shared == len(theirs) or not (met.fresh or forward):
        result.kind = "up_to_date"
        return result
    refuse_open(ours, theirs)
    if forward:
        result.kind = "fast_forward"
        return result
    spoken = contradictions(met)
    result.conflicts = spoken.conflicts
    given = resolutions or {}
    result.resolutions = {
        conflict.target: choice
        for conflict in spoken.conflicts
        if (choice := _choice(conflict, given) or ("" if strategy == "auto" else strategy))
    }
    if result.unresolved:
        result.kind = "conflicts"
        return result
    copies = copy_fresh(met, spoken, time, ids, result.resolutions)
    result.left_out = tuple(commit.hash for commit in met.fresh if commit.hash not in copies.at)
    copies.add(Draft("merge", _record(met, result, copies), parents=(result.theirs.hash,)))
    result.commits = tuple(copies.added)
    return result


def refuse_open(*histories: Sequence[Commit]) -> None:
    """Raise ``OpenTurnError`` where one of them ends with calls that have no results."""
    for history in histories:
        waiting = open_calls(history)
        if waiting:
            raise OpenTurnError(
                f"a turn is under way: the call {waiting[0].call.id!r} of {waiting[0].call.name} has no result yet",
                details={"head": history[-1].hash, "calls": [call.call.id for call in waiting]},
                next_actions=("answer it with generate(tool_results=...)", "or reset that branch to before the turn"),
            )


def _choice(conflict: Conflict, given: Mapping[str, str]) -> str:
    """The resolution given under its hash, or the beginning of it."""
    return next((choice for hash, choice in given.items() if hash and conflict.target.startswith(hash)), "")


def _record(met: Meeting, result: MergeResult, copies: Copies) -> Merge:
    new = met.found | copies.at
    pairs = tuple((commit.hash, new[commit.hash]) for commit in met.theirs[met.start :] if commit.hash in new)
    won = {"ours": "ours", "theirs": "theirs"}
    resolved = tuple((target, won.get(choice, "edited")) for target, choice in result.resolutions.items())
    return Merge(result.branch, result.theirs.hash, result.base.hash, pairs, resolved)


def contradictions(met: Meeting) -> Spoken:
    """What both lines have and speak about, and where they contradict each other."""
    ours, theirs = curate(met.ours), curate(met.theirs)
    mine, about = subjects(ours), subjects(theirs)
    there = {here: hash for hash, here in met.known.items()}
    spoken = {here: about[commit.hash] for commit in met.fresh if (here := met.here(about.get(commit.hash, "")))}
    edited: set[str] = set()
    for commit in met.ours[met.ours_since :]:
        target = mine.get(commit.hash, "")
        if target in there or met.places.get(target, met.shared) < met.shared:
            spoken[target] = there.get(target, target)
            if commit.edit:
                edited.add(target)
    results = _results(met)
    spoken |= {here: commit.hash for here, commit in results.items()}
    base = curate(met.base) if spoken else Curation()
    points = {
        here: _point(met.ours[met.places[here]], hash, results.get(here), base, ours, theirs, here in edited)
        for here, hash in sorted(spoken.items(), key=lambda pair: met.places[pair[0]])
    }
    fresh = {commit.hash for commit in met.fresh}
    went_on = any(is_said(commit) and commit.hash not in there for commit in met.ours[met.ours_since :])
    they_went_on = any(is_said(commit) and commit.hash in fresh for commit in met.theirs[met.theirs_since :])
    found = (_conflict(point, went_on, they_went_on) for point in points.values())
    return Spoken(about, points, tuple(conflict for conflict in found if conflict is not None))


def _results(met: Meeting) -> dict[str, Commit]:
    """The results that theirs has of calls that ours answered in other words, by the hash of ours; what a merge has
    settled before is in none."""
    results = (c for c in met.theirs[met.shared :] if c.kind == "tool_result" and c.hash in met.found)
    pairs = ((met.found[commit.hash], commit) for commit in results)
    return {here: commit for here, commit in pairs if met.ours[met.places[here]].digest != commit.digest}


def _point(
    commit: Commit, there: str, result: Commit | None, base: Curation, ours: Curation, theirs: Curation, recent: bool
) -> _Point:
    names = (commit.hash, there)
    mine, yours = _commit_state(ours, commit, names), _commit_state(theirs, result or commit, names)
    before = _commit_state(base, commit, names)
    if result is not None and mine.digest != yours.digest:
        before = _CommitState(ToolResult("", ""), "", None)
    return _Point(commit, there, before, mine, yours, recent)


def _commit_state(curation: Curation, commit: Commit, names: tuple[str, str]) -> _CommitState:
    """What a line says of ``commit``, under whichever of its ``names`` it has there."""
    edits = curation.edits.get(names[0]) or curation.edits.get(names[1])
    mark = curation.marks.get(names[0]) or curation.mark(names[1])
    last = edits[-1] if edits else commit
    return _CommitState(last.value, last.digest, mark.priority)


def _conflict(point: _Point, went_on: bool, they_went_on: bool) -> Conflict | None:
    ours, theirs = point.side(point.ours), point.side(point.theirs)
    kind: ConflictKind
    if ours.edited and theirs.edited and point.ours.digest != point.theirs.digest:
        kind = "both_edit"
    elif (ours.skipped and theirs.edited) or (theirs.skipped and ours.edited):
        kind = "skip_vs_edit"
    elif (ours.edited and point.recent and not theirs.edited and they_went_on) or (
        theirs.edited and not ours.edited and went_on
    ):
        kind = "edit_plus_append"
    else:
        return None
    return Conflict(kind, point.commit.hash, point.there, text_of(point.base.value), ours, theirs)


def copy_fresh(met: Meeting, spoken: Spoken, time: int, ids: Callable[[], str], choices: Mapping[str, str]) -> Copies:
    """What ours lacks of theirs, copied onto it, with the conflicts settled as ``choices`` say."""
    copies = Copies(met.ours, met.theirs, met.known, time, ids)
    kinds = {conflict.target: conflict.kind for conflict in spoken.conflicts}
    for commit in met.fresh:
        about = spoken.about.get(commit.hash, "")
        point = spoken.points.get(met.here(about))
        if point is not None:
            target = point.commit.hash
            kept = _copied_change(commit, point, kinds.get(target), choices.get(target, "theirs"))
            if kept is None:
                continue
            commit = kept
        copies.copy(commit, about)
    for conflict in spoken.conflicts:
        if conflict.target in choices:
            _settle(copies, conflict, spoken.points[conflict.target], choices[conflict.target])
    return copies


def _copied_change(commit: Commit, point: _Point, kind: ConflictKind | None, choice: str) -> Commit | None:
    """What is copied of an edit or annotation of theirs; what changes nothing, or lost, stays there."""
    value = surviving(commit.value)
    if commit.edit:
        changed = point.theirs.digest not in (point.base.digest, point.ours.digest)
        return commit if changed and choice == "theirs" else None
    assert isinstance(value, Annotation)
    lost = kind == "skip_vs_edit" and choice != "theirs"
    if not lost and point.theirs.priority != point.base.priority:
        return commit
    rest = msgspec.structs.replace(value, priority=None, default=False, reason="", retain=())
    if rest == Annotation(value.target):
        return None
    return msgspec.structs.replace(commit, value=rest)


def _settle(copies: Copies, conflict: Conflict, point: _Point, choice: str) -> None:
    """Say last what was chosen, where the copies do not say it."""
    if choice == "ours":
        return
    target, priority = conflict.target, None
    if choice != "theirs":
        copies.add(drafting.edit(point.commit, choice))
    else:
        priority = point.theirs.priority
        digest = next((c.digest for c in reversed(copies.added) if c.edit == target), point.ours.digest)
        if conflict.kind != "skip_vs_edit" and digest != point.theirs.digest:
            copies.add(drafting.restored(point.commit, point.theirs.value))
    if conflict.kind == "skip_vs_edit" and conflict.ours.skipped:
        copies.add(Draft("annotation", Annotation(target, priority, default=priority is None)))
