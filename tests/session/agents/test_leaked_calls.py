"""Markers of calls in reasoning: text where nobody knows that they leak, and never run without a person's word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.hosts import at
from tests.session.chats import DEFINITION, get_weather, open_session, refusals, run
from thinkback.model.blocks import ThinkingBlock, ToolResult
from thinkback.model.commits import PermissionDecision
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.turn.calls import LEAKED, NOBODY
from thinkback.turn.permissions import PermissionAnswer, PermissionRequest
from thinkback_referee import Call, Referee, Step

SECTION = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>'
)
REAL = Call("get_weather", {"city": "Oslo"}, id="functions.get_weather:0")
ALLOWED: dict[str, Any] = {"permissions.mode": "auto", "permissions.rules": "get_weather=allow"}


class Ran(list[str]):
    """The cities that the tool was asked for."""

    def get_weather(self, city: str) -> str:
        """The weather of a city."""
        self.append(city)
        return f"{city}: 7 degrees, rain"


def leaky(store: SessionStore, referee: Referee) -> Session:
    """A session with a server that is known to leave calls in the reasoning of this model."""
    return at(store, referee, "sglang", "kimi-k2-thinking", "kimi")


def told(session: Session) -> list[tuple[str, str, str]]:
    """What the log says of permissions."""
    values = (commit.value for commit in session.log())
    return [(value.decision, value.by, value.reason) for value in values if isinstance(value, PermissionDecision)]


def thoughts(session: Session) -> list[str]:
    """The reasoning in the log."""
    return [commit.value.thought for commit in session.log() if isinstance(commit.value, ThinkingBlock)]


@pytest.mark.parametrize("text", ["That is how Kimi writes it.", ""])
@pytest.mark.parametrize("host", ["deepseek", "kimi"])
def test_a_quotation_in_reasoning_is_not_run(store: SessionStore, referee: Referee, host: str, text: str) -> None:
    """A host without a row that says so does not leak calls: the markers are reasoning, and shown."""
    referee.push(Step(reasoning=f"It writes `{SECTION}`.", text=text, finish="stop"))
    ran = Ran()
    session = open_session(store, referee, host)
    reply = session.chat("How does it call?", tools=[ran.get_weather], settings=ALLOWED)
    assert ([], "completed", text) == (ran, reply.state, reply.text)
    assert [f"It writes `{SECTION}`."] == thoughts(session)
    assert f"It writes `{SECTION}`." == reply.reasoning


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_leaked_call_is_run_when_a_person_says_so(store: SessionStore, referee: Referee, asynchronous: bool) -> None:
    """The mode lets everything run and a rule allows this tool; the person is asked, and learns why."""
    referee.push(Step(reasoning=f"I look. {SECTION}", finish="stop"), Step(reasoning="Rain.", text="Rain."))
    ran, asked = Ran(), list[PermissionRequest]()
    session = leaky(store, referee)

    def approve(request: PermissionRequest) -> bool:
        asked.append(request)
        return True

    given: Any = {"tools": [ran.get_weather], "settings": ALLOWED, "approve": approve}
    reply = run(session.aio.chat("Weather?", **given)) if asynchronous else session.chat("Weather?", **given)
    assert (["Oslo"], "completed", "Rain.", []) == (ran, reply.state, reply.text, refusals(referee))
    assert [("get_weather", LEAKED)] == [(request.call.name, request.reason) for request in asked]
    assert [("allowed", "person", LEAKED)] == told(session)
    assert "I look. " == thoughts(session)[0]


def test_a_person_who_said_always_is_asked_again(store: SessionStore, referee: Referee) -> None:
    """A rule is no word on a call that may be a quotation."""
    referee.push(
        Step(reasoning=SECTION, finish="stop"),
        Step(reasoning=SECTION.replace(":0", ":1"), finish="stop"),
        Step(text="Rain."),
    )
    asked: list[str] = []

    def approve(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.call.id)
        return PermissionAnswer(True, always=True)

    reply = leaky(store, referee).chat("Weather?", tools=[get_weather], approve=approve)
    assert ("completed", ["functions.get_weather:0", "functions.get_weather:1"]) == (reply.state, asked)


@pytest.mark.parametrize("tools", ["functions", "definitions"])
def test_without_a_person_a_leaked_call_is_denied(store: SessionStore, referee: Referee, tools: str) -> None:
    """Whether the library or the program would run it, the turn ends as denied and the log says why."""
    referee.push(Step(reasoning=f"I look. {SECTION}", finish="stop"))
    ran = Ran()
    session = leaky(store, referee)
    offered: Any = {"functions": [ran.get_weather], "definitions": [DEFINITION]}[tools]
    reply = session.chat("Weather?", tools=offered, settings=ALLOWED)
    assert ([], "denied", f"get_weather was denied: {LEAKED}, and {NOBODY}") == (ran, reply.state, reply.reason)
    assert [("denied", "mode", f"{LEAKED}, and {NOBODY}")] == told(session)
    results = [commit.value for commit in session.log() if isinstance(commit.value, ToolResult)]
    assert ["not_run"] == [result.status for result in results]
    referee.push(Step(text="Something else."))
    assert "completed" == session.chat("Then tell me something else.").state


def test_a_leaked_call_that_a_person_allows_waits_for_the_program(store: SessionStore, referee: Referee) -> None:
    """A program that runs calls itself gets it as any other, after the person's word."""
    referee.push(Step(reasoning=f"I look. {SECTION}", finish="stop"), Step(reasoning="Rain.", text="Rain."))
    session = leaky(store, referee)
    reply = session.chat("Weather?", tools=[DEFINITION], approve=lambda request: True)
    assert (None, [("get_weather", '{"city": "Oslo"}')]) == (
        reply.state,
        [(call.name, call.arguments) for call in reply.tool_calls],
    )
    assert "Rain." == session.generate({reply.tool_calls[0].id: "rain"}).text


@pytest.mark.parametrize(
    "step",
    [
        Step(reasoning=f"`{SECTION}` is a call.", text="Like this.", finish="stop"),
        Step(reasoning=f"I look. {SECTION}", finish="length"),
        Step(reasoning=f"I look. {SECTION}", refusal="I will not.", finish="stop"),
    ],
    ids=["answer", "cut", "refusal"],
)
def test_what_does_not_fit_a_call_is_reasoning_where_calls_leak(
    store: SessionStore, referee: Referee, step: Step
) -> None:
    """An answer beside the markers, or a finish reason that is none of a call, makes them a quotation."""
    referee.push(step)
    ran = Ran()
    session = leaky(store, referee)
    reply = session.chat("How does it call?", tools=[ran.get_weather], approve=lambda request: True)
    assert ([], [], step.text or step.refusal) == (ran, reply.tool_calls, reply.text)
    assert [step.reasoning] == thoughts(session)


@pytest.mark.parametrize("id", ["functions.get_weather:0", "call_7"])
def test_a_leaked_call_that_also_came_as_a_real_one_is_run_once(store: SessionStore, referee: Referee, id: str) -> None:
    """The real one is run, under the rules for any call."""
    real = Call("get_weather", {"city": "Oslo"}, id=id)
    referee.push(Step(reasoning=f"I look. {SECTION}", tool_calls=[real]), Step(reasoning="Rain.", text="Rain."))
    ran = Ran()
    session = leaky(store, referee)
    reply = session.chat("Weather?", tools=[ran.get_weather])
    assert (["Oslo"], "completed", []) == (ran, reply.state, told(session))


def test_a_program_with_its_own_client_gets_text(store: SessionStore, referee: Referee) -> None:
    """``wire.ingest`` reads no calls out of reasoning: the program has the response itself."""
    session = leaky(store, referee)
    plan = session.wire.plan("Weather?", tools=[DEFINITION])
    body = '{"choices": [{"index": 0, "finish_reason": "stop", "message": {"reasoning_content": %s}}]}'
    reply = session.wire.ingest(body % json.dumps(SECTION), 200, {"content-type": "application/json"}, plan=plan)
    assert ([], SECTION) == (reply.tool_calls, reply.reasoning)
