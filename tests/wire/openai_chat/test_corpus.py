"""Recorded responses, read whole, byte by byte and at random cuts, beside an independent reading of each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.feeding import feed
from tests.wire.oracle import expected, found
from thinkback.wire.openai_chat.chunks import read_failure

DIALECT = "openai-chat"


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, opaque values, finish, usage, model and error are those of the recording."""
    ran(recorded_exchange)
    if recorded.is_refused(recorded_exchange):
        recorded.check_refusal(recorded_exchange, read_failure)
        return
    result = recorded.read_alike(recorded_exchange, feed)
    if not recorded_exchange.expect.get("ambiguous"):
        assert expected(recorded_exchange.expect) == found(result)


@pytest.mark.corpus
def test_a_damaged_recording_is_read_without_an_exception(recorded_exchange: Exchange) -> None:
    """Bytes cut out, doubled or replaced: a result all the same, equal at any cut, and every value has bytes."""
    recorded.check_damage(recorded_exchange, feed)
