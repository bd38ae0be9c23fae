"""Recorded responses, read whole, byte by byte and at random cuts, beside an independent reading of each."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire.feeding import calls, check, cuts, each_byte, feed
from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import decode_payload
from thinkback.wire.framing import guess_framing
from thinkback.wire.openai_chat.chunks import read_failure
from thinkback.wire.result import ReadResult

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
    if not recorded_exchange.expect.get("ambiguous"):
        assert expected(recorded_exchange.expect) == found(whole[1])


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


def expected(expect: dict[str, Any]) -> dict[str, Any]:
    """What the recording says, in the terms of ``found``."""
    error = expect.get("error")
    return {
        "reasoning": expect["reasoning_text"] or "",
        "answer": expect["answer_text"] or "",
        "calls": [(c["id"], c["name"], c.get("arguments_raw", c["arguments"])) for c in expect["tool_calls"]],
        "order": expect["order"],
        "signatures": expect["opaque_sha256"]["signatures"],
        "encrypted": expect["opaque_sha256"]["encrypted"],
        "usage": expect["usage"],
        "finish": expect["finish"],
        "model": expect["model"],
        "error": error and error["message"],
    }


def found(result: ReadResult) -> dict[str, Any]:
    """What was read."""
    usage, response = result.usage, result.response
    thoughts = [block for block in result.blocks if isinstance(block, ThinkingBlock)]
    return {
        "reasoning": "".join(block.thought for block in thoughts if not block.is_hidden),
        "answer": "".join(block.text for block in result.blocks if isinstance(block, Text)),
        "calls": calls(result),
        "order": order(result.blocks),
        "signatures": [prefix(block.signature) for block in thoughts if block.signature],
        "encrypted": [prefix(c.value) for block in thoughts for c in block.carriers if c.kind == "encrypted"],
        "usage": {name: getattr(usage, name, None) for name in ("input", "output", "reasoning")},
        "finish": response.finish,
        "model": response.origin.served_model or None,
        "error": response.error and response.error.message,
    }


def order(blocks: tuple[Block, ...]) -> list[str]:
    """Kinds of the blocks that are read, equal neighbours as one."""
    names = {Text: "text", ThinkingBlock: "reasoning", ToolCall: "tool_call"}
    kinds = [names[type(block)] for block in blocks if not (isinstance(block, ThinkingBlock) and block.is_hidden)]
    return [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]


def prefix(value: str) -> str:
    """The beginning of an opaque value's hash."""
    return hashlib.sha256(value.encode()).hexdigest()[:16]
