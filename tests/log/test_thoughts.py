"""Old thoughts in fewer words: which may be shortened, what a model is asked, and which answers are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.build import Line
from thinkback.errors import CompactionRefused
from thinkback.log.outline import Outline
from thinkback.log.thoughts import (
    LEAST_LENGTH,
    OldThought,
    batches,
    expected_forms,
    form_drafts,
    gains,
    old_thoughts,
    read_forms,
    shortening_request,
)
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.commits import Annotation, Commit, Compaction, Draft, Priority
from thinkback.model.curation import curate

LONG = "so " * LEAST_LENGTH
ONE, TWO = OldThought("a" * 64, "first note"), OldThought("b" * 64, "second note")


def thinking(count: int) -> Line:
    """A history of so many turns with long thoughts."""
    line = Line()
    for number in range(count):
        line.user(f"question {number}")
        line.answer("yes", f"{number} {LONG}")
    return line


def of(line: Line, kind: str) -> list[Commit]:
    """The commits of a kind."""
    return [commit for commit in line.commits if commit.kind == kind and not commit.edit]


def found(line: Line, tail: int = 0) -> list[str]:
    """The hashes of the thoughts that may be shortened."""
    return [thought.hash for thought in old_thoughts(Outline(line.commits), tail)]


def test_thoughts_before_the_last_turns() -> None:
    """Those that are long enough to gain by it, as they are now."""
    line = thinking(3)
    line.user("short")
    line.answer("yes", "hm")
    hashes = [commit.hash for commit in of(line, "reasoning")]
    assert hashes[:3] == found(line)
    assert hashes[:2] == found(line, 2)
    line.add(Draft("reasoning", ThinkingBlock("hm"), edit=hashes[0]))
    assert hashes[1:3] == found(line)


@pytest.mark.parametrize(
    ("kind", "priority", "stays"),
    [
        ("reasoning", Priority.SKIP, True),
        ("reasoning", Priority.IMPORTANT, True),
        ("response", Priority.IMPORTANT, True),
        ("assistant", Priority.PINNED, True),
        ("assistant", Priority.IMPORTANT, False),
        ("reasoning", Priority.NORMAL, False),
    ],
)
def test_what_is_marked_stays(kind: str, priority: Priority, stays: bool) -> None:
    """A mark on the thought or its response, and a pin on any part of the response."""
    line = thinking(2)
    line.add(Draft("annotation", Annotation(of(line, kind)[0].hash, priority)))
    assert [commit.hash for commit in of(line, "reasoning")][1 if stays else 0 :] == found(line)


def test_what_a_summary_stands_for_stays_and_a_marker_too() -> None:
    """Neither goes to a model any more."""
    line = thinking(2)
    first, last = line.commits[0], of(line, "turn_ended")[0]
    line.add(Draft("compaction", Compaction("manual", "in short", first.hash, last.hash)))
    line.respond(ThinkingBlock(LONG, marker=True), Text("yes"), ends="completed")
    assert [of(line, "reasoning")[1].hash] == found(line)


def test_what_a_compaction_shortened_is_not_shortened_again() -> None:
    """Until it is restored, or edited by hand; its edit names the compaction."""
    line = thinking(2)
    one, two = of(line, "reasoning")
    assert "" == curate(line.commits).why_edited(one)
    made, edit, _ = line.add(
        Draft("compaction", Compaction("thoughts", shortened=(one.hash, two.hash))),
        *(Draft("reasoning", ThinkingBlock(LONG), edit=each.hash) for each in (one, two)),
    )
    assert f"edited by commit {edit.hash[:12]}, made by compaction {made.hash[:12]}" == curate(line.commits).why_edited(
        one
    )
    assert [] == found(line)
    (by_hand,) = line.add(Draft("reasoning", ThinkingBlock(f"{LONG} by hand"), edit=two.hash))
    assert [two.hash] == found(line)
    assert f"edited by commit {by_hand.hash[:12]}" == curate(line.commits).why_edited(two)


def test_the_request_has_each_note_under_its_number() -> None:
    """And the shape of the answer."""
    told = shortening_request([ONE, TWO])
    assert '"notes"' in told
    assert [{"number": 1, "text": "first note"}, {"number": 2, "text": "second note"}] == json.loads(
        told[told.rindex("\n\n") :]
    )


def answer(*notes: Any) -> str:
    """What a model says."""
    return json.dumps({"notes": [{"number": number, "text": text} for number, text in notes]})


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "Here:\n{}\nDone."])
def test_forms_are_read_by_their_number(around: str) -> None:
    """In any order, whatever stands around the object."""
    assert {ONE.hash: "1st", TWO.hash: "2nd"} == read_forms(
        around.replace("{}", answer((2, " 2nd "), (1, "1st"))), [ONE, TWO]
    )


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("I cannot.", "not the JSON object"),
        (answer((1, "x")), "each of the 2 notes once"),
        (answer((1, "x"), (1, "y"), (2, "z")), "each of the 2 notes once"),
        (answer((1, "x"), (2, "y"), (3, "z")), "each of the 2 notes once"),
        (answer((1, "x"), (2, " ")), "is empty"),
        (answer((1, "x"), ("2", "y")), "not the JSON object"),
    ],
)
def test_an_answer_about_other_notes_is_refused(said: str, fault: str) -> None:
    """With the fault, which the model is told."""
    with pytest.raises(CompactionRefused, match=fault):
        read_forms(said, [ONE, TWO])


def test_a_batch_takes_what_fits() -> None:
    """One that is too long alone is a batch of its own; of nothing there is none."""
    thoughts = [OldThought(str(at), "x" * length) for at, length in enumerate((4, 4, 30, 1))]
    assert [("0", "1"), ("2",), ("3",)] == [tuple(each.hash for each in batch) for batch in batches(thoughts, 9)]
    assert [] == list(batches([], 9))


@given(st.lists(st.integers(1, 30)), st.integers(1, 60))
def test_batches_have_all_thoughts_in_order_and_fit(sizes: list[int], size: int) -> None:
    """Only one that is too long alone is larger."""
    thoughts = [OldThought(str(at), "x" * length) for at, length in enumerate(sizes)]
    made = list(batches(thoughts, size))
    assert thoughts == [thought for batch in made for thought in batch]
    assert all(batch and (len(batch) == 1 or sum(len(each.text) for each in batch) <= size) for batch in made)


def test_a_form_gains_where_it_saves_a_twentieth() -> None:
    """One token of many is not worth what it leaves out."""
    assert [gains(93, 92), gains(100, 96), gains(100, 95), gains(0, 0)] == [False, False, True, True]


def test_forms_are_edits_of_their_thoughts() -> None:
    """What stands in for a form is a third as long, and never empty."""
    line = thinking(2)
    one = of(line, "reasoning")[0]
    expected = expected_forms([OldThought(one.hash, "abcdef"), OldThought("x", "  ab")])
    assert {one.hash: "ab", "x": "."} == expected
    (draft,) = form_drafts(Outline(line.commits), {one.hash: "ab"})
    assert ("reasoning", one.hash, ThinkingBlock("ab")) == (draft.kind, draft.edit, draft.value)
