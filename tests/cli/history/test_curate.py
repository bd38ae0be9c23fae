"""``annotate``, ``edit`` and ``restore`` from the command line; what they void is said before it is done."""

from __future__ import annotations

import pytest

import thinkback
from tests.cli.command import Command
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Commit, Message, Priority
from thinkback.model.curation import curate


def of_kind(command: Command, kind: str) -> Commit:
    """The first commit of a kind in the log."""
    with thinkback.open(command.db) as store:
        return next(commit for commit in store.commits(store.sessions()[0].id) if commit.kind == kind)


def history(command: Command) -> list[Commit]:
    with thinkback.open(command.db) as store:
        return store.commits(store.sessions()[0].id)


def test_a_priority_with_its_reason(talked: Command) -> None:
    """Stored as a commit; ``default`` takes it back."""
    said = of_kind(talked, "user").hash
    done = talked("annotate", said[:8], "pinned", "--reason", "the question", "--tag", "rain", "--retain", "Oslo")
    assert (0, "") == (done.code, done.err)
    mark = curate(history(talked)).mark(said)
    assert (Priority.PINNED, "the question", ["rain"], ("Oslo",)) == (
        mark.priority,
        mark.reason,
        sorted(mark.tags),
        mark.retain,
    )
    assert 0 == talked("annotate", said, "default", "--session", "talk").code
    assert curate(history(talked)).mark(said).priority is None


def test_an_edit_and_back(talked: Command) -> None:
    """The text from an argument or from standard input; the first is kept."""
    said = of_kind(talked, "user").hash
    told = talked("edit", said, "What about Rome?", "--json").json
    assert ("user", "What about Rome?") == (told["kind"], told["payload"]["text"])
    assert 0 == talked("edit", said, "-", stdin=b"And Paris?").code
    texts = [commit.value.text for commit in history(talked) if isinstance(commit.value, Message)]
    assert ["What is the weather in Oslo?", "What about Rome?", "And Paris?"] == texts
    assert 0 == talked("restore", said, "1").code
    assert 0 == talked("restore", said).code
    assert not curate(history(talked)).is_changed(of_kind(talked, "user"))


@pytest.mark.parametrize("change", [("annotate", "skip"), ("edit", "other")])
def test_what_a_change_voids_is_said_first(opaque: Command, change: tuple[str, str]) -> None:
    """The kinds and commits, never the values; without a yes nothing is stored."""
    target = of_kind(opaque, "assistant").hash
    before = history(opaque)
    asked = opaque(change[0], target, change[1])
    assert (2, True) == (asked.code, "add --yes" in asked.err)
    for kind in ("signature", "encrypted"):
        assert f"voids the {kind} of" in asked.err
    assert before == history(opaque)
    assert 0 == opaque(change[0], target, change[1], "--yes").code
    assert len(before) + 1 == len(history(opaque))


def test_bad_use_is_told(talked: Command) -> None:
    """No such commit, nothing said, a kind without a text: exit 2 or 5, and nothing is stored."""
    before = history(talked)
    said = of_kind(talked, "user").hash
    elsewhere = talked("annotate", "ffffffff", "skip")
    assert 2 == elsewhere.code
    assert "(--session)" in elsewhere.err
    assert 1 == talked("annotate", said).code
    assert 2 == talked("annotate", said, "loud").code
    assert 5 == talked("edit", of_kind(talked, "tool_call").hash, "x").code
    assert before == history(talked)


def test_reasoning_by_hand(talked: Command) -> None:
    """Added to the branch with a note and a tag, from an argument or standard input; no other format is taken."""
    made = talked("reasoning", "The rain will stop.", "--message", "mine", "--tag", "hunch", "--json").json
    assert 0 == talked("reasoning", "-", "--format", "thinking", stdin=b"Or not.").code
    refused = talked("reasoning", "x", "--format", "bogus!!")
    assert (5, True) == (refused.code, "reasoning cannot have the format 'bogus!!'" in refused.err)
    thoughts = [
        (commit.value.thought, commit.value.source_field)
        for commit in history(talked)
        if isinstance(commit.value, ThinkingBlock) and not commit.response
    ]
    assert [("The rain will stop.", "parsed"), ("Or not.", "thinking")] == thoughts
    mark = curate(history(talked)).mark(made["hash"])
    assert ("mine", ["hunch"]) == (mark.message, sorted(mark.tags))
