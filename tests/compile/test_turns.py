"""How commits become turns and messages: what is withheld, where results go, what a turn is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import (
    ANTHROPIC,
    BEDROCK,
    WRITER,
    Built,
    Talk,
    build,
    call,
    inputs,
    native,
    origin,
    rule,
    say,
    tagged,
    target,
    think,
    thought,
)
from thinkback.compile import fold
from thinkback.compile.translate import INTERRUPTED
from thinkback.model.blocks import ToolResult
from thinkback.model.commits import Draft, Merge, Message, Request, Usage

OPEN_ONLY = rule(open_turn="should", later="never")


def roles(built: Built) -> list[str]:
    """The roles of the messages."""
    return [message["role"] for message in built.messages]


@pytest.mark.parametrize("state", ["failed", "partial_failed", "timed_out", "interrupted"])
def test_a_response_that_did_not_complete_leaves_no_message(state: Any) -> None:
    """A response that failed, was cut or timed out is withheld whole: no message, no results, a decision each."""
    talk = Talk().user("a").reply(think("t", signature="s"), say("par"), call(), complete=False).result().end(state)
    built = build(talk.user("b"), rule(later="must"))
    assert roles(built) == ["user", "user"]
    assert built.actions == ["drop", "drop"]
    assert set(built.reasons) == {"the response did not complete"}


def test_calls_that_the_cap_left_unrun_are_withheld() -> None:
    """The response whose calls were never run because of the cap goes with its calls; the ones before it stay."""
    talk = Talk().loop("a").reply(think("more"), call("c2"), content="null").end("capped").user("b")
    built = build(talk)
    assert roles(built) == ["user", "assistant", "tool", "user"]
    assert built.reasons[1] == "its calls were never run: the turn reached its cap"


def test_capped_calls_with_a_result_stay() -> None:
    """Once a caller gives a result for a capped call, its response is replayed."""
    talk = Talk().user("a").reply(think("t"), call(), content="null").end("capped").result()
    assert roles(build(talk)) == ["user", "assistant", "tool"]


def test_only_the_last_response_of_a_capped_turn_is_capped() -> None:
    """An earlier response whose calls were orphaned got its interrupted results and stays."""
    talk = Talk().user("a").reply(call("c1")).reply(say("x")).end("capped").user("b")
    built = build(talk)
    assert roles(built) == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize("state", ["interrupted", "failed", "timed_out", "partial_failed", "capped"])
def test_completed_responses_stay_whatever_became_of_their_turn(state: Any) -> None:
    """A completed response with every call answered is replayed however its turn ended."""
    built = build(Talk().loop("a").end(state).user("b"))
    assert roles(built) == ["user", "assistant", "tool", "user"]
    assert built.fields == ["plan"]


def test_orphan_calls_are_answered() -> None:
    """A call without a result is answered in its message's place, in the order of the calls."""
    talk = Talk().user("a").reply(call("c1"), call("c2"), call("c3")).result("c2", "two").user("b")
    built = build(talk)
    answers = [(m["tool_call_id"], m["content"]) for m in built.messages if m["role"] == "tool"]
    assert answers == [("c1", INTERRUPTED), ("c2", "two"), ("c3", INTERRUPTED)]


def test_the_last_result_of_a_call_counts() -> None:
    """A result that replaces the one of an interruption is the one that is sent."""
    built = build(Talk().user("a").reply(call()).result(text="interrupted").result(text="real"))
    assert [m["content"] for m in built.messages if m["role"] == "tool"] == ["real"]


def test_calls_that_share_an_id_take_their_results_in_order() -> None:
    """Hosts that give no ids still get each result once, in order, and what is missing is told."""
    talk = Talk().user("a").reply(call(""), call(""), call("")).result("", "one").result("", "two")
    built = build(talk)
    assert [m["content"] for m in built.messages if m["role"] == "tool"] == ["one", "two", INTERRUPTED]


def test_results_stand_next_to_their_calls() -> None:
    """Results go behind their call's message, also when another writer's commits came in between."""
    talk = Talk().user("a").reply(think("t"), call(), content="null").user("b").system("s").result()
    assert roles(build(talk)) == ["user", "assistant", "tool", "user", "system"]


def test_results_without_a_tie_go_to_the_last_such_call() -> None:
    """Adopted results name no response; the id of the call finds it, the last one where ids repeat."""
    talk = Talk().user("a").reply(call()).result(response="", text="1").reply(call()).result(response="", text="2")
    assert roles(build(talk)) == ["user", "assistant", "tool", "assistant", "tool"]
    assert [m["content"] for m in build(talk).messages if m["role"] == "tool"] == ["1", "2"]


def test_a_wrong_tie_is_mended_by_the_id() -> None:
    """A result tied to a response that is not there goes to the call of its id; one that fits nowhere goes nowhere."""
    talk = Talk().user("a").reply(call()).result(response="gone", text="1").result("else", response="gone")
    assert [m["content"] for m in build(talk).messages if m["role"] == "tool"] == ["1"]


def test_consecutive_user_messages_are_one_turn() -> None:
    """User messages without a response between them belong to the same turn, each a message of its own."""
    talk = Talk().turn("a").user("b").user("c").reply(think("on c"), call()).result()
    built = build(talk, OPEN_ONLY)
    assert roles(built) == ["user", "assistant", "user", "user", "assistant", "tool"]
    assert built.fields == [None, "on c"]


def test_system_messages_stand_where_they_came() -> None:
    """A system message keeps its place and opens no turn of its own while one is under way."""
    talk = Talk().system("one").loop("a").system("two").reply(think("then"), say("x"))
    built = build(talk, OPEN_ONLY)
    assert roles(built) == ["system", "user", "assistant", "tool", "system", "assistant"]
    assert built.fields == ["plan", "then"]


def test_a_system_message_after_a_finished_turn() -> None:
    """A system message behind a completed turn belongs to the next one."""
    built = build(Talk().turn("a").system("two").user("b"), OPEN_ONLY)
    assert roles(built) == ["user", "assistant", "system", "user"]
    assert built.fields == [None]


def test_responses_before_any_user_message() -> None:
    """A history may begin with a response; it is a turn like any other."""
    built = build(Talk().reply(think("t"), say("x")).user("a"), OPEN_ONLY)
    assert roles(built) == ["assistant", "user"]
    assert built.fields == [None]


def test_a_completed_turn_is_finished_at_once() -> None:
    """When the turn completed its reasoning counts as that of a finished turn, before anything follows."""
    assert build(Talk().turn("a"), OPEN_ONLY).fields == [None]
    assert build(Talk().user("a").reply(think("t"), say("x")), OPEN_ONLY).fields == ["t"]


@pytest.mark.parametrize("state", ["failed", "interrupted", "timed_out", "partial_failed"])
def test_a_turn_that_broke_off_may_go_on(state: Any) -> None:
    """The endpoint takes a turn that failed for the one under way until a user message follows."""
    talk = Talk().loop("a").end(state)
    assert build(talk, OPEN_ONLY).fields == ["plan"]
    talk.reply(think("on"), call("c2"), content="null").result("c2")
    assert build(talk, OPEN_ONLY).fields == ["plan", "on"]
    assert build(talk.user("b"), OPEN_ONLY).fields == [None, None]


def test_a_response_after_a_completed_turn_begins_another() -> None:
    """Going on without a message after a completed turn leaves that turn finished."""
    talk = Talk().turn("a").reply(think("more"), call()).result()
    assert build(talk, OPEN_ONLY).fields == [None, "more"]


@pytest.mark.parametrize("speech", [ANTHROPIC, BEDROCK])
@pytest.mark.parametrize("state", ["failed", "interrupted", "timed_out"])
def test_results_that_nothing_answered_leave_the_turn_open(speech: str, state: Any) -> None:
    """Where results are the user's own message, what the user says next stands beside them; an answer ends it."""
    place = target(native(later="never"), speech)
    talk = Talk(origin(speech)).user("a").reply(thought(speech, "plan", "SIG1"), call()).result().end(state)
    assert b"SIG1" in bytes(talk.user("b").plan(place))
    talk.reply(thought(speech, "on", "SIG2"), say("par"), complete=False).end(state)
    assert b"SIG1" in bytes(talk.user("c").plan(place))
    talk.reply(say("done")).end().user("d")
    assert b"SIG1" not in bytes(talk.plan(place))


def test_a_turn_whose_question_was_taken_away_goes_on_with_the_one_before() -> None:
    """Without a message of the user's between them, the endpoint sees one turn; a summary in its place parts them."""
    talk = Talk().turn("a").user("b")
    question = talk.hashes("user")[-1]
    talk.reply(think("more"), call(), content="null").result()
    assert build(talk, OPEN_ONLY).fields == [None, "more"]
    assert build(talk.annotate(question), OPEN_ONLY).fields == ["on a", "more"]
    assert build(talk.reply(say("so")).end().user("c"), OPEN_ONLY).fields == [None, None, None]


def test_the_end_of_an_attempt_that_left_nothing() -> None:
    """A failure right after a completed turn, or before anything, ends no turn anew."""
    assert build(Talk().turn("a").end("failed"), OPEN_ONLY).fields == [None]
    assert roles(build(Talk().end("failed").user("a"))) == ["user"]
    assert roles(build(Talk().user("a").end("capped").user("b"))) == ["user", "user"]


def test_a_capped_response_without_calls_is_not_withheld() -> None:
    """The cap withholds calls that were not run; a response without calls has none."""
    assert roles(build(Talk().user("a").reply(say("x")).end("capped").user("b"))) == ["user", "assistant", "user"]


def test_kinds_that_are_never_replayed() -> None:
    """Usage, requests and ends of turns leave nothing in a request, wherever they stand."""
    talk = Talk().note("provider_usage", Usage(1, 2, 3), "gone").turn("a").note("provider_usage", Usage(1, 2), "resp1")
    fields: dict[str, Any] = dict.fromkeys(Request.__struct_fields__, "audited") | {
        "settings": {},
        "chain": None,
        "recipe": 1,
    }
    built = build(talk.note("request", Request(**fields), "resp2").user("b"))
    assert roles(built) == ["user", "assistant", "user"]
    assert len(built.request) == 3
    assert b"usage" not in built.body
    assert b"audited" not in built.body


def test_blocks_find_their_response() -> None:
    """Blocks that came interleaved with another writer's go to their own response; those of none go nowhere."""
    talk = Talk().user("a").reply(think("one")).reply(think("two"))
    talk.add(Draft("assistant", say("1"), "resp1", 1), Draft("assistant", say("2"), "resp2", 1))
    talk.add(Draft("tool_call", call("c9"), "resp1", 2), Draft("assistant", say("lost"), "gone", 0))
    talk.note("tool_result", ToolResult("c9", "nine"))
    built = build(talk)
    assert [(m["content"], m.get("reasoning_content")) for m in built.messages[1:]] == [
        ("1", "one"),
        ("nine", None),
        ("2", "two"),
    ]


def test_tools_of_the_log() -> None:
    """The state knows the tools in force."""
    state = build(Talk().tools("one").user("a").tools("two", "three")).state
    assert state.tools is not None
    assert [tool.name for tool in state.tools.tools] == ["two", "three"]


def test_extending_knows_what_is_pending() -> None:
    """What comes for a response of a pending turn is added without folding again, and the old state keeps its own."""
    talk = Talk().turn("a").user("b").reply(think("t"), call(), content="null")
    state = fold.fold(inputs(), talk.commits, WRITER)
    before = Built(state)
    talk.result(text="late")
    after = Built(fold.extend(state, talk.commits[-1:], WRITER))
    assert after.messages[-1]["content"] == "late"
    assert after.body == build(talk).body
    assert before.body == Built(state).body
    assert before.messages[-1]["content"] == INTERRUPTED


@pytest.mark.parametrize("late", ["result", "usage", "block", "stray"])
def test_what_comes_late_for_a_settled_turn(late: str) -> None:
    """A result, usage or block for a turn long settled changes the request as if it had come in time."""
    talk = Talk().user("a").reply(think("t"), call(), content="null").end("interrupted").turn("b").turn("c").user("d")
    state = fold.fold(inputs(), talk.commits, WRITER)
    assert state.settled == 2
    drafts = {
        "result": Draft("tool_result", ToolResult("c1", "late"), "resp1"),
        "usage": Draft("provider_usage", Usage(1, 400, 300), "resp1"),
        "block": Draft("assistant", say("late"), "resp1", 2),
        "stray": Draft("tool_result", ToolResult("none", "late"), ""),
    }
    added = talk.add(drafts[late])
    extended = Built(fold.extend(state, added, WRITER))
    folded = build(talk)
    assert folded.body == extended.body
    assert folded.counts == extended.counts
    assert (b"late" in extended.body) is (late in ("result", "block"))


def test_nothing_is_folded_again_without_need() -> None:
    """Where nothing was settled yet, what finds no response is passed over."""
    state = fold.fold(inputs(), Talk().user("a").commits, WRITER)
    talk = Talk().note("tool_result", ToolResult("c1", "x"))
    assert fold.extend(state, talk.commits, WRITER).settled == 0


def test_messages_hold_what_was_said() -> None:
    """Content stays as it was: null beside calls, empty text, parts and verbatim messages."""
    talk = Talk().note("user", Message("x", wire='{"role":"user","content":"x","name":"n"}'))
    talk.reply(think("t"), call(), content="null").result().reply(tagged("t"), content="text")
    messages = build(talk, rule(later="never", open_turn="never")).messages
    assert messages[0]["name"] == "n"
    assert messages[1]["content"] is None
    assert messages[3] == {"role": "assistant", "content": ""}


def test_kinds_that_never_reach_a_request_are_passed_over() -> None:
    """A newer program may store what this one does not know."""
    talk = Talk().user("a").note("permission_decision", Message("allowed"))
    assert build(Talk().user("a")).raw == build(talk).raw


def test_merges_are_passed_over() -> None:
    """They say where commits came from, and nothing to a model."""
    talk = Talk().user("a").note("merge", Merge("try", "head"))
    assert build(Talk().user("a")).raw == build(talk).raw
