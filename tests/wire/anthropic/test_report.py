"""What a response reports of the reasoning that its request carried."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thinkback.wire.anthropic.read import applied_edits, report, transformations
from thinkback.wire.result import Report

DROPPED = {"type": "thinking_dropped", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}
ALLOWED = {"type": "thinking_mismatch_allowed", "path": "messages.5.content.1", "reason": "model_binding_mismatch"}
THINKING = {"type": "clear_thinking_20251015", "cleared_thinking_turns": 3, "cleared_input_tokens": 4100}


def test_dropped_thinking_is_told_with_place_and_reason() -> None:
    """Entries of unknown types are not told."""
    envelope = json.dumps({"input_transformations": [DROPPED, {"type": "new", "path": "x"}, ALLOWED, 1]})

    assert [
        ("messages.3.content.0", "thinking_dropped: prefix_binding_mismatch"),
        ("messages.5.content.1", "thinking_mismatch_allowed: model_binding_mismatch"),
    ] == transformations(envelope)


def test_edits_of_the_context_are_told_in_sentences() -> None:
    """What was cleared, and how much of it; an edit that says nothing of it is told all the same."""
    envelope = json.dumps({"context_management": {"applied_edits": [THINKING, {}]}})

    assert [
        "clear_thinking_20251015 cleared 3 thinking turns and 4100 input tokens",
        "an edit cleared an unreported amount",
    ] == applied_edits(envelope)


@pytest.mark.parametrize(
    "envelope",
    [
        "",
        "{}",
        "[]",
        json.dumps({"input_transformations": 1, "context_management": None}),
        json.dumps({"context_management": {"applied_edits": "x"}}),
    ],
)
def test_nothing_is_told_where_nothing_was_reported(envelope: Any) -> None:
    """Most responses have neither."""
    assert ([], []) == (transformations(envelope), applied_edits(envelope))
    assert Report() == report(envelope)
