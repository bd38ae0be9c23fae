"""Which reasoning led to a call, an answer or a result. Must not: judge it; what stood before it is what is known."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkback.errors import NotFoundError
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Commit


class Blame(msgspec.Struct, frozen=True):
    """What led to ``commit``: ``reasoning`` of its own response before it, ``earlier`` reasoning of the same turn, and
    the ``question`` (user messages) that the turn began with. For a result, ``call`` is what it answers.
    """

    commit: Commit
    call: Commit | None
    reasoning: tuple[Commit, ...]
    earlier: tuple[Commit, ...]
    question: tuple[Commit, ...]


def why(history: Sequence[Commit], hash: str) -> Blame:
    """What led to the commit ``hash`` of ``history``. Raises ``NotFoundError`` for what no reasoning leads to."""
    commit = next((commit for commit in history if commit.hash == hash), None)
    if commit is None:
        raise NotFoundError(
            f"commit {hash[:12]} is not in this history", next_actions=("`thinkback log` lists the commits",)
        )
    call = _call(history, commit, commit.value) if isinstance(commit.value, ToolResult) else None
    acted = call or commit
    if not acted.response or acted.index < 0:
        raise NotFoundError(
            f"commit {hash[:12]} ({commit.kind}) is not part of a response",
            details={"commit": hash, "kind": commit.kind},
            next_actions=("ask for a call, an answer or a result",),
        )
    start = _turn(history, acted.seq)
    thoughts = [found for found in history[start : acted.seq] if found.kind == "reasoning" and not found.edit]
    return Blame(
        commit,
        call,
        tuple(found for found in thoughts if found.response == acted.response),
        tuple(found for found in thoughts if found.response != acted.response),
        tuple(found for found in history[start : acted.seq] if found.kind == "user" and not found.edit),
    )


def _call(history: Sequence[Commit], place: Commit, result: ToolResult) -> Commit | None:
    """The last call of that id before the result, of its response where it names one."""
    for commit in reversed(history[: place.seq]):
        same = isinstance(commit.value, ToolCall) and commit.value.id == result.id
        if same and place.response in ("", commit.response):
            return commit
    return None


def _turn(history: Sequence[Commit], at: int) -> int:
    """Where the turn of the commit at ``at`` begins: at the first of the user messages before its first response."""
    asked = False
    for place in range(at, -1, -1):
        commit = history[place]
        if commit.edit:
            continue
        if commit.kind == "user":
            asked = True
        elif commit.kind == "turn_ended" or (asked and commit.response and commit.kind != "request"):
            return place + 1
    return 0
