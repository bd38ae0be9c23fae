"""From what a person says to drafts: what is kept of what was there, and what cannot stand in a log."""

from __future__ import annotations

import pytest

from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.log import drafting
from thinkback.log.seal import seal
from thinkback.model.blocks import Carrier, Media, Text, ThinkingBlock, ToolResult
from thinkback.model.commits import BranchSummary, Commit, Content, Draft, Head, Message, Step


def sealed(draft: Draft) -> Commit:
    return seal(Step("s", (draft,), 1), Head())[0]


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        (Draft("user", Message("a")), Message("b")),
        (
            Draft("user", Message("a", (Text("a"), Media("image/png", "aaaa")))),
            Message("b", (Text("b"), Media("image/png", "aaaa"))),
        ),
        (Draft("assistant", Text("a", carriers=(Carrier("item_id", "x"),))), Text("b")),
        (
            Draft("reasoning", ThinkingBlock("a", source_field="thinking", signature="sig", kind="summary")),
            ThinkingBlock("b", source_field="thinking", kind="summary"),
        ),
        (Draft("tool_result", ToolResult("c", "a", wire="{}", dialect="anthropic")), ToolResult("c", "b")),
        (Draft("content", Content("note", "a", data="{}")), Content("note", "b", data="{}")),
        (Draft("branch_summary", BranchSummary("a", "s")), BranchSummary("b", "s")),
    ],
)
def test_an_edit_changes_the_text_alone(draft: Draft, expected: object) -> None:
    """What is no text stays; what its maker put around the old text goes."""
    target = sealed(draft)
    made = drafting.edit(target, "b")
    assert (target.kind, target.hash, expected) == (made.kind, made.edit, made.value)


def test_what_a_change_voids_is_looked_for_in_its_own_history() -> None:
    """A commit of another one is an error."""
    with pytest.raises(NotFoundError, match="not in this history"):
        drafting.voids([], sealed(Draft("user", Message("a"))), prefix_bound=False)


def test_reasoning_by_hand_may_come_with_its_answer() -> None:
    """Both in one response, the thought first."""
    drafts = drafting.spoken("assistant", "42", "r", drafting.thought("Six sevens.", "parsed"))
    assert ["response", "reasoning", "assistant", "turn_ended"] == [draft.kind for draft in drafts]
    assert [-1, 0, 1, -1] == [draft.index for draft in drafts]


def test_an_annotation_says_something() -> None:
    """About nothing in particular is about the commit before."""
    assert "x" in drafting.annotation(tags=["x"]).value.tags  # type: ignore[union-attr]
    with pytest.raises(ThinkbackError, match="says nothing"):
        drafting.annotation("f" * 64)
