"""What a broken-off turn left behind: calls without results, a turn without an end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Message, Response, TurnEnded

INTERRUPTED = "This call was interrupted; it has no result."


def interrupted(call: ToolCall) -> ToolResult:
    """The recorded result of a call that never finished."""
    return ToolResult(call.id, INTERRUPTED, call.name, status="interrupted")


def closing_drafts(commits: Sequence[Commit], *, new_turn: bool) -> list[Draft]:
    """Results for calls that have none, and the end of a turn that never got one (DESIGN 3.7).

    Without ``new_turn`` the turn goes on: only calls that something else already follows are closed.
    """
    if not new_turn:
        return []
    start, has_response = _turn_start(commits)
    calls: dict[str, tuple[ToolCall, str]] = {}
    complete: set[str] = set()
    for commit in islice(commits, start, None):
        value = commit.value
        if isinstance(value, Response) and value.complete:
            complete.add(commit.response)
        elif isinstance(value, ToolCall) and commit.response in complete:
            calls[value.id] = (value, commit.response)
        elif isinstance(value, ToolResult):
            calls.pop(value.id, None)
    drafts = [
        Draft("tool_result", interrupted(call), response)
        for call, response in calls.values()
    ]
    if has_response and not isinstance(commits[-1].value, TurnEnded):
        drafts.append(Draft("turn_ended", TurnEnded("interrupted", "the turn was never finished")))
    return drafts


def _turn_start(commits: Sequence[Commit]) -> tuple[int, bool]:
    """(position of the first commit of the last turn that has no end, whether it has a response)."""
    has_response = False
    for at in range(len(commits) - 1, -1, -1):
        value = commits[at].value
        if isinstance(value, TurnEnded):
            return at + 1, has_response
        has_response = has_response or isinstance(value, Response)
        if commits[at].kind == "user" and has_response:
            return at, has_response
    return 0, has_response


def last_system(commits: Sequence[Commit]) -> str | None:
    """The system prompt in force."""
    for commit in reversed(commits):
        if commit.kind == "system" and isinstance(commit.value, Message):
            return commit.value.text
    return None
