"""Calls: run in parallel, answered in any order, waiting for the caller, or for nobody."""

from __future__ import annotations

import json

import pytest

from tests.turn.playbook import (
    ANSWER,
    CALLS,
    Playbook,
    answers,
    begins,
    call,
    chunk,
    ends,
    gives,
    interrupts,
    keeps,
    refuses,
    runs,
    said,
    sends,
    stored,
    stores,
)
from thinkback.errors import ProviderError
from thinkback.model.blocks import Origin, ToolCall, ToolResult
from thinkback.model.commits import Draft, Message, Response, Tool, Tools, TurnEnded

LOOK = frozenset({"look"})
TWO = "request response reasoning tool_call tool_call"


def test_result_goes_back_with_the_reasoning_that_asked_for_it() -> None:
    """The next request of the turn carries call, result and the thought before them."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends >> answers(said("", "Let me look.", "look-1"))
    play << keeps(CALLS) << runs("look") >> gives("look-1", "rain") << keeps("result") << sends
    assert ["Let me look."] == play.reasoning()
    assert ("tool", "rain") == play.texts[-1]
    play >> answers(said("Rain.", "So it is.")) << keeps(ANSWER) << ends("completed")
    assert ["sending", "tool_started", "tool_finished", "sending"] == play.statuses


@pytest.mark.parametrize("order", [("look-1", "look-2"), ("look-2", "look-1")])
def test_parallel_results_come_in_any_order(order: tuple[str, str]) -> None:
    """Each is stored as it comes; the request has them in the order of the calls, once all are there."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "look-1", "look-2")) << keeps(TWO) << runs("look", "look")
    play >> gives(order[0], order[0]) << keeps("result")
    play.nothing()
    play >> gives(order[1], order[1]) << keeps("result") << sends
    assert [("tool", "look-1"), ("tool", "look-2")] == play.texts[2:]


def two_of_one_id() -> Playbook:
    """Two calls under one id are running."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends
    return play >> answers(said("", "Hm.", "look-1", "look-1")) << keeps(TWO) << runs("look", "look")


def test_results_of_calls_that_share_an_id_are_stored_in_order() -> None:
    """Only their order says which is whose: the second waits for the first, however fast it was."""
    play = two_of_one_id() >> gives("look-1#2", "second")
    play.nothing()
    play >> gives("look-1", "first") << stores("result") << stores("result") >> stored
    play.nothing()
    play >> stored << sends
    assert [("tool", "first"), ("tool", "second")] == play.texts[2:]


def test_a_result_that_waited_is_not_lost() -> None:
    """Interrupted meanwhile, the call before it is told so and it is kept."""
    play = two_of_one_id() >> gives("look-1#2", "second") >> gives("look-1#2", "again")
    play.nothing()
    play >> interrupts << keeps("result:interrupted result interrupted") << ends("interrupted")
    results = [commit.value for commit in play.history.commits if isinstance(commit.value, ToolResult)]
    assert ["interrupted", "run"] == [result.status for result in results]
    assert "second" == results[1].content


def test_two_results_wait_for_the_log_at_once() -> None:
    """Nothing is sent before the last of several pending results is stored."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "look-1", "look-2")) << keeps(TWO) << runs("look", "look")
    play >> gives("look-1") << stores("result") >> gives("look-2") << stores("result") >> stored
    play.nothing()
    play >> stored << sends


def test_result_that_comes_twice_counts_once() -> None:
    """The second answer to a call is ignored."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "look-1", "look-2")) << keeps(TWO) << runs("look", "look")
    play >> gives("look-1") << keeps("result") >> gives("look-1")
    play.nothing()


def test_error_of_a_tool_is_a_result() -> None:
    """The model is told; the log says that it was an error."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends >> answers(said("", "Hm.", "look-1"))
    play << keeps(CALLS) << runs("look") >> gives("look-1", "ValueError: no", is_error=True) << keeps("result") << sends
    value = play.history.commits[-1].value
    assert isinstance(value, ToolResult)
    assert (True, "look") == (value.is_error, value.name)


def test_call_of_an_unknown_tool_is_run_to_be_told() -> None:
    """A name that nobody offered goes to the driver, which says that there is no such tool."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends >> answers(said("", "Hm.", "peek-1"))
    play << keeps(CALLS) << runs("peek")


def test_calls_without_functions_wait_for_the_caller() -> None:
    """Definitions alone: the turn stays open, with the calls in the log."""
    play = Playbook(tools=(Tool("look"),)) >> begins << keeps("tools user") << sends
    play >> answers(said("", "Hm.", "look-1")) << keeps(CALLS) << ends(None)
    assert "turn_ended" not in play.kinds


def test_only_calls_without_a_function_wait() -> None:
    """Of two calls the one that can be run is run before the caller gets the other."""
    tools = (Tool("look"), Tool("ask"))
    play = Playbook(tools=tools, runnable=LOOK) >> begins << keeps("tools user") << sends
    play >> answers(said("", "Hm.", "look-1", "ask-1")) << keeps(TWO) << runs("look")
    play >> gives("look-1") << keeps("result") << ends(None)


def test_results_of_the_caller_continue_the_turn() -> None:
    """Going on after the results were stored is the same turn: its reasoning goes back."""
    play = Playbook(tools=(Tool("look"),)) >> begins << keeps("tools user") << sends
    play >> answers(said("", "Hm.", "look-1")) << keeps(CALLS) << ends(None)
    log = [Draft(c.kind, c.value, c.response, c.index) for c in play.history.commits]
    result = Draft("tool_result", ToolResult("look-1", "rain", "look"), play.history.commits[-1].response)
    again = Playbook(None, log=[*log, result]) >> begins << sends
    assert ["Hm."] == again.reasoning()
    again >> answers(said("Rain.", "So.")) << keeps(ANSWER) << ends("completed")


def test_open_calls_are_run_when_the_turn_goes_on() -> None:
    """A log that ends behind calls goes on with them where their functions are there; the others still wait."""
    log = [*_asked(), *_called("look-1", "ask-1")]
    play = Playbook(None, log=log, runnable=LOOK) >> begins << runs("look") >> gives("look-1") << keeps("result")
    play << ends(None)
    answered = Draft("tool_result", ToolResult("look-1", "rain", "look"), "r")
    play = Playbook(None, log=[*log, answered], runnable=frozenset({"ask"})) >> begins << runs("ask")
    play >> gives("ask-1", "yes") << keeps("result") << sends
    assert [("tool", "rain"), ("tool", "yes")] == play.texts[2:]


def test_going_on_without_functions_sends_what_there_is() -> None:
    """The machine does not judge: an unanswered call is told so in the request."""
    play = Playbook(None, log=[*_asked(), *_called("look-1")]) >> begins << sends
    assert "interrupted" in str(play.texts[-1])


def test_failure_after_a_tool_keeps_its_result() -> None:
    """The tool is not run again for a request that failed behind it."""
    play = Playbook(runnable=LOOK, max_retries=0) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "look-1")) << keeps(CALLS) << runs("look") >> gives("look-1", "rain")
    play << keeps("result") << sends >> refuses(500) << keeps("request failed") << ends("failed", ProviderError)
    again = Playbook(None, history=play.history, runnable=LOOK) >> begins << sends
    assert ("tool", "rain") == again.texts[-1]


def test_calls_of_a_response_that_was_stopped_are_not_run() -> None:
    """A filter cut the response: what it calls for is not done, and none of it goes back."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends
    play >> answers(call("look-1", "look"), chunk("content_filter"))
    play << keeps("request response tool_call partial_failed") << ends("partial_failed")
    following = Playbook("And?", history=play.history) >> begins << keeps("user") << sends
    assert ["user", "user"] == [role for role, _ in following.texts]


def test_arguments_go_back_as_they_came() -> None:
    """Odd white space and order of keys are the model's own."""
    odd = '{ "b":1,  "a" : "x" }'
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends
    play >> answers(call("look-1", "look", odd), chunk("tool_calls")) << keeps("request response tool_call")
    play << runs("look") >> gives("look-1") << keeps("result") << sends
    message = json.loads(play.plans[-1].messages[1])
    assert odd == message["tool_calls"][0]["function"]["arguments"]


def _asked() -> list[Draft]:
    tools = Tools((Tool("look"), Tool("ask")))
    return [Draft("tools", tools), Draft("user", Message("Why?"))]


def _called(*ids: str) -> list[Draft]:
    header = Response(Origin("openai-chat", "https://house.example/v1", "thinker"), blocks=len(ids))
    calls = [Draft("tool_call", ToolCall(id, id.partition("-")[0], "{}"), "r", at) for at, id in enumerate(ids)]
    return [Draft("response", header, "r"), *calls]


def test_capped_turn_leaves_nothing_open() -> None:
    """Calls behind the cap are not run by a later turn either."""
    log = [*_asked(), *_called("look-1"), Draft("turn_ended", TurnEnded("capped"))]
    Playbook(None, log=log, runnable=LOOK) >> begins << sends
