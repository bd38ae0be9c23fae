"""Logs to walk through: the same two questions at every provider, played by the library and by way of the gateway."""

from __future__ import annotations

from pathlib import Path

import thinkback
from tests.world.clients import KEY, QUESTION, chat_loop, openai_client
from tests.world.gateway import gateway
from tests.world.mind import Json, Mood
from tests.world.server import PLACES, World
from thinkback.errors import NetworkError

BOTH = "And the weather in both Oslo and Rome?"


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 4 degrees, rain"


def play(world: World, db: Path) -> list[str]:
    """A session at each provider, by the library: a tool loop whole, two parallel calls streamed, a stream that was
    left, one that broke; two of them with a second branch. Gives the names of the sessions.
    """
    with thinkback.open(db, rules={}, settings={}) as store:
        for name, place in PLACES.items():
            session = store.session(
                name, endpoint=place.endpoint, model=place.model, base_url=world.url(name), api_key=KEY
            )
            session.commit("You are terse.", kind="system")
            session.chat(QUESTION, tools=[get_weather])
            with session.stream(BOTH, tools=[get_weather]) as stream:
                assert list(stream)
            with session.stream("Why?", tools=[get_weather]) as left:
                next(iter(left))
            world.mood = Mood(breaks_after=2)
            try:
                session.chat("And why that?", tools=[get_weather])
            except NetworkError:
                pass
            finally:
                world.mood = Mood()
            session.chat("Thanks.", tools=[get_weather])
            if name in ("kimi", "anthropic"):
                session.branches.branch("aside", switch=True)
                session.chat("And aside?", tools=[get_weather])
                session.branches.switch("main")
        return [info.name for info in store.sessions()]


def play_by_gateway(world: World, place: Path) -> list[str]:
    """The same questions of a forgetful client of chat completions, to each provider."""
    with gateway(world, place) as house:
        client = openai_client(f"http://127.0.0.1:{house.port}/v1")
        for name, provider in PLACES.items():
            messages: list[Json] = [{"role": "system", "content": f"You are at {name}."}]
            for question in (QUESTION, BOTH):
                chat_loop(client, f"{name}/{provider.model}", messages, question)
    with thinkback.open(place / "default.db", rules={}, settings={}) as store:
        return [info.name for info in store.sessions()]
