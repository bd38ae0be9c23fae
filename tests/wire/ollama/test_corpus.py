"""Recorded exchanges: responses read whole, byte by byte and at random cuts; requests read and written again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.feeding import without_empty_calls
from tests.wire.ollama.feeding import feed, rewritten
from tests.wire.oracle import expected, found, order

DIALECT = "ollama"


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, opaque values, finish, usage, model and error are those of the recording."""
    ran(recorded_exchange)
    result = recorded.read_alike(recorded_exchange, feed)
    read = found(result)
    read["calls"] = recorded.parsed(read["calls"])
    # The recording does not count the blank lines behind a lone closing tag as a text of their own.
    read["order"] = order(tuple(block for block in result.blocks if getattr(block, "text", "-").strip()))
    assert expected(recorded_exchange.expect) == read


@pytest.mark.corpus
def test_a_recorded_request_is_written_as_it_was(recorded_exchange: Exchange) -> None:
    """Messages, tools and parameters are the same JSON value; only an empty list of calls is left out."""
    request = recorded_exchange.data["request"]

    assert without_empty_calls(request["body"]) == rewritten(request["body"])


@pytest.mark.corpus
def test_a_damaged_recording_is_read_without_an_exception(recorded_exchange: Exchange) -> None:
    """Bytes cut out, doubled or replaced: a result all the same, equal at any cut, and every value has bytes."""
    recorded.check_damage(recorded_exchange, feed)
