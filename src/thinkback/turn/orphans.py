"""What a broken-off turn left behind: calls without results, a turn without an end."""

from __future__ import annotations

from collections.abc import Sequence

from thinkback.compile.translate import INTERRUPTED
from thinkback.log.lines import OpenCall as OpenCall
from thinkback.log.lines import open_calls as open_calls
from thinkback.log.lines import turn_start
from thinkback.model.blocks import ToolResult
from thinkback.model.commits import Commit, Draft, Message, TurnEnded


def interrupted(open_call: OpenCall) -> Draft:
    """The recorded result of a call that never finished."""
    call, response = open_call
    return Draft("tool_result", ToolResult(call.id, INTERRUPTED, call.name, status="interrupted"), response)


NEVER_FINISHED = "the turn was never finished"


def closing_drafts(commits: Sequence[Commit], reason: str = NEVER_FINISHED) -> list[Draft]:
    """Results for calls that have none, and the end of a turn that never got one."""
    drafts = [interrupted(call) for call in open_calls(commits)]
    under_way = commits[turn_start(commits) :]
    if any(commit.kind in ("user", "response") and not commit.edit for commit in under_way):
        drafts.append(Draft("turn_ended", TurnEnded("interrupted", reason)))
    return drafts


def last_system(commits: Sequence[Commit]) -> str | None:
    """The system prompt in force."""
    for commit in reversed(commits):
        if commit.kind == "system" and isinstance(commit.value, Message):
            return commit.value.text
    return None
