"""Recorded responses and requests of the ``anthropic`` dialect, beside an independent reading of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.anthropic.feeding import adopt, feed, merged, rewrite
from tests.wire.feeding import check
from tests.wire.oracle import expected, found
from thinkback.model import canonical
from thinkback.model.blocks import Block, ThinkingBlock, Unknown, carriers_of
from thinkback.wire.anthropic.events import read_failure
from thinkback.wire.anthropic.read import raw_response
from thinkback.wire.result import ReadResult

DIALECT = "anthropic"


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, opaque values, finish, usage, model and error are those of the recording."""
    ran(recorded_exchange)
    if recorded.is_refused(recorded_exchange):
        recorded.check_refusal(recorded_exchange, read_failure)
        return
    result = recorded.read_alike(recorded_exchange, feed)
    assert expected(recorded_exchange.expect) == _read(result)
    assert result.response.complete


def _read(result: ReadResult) -> dict[str, Any]:
    """What was read, in the terms of the recording: inputs parsed, blocks by the name of their type."""
    read = found(result)
    read["calls"] = recorded.parsed(read["calls"])
    kinds = [_kind(result, block) for block in result.blocks]
    read["order"] = recorded.without_repeats(kinds)
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
    body = recorded_exchange.data["response"].get("body")
    if not isinstance(body, dict) or body.get("type") != "message":
        pytest.skip("streamed, or an error")

    assert body == raw_response(feed([recorded_exchange.body], "json")[1])


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
    framing = recorded.framing_of(recorded_exchange)
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
    for whole in recorded.check_damage(recorded_exchange, feed):
        check(*whole)
        raw_response(whole[1])
