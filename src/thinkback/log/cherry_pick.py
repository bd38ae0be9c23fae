"""Copying parts of a history: single messages and responses (``cherry_pick``), or all that a line added (``rebase``).

Promises: a response is copied whole, with the results of its calls and what was said about them, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from thinkback.errors import BranchError, MergeConflictError
from thinkback.log.copy_commits import UNSAID, Copies
from thinkback.log.lines import subjects
from thinkback.log.merge import contradictions, copy_fresh, refuse_open
from thinkback.log.merge_base import meet
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Annotation, Commit, Response
from thinkback.model.curation import curate

History = Sequence[Commit]


class Unit(NamedTuple):
    """What is copied together: a message, or a response with results and the end of its turn; and all that was said
    about it. ``why`` it cannot be copied, and what to do ``instead``."""

    commits: list[Commit]
    why: str = ""
    instead: str = ""


def cherry_pick(ours: History, picks: Iterable[tuple[History, str]], time: int, ids: Callable[[], str]) -> list[Commit]:
    """The commits that copy each pick (a history and a hash in it) onto ``ours``, in the order given.

    Raises ``BranchError`` for what cannot be picked, ``OpenTurnError`` where ours has a turn under way.
    """
    refuse_open(ours)
    added: list[Commit] = []
    taken: set[str] = set()
    for history, hash in picks:
        chosen = [commit for commit in _unit(history, hash) if commit.hash not in taken]
        taken |= {commit.hash for commit in chosen}
        added += copied([*ours, *added], history, chosen, time, ids)
    return added


def copied(
    ours: History, history: History, chosen: Iterable[Commit], time: int, ids: Callable[[], str]
) -> list[Commit]:
    """The commits that copy those of ``history`` that were ``chosen`` onto ``ours``. Raises ``BranchError``."""
    about = subjects(curate(history))
    copies = Copies(ours, history, {}, time, ids)
    for commit in chosen:
        if not copies.copy(commit, about.get(commit.hash, "")):
            raise _refused(commit, "the commit it refers to is not on this branch", "pick that commit with it")
    return copies.added


def is_whole(history: History, hash: str) -> bool:
    """Whether the commit ``hash`` can be picked from ``history``."""
    try:
        return bool(_unit(history, hash))
    except BranchError:
        return False


def _unit(history: History, hash: str) -> list[Commit]:
    """What goes along with the commit ``hash``; an edit or annotation that was named goes alone."""
    commit = next(commit for commit in history if commit.hash == hash)
    if commit.edit or isinstance(commit.value, Annotation):
        return [commit]
    for unit in units(history):
        if commit in unit.commits:
            if unit.why:
                raise _refused(commit, unit.why, unit.instead)
            return unit.commits
    raise _refused(commit, "it refers to the branch it was made on", "pick a message or a response")


def units(history: History) -> list[Unit]:
    """Everything that can be copied by itself, in order; records of requests and the like are in none."""
    about = subjects(curate(history))
    groups: dict[str, list[Commit]] = {}
    owners: dict[str, str] = {}
    calls: dict[str, str] = {}
    for commit in history:
        owner = owners.get(about[commit.hash], "") if commit.hash in about else _owner(history, commit, calls)
        if owner:
            owners[commit.hash] = owner
            groups.setdefault(owner, []).append(commit)
        if isinstance(commit.value, ToolCall) and not commit.edit:
            calls[commit.value.id] = commit.response
    return [_checked(group) for group in groups.values()]


def _owner(history: History, commit: Commit, calls: Mapping[str, str]) -> str:
    """What keeps together the commits of a unit: the id of their response, or the hash of a message."""
    if commit.kind == "turn_ended" and commit.seq > 0:
        before = history[commit.seq - 1]
        return before.response if before.kind not in ("request", "tool_result") else ""
    if isinstance(commit.value, ToolResult):
        return commit.response or calls.get(commit.value.id, commit.hash)
    if commit.kind == "request":
        return ""
    return commit.response or ("" if commit.kind in UNSAID else commit.hash)


def _checked(group: list[Commit]) -> Unit:
    """``group``, with what keeps it from being whole."""
    header = next((commit.value for commit in group if isinstance(commit.value, Response)), None)
    if header is None and not (group[0].response or group[0].kind == "tool_result"):
        return Unit(group)
    if header is None or not header.complete:
        return Unit(group, "its response did not complete", "pick one that did")
    if sum(commit.index >= 0 for commit in group) < header.blocks:
        return Unit(group, "this history ends inside its response", "pick it from a branch that has it whole")
    own = [commit.value for commit in group if not commit.edit]
    waiting = {value.id for value in own if isinstance(value, ToolCall)}
    waiting -= {value.id for value in own if isinstance(value, ToolResult)}
    if waiting:
        return Unit(group, f"its call {min(waiting)!r} has no result", "pick it once the turn has gone on")
    return Unit(group)


def _refused(commit: Commit, why: str, instead: str) -> BranchError:
    return BranchError(
        f"commit {commit.hash[:12]} ({commit.kind}) cannot be picked: {why}",
        details={"commit": commit.hash, "kind": commit.kind},
        next_actions=(instead,),
    )


def rebase(ours: History, onto: History, time: int, ids: Callable[[], str]) -> list[Commit]:
    """The commits that say on top of ``onto`` what ``ours`` added since they parted.

    Raises ``MergeConflictError`` where both changed the same commit, ``OpenTurnError`` where a turn is under way.
    """
    refuse_open(ours, onto)
    met = meet(onto, ours)
    spoken = contradictions(met)
    both = [conflict for conflict in spoken.conflicts if conflict.kind != "edit_plus_append"]
    if both:
        raise MergeConflictError(
            f"{len(both)} commits were changed here and there: {', '.join(one.target[:12] for one in both[:5])}",
            details={"conflicts": [one.target for one in both]},
            next_actions=("merge instead, and choose which side wins",),
        )
    return copy_fresh(met, spoken, time, ids, {}).added
