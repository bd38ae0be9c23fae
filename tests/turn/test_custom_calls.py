"""A custom tool at a host that has functions only: offered as one, and its calls read back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.turn.playbook import (
    ENDPOINT,
    Playbook,
    begins,
    brings,
    commits_of,
    keeps,
    rule,
    sends,
    status,
    target,
    thought,
)
from thinkback.model.blocks import CUSTOM_CALL, Origin, Text, ToolCall, ToolResult
from thinkback.model.commits import Draft, Failure, Message, Response, Tool, Tools, block_draft
from thinkback.model.custom_tools import read_custom
from thinkback.model.deltas import ToolCallDelta
from thinkback.model.target import Settings
from thinkback.turn.events import Head
from thinkback.turn.exchange import Exchange
from thinkback.turn.plan import History, Plan

PATCH = read_custom({"type": "custom", "custom": {"name": "patch"}}, "openai-chat")
SQL = read_custom({"type": "custom", "name": "sql"}, "openai-responses")
LOOK = Tool("look", parameters='{"type":"object"}')
JSON, SSE = (Head("r", 200, {"content-type": kind}, 1) for kind in ("application/json", "text/event-stream"))


def history() -> History:
    """A call of a custom tool, answered."""
    assert PATCH is not None
    assert SQL is not None
    call = ToolCall("c", "patch", "a", source_field=CUSTOM_CALL)
    return History(
        commits_of(
            [
                Draft("tools", Tools((PATCH, SQL, LOOK))),
                Draft("user", Message("Go.")),
                Draft("response", Response(Origin("openai-chat", "", ""), blocks=2), "r"),
                block_draft(Text("Yes."), "r", 0),
                block_draft(call, "r", 1),
                Draft("tool_result", ToolResult("c", "Done.")),
            ]
        )
    )


def plan(recipe: int = 2, *, custom: bool = False, **params: Any) -> Plan:
    """The next request."""
    place = target(endpoint=msgspec.structs.replace(ENDPOINT, custom_tools=custom))
    return history().plan(place, Settings(), None, params, recipe=recipe)


def test_it_is_offered_called_and_chosen_as_a_function() -> None:
    """And each is named among what did not go as it was asked."""
    made = plan(tool_choice={"type": "custom", "custom": {"name": "patch"}})
    sent = json.loads(bytes(made))
    assert ["function"] * 3 == [tool["type"] for tool in sent["tools"]]
    assert {"type": "function", "function": {"name": "patch"}} == sent["tool_choice"]
    assert '{"input":"a"}' == sent["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert ["patch", "sql"] == [control.value for control in made.dropped]
    assert frozenset({"patch", "sql"}) == made.as_functions


def test_a_host_that_has_custom_tools_gets_them_in_its_own_words() -> None:
    """Whichever dialect they were defined in."""
    made = plan(custom=True)
    sent = json.loads(bytes(made))
    assert ["custom", "custom", "function"] == [tool["type"] for tool in sent["tools"]]
    assert {"name": "sql"} == sent["tools"][1]["custom"]
    assert {"name": "patch", "input": "a"} == sent["messages"][1]["tool_calls"][0]["custom"]
    assert () == made.dropped


def test_a_choice_among_functions_stays() -> None:
    """Nothing is looked for where no tool is custom."""
    made = History(commits_of([Draft("tools", Tools((LOOK,))), Draft("user", Message("Go."))]))
    params = {"tool_choice": {"type": "function", "function": {"name": "look"}}}
    assert params["tool_choice"] == made.plan(target(), Settings(), None, params).params["tool_choice"]


def test_records_of_earlier_versions_are_built_as_they_were() -> None:
    """Verbatim at every host of the dialect."""
    sent = json.loads(bytes(plan(1)))
    assert {"type": "custom", "custom": {"name": "patch"}} == sent["tools"][0]


def chunk(index: int, id: str = "", name: str = "", arguments: str = "") -> bytes:
    """A fragment of a call."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value}
    call = {"index": index, **({"id": id, "type": "function"} if id else {}), "function": function}
    return (
        b"data: "
        + json.dumps({"id": "x", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).encode()
        + b"\n\n"
    )


def test_its_name_is_shown_at_once_and_its_text_at_the_end() -> None:
    """Beside calls of functions, also of one whose name begins alike; an empty text needs no word."""
    exchange = Exchange(plan(), "r")
    exchange.head(SSE)
    assert exchange.block(0) is None
    shown = exchange.feed(chunk(0, "c", "pa"))
    assert [] == shown
    shown += exchange.feed(chunk(0, name="tch") + chunk(0, arguments='{"input":"'))
    assert [ToolCallDelta(0, "c", "patch", "", "r")] == shown
    shown = exchange.feed(
        chunk(0, arguments='b"}') + chunk(1, "d", "look", "{}") + chunk(2, "e", "sql", '{"input":""}')
    )
    assert ["look", "sql"] == [delta.name for delta in shown if isinstance(delta, ToolCallDelta)]
    exchange.feed(chunk(3, "f", "sq") + b'data: {"choices":[{"index":0,"delta":{"content":"Hm."}}]}\n\n')
    deltas, result = exchange.end(Failure("cut", type="network"))
    assert [ToolCallDelta(3, "f", "sq", "", "r"), ToolCallDelta(0, arguments="b", response="r")] == deltas
    calls = [block for block in result.blocks if isinstance(block, ToolCall)]
    assert ["b", "{}", "", ""] == [call.arguments for call in calls]
    assert [CUSTOM_CALL, "tool_calls", CUSTOM_CALL, "tool_calls"] == [call.source_field for call in calls]


def test_a_stand_in_is_said_again_for_a_response_of_the_same_kind() -> None:
    """Two answers without reasoning, where the endpoint demands a word on each."""
    row = rule(later="must", placeholder="-", placeholder_on="all", missing=("placeholder",))
    drafts = [Draft("user", Message("Go."))]
    for at in "ab":
        origin = Origin("openai-chat", ENDPOINT.base_url, "thinker")
        drafts += [Draft("response", Response(origin, blocks=1), at), block_draft(Text(at), at, 0)]
        drafts += [Draft("user", Message("Go."))]
    sent = json.loads(bytes(History(commits_of(drafts)).plan(target(row), Settings(), None, {})))
    said = [message for message in sent["messages"] if message["role"] == "assistant"]
    assert ["a", "b"] == [message["content"] for message in said]
    assert ["-", "-"] == [message.get("reasoning_content") for message in said]


def test_strict_reasoning_that_only_the_end_brings_is_refused() -> None:
    """A body in one piece has it all at once."""
    made = History(commits_of([Draft("user", Message("Go."))])).plan(target(), Settings(strict=True), None, {})
    exchange = Exchange(made, "r")
    exchange.head(JSON)
    message = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    exchange.feed(json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode())
    error = exchange.end()[1].response.error
    assert error is not None
    assert "strict" == error.type


@pytest.mark.parametrize("strict", [True, False])
def test_a_turn_says_that_it_reads_no_more(strict: bool) -> None:
    """Where reasoning comes that must not."""

    def made() -> Plan:
        return History(commits_of([Draft("user", Message("Go."))])).plan(target(), Settings(strict=strict), None, {})

    play = Playbook(plan=made) >> begins << keeps("user") << sends >> status(200) >> brings(thought("Hm."))
    assert strict is play.turn.stops
