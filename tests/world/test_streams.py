"""Streams that break at each event, streams that are left, answers that are only queued: in every dialect."""

from __future__ import annotations

from pathlib import Path

import pytest

import thinkback
from tests.effort import Effort
from tests.world.clients import KEY, QUESTION
from tests.world.gateway import gateway
from tests.world.mind import Mood
from tests.world.server import PLACES, World
from thinkback.errors import NetworkError, ProviderError, ThinkbackError
from thinkback.session.session import Session
from thinkback.session.store import SessionStore


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 4 degrees"


def opened(store: SessionStore, world: World, provider: str, name: str) -> Session:
    """A session at a provider."""
    place = PLACES[provider]
    return store.session(name, endpoint=place.endpoint, model=place.model, base_url=world.url(provider), api_key=KEY)


@pytest.mark.parametrize("provider", PLACES)
def test_a_stream_that_breaks_at_any_event_leaves_a_session_that_goes_on(
    world: World, effort: Effort, provider: str
) -> None:
    """In the first response or in the one behind a tool; whatever came of it, the provider takes the next request."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        for broken in effort.chance.sample(range(16), effort.rounds(2, 16)):
            session = opened(store, world, provider, str(broken))
            world.mood = Mood(breaks_after=broken)
            try:
                with session.stream(QUESTION, tools=[get_weather]) as stream:
                    list(stream)
            except (NetworkError, ProviderError):
                pass
            world.mood = Mood()
            reply = session.chat("And so?", tools=[get_weather])

            assert "degrees" in reply.text, broken
            assert 200 == world.exchanges[-1].status
        assert [] == store.fsck()


@pytest.mark.parametrize("provider", PLACES)
def test_a_stream_that_is_left_at_any_delta_leaves_a_session_that_goes_on(
    world: World, effort: Effort, provider: str
) -> None:
    """The program breaks out of its loop."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        for left in effort.chance.sample(range(12), effort.rounds(1, 12)):
            session = opened(store, world, provider, str(left))
            with session.stream(QUESTION, tools=[get_weather]) as stream:
                for number, _ in enumerate(stream):
                    if number == left:
                        break
            reply = session.chat("And so?", tools=[get_weather])

            assert "degrees" in reply.text, left
            assert 200 == world.exchanges[-1].status
        assert [] == store.fsck()


@pytest.mark.parametrize("provider", ["openai", "interactions"])
def test_an_answer_that_is_queued_is_asked_for_once(world: World, provider: str) -> None:
    """It is no answer, and the session goes on once there is one."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        session = opened(store, world, provider, "queued")
        world.mood = Mood(queued=True)
        with pytest.raises(ThinkbackError, match=r"queued|before the response was finished"):
            session.chat("Why?")
        assert 1 == len(world.exchanges)
        world.mood = Mood()

        assert "degrees" in session.chat("And so?").text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("front", ["chat/completions", "responses"])
@pytest.mark.parametrize("provider", ["openai", "interactions"])
def test_an_answer_that_is_queued_is_not_asked_for_again_by_an_sdk(
    world: World, tmp_path: Path, provider: str, front: str, stream: bool
) -> None:
    """The gateway answers with a status that no SDK sends again: one call, one run upstream."""
    world.mood = Mood(queued=True)
    asked = {"input": "Why?"} if front == "responses" else {"messages": [{"role": "user", "content": "Why?"}]}
    body = {"model": f"{provider}/{PLACES[provider].model}", **asked, "stream": stream}
    with gateway(world, tmp_path) as house:
        reply = house.ask(f"/v1/{front}", body, key=None)

    assert reply.status < 500, reply.body
    assert reply.status not in (408, 409, 429), reply.body
    assert 1 == len(world.exchanges)
