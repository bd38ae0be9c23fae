"""Parts of a history on another line: picked one by one, or rebased."""

from __future__ import annotations

import pytest

from tests.log.build import Line, ids
from thinkback.errors import BranchError, MergeConflictError, OpenTurnError
from thinkback.log.cherry_pick import cherry_pick, is_whole, rebase
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Priority, Tools, TurnEnded
from thinkback.model.curation import curate


def pick(ours: Line, theirs: Line, *hashes: str) -> list[Commit]:
    made = cherry_pick(ours.commits, [(theirs.commits, hash) for hash in hashes], next(ours.clock), ids())
    ours.commits += made
    return made


def two() -> tuple[Line, Line]:
    ours = Line()
    ours.turn("q", "a")
    return ours, ours.fork()


def test_a_message_is_picked_alone() -> None:
    """With what was said about it, and nothing of what stands around it."""
    ours, theirs = two()
    theirs.turn("before", "b")
    there = theirs.user("there")
    theirs.edit(there, "down there")
    theirs.turn("after", "c")
    theirs.mark(there, Priority.PINNED)
    pick(ours, theirs, there.hash)
    assert ["q", "hm", "a", "down there"] == ours.texts
    assert Priority.PINNED is curate(ours.commits).mark(ours.of("there").hash).priority


@pytest.mark.parametrize("part", ["response", "reasoning", "tool_call", "provider_usage", "tool_result"])
def test_a_response_is_picked_whole(part: str) -> None:
    """Whichever of its commits was named, with the results of its calls, in their order."""
    ours, theirs = two()
    theirs.user("there")
    response = theirs.call("look", "find")
    theirs.user("in between")
    theirs.result("find", "found", response)
    theirs.result("look", "seen")
    theirs.answer("well")
    named = next(c for c in theirs.commits[7:] if c.kind == part)
    made = pick(ours, theirs, named.hash)
    kinds = ["response", "reasoning", "tool_call", "tool_call", "provider_usage", "tool_result", "tool_result"]
    assert kinds == [commit.kind for commit in made]
    assert {response, ""} == {commit.response for commit in made}


def test_the_end_of_its_turn_comes_along() -> None:
    """So that the turn is over on the other line too."""
    ours, theirs = two()
    id = theirs.answer("there")
    made = pick(ours, theirs, theirs.of("there").hash)
    assert (["response", "reasoning", "assistant", "provider_usage", "turn_ended"], id) == (
        [commit.kind for commit in made],
        made[0].response,
    )


def test_a_response_that_is_here_already_gets_another_id() -> None:
    """Picked again, it is another response."""
    ours, theirs = two()
    made = pick(ours, theirs, theirs.of("a").hash)
    assert {"fresh-0", ""} == {commit.response for commit in made}


def test_each_is_picked_once_in_the_order_given() -> None:
    """Two commits of one response are one pick."""
    ours, theirs = two()
    first, second = theirs.user("first"), theirs.user("second")
    theirs.respond(ThinkingBlock("t"), Text("answer"))
    thought, text = theirs.of("t"), theirs.of("answer")
    pick(ours, theirs, second.hash, thought.hash, first.hash, text.hash)
    assert ["q", "hm", "a", "second", "t", "answer", "first"] == ours.texts


def test_an_edit_or_a_mark_is_picked_alone() -> None:
    """Where what it is about is here, or was picked before it."""
    ours, theirs = two()
    edit = theirs.edit(theirs.of("a"), "new")
    mark = theirs.mark(edit, Priority.SKIP)
    there = theirs.user("there")
    lost = theirs.edit(there, "nowhere")
    pick(ours, theirs, edit.hash, mark.hash)
    assert ["q", "hm", "(new)"] == ours.texts
    with pytest.raises(BranchError, match="the commit it refers to is not on this branch"):
        pick(ours, theirs, lost.hash)


def test_what_is_not_whole_is_not_picked() -> None:
    """A response that did not complete, whose calls wait, or that the history ends inside of."""
    ours, theirs = two()
    theirs.respond(Text("cut"), complete=False)
    theirs.call("look")
    theirs.answer("later")
    text = theirs.of("later")
    at = text.seq
    for hash, why in (
        (theirs.of("cut").hash, "did not complete"),
        (theirs.of("look({})").hash, "'look' has no result"),
    ):
        with pytest.raises(BranchError, match=why):
            pick(ours, theirs, hash)
        assert not is_whole(theirs.commits, hash)
    assert is_whole(theirs.commits, text.hash)
    with pytest.raises(BranchError, match="ends inside its response"):
        pick(ours, theirs.fork(at), theirs.commits[at - 1].hash)
    for stray in (theirs.result("x", response="nobody's"), theirs.result("x")):
        with pytest.raises(BranchError, match="did not complete"):
            pick(ours, theirs, stray.hash)
    assert ["q", "hm", "a"] == ours.texts


def test_what_speaks_of_its_line_is_not_picked() -> None:
    """Records, ends of turns and merges mean nothing elsewhere; tools and a thought by hand do."""
    ours, theirs = two()
    (ended,) = theirs.add(Draft("turn_ended", TurnEnded("failed")))
    for hash in (ended.hash, theirs.commits[1].hash):
        with pytest.raises(BranchError, match="the branch it was made on"):
            pick(ours, theirs, hash)
    (tools,) = theirs.add(Draft("tools", Tools(())))
    (thought,) = theirs.add(Draft("reasoning", ThinkingBlock("by hand")))
    assert ["tools", "reasoning"] == [commit.kind for commit in pick(ours, theirs, tools.hash, thought.hash)]


def test_nothing_is_picked_into_a_turn_under_way() -> None:
    """Its calls come first."""
    ours, theirs = two()
    ours.call("look")
    with pytest.raises(OpenTurnError):
        pick(ours, theirs, theirs.of("q").hash)


def test_an_edited_result_is_no_second_one() -> None:
    """It is said about the result, and comes along."""
    ours, theirs = two()
    response = theirs.call("look")
    edit = theirs.edit(theirs.result("look", "seen", response), "unseen")
    made = pick(ours, theirs, theirs.of("seen").hash)
    assert (edit.value, made[4].hash) == (made[-1].value, made[-1].edit)
    assert isinstance(edit.value, ToolResult)


def test_a_rebase_says_the_same_on_top_of_the_other() -> None:
    """With edits and marks; records of requests and what is there already stay away."""
    ours, onto = two()
    onto.turn("there", "t")
    ours.turn("here", "h")
    ours.edit(ours.of("h"), "H")
    ours.mark(ours.of("a"), Priority.PINNED)
    made = rebase(ours.commits, onto.commits, next(ours.clock), ids())
    assert onto.commits[-1].hash == made[0].parents[0]
    onto.commits += made
    assert ["q", "hm", "a", "there", "hm", "t", "here", "hm", "H"] == onto.texts


def test_a_rebase_leaves_merges_of_what_it_goes_onto() -> None:
    """They are in it; a merge of a third line keeps its second parent, and its copies their names."""
    ours, onto = two()
    third = ours.fork()
    onto.turn("there", "t")
    third.turn("third", "3")
    ours.turn("here", "h")
    ours.merge(onto)
    ours.merge(third)
    made = rebase(ours.commits, onto.commits, next(ours.clock), ids())
    assert [third.commits[-1].hash] == [commit.parents[1] for commit in made if commit.kind == "merge"]
    onto.commits += made
    assert ["q", "a", "there", "t", "here", "h", "third", "3"] == [text for text in onto.texts if text != "hm"]
    assert "up_to_date" == onto.merge(third).kind


def test_a_rebase_with_a_contradiction_is_refused() -> None:
    """What both changed is for a merge to settle; an edit that the other went on from is not."""
    ours, onto = two()
    onto.turn("there", "t")
    onto.edit(onto.of("q"), "Q")
    ours.turn("here", "h")
    onto.commits += rebase(ours.commits, onto.commits, next(ours.clock), ids())
    assert ["Q", "hm", "a", "there", "hm", "t", "here", "hm", "h"] == onto.texts
    ours.edit(ours.of("q"), "question")
    with pytest.raises(MergeConflictError, match="1 commits were changed here and there"):
        rebase(ours.commits, onto.commits, next(ours.clock), ids())


def test_a_rebase_loses_no_result_of_a_call_that_both_answered() -> None:
    """Which of the two it has, a merge settles."""
    ours, _ = two()
    response = ours.call("look")
    onto = ours.fork()
    onto.result("look", "sunny", response)
    ours.result("look", "rainy", response)
    ours.answer("rain")
    with pytest.raises(MergeConflictError, match="1 commits were changed here and there"):
        rebase(ours.commits, onto.commits, next(ours.clock), ids())


def test_a_rebase_waits_for_the_turn() -> None:
    """On either side."""
    ours, onto = two()
    onto.respond(ToolCall("look", "look", "{}"))
    with pytest.raises(OpenTurnError):
        rebase(ours.commits, onto.commits, 1, ids())
