"""Recorded responses and requests of the ``gemini-interactions`` dialect, beside an independent reading of each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire.feeding import check, cuts, each_byte
from tests.wire.gemini_interactions.feeding import adopt, feed, rewrite
from tests.wire.oracle import expected, found
from thinkback.model import canonical
from thinkback.model.blocks import Block, Unknown
from thinkback.model.commits import decode_payload
from thinkback.wire.framing import guess_framing
from thinkback.wire.gemini_interactions import raw_response
from thinkback.wire.result import ReadResult

DIALECT = "gemini-interactions"
_BYTEWISE_UP_TO = 100_000


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, signatures, finish, usage and model are those of the recording."""
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
    assert _told(recorded_exchange.expect) == _read(whole[1])


def _told(expect: dict[str, Any]) -> dict[str, Any]:
    """What the recording says, arguments parsed."""
    calls = [(call["id"], call["name"], call["arguments"]) for call in expect["tool_calls"]]
    return {**expected(expect), "calls": calls}


def _read(result: ReadResult) -> dict[str, Any]:
    """What was read, in the same terms: arguments parsed, other steps by their type."""
    read = found(result)
    read["calls"] = [(id, name, json.loads(arguments)) for id, name, arguments in read["calls"]]
    others = iter([_kind(block) for block in result.blocks if isinstance(block, Unknown)])
    kinds = _kinds(result, others)
    read["order"] = [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]
    return read


def _kinds(result: ReadResult, others: Iterator[str]) -> list[str]:
    order: list[str] = []
    for block in result.blocks:
        single = found(ReadResult(result.response, (block,), None))["order"][0]
        order.append(next(others) if single == "other" else single)
    return order


def _kind(block: Block) -> str:
    return str(json.loads(block.wire)["type"])


@pytest.mark.corpus
def test_a_recorded_body_can_be_put_together_again(recorded_exchange: Exchange) -> None:
    """The raw response of a body that was not streamed is that body, whatever stood in it."""
    recorded = recorded_exchange.data["response"].get("body")
    if not isinstance(recorded, dict):
        pytest.skip("streamed")

    assert recorded == raw_response(feed([recorded_exchange.body], "json")[1])


@pytest.mark.corpus
def test_a_recorded_request_is_written_again_as_it_was(recorded_exchange: Exchange) -> None:
    """A request that was read and written again is the same JSON value."""
    request = recorded_exchange.data["request"]
    if request is None:
        pytest.skip("no request recorded")

    assert request["body"] == rewrite(adopt(request["body"]))


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
