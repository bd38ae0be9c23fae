"""Random walks of several equal conversations at every provider, through a gateway that is begun again and again.

System prompts and tools grow, shrink, swap and come back meanwhile. A request is accepted, and carries reasoning of one
recorded conversation with its words alone: all of it where that is not bound, what is valid of it where it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.world.clients import CHAT_TOOL, RESULT, openai_client
from tests.world.gateway import gateway
from tests.world.mind import Json, dumps
from tests.world.server import PLACES, World
from thinkback.log.matching import CANDIDATES

QUESTIONS = ("What is the weather in Oslo?", "Why is that?", "And the weather in both?", "Thanks.")
WHOLE = frozenset({"kimi", "deepseek", "gemini", "ollama"})
"""Providers that get all reasoning of a conversation back."""
BOUND = "anthropic"
OTHER_TOOL: Json = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
TOOLS: tuple[list[Json], ...] = ([CHAT_TOOL], [CHAT_TOOL, OTHER_TOOL], [OTHER_TOOL, CHAT_TOOL])


class Prefix(NamedTuple):
    """What stands before the messages: a system message for each letter, and one of ``TOOLS``."""

    system: str
    tools: int


class Step(NamedTuple):
    """One request: of which conversation, behind what, and whether the gateway begins anew before it."""

    talk: int
    prefix: Prefix
    anew: bool


class Thought(NamedTuple):
    """A response: its number, what it was made behind, and the reasoning that its request carried."""

    serial: int
    prefix: Prefix
    carried: tuple[int, ...]


class Talk:
    """What a program keeps of a conversation, and its ``name`` and ``user``, which may be empty."""

    def __init__(self, name: str, user: str) -> None:
        self.name, self.user = name, user
        self.messages: list[Json] = []
        self.line: tuple[Thought, ...] = ()
        self.asked = 0

    def ask(self, client: openai.OpenAI, model: str, prefix: Prefix) -> None:
        """The next request of its tool loop, or question."""
        if not self.messages or self.messages[-1]["role"] == "assistant":
            self.messages.append({"role": "user", "content": QUESTIONS[min(self.asked, len(QUESTIONS) - 1)]})
            self.asked += 1
        system = [{"role": "system", "content": f"You are {letter}."} for letter in prefix.system]
        sent: Any = {"messages": [*system, *self.messages], "tools": TOOLS[prefix.tools]}
        headers = {"thinkback-conversation": self.name} if self.name else {}
        more: Any = {"user": self.user} if self.user else {}
        answer = client.chat.completions.create(model=model, extra_headers=headers, **sent, **more)
        message = answer.choices[0].message
        calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls or []]
        self.messages.append(
            {"role": "assistant", "content": message.content, **({"tool_calls": calls} if calls else {})}
        )
        self.messages += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]

    def words(self) -> bytes:
        """What is visible of it up to the model's last message; ids are told apart by nobody here."""
        end = max((at + 1 for at, each in enumerate(self.messages) if each["role"] == "assistant"), default=0)
        said = [
            [each["role"], each["content"], *(call["function"] for call in each.get("tool_calls", ()))]
            for each in self.messages[:end]
        ]
        return dumps([self.user, said])


def valid(line: Sequence[Thought], prefix: Prefix) -> list[int]:
    """What of a conversation may go behind ``prefix`` where reasoning is bound."""
    chain: list[int] = []
    for thought in line:
        if thought.prefix == prefix and tuple(chain) == thought.carried[len(thought.carried) - len(chain) :]:
            chain.append(thought.serial)
    return chain


def judge(
    provider: str, talk: Talk, known: Sequence[tuple[str, tuple[Thought, ...]]], prefix: Prefix, carried: list[int]
) -> tuple[Thought, ...]:
    """The recorded conversation that ``carried`` is of: of ``known``, each with its name. Fails where it is of none."""
    lines = [line for _, line in known] or [()]
    fitting = [line for line in lines if not set(carried) - {thought.serial for thought in line}]
    assert fitting, (carried, lines)
    order = [thought.serial for thought in fitting[-1]]
    assert carried == [serial for serial in order if serial in carried]
    own = [line for name, line in known if talk.name and name == talk.name]
    if own:
        assert any(line in own for line in fitting), (talk.name, carried, own)
    if provider in WHOLE:
        assert any(carried == [thought.serial for thought in line] for line in fitting), (carried, fitting)
    among = own or lines
    if provider == BOUND and len(lines) <= CANDIDATES:
        here = [valid(line, prefix) for line in among if line and line[-1].prefix == prefix]
        assert len(carried) >= max(map(len, here), default=0), (carried, here)
    return talk.line if talk.line in fitting else fitting[-1]


STEPS = st.lists(
    st.builds(
        Step,
        st.integers(0, 3),
        st.builds(Prefix, st.sampled_from(["A", "A", "C", "AB", "BA", ""]), st.sampled_from([0, 0, 1, 2])),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=2,
    max_size=14,
)
TALKS = st.lists(
    st.tuples(st.sampled_from(["", "", "first", "second"]), st.sampled_from(["", "", "ada"])), min_size=4, max_size=4
)


@pytest.mark.parametrize("provider", PLACES)
@settings(max_examples=2)
@given(steps=STEPS, talks=TALKS)
def test_a_request_carries_what_is_valid_of_one_conversation_with_its_words(
    provider: str, steps: list[Step], talks: list[tuple[str, str]]
) -> None:
    """Whatever its system prompts and tools were, and however often the gateway began anew."""
    model = f"{provider}/{PLACES[provider].model}"
    walkers = [Talk(name, user) for name, user in talks]
    known: dict[bytes, list[tuple[str, tuple[Thought, ...]]]] = {}
    with (
        World() as world,
        tempfile.TemporaryDirectory() as place,
        pytest.MonkeyPatch.context() as patch,
        ExitStack() as doors,
    ):
        patch.setenv("WORLD_KEY", "sk-of-the-world")
        client: openai.OpenAI | None = None
        for step in steps:
            if client is None or step.anew:
                doors.close()
                house = doors.enter_context(gateway(world, Path(place), store={"durability": "normal"}))
                client = openai_client(f"http://127.0.0.1:{house.port}/v1")
            talk = walkers[step.talk]
            before = talk.words()
            talk.ask(client, model, step.prefix)
            exchange = world.exchanges[-1]
            assert [200] * len(world.exchanges) == [each.status for each in world.exchanges]
            line = judge(provider, talk, known.get(before, []), step.prefix, exchange.carried)
            talk.line = (*line, Thought(exchange.serial, step.prefix, tuple(exchange.carried)))
            known.setdefault(talk.words(), []).append((talk.name, talk.line))
