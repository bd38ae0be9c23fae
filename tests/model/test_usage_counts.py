"""Counts of tokens: whatever is reported, a usage has counts that can be."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.model import canonical
from thinkback.model.commits import MOST_TOKENS, Usage, decode_payload, token_count


@given(st.integers() | st.floats(allow_nan=True) | st.text() | st.none() | st.booleans() | st.lists(st.integers()))
def test_no_usage_has_a_count_that_cannot_be(value: Any) -> None:
    """Whoever makes the value, of whatever it is made."""
    usage = Usage(input=value, last_input=value)
    assert usage.input is None or (type(usage.input) is int and 0 <= usage.input <= MOST_TOKENS)
    assert (usage.input is None and value is not None) == (usage.invalid == ("input", "last_input"))
    assert usage == decode_payload(canonical.encode(usage))


@pytest.mark.parametrize(("value", "count"), [(7, 7), (7.0, 7), (0, 0), (-1, None), (7.5, None), (math.inf, None)])
def test_a_count_is_a_whole_number_within_bounds(value: Any, count: int | None) -> None:
    """Also one that is written as a fraction."""
    assert count == token_count(value) == Usage(output=value).output


def test_input_and_output_are_whole() -> None:
    """With what a dialect counts beside them; a number that was not reported stays so."""
    usage = Usage(10, 20, 5, 100, 1_000)
    beside = msgspec.structs.replace(usage, counted=("cache_beside_input", "reasoning_beside_output"))
    unknown = Usage(reasoning=5, cached=100, counted=beside.counted)

    assert (10, 20) == (usage.whole_input(), usage.whole_output())
    assert (1_110, 25) == (beside.whole_input(), beside.whole_output())
    assert (None, None) == (unknown.whole_input(), unknown.whole_output())


def test_what_is_invalid_is_named_once() -> None:
    """Also where the value is made again of another."""
    usage = Usage(input=-1)
    assert ("input",) == usage.invalid == msgspec.structs.replace(usage, input=-2).invalid


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 5000])
def test_numbers_that_json_does_not_have(number: str) -> None:
    """They are nothing where a host may write them, and an error in a log."""
    source = f'{{"a":{number},"b":1.5}}'
    assert {"a": None, "b": 1.5} == canonical.decode_lenient(source)
    with pytest.raises(msgspec.DecodeError):
        canonical.decode(source)
    with pytest.raises(msgspec.DecodeError):
        canonical.decode_lenient(source[:-1])
