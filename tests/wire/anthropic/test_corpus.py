"""Recorded responses and requests of the ``anthropic`` dialect, beside an independent reading of each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire.anthropic.feeding import adopt, feed, merged, rewrite
from tests.wire.feeding import check, cuts, each_byte
from tests.wire.oracle import expected, found
from thinkback.model import canonical
from thinkback.model.blocks import Block, ThinkingBlock, Unknown, carriers_of
from thinkback.model.commits import decode_payload
from thinkback.wire.anthropic import raw_response, read_failure
from thinkback.wire.framing import guess_framing
from thinkback.wire.result import ReadResult

DIALECT = "anthropic"
_BYTEWISE_UP_TO = 100_000


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, opaque values, finish, usage, model and error are those of the recording."""
    response, raw = recorded_exchange.data["response"], recorded_exchange.body
    ran(recorded_exchange)
    if response["status"] >= 400:
        error, failed = recorded_exchange.expect["error"], read_failure(response["status"], json.loads(raw))
        assert (error["status"], error["message"]) == (failed.status, failed.message)
        assert (error["type"], error["code"]) == (failed.type or None, failed.code or None)
        return
    framing = guess_framing(response.get("content_type") or "", raw[:1])
    seed = random.randrange(2**32)
    print(f"cuts of seed {seed}")
    whole = feed([raw], framing)

    check(*whole)
    assert whole == feed(cuts(raw, seed), framing)
    if len(raw) <= _BYTEWISE_UP_TO:
        assert whole == feed(each_byte(raw), framing)
    assert expected(recorded_exchange.expect) == _read(whole[1])
    assert whole[1].response.complete


def _read(result: ReadResult) -> dict[str, Any]:
    """What was read, in the terms of the recording: inputs parsed, blocks by the name of their type."""
    read = found(result)
    read["calls"] = [(id, name, json.loads(arguments)) for id, name, arguments in read["calls"]]
    kinds = [_kind(result, block) for block in result.blocks]
    read["order"] = [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]
    return read


def _kind(result: ReadResult, block: Block) -> str:
    if isinstance(block, Unknown):
        return str(json.loads(block.wire)["type"])
    if isinstance(block, ThinkingBlock) and block.source_field == "redacted_thinking":
        return "redacted"
    return str(found(ReadResult(result.response, (block,), None))["order"][0])


@pytest.mark.corpus
def test_a_recorded_body_can_be_put_together_again(recorded_exchange: Exchange) -> None:
    """The raw response of a body that was not streamed is that body, whatever stood in it."""
    recorded = recorded_exchange.data["response"].get("body")
    if not isinstance(recorded, dict) or recorded.get("type") != "message":
        pytest.skip("streamed, or an error")

    assert recorded == raw_response(feed([recorded_exchange.body], "json")[1])


@pytest.mark.corpus
def test_a_recorded_request_is_written_again_as_it_was(recorded_exchange: Exchange) -> None:
    """A request that was read and written again is the same JSON value, as far as the provider can tell.

    It merges neighbouring user messages, and takes a system text for a list with that text.
    """
    request = recorded_exchange.data["request"]
    if request is None:
        pytest.skip("no request recorded")

    assert merged(request["body"]) == merged(rewrite(adopt(request["body"])))


@pytest.mark.corpus
def test_what_a_recorded_response_has_to_get_back_is_written_byte_for_byte(recorded_exchange: Exchange) -> None:
    """The blocks of a response, written into the next request, are the blocks of the unstreamed response."""
    response = recorded_exchange.data["response"]
    framing = guess_framing(response.get("content_type") or "", recorded_exchange.body[:1])
    result = feed([recorded_exchange.body], framing)[1]
    if not result.blocks:
        pytest.skip("an error")
    content = raw_response(result)["content"]

    message = {"role": "assistant", "content": content}
    written = rewrite(adopt({"model": "m", "messages": [message]}))

    assert [message] == written["messages"]
    sent = canonical.encode(written)
    for carrier in (carrier for block in result.blocks for carrier in carriers_of(block)):
        assert canonical.string(carrier.value) in sent


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

        check(*whole)
        assert whole == feed(cuts(bytes(damaged), seed), framing)
        raw_response(whole[1])
        for value in (*whole[1].blocks, whole[1].response):
            assert decode_payload(canonical.encode(value)) == value
