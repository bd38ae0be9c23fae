"""What every response writer writes is what the public types of its dialect say, strictly, streamed and whole."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.public_types import faults, faults_of_stream
from tests.wire.fronts import ORIGIN
from tests.wire.test_fronts import BLOCKS, NAMES, STOPS, USAGES, deltas_of, result_of, streamed
from thinkback.model.blocks import Block
from thinkback.model.commits import Failure, Usage
from thinkback.wire.registry import front
from thinkback.wire.result import Stop
from thinkback.wire.writing import Shown

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
# What clients of the Responses API ask for, as briefly as they may: a response repeats it in full.
ASKED: list[dict[str, Any]] = [
    {},
    {"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "function", "name": "f"}},
    {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}], "tool_choice": "required"},
    {"reasoning": {"effort": "low"}, "temperature": 0, "top_p": 1, "metadata": {"a": "b"}},
    {"reasoning": {"summary": "auto"}, "text": {"verbosity": "low"}, "store": False, "user": "u"},
    {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}, "instructions": "Be brief."},
    {"presence_penalty": 1, "frequency_penalty": -0.5, "max_output_tokens": 9, "include": [], "stream": True},
]


def state(blocks: object) -> str:
    """A state for everything."""
    return "tb1.AAAA"


@pytest.mark.parametrize("name", NAMES)
@given(BLOCKS, STOPS, USAGES, st.sampled_from(ASKED), st.booleans())
def test_a_response_is_what_the_public_types_say(
    name: str, blocks: list[Block], stop: Stop, usage: Usage | None, asked: dict[str, Any], is_kept: bool
) -> None:
    """Nothing is missing, nothing is of another type, nothing is there that no package knows."""
    result = result_of(blocks, stop, usage)
    request = asked if name == "openai-responses" else {}
    shown = Shown("resp-1", "asked-for", 7, block=functools.partial(lambda known, at: known[at], blocks))
    if is_kept:
        shown = Shown("resp-1", "asked-for", 7, state=state, block=shown.block, request=request)
    stream = streamed(name, result, deltas_of(blocks, 30), shown)

    assert [] == faults_of_stream(name, stream)
    assert [] == faults(name, front(name).write_response(result, shown))


@pytest.mark.covers(True)
@pytest.mark.parametrize("name", ["openai-responses", "anthropic"])
@given(BLOCKS, st.sampled_from([0, 400, 429, 529]))
def test_a_response_that_fails_is_what_the_public_types_say(name: str, blocks: list[Block], status: int) -> None:
    """What was shown, and the error behind it."""
    result = result_of(blocks, error=Failure("broke off", status, type="truncated"))
    shown = Shown("resp-1", "asked-for", 7)
    stream = streamed(name, result, deltas_of(blocks, 30), shown)
    before = stream.rpartition(b"event: error\n")[0] or stream

    assert [] == faults_of_stream(name, before)
    assert ORIGIN == result.response.origin
