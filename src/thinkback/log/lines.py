"""Histories as lines: where two of them part, where one may be cut, which calls are open at its end.

A history is the commits of a line from its first one on, so a commit's position is its ``seq``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Commit, Head, Response, TurnEnded
from thinkback.model.curation import Curation
from thinkback.model.waiting import Waiting


class OpenCall(NamedTuple):
    """A call without a result, and the id of the response that made it."""

    call: ToolCall
    response: str


def common(ours: Sequence[Commit], theirs: Sequence[Commit]) -> int:
    """How many commits two histories have in common at their beginning.

    A hash stands for everything before it, so two look-ups halve what is left to look at.
    """
    low, high = 0, min(len(ours), len(theirs))
    while low < high:
        middle = (low + high + 1) // 2
        if ours[middle - 1].hash == theirs[middle - 1].hash:
            low = middle
        else:
            high = middle - 1
    return low


def holds(history: Sequence[Commit], head: Head) -> bool:
    """Whether ``head`` is a commit of ``history``; the empty head is one of every history."""
    return head.seq < len(history) and (head.seq < 0 or history[head.seq].hash == head.hash)


def end_of(history: Sequence[Commit], at: int) -> int:
    """The position where a line may end that is to hold the commit at ``at``.

    A response is whole or not there: inside one it is its last commit, with its usage and the end of the turn that
    came in the same step. Anywhere else it is ``at``.
    """
    response = history[at].response
    if not response or history[at].kind in ("request", "tool_result"):
        return at
    end = at
    while end + 1 < len(history) and history[end + 1].response == response and history[end + 1].kind != "tool_result":
        end += 1
    return end + 1 if end + 1 < len(history) and history[end + 1].kind == "turn_ended" else end


def is_torn(history: Sequence[Commit]) -> bool:
    """Whether the history ends inside a response."""
    last = next((commit for commit in reversed(history) if isinstance(commit.value, Response)), None)
    if last is None or not isinstance(last.value, Response):
        return False
    blocks = sum(1 for commit in history[last.seq :] if commit.response == last.response and commit.index >= 0)
    return blocks < last.value.blocks


def open_calls(commits: Sequence[Commit]) -> list[OpenCall]:
    """Calls of the turn under way that have no result, in the order they were made; those of a response that did
    not complete are never run, so they do not count."""
    under_way = UnderWay()
    under_way.take(commits[turn_start(commits) :])
    return under_way.calls()


class UnderWay:
    """The calls of the turn under way, followed commit by commit; ``count`` is how many commits were taken."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting = Waiting[OpenCall]()
        self._complete: set[str] = set()
        self._is_asked = False

    def take(self, commits: Sequence[Commit]) -> None:
        """More commits of the history, in order."""
        for commit in commits:
            self._take(commit)
        self.count += len(commits)

    def calls(self) -> list[OpenCall]:
        """Those without a result, as ``open_calls``."""
        return self._waiting.all()

    def _take(self, commit: Commit) -> None:
        value = commit.value
        # A question begins a turn once it is answered: until then the calls before it are open.
        if isinstance(value, TurnEnded) or (commit.kind == "response" and self._is_asked):
            self._waiting, self._complete, self._is_asked = Waiting[OpenCall](), set(), False
        if commit.edit:
            return
        if commit.kind == "user":
            self._is_asked = True
        elif isinstance(value, Response) and value.complete:
            self._complete.add(commit.response)
        elif isinstance(value, ToolCall) and commit.response in self._complete:
            self._waiting.add(OpenCall(value, commit.response), value.id)
        elif isinstance(value, ToolResult):
            self._waiting.take(value.id)


def turn_start(commits: Sequence[Commit]) -> int:
    """The position of the first commit of the last turn that has no end; the length where every turn has one."""
    has_response = False
    for at in range(len(commits) - 1, -1, -1):
        if isinstance(commits[at].value, TurnEnded):
            return at + 1
        has_response = has_response or commits[at].kind == "response"
        if commits[at].kind == "user" and has_response and not commits[at].edit:
            return at
    return 0


def subjects(curation: Curation) -> dict[str, str]:
    """The commit that each edit and annotation is about, both by hash; of an edit of an edit, what was first edited."""
    about = {said.hash: target for target, mark in curation.marks.items() for said in mark.history}
    return about | {edit.hash: root for root, edits in curation.edits.items() for edit in edits}
