"""System prompts and tools that grow, shrink, swap and come back: a bound thought goes back where it is valid, only."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinkback
from tests.world.clients import claude_client, claude_turn
from tests.world.gateway import gateway
from tests.world.mind import Json
from tests.world.server import PLACES, Exchange, World

MODEL = PLACES["anthropic"].model


class Prefix(NamedTuple):
    """What stands before the messages."""

    system: str
    tools: str

    @property
    def sent(self) -> Json:
        """As parameters of the SDK."""
        system = [{"type": "text", "text": f"You are {part}."} for part in self.system]
        tools = [{"name": f"tool_{name}", "input_schema": {"type": "object"}} for name in self.tools]
        return {**({"system": system} if system else {}), **({"tools": tools} if tools else {})}


PREFIXES = st.builds(Prefix, st.sampled_from(["A", "C", "AB", "BA", ""]), st.sampled_from(["", "x", "xy"]))
TURNS = st.lists(PREFIXES, min_size=2, max_size=6)


@pytest.fixture(autouse=True, scope="module")
def key() -> Iterator[None]:
    """The gateway's key for the stand-ins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORLD_KEY", "sk-of-the-world")
        yield


def valid(turns: Sequence[Prefix], sent: Sequence[Exchange]) -> list[list[int]]:
    """What each request may carry: the thoughts made behind this prefix and behind the thoughts before them, all of
    which, or the last of which, are sent.
    """
    found: list[list[int]] = []
    for turn, prefix in enumerate(turns):
        chain: list[int] = []
        for before in range(turn):
            minted = found[before]
            if turns[before] == prefix and chain == minted[len(minted) - len(chain) :]:
                chain.append(sent[before].serial)
        found.append(chain)
    return found


def judge(turns: Sequence[Prefix], world: World) -> None:
    """Nothing was refused, nothing that is valid was left out, and nothing else went."""
    assert [200] * len(turns) == [each.status for each in world.exchanges]
    assert valid(turns, world.exchanges) == [each.carried for each in world.exchanges]


@settings(max_examples=8)
@given(turns=TURNS, forgets=st.booleans())
def test_a_bound_thought_goes_back_behind_its_prefix_by_the_transport(turns: list[Prefix], forgets: bool) -> None:
    """Whether the program keeps the blocks or forgets them."""
    with World() as world, tempfile.TemporaryDirectory() as place:
        messages: list[Json] = []
        with thinkback.http_client(Path(place) / "log.db", endpoint="anthropic", durability="normal") as http:
            client = claude_client(f"{world.origin}/anthropic", http)
            for number, prefix in enumerate(turns):
                claude_turn(client, MODEL, messages, f"Question {number}", forgets=forgets, **prefix.sent)
        judge(turns, world)


@settings(max_examples=6)
@given(turns=TURNS, forgets=st.booleans())
def test_a_bound_thought_goes_back_behind_its_prefix_by_the_gateway(turns: list[Prefix], forgets: bool) -> None:
    """Which leaves the prompt and the tools where the client put them."""
    with World() as world, tempfile.TemporaryDirectory() as place:
        messages: list[Json] = []
        with gateway(world, Path(place), store={"durability": "normal"}) as house:
            client: Any = claude_client(f"http://127.0.0.1:{house.port}")
            for number, prefix in enumerate(turns):
                model = f"anthropic/{MODEL}"
                claude_turn(client, model, messages, f"Question {number}", forgets=forgets, **prefix.sent)
        judge(turns, world)
