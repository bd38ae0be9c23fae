"""A session that is shown again: messages, thoughts, calls, and how turns ended."""

from __future__ import annotations

import re

import pytest

from tests.cli.chat.talks import messages, open_chat, say
from thinkback.cli.chat.chat import Chat
from thinkback.model.blocks import Media
from thinkback_referee import Call, CutAfterBytes, Referee, Stall, Step

Caught = pytest.CaptureFixture[str]
PICTURE = Media("image/png", data="aGVsbG8=")


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: rain"


def test_calls_and_results_are_shown_between_thought_and_answer(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """In the order in which they came, reasoning once for each response."""
    call = Call("get_weather", {"city": "Oslo"})
    referee.push(Step(reasoning="I look it up.", tool_calls=[call]), Step(reasoning="I see.", text="It rains."))
    chat.session.chat("Weather?", tools=[get_weather])
    say(chat, "/set display.reasoning full", "/resume talk")

    shown = capsys.readouterr().out
    places = [shown.index(text) for text in ("Weather?", "I look it up.", "get_weather Oslo", "Oslo: rain", "I see.")]
    assert sorted(places) == places
    assert places[-1] < shown.index("It rains.")
    assert 1 == shown.count("I look it up.")


def test_a_turn_that_broke_off_is_shown_as_partial(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """What arrived, and how it ended."""
    whole = "Half of what was to be said. " * 100
    chat.session.set("reasoning.includeInResponse", "true")
    referee.push(*[Step(text=whole, fault=CutAfterBytes(3000))] * 4)
    say(chat, "One.")
    told = capsys.readouterr()
    say(chat, "/resume talk")

    assert 0 != chat.code
    assert "(partial: failed)" in told.out
    assert "(partial: failed: " in capsys.readouterr().out


def test_a_turn_that_a_person_ended_is_marked_as_it_was_then(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """In the words of the moment, each said once."""
    referee.push(Step(reasoning="I begin.", text="Never.", fault=Stall(60, after=1)))
    with chat.session.stream("One.") as stream:
        next(iter(stream))
    say(chat, "/resume talk")

    assert "(partial: interrupted)\n" in capsys.readouterr().out


def test_thoughts_are_listed_with_the_time_that_they_took(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """As far as the log knows it: from what was asked to the end of the response."""
    referee.push(Step(reasoning="I think. " * 30, text="91.", pace=0.03))
    say(chat, "One.", "/think", "/resume talk")

    shown = capsys.readouterr().out
    assert re.search(r"\n1  \w{8} +~\d+ s", shown)
    assert re.search(r"Thought for ~\d+ s, \d+ tokens", shown)


def test_a_picture_goes_along_when_its_message_is_asked_again(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """Retry asks the whole message; what was attached by a program is not lost."""
    chat.session.use(endpoint="kimi", model="kimi-k2.6", base_url=referee.base_url("kimi"), api_key="sk-a-key-of-tests")
    referee.push(Step(text="A cat."), Step(text="A dog."))
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    chat.session.chat(["What is it?", PICTURE, part])
    say(chat, "/retry")

    first, again = messages(referee, 0), messages(referee, 1)
    assert "image_url" in str(first)
    assert first == again
    assert "A dog." in capsys.readouterr().out


def test_what_was_erased_is_no_obstacle(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """What is left is shown; what is not there cannot be asked again."""
    say(chat, "One.")
    before = chat.session.log()[-1].time + 1
    chat.store.care.purge(before=before, reason="private")
    chat = open_chat(chat.store, referee)
    capsys.readouterr()
    say(chat, "/resume talk", "/retry", "/think", "/why", "/usage")

    shown = capsys.readouterr()
    assert "One." not in shown.out
    assert "there is no message yet" in shown.err
    assert "there is no reasoning yet" in shown.err
    assert "unexpected" not in shown.err
