"""Recorded exchanges with Cohere, read whole, byte by byte and at random cuts, and their requests written again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.exchanges import Exchange
from tests.wire.cohere.feeding import feed, reread, rewritten
from tests.wire.feeding import check, cuts, each_byte
from tests.wire.oracle import expected, found
from thinkback.model import canonical
from thinkback.model.blocks import Text, carriers_of
from thinkback.model.commits import decode_payload
from thinkback.wire.cohere import raw_response, read_failure
from thinkback.wire.framing import guess_framing
from thinkback.wire.result import ReadResult

DIALECT = "cohere"
_BYTEWISE_UP_TO = 100_000


def as_recorded(result: ReadResult) -> dict[str, Any]:
    """What was read, as recordings count it: blank texts are no part of the order, arguments are values."""
    said = tuple(b for b in result.blocks if not (isinstance(b, Text) and not b.text.strip()))
    read = found(result)
    read["order"] = found(msgspec.structs.replace(result, blocks=said))["order"]
    read["calls"] = [(id, name, parsed(arguments)) for id, name, arguments in read["calls"]]
    return read


def as_expected(expect: dict[str, Any]) -> dict[str, Any]:
    """What the recording says; redacted reasoning is reasoning."""
    said = expected(expect)
    kinds = ["reasoning" if kind == "redacted" else kind for kind in said["order"]]
    said["order"] = [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]
    said["calls"] = [(id, name, parsed(arguments)) for id, name, arguments in said["calls"]]
    return said


def parsed(arguments: Any) -> Any:
    """Arguments as a value; streams have them as text."""
    return json.loads(arguments) if isinstance(arguments, str) else arguments


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, opaque values, finish, usage and error are those of the recording."""
    response, raw = recorded_exchange.data["response"], recorded_exchange.body
    ran(recorded_exchange)
    if response["status"] >= 400:
        failed = read_failure(response["status"], json.loads(raw))
        assert recorded_exchange.expect["error"]["message"] == failed.message
        return
    framing = guess_framing(response.get("content_type") or "", raw[:1])
    seed = random.randrange(2**32)
    print(f"cuts of seed {seed}")
    whole = feed([raw], framing)

    check(*whole)
    assert whole == feed(cuts(raw, seed), framing)
    if len(raw) <= _BYTEWISE_UP_TO:
        assert whole == feed(each_byte(raw), framing)
    if not recorded_exchange.expect.get("ambiguous"):
        assert as_expected(recorded_exchange.expect) == as_recorded(whole[1])
    if framing == "json":
        assert json.loads(raw) == raw_response(whole[1])


@pytest.mark.corpus
def test_a_recorded_request_is_written_as_recorded(recorded_exchange: Exchange) -> None:
    """Messages, tools and system are the same values, and so is every opaque value; an empty system is none."""
    request = recorded_exchange.data["request"]
    if request is None:
        return
    body = request["body"]
    wanted = {key: value for key, value in body.items() if key != "system" or value}

    assert wanted == rewritten(body)
    opaque = [carrier.value for draft in reread(body).drafts for carrier in carriers_of_draft(draft.value)]
    assert recorded_exchange.data.get("request_replay", {}).get("signatures", 0) <= len(opaque)
    assert all(json.dumps(value) in json.dumps(body) for value in opaque)


def carriers_of_draft(value: Any) -> Any:
    """The opaque values of a draft's value, if it is a block."""
    return carriers_of(value) if hasattr(value, "carriers") else ()


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
