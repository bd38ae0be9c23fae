"""Laws that recorded exchanges of every dialect obey, whatever stands in them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from tests.exchanges import Exchange
from tests.wire.feeding import check, cuts, each_byte
from tests.wire.oracle import expected, found
from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, carriers_of
from thinkback.model.commits import Failure, decode_payload
from thinkback.model.deltas import Delta
from thinkback.wire.framing import Framing, guess_framing
from thinkback.wire.result import ReadRequest, ReadResult

Feed: TypeAlias = Callable[[Iterable[bytes], Framing], tuple[list[Delta], ReadResult]]
_BYTEWISE_UP_TO = 100_000
_DAMAGED_UP_TO = 20_000


def framing_of(exchange: Exchange) -> Framing:
    """What the body of the response is made of."""
    return guess_framing(exchange.data["response"].get("content_type") or "", exchange.body[:1])


def is_refused(exchange: Exchange) -> bool:
    """Whether the provider answered with an error instead of a response."""
    return bool(exchange.data["response"]["status"] >= 400)


def check_refusal(exchange: Exchange, read_failure: Callable[[int, Any], Failure]) -> None:
    """The words, the type and the code of the error are those of the recording."""
    error = exchange.expect["error"]
    failed = read_failure(exchange.data["response"]["status"], json.loads(exchange.body))
    assert (error["status"], error["message"]) == (failed.status, failed.message)
    assert (error["type"], error["code"]) == (failed.type or None, failed.code or None)


def read_alike(exchange: Exchange, feed: Feed) -> ReadResult:
    """The result of the body, which is the same whole, byte by byte and at random cuts, and obeys the laws."""
    raw, framing = exchange.body, framing_of(exchange)
    seed = random.randrange(2**32)
    print(f"cuts of seed {seed}")
    whole = feed([raw], framing)

    check(*whole)
    assert whole == feed(cuts(raw, seed), framing)
    if len(raw) <= _BYTEWISE_UP_TO:
        assert whole == feed(each_byte(raw), framing)
    return whole[1]


def check_damage(exchange: Exchange, feed: Feed) -> list[tuple[list[Delta], ReadResult]]:
    """With bytes cut out, doubled or replaced there is a result all the same, equal at any cut, and it has bytes.

    What was read of each damaged body is returned.
    """
    raw, framing = exchange.body[:_DAMAGED_UP_TO], framing_of(exchange)
    seed = random.randrange(2**32)
    print(f"damage of seed {seed}")
    chance = random.Random(seed)
    found = []
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
        found.append(whole)
    return found


def without_repeats(kinds: Iterable[str]) -> list[str]:
    """Equal neighbours as one."""
    listed = list(kinds)
    return [kind for at, kind in enumerate(listed) if at == 0 or listed[at - 1] != kind]


def parsed(calls: Iterable[tuple[str, str, Any]]) -> list[tuple[str, str, Any]]:
    """Calls with their arguments as values; streams have them as text."""
    return [(id, name, json.loads(given) if isinstance(given, str) else given) for id, name, given in calls]


def order(result: ReadResult, kind_of: Callable[[Block], str]) -> list[str]:
    """Kinds of the blocks, equal neighbours as one; ``kind_of`` names those that are not understood."""
    kinds = [found(ReadResult(result.response, (block,), None))["order"][0] for block in result.blocks]
    named = zip(kinds, result.blocks, strict=True)
    return without_repeats(kind_of(block) if kind == "other" else kind for kind, block in named)


def counted(result: ReadResult) -> dict[str, Any]:
    """What was read, as recordings count it: blank texts are no part of the order, arguments are values."""
    said = tuple(block for block in result.blocks if not (isinstance(block, Text) and not block.text.strip()))
    read = found(result)
    read["order"] = found(msgspec.structs.replace(result, blocks=said))["order"]
    return {**read, "calls": parsed(read["calls"])}


def told(expect: dict[str, Any]) -> dict[str, Any]:
    """What the recording says in the same terms; redacted reasoning is reasoning."""
    said = expected(expect)
    kinds = ["reasoning" if kind == "redacted" else kind for kind in said["order"]]
    return {**said, "order": without_repeats(kinds), "calls": parsed(said["calls"])}


def check_request(
    exchange: Exchange, adopt: Callable[[Any], ReadRequest], rewritten: Callable[[Any], dict[str, Any]]
) -> None:
    """The request is written again as the same value, and each opaque value of it was found."""
    if exchange.data["request"] is None:
        return
    body = exchange.data["request"]["body"]

    assert {key: value for key, value in body.items() if key != "system" or value} == rewritten(body)
    blocks = [draft.value for draft in adopt(body).drafts if draft.index >= 0]
    opaque = [carrier.value for block in blocks for carrier in carriers_of(block)]  # type: ignore[arg-type]
    assert exchange.data.get("request_replay", {}).get("signatures", 0) <= len(opaque)
    assert all(json.dumps(value) in json.dumps(body) for value in opaque)
