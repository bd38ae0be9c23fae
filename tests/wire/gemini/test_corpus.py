"""Recorded responses and requests of the ``gemini`` dialect, beside an independent reading of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.gemini.feeding import adopt, feed, rewrite
from tests.wire.oracle import expected, found
from thinkback.model.blocks import Block
from thinkback.wire.gemini.read import raw_response
from thinkback.wire.result import ReadResult

DIALECT = "gemini"


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, signatures, finish, usage and model are those of the recording."""
    ran(recorded_exchange)
    result = recorded.read_alike(recorded_exchange, feed)
    assert _told(recorded_exchange.expect) == _read(result)


def _told(expect: dict[str, Any]) -> dict[str, Any]:
    """What the recording says; calls without an id are null there, and a fault in ``finishReason`` is no error."""
    told = expected(expect)
    told["calls"] = [(id or "", name, arguments) for id, name, arguments in told["calls"]]
    told["error"] = told["finish"] == "UNEXPECTED_TOOL_CALL"
    return told


def _read(result: ReadResult) -> dict[str, Any]:
    """What was read, in the same terms: arguments parsed, parts by the name of their field."""
    read = found(result)
    read["calls"] = recorded.parsed(read["calls"])
    read["error"] = read["error"] is not None
    read["order"] = recorded.order(result, _kind)
    return read


def _kind(block: Block) -> str:
    part: dict[str, Any] = json.loads(block.wire)
    return next(key for key in part if key not in ("thought", "thoughtSignature"))


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

    assert _same(request["body"]) == rewrite(adopt(request["body"]))


def _same(request: dict[str, Any]) -> dict[str, Any]:
    """The request but for what is written in another way on purpose.

    A field of a tool or an instruction that is null says nothing and is left out; neighbouring contents of the model
    are one response and become one content.
    """
    same = {key: value for key, value in request.items() if key != "systemInstruction" or value is not None}
    if same.get("tools"):
        tools = [{key: value for key, value in tool.items() if value is not None} for tool in same["tools"]]
        same["tools"] = tools
    contents: list[dict[str, Any]] = []
    for content in same["contents"]:
        if contents and content["role"] == contents[-1]["role"] == "model":
            contents[-1] = {**content, "parts": [*contents[-1]["parts"], *content["parts"]]}
        else:
            contents.append(content)
    return {**same, "contents": contents}


@pytest.mark.corpus
def test_a_damaged_recording_is_read_without_an_exception(recorded_exchange: Exchange) -> None:
    """Bytes cut out, doubled or replaced: a result all the same, equal at any cut, and every value has bytes."""
    recorded.check_damage(recorded_exchange, feed)
