"""The judge of several gateways at once: what it counts as lost, doubled and not recognised."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from typing import Any

from bench.machines import Outcome, Provider, Seen, rows


def test_what_is_lost_doubled_or_not_recognised_is_counted() -> None:
    """An answer counts by its response and its words; what was never acknowledged may be there."""
    fine, lost, forgotten = Outcome("r1", "1", "complete"), Outcome("r2", "2", "not-needed"), Outcome("r3", "3", "none")
    there = Counter({("r1", "1"): 1, ("r3", "3"): 2, ("r4", "4"): 1, ("r2", "other"): 1})
    seen = Seen([fine, lost, forgotten], Counter(), ["a"], Counter(), there, [])
    short = {name: figure for name, figure, good in rows(seen) if good is False}

    assert ([lost], [("r3", "3")], [forgotten]) == (seen.lost, seen.doubled, seen.unrecognised)
    assert [1, 1, 1, 1] == list(short.values())
    well = Seen([fine], Counter(), [], Counter(), Counter({("r1", "1"): 1}), [])
    assert [] == [name for name, _, good in rows(well) if good is False]


def test_the_provider_refuses_a_request_without_the_reasoning_of_an_answer() -> None:
    """That of the very answer, and no other."""
    provider = Provider()

    def ask(reasoning: str) -> int:
        answered: dict[str, Any] = {"role": "assistant", "content": "Said mark-7.", "reasoning_content": reasoning}
        body = {"messages": [{"role": "user", "content": "q"}, answered, {"role": "user", "content": "r"}]}
        connection = http.client.HTTPConnection(provider.server.address, timeout=20)
        connection.request("POST", "/v1/chat/completions", json.dumps(body).encode())
        status = connection.getresponse().status
        connection.close()
        return status

    with provider.server:
        assert [200, 400, 400] == [ask("Thought of mark-7."), ask(""), ask("Thought of mark-8.")]
    assert 2 == len(provider.refused)
