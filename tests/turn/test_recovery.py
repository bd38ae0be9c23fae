"""Logs that end in the middle: after a crash the next turn closes what is open, and its request is valid."""

from __future__ import annotations

import pytest

from tests.turn.playbook import Playbook, begins, commits_of, keeps, sends
from thinkback.model.blocks import Origin, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Message, Response, TurnEnded
from thinkback.turn import orphans
from thinkback.turn.plan import History

ORIGIN = Origin("openai-chat", "https://house.example/v1", "thinker")


def user(text: str = "First?") -> Draft:
    return Draft("user", Message(text))


def response(id: str, *calls: str, complete: bool = True, text: str = "") -> list[Draft]:
    """A response with reasoning, calls and text."""
    blocks = [Draft("reasoning", ThinkingBlock("Hm.", source_field="reasoning_content"), id, 0)]
    blocks += [Draft("tool_call", ToolCall(call, "look", "{}"), id, at) for at, call in enumerate(calls, 1)]
    blocks += [Draft("assistant", Text(text), id, len(blocks))] if text else []
    return [Draft("response", Response(ORIGIN, complete=complete, blocks=len(blocks)), id), *blocks]


def result(call: str, response: str = "r") -> Draft:
    return Draft("tool_result", ToolResult(call, "rain", "look"), response)


END = Draft("turn_ended", TurnEnded("completed"))


@pytest.mark.parametrize(
    ("log", "closing", "roles"),
    [
        ([], "", ["user"]),
        ([Draft("system", Message("Be brief."))], "", ["system", "user"]),
        ([user()], "interrupted", ["user", "user"]),
        ([user(), *response("r", text="42")], "interrupted", ["user", "assistant", "user"]),
        ([user(), *response("r", text="42"), END], "", ["user", "assistant", "user"]),
        (
            [user(), *response("r", "a", "b")],
            "result:interrupted result:interrupted interrupted",
            ["user", "assistant", "tool", "tool", "user"],
        ),
        (
            [user(), *response("r", "a", "b"), result("b")],
            "result:interrupted interrupted",
            ["user", "assistant", "tool", "tool", "user"],
        ),
        ([user(), *response("r", "a"), result("a")], "interrupted", ["user", "assistant", "tool", "user"]),
        ([user(), *response("r", "a", complete=False)], "interrupted", ["user", "user"]),
        (
            [user(), *response("r", "a"), result("a"), *response("s", "a")],
            "result:interrupted interrupted",
            ["user", "assistant", "tool", "assistant", "tool", "user"],
        ),
        (
            [user(), *response("r", text="42"), user("Adopted?"), *response("s", "a")],
            "result:interrupted interrupted",
            ["user", "assistant", "user", "assistant", "tool", "user"],
        ),
    ],
    ids=[
        "nothing",
        "a system prompt",
        "a question",
        "an answer without an end",
        "a finished turn",
        "calls",
        "some results",
        "all results",
        "a response that was cut",
        "the same call id twice",
        "two turns without an end",
    ],
)
def test_next_turn_closes_what_is_open(log: list[Draft], closing: str, roles: list[str]) -> None:
    """Open calls get a recorded result and the turn its end, in one step with the new question."""
    play = Playbook("Next?", log=log) >> begins << keeps(f"{closing} user") << sends
    assert roles == [role for role, _ in play.texts]


def test_closing_is_told_to_the_right_response() -> None:
    """The recorded result names the response that made the call."""
    log = [user(), *response("r", "a"), result("a"), *response("s", "a")]
    drafts = orphans.closing_drafts(commits_of(log))
    assert ["s", ""] == [draft.response for draft in drafts]


def test_result_of_no_open_call_is_passed_over() -> None:
    """A result that nothing waits for does not disturb the others."""
    log = [user(), *response("r", "a"), result("z")]
    assert ["a"] == [found.call.id for found in orphans.open_calls(commits_of(log))]


def test_a_history_follows_its_open_calls() -> None:
    """They are those of all its commits, however these came; what was held is forgotten with what was held."""
    commits = commits_of([user(), *response("r", "a", "b"), result("a")])
    history = History(commits[:4])
    assert ["a"] == [found.call.id for found in history.open_calls()]
    history.hold("r", 2, ToolCall("b", "look", '{"held":true}'))
    history.take(commits[4:])
    assert ['{"held":true}'] == [found.call.arguments for found in history.open_calls()]
    history.release()
    assert orphans.open_calls(commits) == history.open_calls()


def test_last_system_prompt_counts() -> None:
    """The one in force is the newest."""
    log = [Draft("system", Message("Old.")), user(), Draft("system", Message("New."))]
    assert "New." == orphans.last_system(commits_of(log))
    assert orphans.last_system(commits_of([user()])) is None
