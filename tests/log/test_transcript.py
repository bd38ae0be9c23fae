"""What people read of a history: what holds now, and what was there before where they ask."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.compile.build import Talk, call, say, think
from thinkback.log.erasing import tombstone
from thinkback.log.transcript import TranscriptEntry, TranscriptPart, transcript
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolResult, Unknown
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Compaction,
    Content,
    Draft,
    Failure,
    Merge,
    Message,
    PermissionDecision,
    Priority,
    TurnEnded,
)


def read(talk: Talk, **asked: Any) -> list[tuple[str, ...]]:
    """Role and texts of each entry."""
    return [(said.role, *(piece.text for piece in said.pieces)) for said in transcript(talk.commits, **asked)]


def test_a_conversation_is_read_in_order() -> None:
    """One entry for each message, result and response; records, counts and marks are not read."""
    talk = Talk().system().tools("look").user("a").reply(think("t"), say("b"), call()).result().reply(say("c")).end()
    assert [
        ("system", "Be brief."),
        ("user", "a"),
        ("assistant", "t", "b", "{}"),
        ("tool", "42"),
        ("assistant", "c"),
    ] == read(talk)
    entries = list(transcript(talk.commits))
    assert ("m1-served", ("text", "reasoning", "code")) == (
        entries[2].title,
        tuple(sorted((piece.form for piece in entries[2].pieces), reverse=True)),
    )
    assert "look" == entries[2].pieces[2].label


def test_reasoning_that_is_not_there_or_there_twice_is_not_shown() -> None:
    """Placeholders, repetitions, and what only a provider can read."""
    talk = Talk().reply(
        ThinkingBlock("", signature="s"), ThinkingBlock("x", is_hidden=True), ThinkingBlock("y", marker=True), say("b")
    )
    assert [("assistant", "b")] == read(talk)


def test_edits_stand_in_place_of_what_they_edit() -> None:
    """Marked as edits, with what was there before where it is asked for."""
    talk = Talk().user("one").turn("two")
    first = talk.commits[0].hash
    talk.add(Draft("user", Message("uno"), edit=first))
    talk.add(Draft("user", Message("eins"), edit=first))
    talk.note("annotation", Annotation(first, Priority.PINNED, tags=("b", "a")))
    now = next(transcript(talk.commits))
    assert TranscriptEntry("user", "", 0, (TranscriptPart("text", "eins"),), ("pinned", "a", "b", "edited")) == now
    before = next(transcript(talk.commits, history=True))
    assert ("one", "uno") == before.pieces[0].before


def test_what_was_restored_is_not_edited() -> None:
    """It says what it said."""
    talk = Talk().user("one")
    talk.add(Draft("user", Message("uno"), edit=talk.commits[0].hash))
    talk.add(Draft("user", Message("one"), edit=talk.commits[0].hash))
    assert [TranscriptEntry("user", "", 0, (TranscriptPart("text", "one"),))] == list(
        transcript(talk.commits, history=True)
    )


def test_a_summary_stands_for_its_run() -> None:
    """What it kept stands behind it; what it stands for is inside where it is asked for."""
    talk = Talk().turn("one").turn("two").turn("three")
    users = talk.hashes("user")
    talk.note("compaction", Compaction("manual", "short", users[0], talk.commits[9].hash, kept=(users[1],)))
    assert [("summary", "short"), ("user", "two"), ("user", "three"), ("assistant", "on three", "re three")] == read(
        talk
    )
    inside = next(transcript(talk.commits, history=True)).inside
    assert ["user", "assistant", "user", "assistant"] == [said.role for said in inside]


def test_a_trimmed_result_is_read_as_it_goes_out() -> None:
    """And as it was, where it is asked for."""
    talk = Talk().user("a").reply(call()).result(text="long " * 9)
    talk.note("compaction", Compaction("tool_results", trimmed=((talk.commits[-1].hash, "long"),)))
    assert ("tool", "long") == read(talk)[-1]
    assert ("long " * 9,) == list(transcript(talk.commits, history=True))[-1].pieces[0].before


def test_what_did_not_come_to_an_end_says_so() -> None:
    """A response that was cut or failed, a turn that failed; a cut one without a piece too."""
    talk = Talk().user("a").reply(say("b"), complete=False, outcome="cut").end("timed_out")
    talk.reply(complete=False, error=Failure("no more"))
    entries = list(transcript(talk.commits))
    assert [("not completed: cut",), (), ("not completed: no more",)] == [said.marks for said in entries[1:]]
    assert TranscriptPart("note", "the turn ended: timed out") == entries[2].pieces[0]
    talk.note("turn_ended", TurnEnded("failed", "of hunger"))
    assert ("note", "the turn ended: failed: of hunger") == read(talk)[-1]


def test_what_a_person_allowed_is_told() -> None:
    """What a rule let run by itself is bookkeeping, and of a denial the end of the turn tells."""
    talk = Talk().user("a")
    talk.note("permission_decision", PermissionDecision("c", "go", "allowed", "rule", "runs", "the rule go=allow"))
    talk.note("permission_decision", PermissionDecision("c", "go", "allowed", "person", "runs", "the mode"))
    talk.note("permission_decision", PermissionDecision("c", "go", "allowed", "person", "runs", "the mode", "yes"))
    talk.note("permission_decision", PermissionDecision("c", "go", "denied", "person", "runs", "the mode", "no"))
    talk.note("permission_decision", PermissionDecision("c", "go", "denied", "rule", "runs", "the rule go=deny"))
    assert [
        "go was allowed by a person",
        "go was allowed by a person: yes",
    ] == [text for role, text in read(talk) if role == "note"]


def test_everything_has_its_place() -> None:
    """Content of one's own, summaries of other lines, merges, media, what nobody understands."""
    talk = Talk()
    talk.note("content", Content("note", "mind", role="system", priority=Priority.IMPORTANT))
    talk.note("branch_summary", BranchSummary("done"))
    talk.note("merge", Merge("other", "h"))
    parts = (Text("look"), Media("image/png", "AAAA", name="a.png"), Unknown("{}"))
    talk.note("user", Message("look", parts))
    talk.note("user", Message(""))
    talk.reply(Media("image/png", url="https://h/x"), Unknown("{}"))
    entries = list(transcript(talk.commits))
    assert [
        ("system", "note", ("important",)),
        ("summary", "", ()),
        ("note", "", ()),
        ("user", "", ()),
        ("assistant", "m1-served", ()),
    ] == [(said.role, said.title, said.marks) for said in entries]
    assert TranscriptPart("note", "other was merged") == entries[2].pieces[0]
    assert TranscriptPart("media", "AAAA", "image/png a.png") == entries[3].pieces[1]
    assert ["https://h/x", "a part that is not understood"] == [piece.text for piece in entries[4].pieces]


def test_results_say_how_they_came() -> None:
    """Run, refused, interrupted, failed."""
    talk = Talk().reply(call())
    for status in ("run", "not_run", "interrupted"):
        talk.note("tool_result", ToolResult("c1", "x", "look", status=status))
    talk.note("tool_result", ToolResult("c1", "x", is_error=True))
    labels = [said.pieces[0].label for said in transcript(talk.commits)][1:]
    assert ["look", "look (not run)", "look (interrupted)", "(error)"] == labels


def test_tombstones_are_read() -> None:
    """Once for a response, with what is left where something is; erased marks are not."""
    talk = Talk().user("a").reply(think("t"), say("b")).user("key")
    talk.note("annotation", Annotation("h", tags=("a",))).note("content", Content("note", "x"))
    gone = tombstone("asked", 1)
    rests = {0: gone, 2: gone, 3: gone, 4: tombstone("asked", 1, Message("***")), 5: gone, 6: gone}
    talk.commits = [
        msgspec.structs.replace(commit, value=rests.get(at, commit.value)) for at, commit in enumerate(talk.commits)
    ]
    assert [
        ("user", "erased: asked"),
        ("assistant", "erased: asked"),
        ("user", "***"),
        ("note", "erased: asked"),
    ] == read(talk)
