"""The guide: whatever is asked, a thought, a call of a tool that looks something up, and the truth about itself."""

from __future__ import annotations

import pytest

from tests.referee.talk import TIME, WEATHER, Body, Client
from thinkback_referee import Referee
from thinkback_referee.guide import WHAT, guide_step

READ, LIST = (
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("read", "list")
)
SHELL = {"type": "function", "function": {"name": "run_shell", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize(
    ("tools", "requests"), [([SHELL, WEATHER, TIME], 2), ([SHELL], 1), ([], 1)], ids=["tools", "acting", "none"]
)
def test_any_question_leads_through_a_call(tools: list[object], requests: int) -> None:
    """Turn for turn; a tool that acts is not called, and notes that came back are named."""
    with Referee(house=guide_step) as referee:
        parameters: Body = {"model": "deepseek-v4-pro", **({"tools": tools} if tools else {})}
        client = Client(referee, "deepseek", parameters, [])
        first, second = client.ask("asdf"), client.ask("")

    assert first.startswith(WHAT)
    assert second.startswith(WHAT)
    assert [200] * 2 * requests == [exchange.status for exchange in referee.requests]
    assert (requests > 1) == ("still known" in first)


def test_a_tool_that_lists_is_called_before_one_that_reads() -> None:
    """The directory that it is given is there, and no file."""
    with Referee(house=guide_step) as referee:
        Client(referee, "deepseek", {"model": "deepseek-v4-pro", "tools": [READ, LIST]}, []).ask("asdf")
        call = referee.requests[-1].body["messages"][1]["tool_calls"][0]  # type: ignore[index]

    assert "list" == call["function"]["name"]
