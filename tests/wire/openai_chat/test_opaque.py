"""Opaque values changed in chat completions and their chunks, and where a stream of them ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.feeding import body, chunk, feed, sse, stream
from thinkback.model.blocks import carriers_of
from thinkback.wire.openai_chat.front import ends, rewrite
from thinkback.wire.result import ReadResult

DIALECT = "openai-chat"
MESSAGE: dict[str, Any] = {
    "content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "a", "signature": "s0"}]}],
    "reasoning_details": [
        {"type": "reasoning.text", "text": "a", "signature": "s1", "id": "signature"},
        {"type": "reasoning.encrypted", "data": "s2"},
    ],
    "tool_calls": [
        {
            "id": "c",
            "function": {"name": "f", "arguments": '{"thought_signature":"x","data":"y"}'},
            "extra_content": {"google": {"thought_signature": "s3"}},
        },
        {"id": "d", "function": {"name": "f", "arguments": {"thought_signature": "x"}}},
    ],
    "extra_content": {"google": {"thought_signature": "s4"}},
    "reasoning_text": "a",
    "reasoning_opaque": "s5",
    "thinking_blocks": [{"type": "thinking", "thinking": "a", "signature": "s6"}, {"data": "s7"}],
    "audio": {"id": "a", "data": "sound"},
    "signature": "of a stranger",
}
OPAQUE = [f"s{number}" for number in range(8)]


@pytest.mark.parametrize("holder", ["message", "delta"])
@pytest.mark.parametrize("indent", [None, 1])
def test_each_opaque_value_is_changed_and_no_other_byte(holder: str, indent: int | None) -> None:
    """What is no value of the host's reasoning stays, whatever its key, and so does the form of the document."""
    payload = json.dumps({"signature": "x", "choices": [{"index": 0, holder: MESSAGE}]}, indent=indent).encode()
    seen: list[str] = []

    def change(value: str) -> str:
        seen.append(value)
        return value.upper() * 2

    made = rewrite(payload, change)

    assert sorted(OPAQUE) == sorted(seen)
    for value in OPAQUE:
        payload = payload.replace(f'"{value}"'.encode(), f'"{value.upper() * 2}"'.encode())
    assert payload == made


@pytest.mark.parametrize(
    "delta",
    [
        {"content": 'about "signature": "x"'},
        {"reasoning_details": [{"type": "reasoning.text", "text": "a", "signature": None, "data": ""}]},
    ],
)
def test_a_payload_without_opaque_values_is_the_same_object(delta: dict[str, Any]) -> None:
    """Nothing is copied where there is nothing to change."""
    payload = json.dumps(chunk(delta)).encode()

    assert payload is rewrite(payload, str.upper)


@pytest.mark.corpus
def test_a_recorded_response_has_its_values_changed(
    recorded_exchange: Exchange, ran: Callable[[Exchange], None]
) -> None:
    """Every carrier that is read afterwards is the changed one, and values that stay change nothing."""
    ran(recorded_exchange)
    raw, framing = recorded_exchange.body, recorded.framing_of(recorded_exchange)
    if recorded.is_refused(recorded_exchange) or framing not in ("sse", "json"):
        return
    changed = _rewritten(raw, framing, lambda value: f"tb1.{value}")

    assert raw == _rewritten(raw, framing, str)
    before, after = feed([raw], framing)[1], feed([changed], framing)[1]
    assert [f"tb1.{value}" for value in _opaque(before)] == _opaque(after)
    assert raw == changed.replace(b"tb1.", b"")


def _rewritten(raw: bytes, framing: str, change: Callable[[str], str]) -> bytes:
    if framing == "json":
        return rewrite(raw, change)
    lines = raw.split(b"\n")
    return b"\n".join(b"data: " + rewrite(line[6:], change) if line.startswith(b"data: ") else line for line in lines)


def _opaque(result: ReadResult) -> list[str]:
    return [carrier.value for block in result.blocks for carrier in carriers_of(block)]


def test_the_end_of_a_stream_is_its_mark() -> None:
    """The mark is found where a line is one, at a piece's begin as well, and nowhere else."""
    whole = stream({"content": "data: [DONE]\ndata: [DONE]"})

    assert whole.rindex(b"data: [DONE]") == ends(whole)
    assert 0 == ends(b"data:[DONE]\r\n\r\n")
    assert -1 == ends(sse(chunk({"content": "data: [DONE]"}), done=False))
    assert -1 == ends(body({"content": "[DONE]"}))
    assert -1 == ends(b"")
