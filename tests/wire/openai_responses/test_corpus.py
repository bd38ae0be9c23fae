"""Recorded Responses exchanges: responses beside an independent reading, requests read and written again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.openai_responses.feeding import feed, rewritten
from tests.wire.oracle import expected, found
from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, content_slice
from thinkback.wire.openai_responses.blocks import wire_object
from thinkback.wire.openai_responses.events import read_failure
from thinkback.wire.openai_responses.read import raw_response

DIALECT = "openai-responses"
# Members that a response has and a request must not, or need not, have.
_OUTPUT_ONLY = {"reasoning": ("status",), "message": ("status",), "function_call": ("status",)}


@pytest.mark.corpus
def test_a_recorded_response_is_read_as_recorded(recorded_exchange: Exchange, ran: Callable[[Exchange], None]) -> None:
    """Reasoning, answer, calls, order, opaque values, finish, usage, model and error are those of the recording."""
    expect = recorded_exchange.expect
    ran(recorded_exchange)
    if recorded.is_refused(recorded_exchange):
        recorded.check_refusal(recorded_exchange, read_failure)
        return
    result = recorded.read_alike(recorded_exchange, feed)
    if recorded_exchange.data.get("think_tags"):
        texts = [block for block in result.blocks if isinstance(block, Text | ThinkingBlock)]
        assert expect["content_raw"] == "".join(map(content_slice, texts))
    else:
        assert expected(expect) == {**found(result, readable), "order": order(result.blocks)}


def order(blocks: tuple[Block, ...]) -> list[str]:
    """Kinds of the blocks as the recording names them: items that are not understood by their type."""
    names: dict[type[Block], str] = {Text: "text", ThinkingBlock: "reasoning", ToolCall: "tool_call"}
    kinds = [names.get(type(block)) or canonical.decode(wire_object(block))["type"] for block in blocks]
    return recorded.without_repeats(kinds)


def readable(block: ThinkingBlock) -> str:
    """The text of a reasoning item as the recording has it: its parts without anything between them."""
    item = canonical.decode(wire_object(block))
    parts = (item.get("content") or []) if block.kind == "raw" else item["summary"]
    return "".join(part["text"] for part in parts)


@pytest.mark.corpus
def test_a_recorded_body_is_put_together_again(recorded_exchange: Exchange) -> None:
    """Blocks, envelope and usage together are the response object of the recording, whole or streamed."""
    response = recorded_exchange.data["response"]
    if response["status"] >= 400:
        return
    framing = recorded.framing_of(recorded_exchange)
    result = feed([recorded_exchange.body], framing)[1]
    if "body" in response:
        assert response["body"] == raw_response(result)
        return
    events = [json.loads(data) for data in response["sse"] if data != "[DONE]"]
    whole = [event for event in events if event["type"] == "response.output_item.done"]
    items = [event["item"] for event in sorted(whole, key=lambda event: event["output_index"])]
    beside = {key: value for key, value in events[-1].items() if key not in ("type", "sequence_number", "response")}
    created = next(event["response"] for event in events if "response" in event)
    assert {**created, **beside, **events[-1]["response"], "output": items} == raw_response(result)


@pytest.mark.corpus
def test_a_damaged_recording_is_read_without_an_exception(recorded_exchange: Exchange) -> None:
    """Bytes cut out, doubled or replaced: a result all the same, equal at any cut, and every value has bytes."""
    recorded.check_damage(recorded_exchange, feed)


@pytest.mark.corpus
def test_a_recorded_request_is_written_as_it_was_read(recorded_exchange: Exchange) -> None:
    """The same JSON value, opaque values included, but for what is said in another place or not at all.

    A string as input is a user message, ``instructions`` are a system message, and the members in ``_OUTPUT_ONLY``
    and those of reasoning that are ``null`` are left out.
    """
    request = recorded_exchange.data["request"]
    if request is None:
        return
    body = request["body"]

    written = rewritten(body)

    assert {key: value for key, value in body.items() if key not in ("input", "instructions")} == {
        key: value for key, value in written.items() if key != "input"
    }
    entries = body.get("input") or []
    if isinstance(entries, str):
        entries = [{"role": "user", "content": entries}]
    if isinstance(body.get("instructions"), str):
        entries = [{"role": "system", "content": body["instructions"]}, *entries]
    assert list(map(as_sent, entries)) == written["input"]
    assert digests(entries) == digests(written["input"])


def as_sent(entry: dict[str, Any]) -> dict[str, Any]:
    """An input item without what the writer leaves out."""
    kind = entry.get("type", "")
    if kind == "message" and entry["role"] != "assistant":
        return entry
    kept = {key: value for key, value in entry.items() if key not in _OUTPUT_ONLY.get(kind, ())}
    return {key: value for key, value in kept.items() if value is not None} if kind == "reasoning" else kept


def digests(entries: list[dict[str, Any]]) -> list[str]:
    """The hashes of all opaque values."""
    values = [entry.get("encrypted_content") for entry in entries]
    return [hashlib.sha256(value.encode()).hexdigest() for value in values if value]
