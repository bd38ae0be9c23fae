"""A conversation in which another process has a turn under way: the gateway neither waits nor refuses."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.servers.gateway.harness.engines import KEY, Plays, ask, engine
from thinkback.drive.clock import now
from thinkback.log.leases import Owner
from thinkback.log.protocol import MAIN
from thinkback.stores import open_store

FIRST = [{"role": "user", "content": "Why is the sky blue?"}]
SECOND = [*FIRST, {"role": "assistant", "content": "Rayleigh."}, {"role": "user", "content": "And at night?"}]


def test_a_step_beside_a_turn_of_another_process_goes_to_a_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is answered as ever, with the reasoning in its request; what the other process holds stays as it was,
    and the step stands behind it in a branch, where the next request finds it.
    """
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    message = {"role": "assistant", "content": "Rayleigh.", "reasoning_content": "Short waves scatter."}
    body = {"id": "1", "model": "served", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    log = open_store(":memory:")
    upstream = Plays(lambda sent: (200, "application/json", [json.dumps(body).encode()]))
    gateway = engine(upstream, {"deepseek": "http://deepseek.test/v1"}, log)

    def request(messages: list[dict[str, str]]) -> tuple[int, str]:
        kept = ask(gateway, "openai-chat", {"model": "deepseek/deepseek-v4-pro", "messages": messages})
        return kept.status, kept.notes.report.reattach

    request(FIRST)
    (info,) = log.list_sessions()
    log.leases.take(info.id, MAIN, Owner("another", 4711, "", "", "elsewhere"), 60_000_000, now())

    assert (200, "complete") == request(SECOND)
    (kept,) = log.list_sessions()
    assert (info.id, info.head) == (kept.id, kept.head)
    (beside,) = [branch for branch in log.refs.list(info.id) if branch.name != MAIN]
    kinds = [commit.kind for commit in log.read(info.id, branch=beside.name)]
    assert 2 * ["user", "reasoning", "assistant"] == [
        kind for kind in kinds if kind in ("user", "reasoning", "assistant")
    ]
    third = [*SECOND, {"role": "assistant", "content": "Rayleigh."}, {"role": "user", "content": "And on Mars?"}]
    assert (200, "complete") == request(third)
    asyncio.run(gateway.close())
