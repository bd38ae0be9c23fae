"""From what a person says to drafts: what is kept of what was there, and what cannot stand in a log."""

from __future__ import annotations

import pytest

from thinkback.errors import NotFoundError, ThinkbackError, UnsupportedContent
from thinkback.log import drafting
from thinkback.log.seal import seal
from thinkback.model.blocks import Carrier, Media, Origin, Text, ThinkingBlock, ToolResult
from thinkback.model.commits import BranchSummary, Commit, Content, Draft, Erased, Head, Message, Response, Step


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


@pytest.mark.parametrize(("prefix_bound", "voided"), [(False, ["one"]), (True, ["one", "two"])])
def test_what_a_change_voids_reaches_as_far_as_reasoning_is_bound(prefix_bound: bool, voided: list[str]) -> None:
    """The carriers of its own response; where a rule binds them to what stood before, those of later ones too."""
    drafts: list[Draft] = []
    for name in ("none", "one", "two"):
        thought = ThinkingBlock("t", carriers=(Carrier("signature", name),))
        drafts += [
            Draft("response", Response(Origin("anthropic", "https://x.example", "m"), blocks=1), name),
            Draft("reasoning", thought, name, 0),
        ]
    commits = seal(Step("s", tuple(drafts), 0), Head())
    changed = next(commit for commit in commits if commit.kind == "reasoning" and commit.response == "one")
    found = {void.hash for void in drafting.voids(commits, changed, prefix_bound=prefix_bound)}
    assert voided == [commit.response for commit in commits if commit.hash in found]


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


def test_a_format_of_reasoning_is_one_that_is_known() -> None:
    """How it was got, or the field that a dialect has it in."""
    assert ["parsed", "thought"] == [drafting.known_format(format) for format in ("parsed", "thought")]
    with pytest.raises(UnsupportedContent, match="reasoning cannot have the format 'bogus!!'"):
        drafting.known_format("bogus!!")
    with pytest.raises(UnsupportedContent, match="the reasoning is empty"):
        drafting.thought(" ", "parsed")


def test_a_message_by_hand_says_something() -> None:
    """A system or user message is a commit of its own; an answer is a response with its end."""
    assert ["system"] == [draft.kind for draft in drafting.spoken("system", "Be brief.", "r")]
    assert ["response", "assistant", "turn_ended"] == [draft.kind for draft in drafting.spoken("assistant", "Hi.", "r")]
    with pytest.raises(UnsupportedContent, match="the user message is empty"):
        drafting.spoken("user", " ", "r")


def test_a_commit_of_a_programs_own_type_has_its_defaults() -> None:
    """As they are when it is made."""
    draft = drafting.content(drafting.ContentType("note", "system"), "x", {"a": 1})
    assert ("content", "note", "system") == (draft.kind, draft.value.content_type, draft.value.role)  # type: ignore[union-attr]


def test_what_was_erased_cannot_be_edited_or_restored() -> None:
    """Restored goes an earlier text that is still there."""
    target = sealed(Draft("assistant", Text("a")))
    gone = sealed(Draft("assistant", Erased("a secret", 1)))

    assert Draft("assistant", Text("b"), edit=target.hash) == drafting.restored(target, Text("b"))
    with pytest.raises(UnsupportedContent, match="was erased"):
        drafting.restored(target, gone.value)
    with pytest.raises(UnsupportedContent, match="was erased"):
        drafting.edit(gone, "b")
