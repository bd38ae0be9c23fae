"""Programs that keep reasoning only where it is signed, before a host of the Messages API that signs none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.servers.gateway.harness.running import Reply, Running, running
from thinkback.servers.gateway.running.server import Start
from thinkback_referee import Referee

MODEL = "deepseek-anthropic/deepseek-v4-pro"
TOOLS = [{"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]
_names = count()


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    """DeepSeek's Messages."""
    with Referee() as made:
        yield made


@pytest.fixture(scope="module", params=["full", "off"])
def mode(request: pytest.FixtureRequest) -> str:
    """What is recorded."""
    return str(request.param)


@pytest.fixture(scope="module")
def house(referee: Referee, mode: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway before it, with a log and without one."""
    place = tmp_path_factory.mktemp("unsigned")
    (place / "key").write_text("sk-any")
    (place / "key").chmod(0o600)
    name = "deepseek-anthropic"
    upstreams = {name: {"endpoint": name, "base_url": referee.base_url(name), "key_file": str(place / "key")}}
    with running(
        Start().opens,
        server={"no_auth": True},
        store={"path": str(place / "store")},
        upstreams=upstreams,
        recording={"mode": mode},
    ) as made:
        yield made


def said(reply: Reply) -> list[dict[str, Any]]:
    """The content of a message, whole or streamed, as the maker's own library puts it together."""
    if "event-stream" not in reply.headers["content-type"]:
        content: list[dict[str, Any]] = reply.json["content"]
        return content
    blocks: list[dict[str, Any]] = []
    for line in reply.body.decode().splitlines():
        event: dict[str, Any] = json.loads(line[6:]) if line.startswith("data: ") else {"type": ""}
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "json": ""})
        elif event["type"] == "content_block_delta":
            match event["delta"]:
                case {"type": "signature_delta", "signature": signature}:
                    blocks[event["index"]]["signature"] = signature
                case {"type": "thinking_delta", "thinking": text}:
                    blocks[event["index"]]["thinking"] += text
                case {"type": "text_delta", "text": text}:
                    blocks[event["index"]]["text"] += text
                case {"partial_json": text}:
                    blocks[event["index"]]["json"] += text
    for block in blocks:
        source = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(source or "{}")
    return blocks


def echoed(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages that such a program makes of an answer: unsigned reasoning becomes a text of the user's."""
    moved = [block for block in content if block["type"] == "thinking" and not block.get("signature")]
    texts = [f"<assistant_thinking>\n{block['thinking']}\n</assistant_thinking>" for block in moved]
    kept = [block for block in content if block not in moved]
    user = [{"role": "user", "content": [{"type": "text", "text": text} for text in texts]}] if texts else []
    return [*user, {"role": "assistant", "content": kept}]


def held(house: Running, *, stream: bool) -> list[tuple[int, str]]:
    """A conversation of three questions with its tool loops: the status of each request and what was given back."""
    seen: list[tuple[int, str]] = []
    messages: list[dict[str, Any]] = []
    for city in ("Oslo", "Rome", "Lima"):
        messages.append({"role": "user", "content": f"What is the weather in {city}? I am number {next(_names)}."})
        asks = True
        while asks:
            body = {"model": MODEL, "max_tokens": 4000, "stream": stream, "tools": TOOLS, "messages": messages}
            reply = house.ask("/v1/messages", body, key=None)
            seen.append((reply.status, reply.headers.get("thinkback-reattach", "")))
            if reply.status != 200:
                return seen
            content = said(reply)
            messages += echoed(content)
            calls = [block["id"] for block in content if block["type"] == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": call, "content": "mild"} for call in calls]
            messages += [{"role": "user", "content": results}] if results else []
            asks = bool(results)
    return seen


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_without_a_signature_gets_one_that_a_program_keeps_it_by(
    house: Running, referee: Referee, mode: str, stream: bool
) -> None:
    """So it comes back in its own place, the conversation is recognised, and the host gets all that it demands."""
    before = len(referee.requests)
    seen = held(house, stream=stream)
    got = referee.requests[before:]

    assert {(200, "not-needed"), (200, "unavailable" if mode == "off" else "complete")} >= set(seen)
    assert {200} == {request.status for request in got}
    assert len(seen) == len(got) > 3
    assert "assistant_thinking" not in json.dumps([request.body for request in got])
    assert "tb1." not in json.dumps([request.body for request in got])
    sent: Any = got[-1].body["messages"]
    thoughts = [block for message in sent for block in message["content"] if "thinking" in block]
    assert len(seen) - 1 == len(thoughts)
