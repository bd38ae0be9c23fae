"""Conversations with equal words, interleaved at will, over restarts: a request carries one of them, whole."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinkback
from tests.world.clients import CHAT_TOOL, KEY, RESULT, openai_client
from tests.world.gateway import gateway
from tests.world.mind import Json
from tests.world.server import PLACES, World

QUESTIONS = ("What is the weather in Oslo?", "And the weather in both?", "Thanks.")
SEGMENTS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=3)
"""Which conversation goes on, in runs of the program."""


@pytest.fixture(autouse=True, scope="module")
def key() -> Iterator[None]:
    """The gateway's key for the stand-ins, and its secret."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORLD_KEY", "sk-of-the-world")
        patch.setenv("WORLD_SECRET", "5" * 64)
        yield


class Talk:
    """What a program keeps of one conversation: words and calls; ``chain`` is the reasoning that the log has of it."""

    def __init__(self, name: str, user: str) -> None:
        self.name, self.user = name, user
        self.messages: list[Json] = []
        self.chain: list[int] = []
        self._asked = 0

    def go_on(self, client: openai.OpenAI, model: str, world: World) -> list[int]:
        """One request; what it carried."""
        if not self.messages or self.messages[-1]["role"] == "assistant":
            self.messages.append({"role": "user", "content": QUESTIONS[min(self._asked, 2)]})
            self._asked += 1
        sent: Any = {"messages": self.messages, "tools": [CHAT_TOOL], **({"user": self.user} if self.user else {})}
        with thinkback.conversation(self.name) if self.name else nullcontext():
            message = client.chat.completions.create(model=model, **sent).choices[0].message
        calls = message.tool_calls or []
        kept = [call.model_dump(include={"id", "type", "function"}) for call in calls]
        self.messages.append(
            {"role": "assistant", "content": message.content, **({"tool_calls": kept} if kept else {})}
        )
        self.messages += [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in calls]
        carried = world.exchanges[-1].carried
        self.chain = [*carried, world.exchanges[-1].serial]
        return carried


def go_on_at_will(
    segments: Sequence[Sequence[int]],
    talks: Sequence[Talk],
    door: Callable[[], AbstractContextManager[openai.OpenAI]],
    model: str,
    world: World,
) -> None:
    """What each request carries is a chain that was recorded, of the same user; a name gets its own."""
    recorded: dict[str, list[list[int]]] = {talk.user: [[]] for talk in talks}
    for segment in segments:
        with door() as client:
            for number in segment:
                talk = talks[number]
                own = talk.chain
                carried = talk.go_on(client, model, world)

                assert len(own) == len(carried), (own, carried)
                assert carried in recorded[talk.user], (carried, recorded)
                assert carried == own or not talk.name, (own, carried)
                recorded[talk.user].append(talk.chain)


def tool(city: str) -> str:
    """The weather in a city."""
    return RESULT


@settings(max_examples=6)
@given(segments=SEGMENTS, questions=st.lists(st.integers(1, 3), min_size=4, max_size=4))
def test_twins_by_the_library(new_log: Callable[[], str], segments: list[list[int]], questions: list[int]) -> None:
    """Sessions with equal words, over programs that open the log again: each carries its own reasoning, all of it."""
    log, place = new_log(), PLACES["kimi"]
    own: dict[int, list[int]] = {}
    with World() as world:
        for segment in segments:
            with thinkback.open(log, rules={}, settings={}, durability="normal") as store:
                for number in segment:
                    name = f"talk-{number}"
                    session = store.session(
                        name, endpoint="kimi", model=place.model, base_url=world.url("kimi"), api_key=KEY
                    )
                    before = len(world.exchanges)
                    session.chat(QUESTIONS[min(len(own.setdefault(number, [])), questions[number] - 1)], tools=[tool])
                    for exchange in world.exchanges[before:]:
                        assert own[number] == exchange.carried
                        own[number].append(exchange.serial)


@settings(max_examples=6)
@given(segments=SEGMENTS, named=st.lists(st.booleans(), min_size=4, max_size=4))
def test_twins_by_the_transport(new_log: Callable[[], str], segments: list[list[int]], named: list[bool]) -> None:
    """With names and without, over new clients on the same log."""
    log = new_log()
    with World() as world:

        @contextmanager
        def door() -> Iterator[openai.OpenAI]:
            with thinkback.http_client(log, endpoint="kimi", durability="normal") as http:
                yield openai_client(world.url("kimi"), http)

        talks = [Talk(f"talk-{number}" if is_named else "", "") for number, is_named in enumerate(named)]
        go_on_at_will(segments, talks, door, PLACES["kimi"].model, world)


@settings(max_examples=4)
@given(
    segments=SEGMENTS,
    users=st.lists(st.sampled_from(["", "ada", "bob"]), min_size=4, max_size=4),
    provider=st.sampled_from(["kimi", "deepseek", "gemini", "ollama"]),
)
def test_twins_by_the_gateway(
    new_log: Callable[[], str], segments: list[list[int]], users: list[str], provider: str
) -> None:
    """Of several end users, over restarts; calls have ids that repeat, or none."""
    log = new_log()
    store = {"url": log} if "://" in log else {"path": str(Path(log).parent)}
    with World() as world, tempfile.TemporaryDirectory() as place:

        @contextmanager
        def door() -> Iterator[openai.OpenAI]:
            kept = {"durability": "normal", **store}
            with gateway(world, Path(place), store=kept, secrets={"current": "env:WORLD_SECRET"}) as house:
                yield openai_client(f"http://127.0.0.1:{house.port}/v1")

        talks = [Talk("", user) for user in users]
        go_on_at_will(segments, talks, door, f"{provider}/{PLACES[provider].model}", world)
