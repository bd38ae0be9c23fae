"""A provider's numbers are claims: one that cannot be a count of tokens counts as not reported, in every dialect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.model.blocks import Origin
from thinkback.model.commits import MOST_TOKENS, USAGE_COUNTS, Usage
from thinkback.wire.registry import PACKAGES, dialect
from thinkback.wire.result import ReadResult

N = "<number>"
BODIES: Mapping[str, dict[str, Any]] = {
    "openai-chat": {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": N,
            "completion_tokens": N,
            "prompt_tokens_details": {"cached_tokens": N, "cache_write_tokens": N},
            "completion_tokens_details": {"reasoning_tokens": N},
        },
    },
    "openai-responses": {
        "id": "r",
        "status": "completed",
        "output": [
            {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
        ],
        "usage": {
            "input_tokens": N,
            "output_tokens": N,
            "input_tokens_details": {"cached_tokens": N, "cache_write_tokens": N},
            "output_tokens_details": {"reasoning_tokens": N},
        },
    },
    "anthropic": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": N,
            "output_tokens": N,
            "cache_read_input_tokens": N,
            "cache_creation_input_tokens": N,
            "output_tokens_details": {"thinking_tokens": N},
        },
    },
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": N,
            "candidatesTokenCount": N,
            "thoughtsTokenCount": N,
            "cachedContentTokenCount": N,
        },
    },
    "gemini-interactions": {
        "id": "i",
        "status": "completed",
        "steps": [{"type": "model_output", "content": [{"type": "text", "text": "hi"}]}],
        "usage": {
            "total_input_tokens": N,
            "total_output_tokens": N,
            "total_thought_tokens": N,
            "total_cached_tokens": N,
        },
    },
    "bedrock": {
        "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": N, "outputTokens": N, "cacheReadInputTokens": N, "cacheWriteInputTokens": N},
    },
    "mistral": {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": N,
            "completion_tokens": N,
            "prompt_tokens_details": {"cached_tokens": N},
            "completion_tokens_details": {"reasoning_tokens": N},
        },
    },
    "ollama": {
        "model": "m",
        "message": {"role": "assistant", "content": "hi"},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": N,
        "eval_count": N,
    },
    "cohere": {
        "id": "c",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
        "finish_reason": "COMPLETE",
        "usage": {
            "tokens": {"input_tokens": N, "output_tokens": N, "reasoning_tokens": N},
            "cached_tokens": N,
        },
    },
}
ABSURD = (
    "-1",
    "-0.5",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "1e18",
    "4611686018427387917",
    "9223372036854775808",
    "1e30",
    "1000000000000000000000000000000",
    "100000001",
    '"12"',
    "true",
    '{"tokens": 12}',
    "[12]",
)


def answered(name: str, number: str) -> ReadResult:
    """The answer of a provider that gives ``number`` for each of its counts."""
    body = json.dumps(BODIES[name]).replace(json.dumps(N), number).encode()
    reader = dialect(name).reader(Origin("", "", "", "m"), "json", None, "r")
    reader.feed(body)
    reader.close()
    return reader.result()


def counts_of(usage: Usage | None) -> set[int | None]:
    return {getattr(usage or Usage(), name) for name in USAGE_COUNTS}


def test_every_dialect_has_a_body() -> None:
    """A new dialect is tried as well."""
    assert set(PACKAGES) == set(BODIES)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("number", ABSURD)
def test_a_number_that_cannot_be_a_count_is_not_reported(name: str, number: str) -> None:
    """The answer is whole all the same, and what was said is noted."""
    result = answered(name, number)
    assert result.response.error is None
    assert ["hi"] == [getattr(block, "text", "") for block in result.blocks]
    assert {None} == counts_of(result.usage)
    if number not in ("NaN", "Infinity", "-Infinity", "1e400"):  # which JSON does not have
        assert result.usage is not None
        assert {"input", "output"} <= set(result.usage.invalid)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(("number", "count"), [("0", 0), ("7", 7), ("7.0", 7), (str(MOST_TOKENS), MOST_TOKENS)])
def test_a_number_that_can_be_a_count_is_one(name: str, number: str, count: int) -> None:
    """Also where it is written as a fraction without one."""
    result = answered(name, number)
    assert counts_of(result.usage) <= {count, None}
    assert result.usage is not None
    assert (count, count, ()) == (result.usage.input, result.usage.output, result.usage.invalid)


@given(st.integers() | st.floats(allow_nan=True) | st.text() | st.none() | st.booleans())
def test_no_usage_has_a_count_that_cannot_be(value: Any) -> None:
    """Whoever makes the value, of whatever it is made."""
    usage = Usage(input=value)
    assert usage.input is None or (type(usage.input) is int and 0 <= usage.input <= MOST_TOKENS)
    assert (usage.input is None and value is not None) == (usage.invalid == ("input",))
