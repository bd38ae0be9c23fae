"""Recorded exchanges: responses read whole, byte by byte and at random cuts; requests read and written again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from tests.exchanges import Exchange
from tests.wire.feeding import check, cuts, each_byte, without_empty_calls
from tests.wire.ollama.feeding import feed, rewritten
from tests.wire.oracle import expected, found, order
from thinkback.model import canonical
from thinkback.model.commits import decode_payload
from thinkback.wire.framing import guess_framing

DIALECT = "ollama"
_BYTEWISE_UP_TO = 100_000


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, opaque values, finish, usage, model and error are those of the recording."""
    raw = recorded_exchange.body
    ran(recorded_exchange)
    framing = guess_framing(recorded_exchange.data["response"].get("content_type") or "", raw[:1])
    seed = random.randrange(2**32)
    print(f"cuts of seed {seed}")
    whole = feed([raw], framing)

    check(*whole)
    assert whole == feed(cuts(raw, seed), framing)
    if len(raw) <= _BYTEWISE_UP_TO:
        assert whole == feed(each_byte(raw), framing)
    read = found(whole[1])
    read["calls"] = [(id, name, json.loads(source)) for id, name, source in read["calls"]]
    # The recording does not count the blank lines behind a lone closing tag as a text of their own.
    read["order"] = order(tuple(block for block in whole[1].blocks if getattr(block, "text", "-").strip()))
    assert expected(recorded_exchange.expect) == read


@pytest.mark.corpus
def test_a_recorded_request_is_written_as_it_was(recorded_exchange: Exchange) -> None:
    """Messages, tools and parameters are the same JSON value; only an empty list of calls is left out."""
    request = recorded_exchange.data["request"]

    assert without_empty_calls(request["body"]) == rewritten(request["body"])


@pytest.mark.corpus
def test_a_damaged_recording_is_read_without_an_exception(recorded_exchange: Exchange) -> None:
    """Bytes cut out, doubled or replaced: a result all the same, equal at any cut, and every value has bytes."""
    raw = recorded_exchange.body[:20_000]
    framing = guess_framing(recorded_exchange.data["response"].get("content_type") or "", raw[:1])
    seed = random.randrange(2**32)
    print(f"damage of seed {seed}")
    chance = random.Random(seed)
    for _ in range(5):
        damaged = bytearray(raw)
        for _ in range(chance.randint(1, 4)):
            at, length = chance.randrange(len(damaged) + 1), chance.choice((0, 1, 8, 300))
            damaged[at : at + length] = chance.choice(
                (b"", chance.randbytes(3), damaged[at : at + length] * 2, b'"', b"}", b"\\ud83d")
            )
        whole = feed([bytes(damaged)], framing)

        assert whole == feed(cuts(bytes(damaged), seed), framing)
        for value in (*whole[1].blocks, whole[1].response):
            assert decode_payload(canonical.encode(value)) == value
