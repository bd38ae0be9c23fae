"""What a broken-off turn left behind: calls without results, a turn without an end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thinkback.compile.translate import INTERRUPTED
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Message, Response, TurnEnded


class OpenCall(NamedTuple):
    """A call without a result, and the id of the response that made it."""

    call: ToolCall
    response: str


def interrupted(open_call: OpenCall) -> Draft:
    """The recorded result of a call that never finished."""
    call, response = open_call
    return Draft("tool_result", ToolResult(call.id, INTERRUPTED, call.name, status="interrupted"), response)


def open_calls(commits: Sequence[Commit]) -> list[OpenCall]:
    """Calls of the turn under way that have no result, in the order they were made; those of a response that did
    not complete are never run, so they do not count."""
    waiting: list[OpenCall] = []
    complete: set[str] = set()
    for commit in commits[_turn_start(commits) :]:
        value = commit.value
        if isinstance(value, Response) and value.complete:
            complete.add(commit.response)
        elif isinstance(value, ToolCall) and commit.response in complete:
            waiting.append(OpenCall(value, commit.response))
        elif isinstance(value, ToolResult):
            answered = next((call for call in waiting if call.call.id == value.id), None)
            if answered is not None:
                waiting.remove(answered)
    return waiting


def closing_drafts(commits: Sequence[Commit]) -> list[Draft]:
    """Results for calls that have none, and the end of a turn that never got one (DESIGN 3.7)."""
    drafts = [interrupted(call) for call in open_calls(commits)]
    if any(commit.kind in ("user", "response") for commit in commits[_turn_start(commits) :]):
        drafts.append(Draft("turn_ended", TurnEnded("interrupted", "the turn was never finished")))
    return drafts


def last_system(commits: Sequence[Commit]) -> str | None:
    """The system prompt in force."""
    for commit in reversed(commits):
        if commit.kind == "system" and isinstance(commit.value, Message):
            return commit.value.text
    return None


def _turn_start(commits: Sequence[Commit]) -> int:
    """The position of the first commit of the last turn that has no end; the length where every turn has one."""
    has_response = False
    for at in range(len(commits) - 1, -1, -1):
        if isinstance(commits[at].value, TurnEnded):
            return at + 1
        has_response = has_response or commits[at].kind == "response"
        if commits[at].kind == "user" and has_response:
            return at
    return 0
