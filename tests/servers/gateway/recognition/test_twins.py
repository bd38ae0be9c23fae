"""Conversations with equal words and ids of calls, through a gateway: each gets one back, whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers.gateway.harness.engines import GRANT, Plays, ask, engine
from tests.twins import Counting, Recorded, body, expected
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.grant import Grant
from thinkback.stores import open_store

MODEL = "deepseek-v4-pro"
OTHER = msgspec.structs.replace(GRANT, key="another")


def made(host: Counting, place: str) -> Engine:
    """A gateway before ``host``, with its log at ``place``."""
    transport = Plays(lambda asked: (200, "application/json", [host.answer(asked)]))
    return engine(transport, {"deepseek": "http://deepseek.test"}, log=open_store(place))


class Twin(NamedTuple):
    """A conversation: its name (empty: none), its system prompt, and whose key it is."""

    name: str
    system: str
    grant: Grant


ORDER = st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 1)), max_size=14)
"""Which twin goes on, whether its gateway begins anew before, and which of two that share the log it asks."""
TWINS = st.builds(
    Twin, st.sampled_from(["", "a", "b"]), st.sampled_from(["", "Be brief."]), st.sampled_from([GRANT, OTHER])
)


@pytest.fixture(autouse=True)
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The upstream's key."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", "sk-any")


@settings(deadline=None, max_examples=25)
@given(st.lists(TWINS, min_size=2, max_size=4), ORDER)
def test_each_request_carries_the_reasoning_of_one_whole_conversation_of_its_key(
    new_log: Callable[[], str], twins: list[Twin], order: list[tuple[int, bool, int]]
) -> None:
    """Interleaved at will, by two gateways on one log, over restarts: the one that is nearest, never another key's."""
    host, log = Counting(), new_log()
    houses = [made(host, log), made(host, log)]
    known = {GRANT.key: list[Recorded](), OTHER.key: list[Recorded]()}
    steps = [0] * len(twins)
    for number, (which, begins_anew, house) in enumerate(order):
        at = which % len(twins)
        name, system, grant = twins[at]
        if begins_anew:
            houses[house].logs.close()
            houses[house] = made(host, log)
        headers = {"thinkback-conversation": name} if name else {}
        reply = ask(houses[house], "openai-chat", body(steps[at], system, MODEL), grant=grant, headers=headers)
        before = expected(known[grant.key], steps[at], (name, system, None)) if steps[at] else ()
        assert list(before) == host.sent[-1]
        assert ("complete" if before else "not-needed") == reply.headers["thinkback-reattach"]
        steps[at] += 1
        known[grant.key].append(Recorded(steps[at], (name, system, None), (*before, f"thought {number}")))
    for each in houses:
        each.logs.close()


def test_a_hundred_conversations_with_a_name_each_get_their_own(new_log: Callable[[], str]) -> None:
    """Whoever was the last."""
    host = Counting()
    house = made(host, new_log())
    for steps in (0, 1):
        for at in range(100):
            ask(house, "openai-chat", body(steps, model=MODEL), headers={"thinkback-conversation": f"sample {at}"})
    house.logs.close()
    assert [[f"thought {at}"] for at in range(100)] == host.sent[100:]
