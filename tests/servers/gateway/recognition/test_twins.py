"""Conversations with equal words and ids of calls, through a gateway: each gets one back, whole."""

from __future__ import annotations

from pathlib import Path
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


def made(host: Counting, place: Path) -> Engine:
    """A gateway before ``host``, with its log at ``place``."""
    transport = Plays(lambda asked: (200, "application/json", [host.answer(asked)]))
    return engine(transport, {"deepseek": "http://deepseek.test"}, log=open_store(str(place)))


class Twin(NamedTuple):
    """A conversation: its name (empty: none), its system prompt, and whose key it is."""

    name: str
    system: str
    grant: Grant


TWINS = st.builds(
    Twin, st.sampled_from(["", "a", "b"]), st.sampled_from(["", "Be brief."]), st.sampled_from([GRANT, OTHER])
)


@pytest.fixture(autouse=True)
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The upstream's key."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", "sk-any")


@settings(deadline=None, max_examples=25)
@given(st.lists(TWINS, min_size=2, max_size=4), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=14))
def test_each_request_carries_the_reasoning_of_one_whole_conversation_of_its_key(
    tmp_path_factory: pytest.TempPathFactory, twins: list[Twin], order: list[tuple[int, bool]]
) -> None:
    """Interleaved at will, over restarts: the one that is nearest, never another key's."""
    host, log = Counting(), tmp_path_factory.mktemp("twins") / "log.db"
    house, known = made(host, log), {GRANT.key: list[Recorded](), OTHER.key: list[Recorded]()}
    steps = [0] * len(twins)
    for number, (which, begins_anew) in enumerate(order):
        at = which % len(twins)
        name, system, grant = twins[at]
        if begins_anew:
            house.logs.close()
            house = made(host, log)
        headers = {"thinkback-conversation": name} if name else {}
        reply = ask(house, "openai-chat", body(steps[at], system, MODEL), grant=grant, headers=headers)
        before = expected(known[grant.key], steps[at], (name, system, None)) if steps[at] else ()
        assert list(before) == host.sent[-1]
        assert ("complete" if before else "not-needed") == reply.headers["thinkback-reattach"]
        steps[at] += 1
        known[grant.key].append(Recorded(steps[at], (name, system, None), (*before, f"thought {number}")))
    house.logs.close()


def test_a_hundred_conversations_with_a_name_each_get_their_own(tmp_path: Path) -> None:
    """Whoever was the last."""
    host = Counting()
    house = made(host, tmp_path / "log.db")
    for steps in (0, 1):
        for at in range(100):
            ask(house, "openai-chat", body(steps, model=MODEL), headers={"thinkback-conversation": f"sample {at}"})
    house.logs.close()
    assert [[f"thought {at}"] for at in range(100)] == host.sent[100:]
