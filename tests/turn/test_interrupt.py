"""Interrupted in every phase: what arrived is stored, the next request is valid, nothing more is asked for."""

from __future__ import annotations

import json

from tests.turn.playbook import (
    ANSWER,
    CALLS,
    Playbook,
    answers,
    begins,
    breaks,
    brings,
    call,
    cancels,
    chunk,
    ends,
    fires,
    gives,
    interrupts,
    keeps,
    refuses,
    runs,
    said,
    sends,
    status,
    stored,
    stores,
    thought,
    waits,
    word,
)
from thinkback.model.commits import Tool

LOOK = frozenset({"look"})


def test_while_the_question_is_being_stored() -> None:
    """The append is owed; then the turn ends without a request."""
    play = Playbook() >> begins << stores("user") >> interrupts
    play.nothing()
    play >> stored << keeps("interrupted") << ends("interrupted")


def test_while_sending() -> None:
    """Nothing arrived: the request is given up; that it went out is on record."""
    play = Playbook() >> begins << keeps("user") << sends >> interrupts << cancels << keeps("request interrupted")
    play << ends("interrupted")


def test_between_head_and_body() -> None:
    """A status alone brings nothing that could be stored."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200) >> interrupts << cancels
    play << keeps("request interrupted") << ends("interrupted")


def test_while_streaming() -> None:
    """What arrived is stored, marked incomplete, and left out of the next request."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200) >> brings(thought("Hm."), word("4"))
    play >> interrupts << cancels << keeps("request response reasoning assistant interrupted") << ends("interrupted")
    following = Playbook("And?", history=play.history) >> begins << keeps("user") << sends
    assert [("user", "Why?"), ("user", "And?")] == following.texts


def test_text_that_was_held_back_is_shown_and_stored() -> None:
    """The beginning of what might have been a tag is text when nothing more comes."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200) >> brings(word("Hi"), word("<thi"))
    play >> interrupts << cancels << keeps("request response assistant interrupted") << ends("interrupted")
    assert '"text":"Hi<thi"' in play.history.commits[-2].payload.decode()


def test_after_the_finish_reason() -> None:
    """The answer was whole already: the turn is completed, whatever the caller did with the trailer."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200)
    play >> brings(thought("Hm."), word("42"), chunk("stop")) >> interrupts << cancels << keeps(ANSWER)
    play << ends("completed")


def test_after_the_finish_reason_of_calls() -> None:
    """The calls were whole, and are recorded as interrupted instead of being run."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends >> status(200)
    play >> brings(thought("Hm."), call("look-1", "look"), chunk("tool_calls")) >> interrupts << cancels << keeps(CALLS)
    play << keeps("result:interrupted interrupted") << ends("interrupted")


def test_while_the_response_is_being_stored() -> None:
    """An answer is completed; calls are not begun."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(said("42", "Hm.")) << stores(ANSWER) >> interrupts
    play.nothing()
    play >> stored << ends("completed")
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends >> answers(said("", "Hm.", "look-1"))
    play << stores(CALLS) >> interrupts >> stored << keeps("result:interrupted interrupted") << ends("interrupted")


def test_while_calls_wait_for_the_caller() -> None:
    """An interrupt that comes before the calls are handed out closes them."""
    play = Playbook(tools=(Tool("look"),)) >> begins << keeps("tools user") << sends
    play >> answers(said("", "Hm.", "look-1")) << stores(CALLS) >> interrupts >> stored
    play << keeps("result:interrupted interrupted") << ends("interrupted")


def test_while_tools_run() -> None:
    """Results that came stay; a call that did not finish is told so, and the next request is valid."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "look-1", "look-2")) << keeps("request response reasoning tool_call tool_call")
    play << runs("look", "look") >> gives("look-2", "rain") << keeps("result") >> interrupts
    play << keeps("result:interrupted interrupted") << ends("interrupted") >> gives("look-1")
    play.nothing()
    following = Playbook("And?", history=play.history) >> begins << keeps("user") << sends
    assert ["user", "assistant", "tool", "tool", "user"] == [role for role, _ in following.texts]
    assert [("tool", "This call was interrupted; it has no result."), ("tool", "rain")] == following.texts[2:4]


def test_while_a_result_is_being_stored() -> None:
    """The result is kept, the rest is closed once the log has answered."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "look-1", "look-2")) << keeps("request response reasoning tool_call tool_call")
    play << runs("look", "look") >> gives("look-1") << stores("result") >> interrupts
    play.nothing()
    play >> stored << keeps("result:interrupted interrupted") << ends("interrupted")


def test_while_the_last_result_is_being_stored() -> None:
    """Nothing is open any more: only the end is written."""
    play = Playbook(runnable=LOOK) >> begins << keeps("user") << sends >> answers(said("", "Hm.", "look-1"))
    play << keeps(CALLS) << runs("look") >> gives("look-1") << stores("result") >> interrupts >> stored
    play << keeps("interrupted") << ends("interrupted")


def test_while_it_waits_to_send_again() -> None:
    """The timer is given up; when it fires all the same, nothing happens."""
    play = Playbook() >> begins << keeps("user") << sends >> refuses(429) << waits(0.375) >> interrupts << cancels
    play << stores("request interrupted") >> fires
    play.nothing()
    play >> stored << ends("interrupted")


def test_while_an_error_body_arrives() -> None:
    """Half an error text is not worth storing."""
    play = Playbook() >> begins << keeps("user") << sends >> status(500) >> brings(b'{"err') >> interrupts << cancels
    play << keeps("request interrupted") << ends("interrupted")


def test_while_a_repair_is_being_stored() -> None:
    """The repair is kept; nothing is sent again."""
    play = Playbook() >> begins << keeps("user") << sends
    play >> refuses(400, "reasoning_content must be passed back") << stores("request repair:restore") >> interrupts
    play >> stored << keeps("interrupted") << ends("interrupted")


def test_twice() -> None:
    """A second Ctrl-C changes nothing that the first one began."""
    play = Playbook() >> begins << keeps("user") << sends >> interrupts << cancels << stores("request interrupted")
    play >> interrupts
    play.nothing()
    play >> stored << ends("interrupted")


def test_late_events_of_a_given_up_request() -> None:
    """Pieces and failures of the request that was given up count for nothing."""
    play = Playbook() >> begins << keeps("user") << sends >> interrupts << cancels << stores("request interrupted")
    play >> brings(said("late")) >> breaks()
    play.nothing()
    play >> stored << ends("interrupted")
    assert "response" not in play.kinds


def test_reason_is_stored() -> None:
    """The response that was cut says why."""
    play = Playbook() >> begins << keeps("user") << sends >> status(200) >> brings(thought("Hm.")) >> interrupts
    play << cancels << keeps("request response reasoning interrupted") << ends("interrupted")
    payload = json.loads(play.history.commits[2].payload)
    assert (False, "interrupted") == (payload["complete"], payload["error"]["type"])
