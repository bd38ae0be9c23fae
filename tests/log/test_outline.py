"""The shape of a history: pieces that no cut goes through, turns, and summaries that stand for a part of it."""

from __future__ import annotations

import msgspec
from hypothesis import given

from tests.compile.build import Talk, call, say, think
from tests.compile.test_laws import talks
from thinkback.log.outline import Outline
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Compaction,
    Content,
    Draft,
    Erased,
    Message,
    Priority,
    TurnEnded,
)

HEADS = ("user", "system", "response", "content", "branch_summary")


def shape(talk: Talk) -> list[tuple[str, int, tuple[int, ...]]]:
    """Kind, turn and positions of each piece."""
    return [(piece.kind, piece.turn, piece.at) for piece in Outline(talk.commits).pieces]


def summarised(talk: Talk, first: int, last: int, **fields: object) -> Talk:
    """A checkpoint over the commits at two positions."""
    ends = (talk.commits[first].hash, talk.commits[last].hash)
    return talk.note("compaction", Compaction("manual", "before", *ends, **fields))  # type: ignore[arg-type]


def test_a_response_is_one_piece_with_its_blocks_and_results() -> None:
    """Its reasoning, its call and the result are never apart; usage and the end of the turn are no pieces."""
    talk = Talk().system().loop().reply(say("done")).end()
    assert [("system", 0, (0,)), ("said", 0, (1,)), ("response", 0, (2, 3, 4, 5)), ("response", 0, (6, 7))] == shape(
        talk
    )


def test_a_user_message_begins_a_turn_where_one_was_answered_or_ended() -> None:
    """Two in a row belong together; the system's words belong to what is open."""
    talk = Talk().user("a").user("b").reply(say("c")).user("d").system().end("failed").user("e").reply(say("f")).end()
    talk.system("again").user("g")
    assert [0, 0, 0, 1, 1, 2, 2, 3, 3] == [piece.turn for piece in Outline(talk.commits).pieces]


def test_a_response_after_a_completed_turn_begins_another() -> None:
    """After one that failed it goes on with it."""
    talk = Talk().reply(say("a")).end().reply(say("b")).end("failed").reply(say("c"))
    assert [0, 1, 1] == [piece.turn for piece in Outline(talk.commits).pieces]


def test_a_turn_is_under_way_from_its_first_response_to_its_end() -> None:
    """A message alone is no turn under way: nothing was minted in it."""
    talk = Talk().user()
    assert not Outline(talk.commits).begun
    assert Outline(talk.reply(call()).commits).begun
    assert Outline(talk.end("failed").commits).begun
    assert not Outline(talk.end().user().commits).begun


def test_a_completed_turn_stays_completed() -> None:
    """A further end is that of an attempt that left nothing."""
    talk = Talk().turn().end("failed").user()
    assert not Outline(talk.commits).begun
    assert 2 == Outline(talk.commits).turns


def test_content_and_told_branches_are_messages() -> None:
    """What a program adds in the role of the system is kept like the system's words."""
    talk = Talk()
    talk.note("content", Content("note", "a")).note("content", Content("rule", "b", role="system"))
    talk.note("branch_summary", BranchSummary("c"))
    assert ["said", "system", "said"] == [kind for kind, _, _ in shape(talk)]


def test_late_results_find_their_call_by_its_id() -> None:
    """One that names no response goes to the last call of its id; one that nobody called is no piece."""
    talk = Talk().user().reply(call("c1")).user("next").result("c1", response="").result("c9", response="gone")
    assert [(0,), (1, 2, 4), (3,)] == [at for _, _, at in shape(talk)]


def test_an_erased_result_stays_with_its_response() -> None:
    """Its payload no longer says which call it is of, but its commit says which response."""
    talk = Talk().user().reply(call("c1"))
    talk.note("tool_result", Erased("asked for", 1), "resp1").note("tool_result", Erased("asked for", 1))
    assert [(0,), (1, 2, 3)] == [at for _, _, at in shape(talk)]


def test_edits_annotations_and_strays_are_no_pieces() -> None:
    """Neither are blocks of a response that is not there, and an end before the beginning."""
    talk = Talk().note("turn_ended", TurnEnded("failed")).user()
    talk.add(Draft("user", Message("Hello."), edit=talk.commits[-1].hash))
    talk.note("annotation", Annotation(talk.commits[1].hash, Priority.PINNED))
    talk.add(Draft("reasoning", think("by hand")))
    assert [("said", 0, (1,))] == shape(talk)


def test_a_cut_through_a_piece_is_not_clean() -> None:
    """A result that came after the next message ties both sides together."""
    talk = Talk().user().reply(call("c1")).user("next").result("c1").reply(say("ok"))
    outline = Outline(talk.commits)
    assert [True, True, False, True, True] == [outline.is_clean(at) for at in range(5)]


def test_the_end_of_a_run_takes_the_end_of_its_turn_along() -> None:
    """Usage and the end of a turn have no meaning without it."""
    talk = Talk().turn("a").turn("b")
    outline = Outline(talk.commits)
    assert [4, 9] == [outline.end_of(outline.pieces[:count]) for count in (2, 4)]


def test_of_checkpoints_the_one_around_the_others_is_in_force() -> None:
    """Those beside each other are all in force, in the order of what they stand for."""
    talk = Talk()
    for text in "abcd":
        talk.turn(text)
    for first, last in ((10, 14), (0, 4), (0, 9)):
        summarised(talk, first, last)
    assert [(0, 9), (10, 14)] == [(run.first, run.last) for run in Outline(talk.commits).runs]


def test_a_checkpoint_of_another_history_stands_for_nothing() -> None:
    """A copy whose commits have other hashes here names none of this history."""
    talk = Talk().turn().note("compaction", Compaction("manual", "before", "there", "too"))
    talk.note("compaction", Compaction("manual", "before", talk.commits[0].hash, "too"))
    talk.note("compaction", Erased("asked for", 1))
    assert () == Outline(talk.commits).runs


def test_what_a_checkpoint_keeps_is_not_inside() -> None:
    """What goes word for word can be summarised later."""
    talk = Talk().turn("a").turn("b").turn("c")
    kept = talk.commits[1].hash
    outline = Outline(summarised(talk, 0, 9, kept=(kept,)).commits)
    assert [True, False, True, True, False, False] == [outline.is_inside(piece) for piece in outline.pieces]


def test_the_last_text_of_a_trimmed_result_holds() -> None:
    """A result that is trimmed twice goes out as it was trimmed last."""
    talk = Talk().loop()
    result = talk.commits[-1].hash
    for text in ("long", "short"):
        talk.note("compaction", Compaction("tool_results", trimmed=((result, text),)))
    assert {result: "short"} == Outline(talk.commits).trimmed


def test_a_checkpoint_counts_as_it_was_edited_and_not_where_it_was_skipped() -> None:
    """People may correct a summary, or do without it."""
    talk = summarised(Talk().turn("a").turn("b"), 0, 4)
    made = talk.commits[-1]
    talk.add(Draft("compaction", msgspec.structs.replace(made.value, summary="better"), edit=made.hash))
    assert ["better"] == [run.checkpoint.summary for run in Outline(talk.commits).runs]
    talk.note("annotation", Annotation(made.hash, Priority.SKIP))
    assert () == Outline(talk.commits).runs


def test_a_result_that_was_edited_since_is_not_trimmed() -> None:
    """The last word is the edit's; one from before is trimmed."""
    talk = Talk().loop()
    result = talk.commits[-1].hash
    talk.add(Draft("tool_result", ToolResult("c1", "more"), "resp1", edit=result))
    talk.note("compaction", Compaction("tool_results", trimmed=((result, "short"),)))
    assert {result: "short"} == Outline(talk.commits).trimmed
    talk.add(Draft("tool_result", ToolResult("c1", "most"), "resp1", edit=result))
    assert {} == Outline(talk.commits).trimmed


@given(talks())
def test_pieces_are_in_order_and_share_no_commit(talk: Talk) -> None:
    """Every response, message and result that has a call is in exactly one piece, turns only rise."""
    pieces = Outline(talk.commits).pieces
    places = [at for piece in pieces for at in piece.at]
    assert len(places) == len(set(places))
    assert [piece.at[0] for piece in pieces] == sorted(piece.at[0] for piece in pieces)
    assert [piece.turn for piece in pieces] == sorted(piece.turn for piece in pieces)
    assert all(list(piece.at) == sorted(piece.at) for piece in pieces)
    heads = {at for at, commit in enumerate(talk.commits) if commit.kind in HEADS and not commit.edit}
    assert heads == {piece.at[0] for piece in pieces}
    called: set[str] = set()
    for at, commit in enumerate(talk.commits):
        if isinstance(commit.value, ToolCall):
            called.add(commit.value.id)
        is_answer = isinstance(commit.value, ToolResult) and commit.value.id in called and not commit.edit
        assert at in places or not is_answer
