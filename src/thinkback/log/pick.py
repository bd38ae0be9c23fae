"""Copying parts of a history: single messages and responses (``cherry_pick``), or all that a line added (``rebase``).

Promises: a response is copied whole, with the results of its calls and what was said about them, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from thinkback.errors import BranchError, MergeConflictError
from thinkback.log.copies import UNSAID, Copies
from thinkback.log.lines import end_of, subjects
from thinkback.log.meet import meet
from thinkback.log.merge import contradictions, copy_fresh, refuse_open
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Annotation, Commit, Response
from thinkback.model.curation import curate

History = Sequence[Commit]


def cherry_pick(ours: History, picks: Iterable[tuple[History, str]], time: int, ids: Callable[[], str]) -> list[Commit]:
    """The commits that copy each pick (a history and a hash in it) onto ``ours``, in the order given.

    Raises ``BranchError`` for what cannot be picked, ``OpenTurnError`` where ours has a turn under way.
    """
    refuse_open(ours)
    added: list[Commit] = []
    taken: set[str] = set()
    for history, hash in picks:
        about = subjects(curate(history))
        chosen = [commit for commit in unit(history, hash, about) if commit.hash not in taken]
        taken |= {commit.hash for commit in chosen}
        copies = Copies([*ours, *added], history, {}, time, ids)
        for commit in chosen:
            if not copies.copy(commit, about.get(commit.hash, "")):
                raise _refused(commit, "what it speaks about is not on this branch", "pick that commit with it")
        added += copies.added
    return added


def unit(history: History, hash: str, about: dict[str, str]) -> list[Commit]:
    """What goes along with the commit ``hash``: its response with the results and the end of its turn, and all that
    was said ``about`` it (edit or annotation to commit, by hash). Raises ``BranchError``."""
    at = next(commit.seq for commit in history if commit.hash == hash)
    commit = history[at]
    if commit.edit or isinstance(commit.value, Annotation):
        return [commit]
    if commit.response and commit.kind != "request":
        members = _response(history, commit)
    elif commit.kind in UNSAID:
        raise _refused(commit, "it speaks of the line it was made on", "pick a message or a response")
    else:
        members = {hash}
    return [found for found in history if found.hash in members or about.get(found.hash, "") in members]


def _response(history: History, commit: Commit) -> set[str]:
    """The hashes of a whole response."""
    parts = [found for found in history if found.response == commit.response and found.kind != "request"]
    header = next((part for part in parts if isinstance(part.value, Response)), None)
    if header is None or not isinstance(header.value, Response) or not header.value.complete:
        raise _refused(commit, "its response did not complete", "pick one that did")
    blocks = sum(part.index >= 0 for part in parts)
    if blocks < header.value.blocks:
        raise _refused(commit, "this history ends inside its response", "pick it from a branch that has it whole")
    calls = {part.value.id for part in parts if isinstance(part.value, ToolCall)}
    results = {
        found.hash: found.value.id
        for found in history[header.seq :]
        if isinstance(found.value, ToolResult) and not found.edit
        if found.response == commit.response or (not found.response and found.value.id in calls)
    }
    waiting = calls - set(results.values())
    if waiting:
        raise _refused(commit, f"its call {min(waiting)!r} has no result", "pick it once the turn has gone on")
    end = history[end_of(history, header.seq)]
    return {end.hash, *results, *(part.hash for part in parts)}


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
            next_actions=("merge instead, and say who wins",),
        )
    return copy_fresh(met, spoken, time, ids, {}).added
