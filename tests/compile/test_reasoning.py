"""Reasoning as plain functions over blocks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import call, say, think
from thinkback.compile.reasoning import (
    extract_thinking_blocks,
    filter_thinking_for_context,
    thinking_to_reasoning_field,
)
from thinkback.errors import SettingError
from thinkback.model.blocks import Block

T1, T2, T3 = think("1"), think("2", "reasoning"), think("3")
R = say("r")


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [((), []), ((R, call()), []), ((T1, R, T2), [T1, T2]), ((T1, T2), [T1, T2])],
)
def test_extract(blocks: Any, expected: Any) -> None:
    """All reasoning comes out, in order, as it is."""
    assert expected == extract_thinking_blocks(blocks)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("none", [[T1, R], [T2, R], [T3, R]]),
        ("allButLast", [[R], [R], [T3, R]]),
        ("all", [[R], [R], [R]]),
    ],
)
def test_filter(policy: Any, expected: Any) -> None:
    """The policy strips all, all but the last response with reasoning, or none."""
    contents: list[list[Block]] = [[T1, R], [T2, R], [T3, R]]
    assert expected == filter_thinking_for_context(contents, policy)
    assert contents == [[T1, R], [T2, R], [T3, R]]


def test_a_policy_that_is_none_is_refused() -> None:
    """It would strip everything."""
    with pytest.raises(SettingError, match="'bogus' is none of all, allButLast, none"):
        filter_thinking_for_context([[T1, R]], "bogus")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("contents", "policy", "expected"),
    [
        ([], "all", []),
        ([[T1, R]], "allButLast", [[T1, R]]),
        ([[T1, R], [R]], "allButLast", [[T1, R], [R]]),
        ([[R]], "allButLast", [[R]]),
    ],
)
def test_filter_edges(contents: Any, policy: Any, expected: Any) -> None:
    """Nothing, one response, and a last response without reasoning."""
    assert expected == filter_thinking_for_context(contents, policy)


@pytest.mark.parametrize(
    ("blocks", "field"),
    [([], None), ([think("")], None), ([T1], "1"), ([T1, think(""), T2], "1\n2"), ([think("a\nb"), T1], "a\nb\n1")],
)
def test_field(blocks: Any, field: str | None) -> None:
    """Blocks are joined by one newline, and nothing is ``None``."""
    assert field == thinking_to_reasoning_field(blocks)
