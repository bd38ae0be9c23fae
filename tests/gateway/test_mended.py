"""What the gateway mends since it knows the place: a program of one host's dialect before another of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.harness.running import Running, running
from thinkback.gateway.running.server import Start
from thinkback.referee import Referee

MODEL = "deepseek-anthropic/deepseek-v4-pro"


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    """DeepSeek's Messages."""
    with Referee() as made:
        yield made


@pytest.fixture(scope="module")
def house(referee: Referee, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway before it."""
    place = tmp_path_factory.mktemp("mended")
    (place / "key").write_text("sk-any")
    (place / "key").chmod(0o600)
    name = "deepseek-anthropic"
    upstreams = {name: {"endpoint": name, "base_url": referee.base_url(name), "key_file": str(place / "key")}}
    with running(
        Start().opens, server={"no_auth": True}, store={"path": str(place / "store")}, upstreams=upstreams
    ) as made:
        yield made


def asked(house: Running, referee: Referee, **body: Any) -> tuple[int, list[int], Any, str]:
    """The status, those of the provider, what it got last, and what was left out."""
    before = len(referee.requests)
    reply = house.ask("/v1/messages", {"model": MODEL, "max_tokens": 4000, **body}, key=None)
    got = referee.requests[before:]
    return reply.status, [each.status for each in got], got[-1].body, reply.headers.get("thinkback-left-out", "")


def test_a_system_message_among_others_becomes_the_users_where_the_host_has_no_such_role(
    house: Running, referee: Referee
) -> None:
    """Claude Code sends them; the first system stays on top, and nothing is refused on the way."""
    said = [{"type": "text", "text": "Now it is late."}]
    messages = [{"role": "user", "content": "Hello."}, {"role": "system", "content": said}]
    status, seen, body, _ = asked(house, referee, system="Be brief.", messages=messages)

    assert (200, [200], True) == (status, seen, "Be brief." in str(body["system"]))
    assert ["user", "user"] == [message["role"] for message in body["messages"]]
    assert "Now it is late." in str(body["messages"][1]["content"])


def test_adaptive_thinking_becomes_the_way_of_thinking_that_the_host_knows(house: Running, referee: Referee) -> None:
    """It thinks by itself; the effort stays, and what was left out is named."""
    thinking = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
    status, seen, body, left = asked(house, referee, messages=[{"role": "user", "content": "Hello."}], **thinking)

    assert (200, [200], {"effort": "high"}) == (status, seen, body["output_config"])
    assert "adaptive" not in str(body)
    assert "thinking.type" in left
