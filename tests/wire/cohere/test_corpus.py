"""Recorded exchanges with Cohere, read whole, byte by byte and at random cuts, and their requests written again."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.cohere.feeding import feed, reread, rewritten
from thinkback.wire.cohere.events import read_failure
from thinkback.wire.cohere.read import raw_response

DIALECT = "cohere"


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, opaque values, finish, usage and error are those of the recording."""
    ran(recorded_exchange)
    if recorded.is_refused(recorded_exchange):
        failed = read_failure(recorded_exchange.data["response"]["status"], json.loads(recorded_exchange.body))
        assert recorded_exchange.expect["error"]["message"] == failed.message
        return
    result = recorded.read_alike(recorded_exchange, feed)
    if not recorded_exchange.expect.get("ambiguous"):
        assert recorded.told(recorded_exchange.expect) == recorded.counted(result)
    if recorded.framing_of(recorded_exchange) == "json":
        assert json.loads(recorded_exchange.body) == raw_response(result)


@pytest.mark.corpus
def test_a_recorded_request_is_written_as_recorded(recorded_exchange: Exchange) -> None:
    """Messages, tools and system are the same values, and so is every opaque value; an empty system is none."""
    recorded.check_request(recorded_exchange, reread, rewritten)


@pytest.mark.corpus
def test_a_damaged_recording_is_read_without_an_exception(recorded_exchange: Exchange) -> None:
    """Bytes cut out, doubled or replaced: a result all the same, equal at any cut, and every value has bytes."""
    recorded.check_damage(recorded_exchange, feed)
