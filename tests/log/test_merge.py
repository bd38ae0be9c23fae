"""Merges: what is taken in, what conflicts, and what a resolution leads to."""

from __future__ import annotations

import msgspec
import pytest

from tests.log.build import Line, ids
from thinkback.errors import OpenTurnError, UnsupportedContent
from thinkback.log import drafting
from thinkback.log.erasing import tombstone
from thinkback.log.merge import Conflict, merge
from thinkback.log.merge_base import meet
from thinkback.model.blocks import Text, ToolCall
from thinkback.model.commits import (
    Annotation,
    Compaction,
    Draft,
    Erased,
    Merge,
    Priority,
    Repair,
    TurnEnded,
)
from thinkback.model.curation import curate


def two(*, turns: int = 1) -> tuple[Line, Line]:
    """Two lines that begin with the same turns."""
    ours = Line()
    for at in range(turns):
        ours.turn(f"q{at}", f"a{at}")
    return ours, ours.fork()


def last_merge(line: Line) -> Merge:
    value = line.commits[-1].value
    assert isinstance(value, Merge)
    return value


def test_nothing_to_take_in() -> None:
    """A line that ours begins with, or is, is in it already."""
    ours, theirs = two()
    assert "up_to_date" == ours.merge(theirs).kind
    ours.turn("more", "yes")
    before = list(ours.commits)
    result = ours.merge(theirs)
    assert ("up_to_date", (), before) == (result.kind, result.commits, ours.commits)
    assert theirs.commits[-1].hash == result.base.hash == result.theirs.hash


def test_fast_forward() -> None:
    """A line that goes on from ours moves the pointer; into an empty one too."""
    ours, theirs = two()
    theirs.turn("more", "yes")
    assert "fast_forward" == Line().merge(theirs).kind
    result = ours.merge(theirs)
    assert ("fast_forward", (), theirs.commits) == (result.kind, result.commits, ours.commits)


def test_records_alone_are_a_fast_forward() -> None:
    """What a line added need not be said for the pointer to move."""
    ours, theirs = two()
    theirs.add(Draft("turn_ended", TurnEnded("failed")))
    assert "fast_forward" == ours.merge(theirs).kind


def test_a_merge_without_fast_forward_copies() -> None:
    """``no_ff`` makes a commit with two parents where a pointer could have moved."""
    ours, theirs = two()
    theirs.turn("more", "yes")
    result = ours.merge(theirs, no_ff=True)
    assert "clean" == result.kind
    assert ["q0", "hm", "a0", "more", "hm", "yes"] == ours.texts
    assert (ours.commits[-2].hash, theirs.commits[-1].hash) == ours.commits[-1].parents
    assert "clean" == Line().merge(theirs, no_ff=True).kind


def test_both_went_on() -> None:
    """What theirs added stands behind what ours added; the last commit says which copy is of what."""
    ours, theirs = two()
    ours.turn("here", "h")
    theirs.turn("there", "t")
    kept = list(ours.commits)
    result = ours.merge(theirs)
    assert ("clean", (), ()) == (result.kind, result.conflicts, result.left_out)
    assert ["q0", "hm", "a0", "here", "hm", "h", "there", "hm", "t"] == ours.texts
    assert kept == ours.commits[: len(kept)]
    said = last_merge(ours)
    assert ("other", theirs.commits[-1].hash, theirs.commits[6].hash) == (said.branch, said.head, said.base)
    here = {commit.hash: commit for commit in ours.commits}
    there = {commit.hash: commit for commit in theirs.commits}
    assert 6 == len(said.copies)
    for old, new in said.copies:
        assert (there[old].value, there[old].response) == (here[new].value, here[new].response)


def test_records_of_requests_are_not_copied() -> None:
    """They speak of the line they were made on."""
    ours, theirs = two()
    ours.turn("here", "h")
    theirs.turn("there", "t")
    result = ours.merge(theirs)
    kinds = ["user", "response", "reasoning", "assistant", "provider_usage", "turn_ended", "merge"]
    assert kinds == [commit.kind for commit in result.commits]


def test_a_second_merge_takes_what_is_new() -> None:
    """Nothing comes twice, whichever way the lines were merged before."""
    ours, theirs = two()
    ours.turn("here", "h")
    theirs.turn("there", "t")
    ours.merge(theirs)
    assert "up_to_date" == ours.merge(theirs).kind
    theirs.turn("there again", "tt")
    ours.merge(theirs)
    assert ["q0", "hm", "a0", "here", "hm", "h", "there", "hm", "t", "there again", "hm", "tt"] == ours.texts
    theirs.merge(ours)
    assert sorted(ours.texts) == sorted(theirs.texts)
    theirs.turn("last", "l")
    ours.merge(theirs)
    assert sorted(ours.texts) == sorted(theirs.texts)
    assert "up_to_date" == theirs.merge(ours).kind


def test_what_came_through_a_third_line_comes_once() -> None:
    """Ours took a line in, and so did theirs, directly or by one that had."""
    ours, theirs = two()
    third = ours.fork()
    ours.turn("here", "h")
    theirs.turn("there", "t")
    third.turn("third", "3")
    fourth = theirs.fork()
    theirs.merge(third)
    fourth.turn("fourth", "4")
    fourth.merge(theirs)
    ours.merge(third)
    ours.merge(fourth)
    once = ["q0", "a0", "here", "h", "third", "3", "there", "t", "fourth", "4"]
    assert sorted(once) == sorted(text for text in ours.texts if text != "hm")
    assert "up_to_date" == ours.merge(theirs).kind
    assert "up_to_date" == ours.merge(third).kind


def test_a_response_that_was_picked_comes_once() -> None:
    """It has the same id and says the same, though no merge names the copy."""
    ours, theirs = two()
    ours.turn("here", "h")
    theirs.user("there")
    id = theirs.answer("t")
    ours.respond(*_blocks(theirs, id), id=id, ends="completed")
    result = ours.merge(theirs)
    assert ["user", "turn_ended", "merge"] == [commit.kind for commit in result.commits]
    assert 6 == len(last_merge(ours).copies)
    assert "up_to_date" == ours.merge(theirs).kind


def test_a_response_id_that_is_taken_is_replaced() -> None:
    """Another response has it here; the results follow."""
    ours, theirs = two()
    ours.respond(Text("mine"), id="same", ends="completed")
    theirs.respond(ToolCall("look", "look", "{}"), id="same")
    theirs.result("look", response="same")
    theirs.answer("seen")
    result = merge(ours.commits, theirs.commits, "b", 99, ids())
    kinds = {commit.kind for commit in result.commits if commit.response == "fresh-0"}
    assert {"response", "tool_call", "provider_usage", "tool_result"} == kinds


def answered_apart(there: str = "rainy") -> tuple[Line, Line]:
    """Both lines ran the tool of a response that they share."""
    ours = Line()
    ours.user("q")
    response = ours.call("look")
    theirs = ours.fork()
    ours.result("look", "sunny", response)
    ours.answer("sun")
    theirs.result("look", there, response)
    theirs.answer("rain")
    return ours, theirs


def test_a_call_that_both_answered_alike_keeps_its_result() -> None:
    """A call has one result."""
    ours, theirs = answered_apart("sunny")
    assert "clean" == ours.merge(theirs).kind
    assert ["q", "I need a tool", "look({})", "sunny", "hm", "sun", "hm", "rain"] == ours.texts


def test_a_call_that_both_answered_otherwise_is_a_conflict() -> None:
    """Nothing is stored, both results are shown, and before there was none."""
    ours, theirs = answered_apart()
    result = ours.merge(theirs)
    found = only(result.conflicts)
    assert ("conflicts", ()) == (result.kind, result.commits)
    assert ("both_edit", ours.of("sunny").hash, theirs.of("rainy").hash) == (found.kind, found.target, found.there)
    assert ("", "sunny", "rainy") == (found.before, found.ours.text, found.theirs.text)


@pytest.mark.parametrize(("choice", "told"), [("ours", "sunny"), ("theirs", "rainy"), ("both", "both")])
def test_a_call_that_both_answered_otherwise_is_settled(choice: str, told: str) -> None:
    """By one result, which the call has from then on; an edit of the other line's is not lost with it."""
    ours, theirs = answered_apart("grey")
    theirs.edit(theirs.of("grey"), "rainy")
    assert "clean" == ours.merge(theirs, resolutions={ours.of("sunny").hash: choice}).kind
    assert ["q", "I need a tool", "look({})", told, "hm", "sun", "hm", "rain"] == ours.texts
    assert "up_to_date" == ours.merge(theirs).kind
    theirs.turn("more", "yes")
    assert ("clean", ()) == ((again := ours.merge(theirs)).kind, again.conflicts)
    assert () == theirs.merge(ours).conflicts
    assert theirs.texts.count("yes") == 1


def test_two_results_that_came_to_say_the_same_are_none() -> None:
    """One was edited into the other."""
    ours, theirs = answered_apart()
    theirs.edit(theirs.of("rainy"), "sunny")
    assert "clean" == ours.merge(theirs).kind
    assert "sunny" in ours.texts


def test_late_counts_of_a_shared_response_are_copied() -> None:
    """What was counted for it later on the other line is not here yet."""
    ours, theirs = two()
    ours.user("here")
    shared = theirs.commits[2].response
    theirs.result("late", "found", shared)
    assert ["tool_result", "merge"] == [commit.kind for commit in ours.merge(theirs).commits]
    assert shared == ours.commits[-2].response


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_turn_under_way_is_not_merged(side: str) -> None:
    """Neither into it nor from it."""
    ours, theirs = two()
    ours.turn("here", "h")
    theirs.turn("there", "t")
    line = ours if side == "ours" else theirs
    line.user("and?")
    line.call("look")
    with pytest.raises(OpenTurnError, match="the call 'look' of look has no result yet"):
        ours.merge(theirs)
    line.result("look")
    assert "clean" == ours.merge(theirs).kind


def _blocks(line: Line, response: str) -> list[Text]:
    return [c.value for c in line.commits if c.response == response and c.index >= 0]  # type: ignore[misc]


# -- edits and annotations without contradiction ----------------------------------------------------------------------


def test_edits_and_marks_follow_what_they_are_about() -> None:
    """Of a copied commit they point at the copy, of a shared one at itself; those about nothing here stay away."""
    ours, theirs = two()
    ours.mark(ours.of("a0"), Priority.PINNED)
    ours.mark(ours.user("here"), tags=("mine",))
    there = theirs.user("there")
    first = theirs.edit(there, "over there")
    theirs.edit(first, "down there")
    theirs.mark("", Priority.IMPORTANT, retain=("down",))
    theirs.mark(theirs.of("q0"), tags=("question",))
    request = theirs.commits[1]
    theirs.mark(request, tags=("of a record",))
    theirs.mark("0" * 64, tags=("of nothing",))
    result = ours.merge(theirs)
    assert ["q0", "hm", "a0", "here", "down there"] == ours.texts
    curation = curate(ours.commits)
    copy = ours.of("there")
    assert Priority.IMPORTANT is curation.mark(copy.hash).priority
    assert {copy.hash} == {commit.edit for commit in ours.commits if commit.edit}
    assert frozenset({"question"}) == curation.mark(ours.of("q0").hash).tags
    assert frozenset({"of a record"}) == curation.mark(request.hash).tags
    assert (theirs.commits[-1].hash,) == result.left_out


def test_a_mark_before_everything_is_about_nothing() -> None:
    """There is nothing before it that it could speak of."""
    ours, theirs = Line(), Line()
    ours.user("here")
    theirs.clock = ours.clock
    theirs.mark("", Priority.SKIP)
    theirs.user("there")
    ours.merge(theirs)
    assert ["here", "there"] == ours.texts


def test_only_theirs_edited() -> None:
    """Where ours did not go on, their edit is taken."""
    ours, theirs = two()
    ours.mark(ours.of("q0"), tags=("mine",))
    theirs.edit(theirs.of("a0"), "a zero")
    theirs.mark(theirs.of("a0"), Priority.PINNED)
    assert "clean" == ours.merge(theirs).kind
    assert ["q0", "hm", "a zero"] == ours.texts
    assert Priority.PINNED is curate(ours.commits).mark(ours.of("a0").hash).priority


def test_the_same_edit_on_both_is_no_conflict() -> None:
    """Both say the same now; it is not said twice."""
    ours, theirs = two()
    for line in (ours, theirs):
        line.edit(line.of("a0"), "a zero")
    theirs.mark(theirs.of("a0"), tags=("t",))
    result = ours.merge(theirs)
    assert ["annotation", "merge"] == [commit.kind for commit in result.commits]


def test_what_theirs_took_back_changes_nothing() -> None:
    """An edit that was restored, a SKIP that was lifted: ours keeps its own, tags are taken."""
    ours, theirs = two()
    ours.edit(ours.of("a0"), "a zero")
    ours.mark(ours.of("q0"), Priority.PINNED)
    theirs.edit(theirs.of("a0"), "nothing")
    theirs.add(drafting.restored(theirs.of("a0"), Text("a0")))
    theirs.mark(theirs.of("q0"), Priority.SKIP, tags=("t",))
    theirs.mark(theirs.of("q0"), default=True)
    assert "clean" == ours.merge(theirs).kind
    assert ["q0", "hm", "a zero"] == ours.texts
    mark = curate(ours.commits).mark(ours.of("q0").hash)
    assert (Priority.PINNED, {"t"}) == (mark.priority, set(mark.tags))


# -- conflicts --------------------------------------------------------------------------------------------------------


def both_edit() -> tuple[Line, Line]:
    ours, theirs = two()
    ours.edit(ours.of("a0"), "mine")
    theirs.edit(theirs.of("a0"), "yours")
    return ours, theirs


def only(conflicts: tuple[Conflict, ...]) -> Conflict:
    (conflict,) = conflicts
    return conflict


def test_both_edited() -> None:
    """Two texts of one commit are a conflict: nothing is stored, both are shown."""
    ours, theirs = both_edit()
    result = ours.merge(theirs)
    found = only(result.conflicts)
    assert ("conflicts", (), (found,)) == (result.kind, result.commits, result.unresolved)
    assert ("both_edit", ours.of("a0").hash) == (found.kind, found.target)
    assert ("a0", "mine", "yours") == (found.before, found.ours.text, found.theirs.text)


@pytest.mark.parametrize(
    ("choice", "text", "won"), [("ours", "mine", "ours"), ("theirs", "yours", "theirs"), ("both", "both", "edited")]
)
def test_both_edited_and_resolved(choice: str, text: str, won: str) -> None:
    """Ours, theirs, or a text of its own; the merge says who won, and the conflict does not come back."""
    ours, theirs = both_edit()
    target = ours.of("a0").hash
    result = ours.merge(theirs, resolutions={target[:9]: choice})
    assert ("clean", (), {target: choice}) == (result.kind, result.unresolved, result.resolutions)
    assert ["q0", "hm", text] == ours.texts
    assert ((target, won),) == last_merge(ours).resolved
    assert "up_to_date" == ours.merge(theirs).kind
    theirs.turn("more", "yes")
    assert ("clean", ()) == ((again := ours.merge(theirs)).kind, again.conflicts)


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_a_strategy_resolves_what_is_not_resolved(strategy: str) -> None:
    """What was said about a single commit goes first."""
    ours, theirs = both_edit()
    ours.edit(ours.of("q0"), "my q")
    theirs.edit(theirs.of("q0"), "your q")
    ours.merge(theirs, strategy=strategy, resolutions={ours.of("q0").hash: "our q"})
    assert ["our q", "hm", {"ours": "mine", "theirs": "yours"}[strategy]] == ours.texts


def test_edits_of_a_commit_that_was_taken_in() -> None:
    """A copy and what it is of are one commit to later merges."""
    ours, theirs = two()
    ours.turn("here", "h")
    theirs.turn("there", "t")
    ours.merge(theirs)
    ours.edit(ours.of("t"), "mine")
    theirs.edit(theirs.of("t"), "yours")
    found = only(ours.merge(theirs).conflicts)
    assert (ours.of("t").hash, theirs.of("t").hash) == (found.target, found.there)
    ours.merge(theirs, strategy="theirs")
    assert "yours" in ours.texts
    theirs.merge(ours, strategy="theirs")
    assert "yours" in theirs.texts


def test_an_edit_made_after_the_other_was_seen_is_none() -> None:
    """Ours edited, theirs took that in and edited again: it knew what it changed."""
    ours, theirs = two()
    ours.edit(ours.of("a0"), "mine")
    theirs.user("there")
    theirs.merge(ours, strategy="theirs")
    theirs.edit(theirs.of("a0"), "yours")
    assert ("clean", ()) == ((result := ours.merge(theirs)).kind, result.conflicts)
    assert ["q0", "hm", "yours", "there"] == ours.texts


def test_an_edit_of_ours_since_the_last_merge_counts() -> None:
    """Theirs did not see it when it edited again."""
    ours, theirs = two()
    ours.user("here")
    theirs.user("there")
    theirs.edit(theirs.of("a0"), "yours")
    ours.merge(theirs, strategy="theirs")
    ours.add(drafting.restored(ours.of("a0"), Text("a0")))
    theirs.edit(theirs.of("a0"), "yours again")
    assert "both_edit" == only(ours.merge(theirs).conflicts).kind


@pytest.mark.parametrize(
    ("choice", "told"),
    [("ours", ["q0", "hm", "(a0)"]), ("theirs", ["q0", "hm", "new"]), ("text", ["q0", "hm", "text"])],
)
def test_ours_skips_what_theirs_edited(choice: str, told: list[str]) -> None:
    """Away, or said anew."""
    ours, theirs = two()
    ours.mark(ours.of("a0"), Priority.SKIP)
    theirs.edit(theirs.of("a0"), "new")
    found = only(ours.merge(theirs).conflicts)
    assert ("skip_vs_edit", True, False) == (found.kind, found.ours.skipped, found.theirs.skipped)
    ours.merge(theirs, resolutions={found.target: choice})
    assert told == ours.texts


@pytest.mark.parametrize(
    ("choice", "told"),
    [("ours", ["q0", "hm", "new"]), ("theirs", ["q0", "hm", "(new)"]), ("text", ["q0", "hm", "text"])],
)
def test_theirs_skips_what_ours_edited(choice: str, told: list[str]) -> None:
    """The same the other way round; the tags of the annotation come along."""
    ours, theirs = two()
    ours.edit(ours.of("a0"), "new")
    theirs.mark(theirs.of("a0"), Priority.SKIP, tags=("t",))
    theirs.mark(theirs.of("a0"), Priority.SKIP)
    found = only(ours.merge(theirs).conflicts)
    assert ("skip_vs_edit", True) == (found.kind, found.ours.edited)
    ours.merge(theirs, resolutions={found.target: choice})
    assert told == ours.texts
    assert {"t"} == curate(ours.commits).mark(found.target).tags


def test_a_pinned_commit_comes_back_pinned() -> None:
    """Theirs won, with the priority it has there."""
    ours, theirs = two()
    ours.mark(ours.of("a0"), Priority.SKIP)
    theirs.edit(theirs.of("a0"), "new")
    theirs.mark(theirs.of("a0"), Priority.PINNED)
    ours.merge(theirs, strategy="theirs")
    assert Priority.PINNED is curate(ours.commits).mark(ours.of("a0").hash).priority


@pytest.mark.parametrize(("choice", "text"), [("ours", "mine"), ("theirs", "a0"), ("a text", "a text")])
def test_theirs_went_on_from_what_ours_edited(choice: str, text: str) -> None:
    """What they appended is taken in any case; the choice is what they answered to."""
    ours, theirs = two()
    ours.edit(ours.of("a0"), "mine")
    theirs.turn("so?", "yes")
    found = only(ours.merge(theirs).conflicts)
    assert ("edit_plus_append", "mine", "a0") == (found.kind, found.ours.text, found.theirs.text)
    ours.merge(theirs, resolutions={found.target: choice})
    assert ["q0", "hm", text, "so?", "hm", "yes"] == ours.texts


@pytest.mark.parametrize(("choice", "text"), [("ours", "a0"), ("theirs", "yours"), ("a text", "a text")])
def test_ours_went_on_from_what_theirs_edited(choice: str, text: str) -> None:
    """The same the other way round."""
    ours, theirs = two()
    ours.turn("so?", "yes")
    theirs.edit(theirs.of("a0"), "yours")
    found = only(ours.merge(theirs).conflicts)
    assert "edit_plus_append" == found.kind
    ours.merge(theirs, resolutions={found.target: choice})
    assert ["q0", "hm", text, "so?", "hm", "yes"] == ours.texts


def test_an_old_edit_is_no_news() -> None:
    """Ours edited before the lines last met: theirs goes on knowing it, or having been overruled."""
    ours, theirs = both_edit()
    ours.merge(theirs, strategy="ours")
    theirs.mark(theirs.of("a0"), tags=("t",))
    theirs.turn("more", "yes")
    assert () == ours.merge(theirs).conflicts
    assert ["q0", "hm", "mine", "more", "hm", "yes"] == ours.texts


def test_a_text_needs_a_commit_that_has_one() -> None:
    """A tool call cannot be given another text."""
    ours = Line()
    ours.user("q")
    ours.call("look")
    ours.result("look")
    theirs = ours.fork()
    call = next(commit for commit in ours.commits if commit.kind == "tool_call")
    ours.mark(call, Priority.SKIP)
    theirs.add(Draft("tool_call", ToolCall("look", "look", '{"at":1}'), edit=call.hash))
    with pytest.raises(UnsupportedContent, match="cannot be edited"):
        ours.merge(theirs, resolutions={call.hash: "text"})


# -- what holds hashes ------------------------------------------------------------------------------------------------


def test_checkpoints_come_along_where_their_run_is_the_same() -> None:
    """Of a shared run, or of one that was copied as a whole; not of one that ours has put something into."""
    ours, theirs = two(turns=2)
    ours.turn("here", "h")
    q0, a0, a1 = theirs.of("q0"), theirs.of("a0"), theirs.of("a1")
    theirs.add(Draft("compaction", Compaction("manual", "one turn", q0.hash, a0.hash, (a0.hash,))))
    theirs.user("there")
    reply = theirs.call("look")
    result = theirs.result("look", "long", reply)
    theirs.add(Draft("turn_ended", TurnEnded("completed")))
    there = theirs.of("there")
    theirs.add(Draft("compaction", Compaction("manual", "their turn", there.hash, result.hash)))
    theirs.add(Draft("compaction", Compaction("manual", "across", a1.hash, result.hash)))
    theirs.add(Draft("compaction", Compaction("tool_results", trimmed=((result.hash, "..."),))))
    theirs.add(Draft("compaction", Compaction("tool_results", trimmed=(("0" * 64, "..."),))))
    theirs.add(Draft("compaction", Compaction("thoughts", shortened=(result.hash, "0" * 64))))
    theirs.add(Draft("compaction", Compaction("manual", "keeps", q0.hash, a1.hash, ("0" * 64,))))
    merged = ours.merge(theirs)
    told = [commit.value for commit in merged.commits if isinstance(commit.value, Compaction)]
    at = dict(last_merge(ours).copies)
    assert [
        Compaction("manual", "one turn", q0.hash, a0.hash, (a0.hash,)),
        Compaction("manual", "their turn", at[there.hash], at[result.hash]),
        Compaction("tool_results", trimmed=((at[result.hash], "..."),)),
        Compaction("thoughts", shortened=(at[result.hash],)),
    ] == told
    assert 3 == len(merged.left_out)


def test_repairs_name_the_copies() -> None:
    """Those of blocks that are not here say nothing; those of no block in particular do."""
    ours, theirs = two()
    ours.turn("here", "h")
    theirs.turn("there", "t")
    thought = theirs.of("t")
    for blocks in ((thought.hash, "0" * 64), ("0" * 64,), ()):
        theirs.add(Draft("repair", Repair("block", blocks, "no", "e", "m")))
    merged = ours.merge(theirs)
    told = [commit.value.blocks for commit in merged.commits if isinstance(commit.value, Repair)]
    assert [(ours.of("t").hash,), ()] == told


def test_tombstones_are_copied() -> None:
    """What was erased stays erased."""
    ours, theirs = two()
    ours.turn("here", "h")
    theirs.add(Draft("user", Erased("secret", 1)))
    ours.merge(theirs)
    assert "[erased: secret]" == ours.texts[-1]


def test_where_lines_meet_crosswise() -> None:
    """Each took the other in at the same time: nothing comes twice all the same."""
    ours, theirs = two()
    ours.user("here")
    theirs.user("there")
    before = ours.fork()
    ours.merge(theirs)
    theirs.merge(before)
    assert "up_to_date" == ours.merge(theirs).kind
    assert "up_to_date" == theirs.merge(ours).kind
    met = meet(ours.commits, theirs.commits)
    assert [] == met.fresh
    assert "" == met.here("0" * 64)


def test_what_was_erased_in_part_is_taken_in_as_what_is_left() -> None:
    """A mark without its reason still holds on the other line, and speaks of the commit there."""
    ours, theirs = two()
    note = theirs.user("note")
    theirs.mark(note, Priority.PINNED, reason="secret")
    theirs.mark(ours.of("q0"), Priority.SKIP, reason="secret")
    for at in (-1, -2):
        mark = theirs.commits[at]
        assert isinstance(mark.value, Annotation)
        left = Annotation(mark.value.target, mark.value.priority)
        theirs.commits[at] = msgspec.structs.replace(mark, value=tombstone("asked to", 1, left))
    ours.user("else")
    assert "clean" == ours.merge(theirs).kind
    marks = curate(ours.commits)
    assert Priority.PINNED == marks.mark(ours.of("note").hash).priority
    assert Priority.SKIP == marks.mark(ours.of("q0").hash).priority
