"""Recorded responses and requests of the ``gemini-interactions`` dialect, beside an independent reading of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.gemini_interactions.feeding import adopt, feed, rewrite
from tests.wire.oracle import expected, found
from thinkback.model.blocks import Block
from thinkback.wire.gemini_interactions.read import raw_response
from thinkback.wire.result import ReadResult

DIALECT = "gemini-interactions"


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, signatures, finish, usage and model are those of the recording."""
    ran(recorded_exchange)
    result = recorded.read_alike(recorded_exchange, feed)
    assert _told(recorded_exchange.expect) == _read(result)


def _told(expect: dict[str, Any]) -> dict[str, Any]:
    """What the recording says, arguments parsed."""
    calls = [(call["id"], call["name"], call["arguments"]) for call in expect["tool_calls"]]
    return {**expected(expect), "calls": calls}


def _read(result: ReadResult) -> dict[str, Any]:
    """What was read, in the same terms: arguments parsed, other steps by their type."""
    read = found(result)
    read["calls"] = recorded.parsed(read["calls"])
    read["order"] = recorded.order(result, _kind)
    return read


def _kind(block: Block) -> str:
    return str(json.loads(block.wire)["type"])


@pytest.mark.corpus
def test_a_recorded_body_can_be_put_together_again(recorded_exchange: Exchange) -> None:
    """The raw response of a body that was not streamed is that body, whatever stood in it."""
    body = recorded_exchange.data["response"].get("body")
    if not isinstance(body, dict):
        pytest.skip("streamed")

    assert body == raw_response(feed([recorded_exchange.body], "json")[1])


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
    recorded.check_damage(recorded_exchange, feed)
