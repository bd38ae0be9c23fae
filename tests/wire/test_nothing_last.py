"""What a writer adds for itself never stands last: the last thing in a response is what the model said last."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.test_fronts import CALLS, NAMES, TEXTS, THOUGHTS, deltas_of, result_of, streamed
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall
from thinkback.wire.registry import front
from thinkback.wire.writing import Shown

BLOCKS = st.lists(TEXTS | THOUGHTS | CALLS, max_size=6)


def state(blocks: object) -> str:
    """A state for everything."""
    return "tb1.AAAA"


def payloads(stream: bytes) -> list[Any]:
    """What the events of a stream say."""
    lines = [line.removeprefix(b"data:").strip() for line in stream.splitlines() if line.startswith(b"data:")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def shown_in_chunks(stream: bytes) -> Iterator[str]:
    """Each piece of chat completions in its order; in one chunk reasoning comes first, as clients read it."""
    for chunk in payloads(stream):
        for choice in chunk["choices"]:
            delta = choice["delta"]
            yield from ("thought" for key in ("reasoning_details", "reasoning_content") if delta.get(key))
            yield from ("text" for key in ("content", "refusal") if delta.get(key))
            yield from ("call" for _ in delta.get("tool_calls", ()))


def kind_of_part(part: dict[str, Any]) -> str:
    """What a part of Gemini is; nothing where it says nothing."""
    if "functionCall" in part:
        return "call"
    return "" if not part.get("text") else "thought" if part.get("thought") else "text"


def last_of_stream(name: str, stream: bytes) -> str:
    """The kind of what a client sees last in a stream."""
    if name == "openai-chat":
        kinds = list(shown_in_chunks(stream))
    elif name == "gemini":
        parts = [part for event in payloads(stream) for part in event["candidates"][0]["content"]["parts"]]
        kinds = [kind_of_part(part) for part in parts]
    elif name == "anthropic":
        starts = [event for event in payloads(stream) if event["type"] == "content_block_start"]
        kinds = [_KINDS[event["content_block"]["type"]] for event in starts]
    else:
        added = [event["item"] for event in payloads(stream) if event["type"] == "response.output_item.added"]
        kinds = [_KINDS[item["type"]] for item in added]
        assert kinds == [_KINDS[item["type"]] for item in payloads(stream)[-1]["response"]["output"]]
    return kinds[-1] if kinds else ""


def last_of_document(name: str, document: bytes) -> str:
    """The same of a whole response; chat completions have no order."""
    told = json.loads(document)
    if name == "gemini":
        kinds = [kind_of_part(part) for part in told["candidates"][0]["content"]["parts"]]
    else:
        kinds = [_KINDS[item["type"]] for item in told["content" if name == "anthropic" else "output"]]
    return kinds[-1] if kinds else ""


_KINDS = {
    "thinking": "thought",
    "redacted_thinking": "thought",
    "reasoning": "thought",
    "text": "text",
    "message": "text",
    "tool_use": "call",
    "function_call": "call",
}


def said_last(blocks: list[Block]) -> str:
    """The kind of the last block that says anything."""
    kinds = [
        "call" if isinstance(block, ToolCall) else "text" if isinstance(block, Text) else "thought"
        for block in blocks
        if isinstance(block, ToolCall)
        or (isinstance(block, Text) and block.text)
        or (isinstance(block, ThinkingBlock) and block.thought and not block.is_hidden)
    ]
    return kinds[-1] if kinds else ""


@pytest.mark.parametrize("name", NAMES)
@given(BLOCKS, st.integers(1, 30), st.booleans(), st.booleans())
def test_the_last_thing_is_what_the_model_said_last(
    name: str, blocks: list[Block], length: int, known: bool, recorded: bool
) -> None:
    """Whether the state is known while the blocks come or at the end alone, and whether anything is recorded."""
    if not recorded:  # calls wait until they are whole
        known, blocks = True, [block for block in blocks if not isinstance(block, ToolCall) or "{" in block.arguments]
    result = result_of(blocks)
    block = functools.partial(lambda found, at: found[at] if known else None, blocks)
    shown = Shown("resp-1", "asked-for", 7, state=state, block=block, recorded=recorded)
    expected = said_last(blocks)
    if not expected:  # what nobody sees may stand anywhere
        return

    # Chat completions and Gemini tell calls behind all else of a stream.
    has_call = any(isinstance(block, ToolCall) for block in blocks)
    in_stream = "call" if has_call and name in ("openai-chat", "gemini") else expected
    assert in_stream == last_of_stream(name, streamed(name, result, deltas_of(blocks, length), shown))
    if name != "openai-chat":
        assert expected == last_of_document(name, front(name).write_response(result, shown))
