"""Where histories part, where they may be cut, which calls are open."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.log.build import Line
from thinkback.log.lines import OpenCall, UnderWay, common, end_of, holds, is_torn, open_calls, subjects, turn_start
from thinkback.log.protocol import TASK_PURPOSE, SessionInfo
from thinkback.model.blocks import Text, ToolCall
from thinkback.model.commits import Commit, Draft, Head, Priority, TurnEnded
from thinkback.model.curation import curate, matching


def seqs(*histories: list[Commit]) -> list[int]:
    return [len(history) for history in histories]


@given(st.integers(0, 20), st.integers(0, 5), st.integers(0, 5))
def test_the_common_beginning_is_what_was_forked_at(shared: int, ours: int, theirs: int) -> None:
    """However long each line is after it, and whichever is asked for the other."""
    line = Line()
    for at in range(shared):
        line.user(str(at))
    other = line.fork()
    for at in range(ours):
        line.user(f"ours {at}")
    for at in range(theirs):
        other.user(f"theirs {at}")
    assert [shared, shared] == [common(line.commits, other.commits), common(other.commits, line.commits)]


def test_what_a_history_holds() -> None:
    """A commit is held where its hash stands at its seq; the empty head is held by all."""
    line = Line()
    line.user("one")
    other = line.fork()
    line.user("two")
    other.user("three")
    held = Head(line.commits[1].hash, 1)
    assert [True, False, False] == [holds(found.commits, held) for found in (line, other, line.fork(1))]
    assert holds([], Head())


def test_a_line_ends_behind_a_whole_response() -> None:
    """Inside a response it is its last commit with the end of the turn; elsewhere it is the place itself."""
    line = Line()
    line.turn("Why?", "So.")
    line.user("And?")
    line.call("look")
    line.result("look")
    kinds = ["user", "request", "response", "reasoning", "assistant", "provider_usage", "turn_ended"]
    assert kinds == [commit.kind for commit in line.commits[:7]]
    assert [0, 1, 6, 6, 6, 6, 6, 7] == [end_of(line.commits, at) for at in range(8)]
    assert [8, 12, 12, 12, 12, 13] == [end_of(line.commits, at) for at in range(8, 14)]
    assert 12 == end_of(line.commits[:13], 10)


def test_a_history_that_ends_inside_a_response_is_torn() -> None:
    """Until its last block is there."""
    line = Line()
    line.turn("Why?", "So.")
    assert [False, False, True, True, False, False, False] == [is_torn(line.commits[: at + 1]) for at in range(7)]


def test_open_calls() -> None:
    """A call is open until its result comes; one of a response that did not complete never is."""
    line = Line()
    line.turn("Why?", "So.")
    line.user("And?")
    line.respond(ToolCall("cut", "cut", "{}"), complete=False)
    response = line.call("look", "find")
    asked = line.commits[-3].value
    assert isinstance(asked, ToolCall)
    assert OpenCall(asked, response) == open_calls(line.commits)[0]
    line.result("find")
    line.result("nobody's")
    assert ["look"] == [waiting.call.id for waiting in open_calls(line.commits)]
    line.result("look")
    assert [] == open_calls(line.commits)
    assert 0 == turn_start([])


@given(st.lists(st.sampled_from(["ask", "call", "cut", "result", "end", "edit", "say"]), max_size=14))
def test_open_calls_are_followed_commit_by_commit(moves: list[str]) -> None:
    """Whatever comes, they are those of the whole history."""
    line = Line()
    first = line.user("Why?")
    for number, move in enumerate(moves):
        match move:
            case "ask":
                line.user("And?")
            case "call":
                line.call(f"call {number}", f"other {number}")
            case "cut":
                line.respond(ToolCall(f"cut {number}", "cut", "{}"), complete=False)
            case "result":
                for waiting in open_calls(line.commits)[:1]:
                    line.result(waiting.call.id)
            case "end":
                line.add(Draft("turn_ended", TurnEnded("completed")))
            case "edit":
                line.edit(first, f"How? {number}")
            case _:
                line.respond(Text("So."))
    under_way = UnderWay()
    for at, commit in enumerate(line.commits, 1):
        under_way.take([commit])
        assert open_calls(line.commits[:at]) == under_way.calls()
    assert len(line.commits) == under_way.count


def test_an_edit_opens_no_turn() -> None:
    """An edited message is no new one, an edited call no new call."""
    line = Line()
    line.turn("Why?", "So.")
    ended = len(line.commits)
    line.edit(line.of("Why?"), "How?")
    assert ended == turn_start(line.commits)
    line.user("next")
    question = len(line.commits) - 1
    line.respond(Text("more"))
    line.edit(line.of("Why?"), "Where?")
    line.respond(Text("still more"))
    assert question == turn_start(line.commits)


def test_what_edits_and_annotations_are_about() -> None:
    """An edit of an edit is about what was first edited; an annotation without a target about what came before."""
    line = Line()
    said = line.user("one")
    first = line.edit(said, "two")
    second = line.edit(first, "three")
    near, mark = line.mark("", Priority.PINNED), line.mark(second, Priority.SKIP)
    assert {found.hash: said.hash for found in (first, second, near, mark)} == subjects(curate(line.commits))


def test_commits_are_found_by_kind_and_tags() -> None:
    """Of no kind means of any; all tags must be there."""
    line = Line()
    first, second = line.user("one"), line.user("two")
    line.mark(first, tags=("red", "green"))
    line.mark(second, tags=("red",), metadata='{"by":"hand","n":1}')
    assert [second] == matching(line.commits, [], frozenset({"red"}), {"by": "hand"})
    assert [] == matching(line.commits, [], frozenset(), {"by": "hand", "n": 2, "m": 1})
    assert [first, second] == matching(line.commits, ["user"], frozenset())
    assert [first] == matching(line.commits, [], frozenset({"red", "green"}))


def test_a_task_is_a_session_that_another_made_for_one() -> None:
    """Neither a fork nor a session of that purpose alone is."""
    task = SessionInfo("s", "main", 0, 0, 0, Head(), parent="p", purpose=f"{TASK_PURPOSE}look")
    assert [True, False, False] == [
        session.is_task
        for session in (task, msgspec.structs.replace(task, parent=""), msgspec.structs.replace(task, purpose="fork"))
    ]
