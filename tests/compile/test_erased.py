"""Tombstones: what was erased does not go, what is left of it does, and calls stay paired with results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import ANTHROPIC, Talk, build, call, entry, native, origin, rule, say, target, think, thought
from thinkback.compile import fold
from thinkback.compile.grouping import Grouper
from thinkback.errors import ReplayRefused
from thinkback.model.blocks import Origin, ToolResult
from thinkback.model.commits import Message, Response, Usage

PLACE = target(native(need_signature=("thinking",), missing=()), ANTHROPIC)


def erased(talk: Talk, kind: Any, remainder: Any = None, at: int = 0) -> Talk:
    """``talk`` with a tombstone in place of a commit of a kind."""
    return talk.erase(talk.hashes(kind)[at], remainder)


def test_an_erased_message_is_left_out() -> None:
    """What is left of it goes."""
    talk = Talk().system().turn("a").user("b")
    assert ["re a", "b"] == build(erased(erased(talk, "user"), "system")).texts
    assert [("text", "erased: gone")] * 2 == build(talk).dropped
    talk = Talk().turn("a secret").user("b")
    assert ["a ***", "re a secret", "b"] == build(erased(talk, "user", Message("a ***"))).texts


def test_an_erased_text_voids_its_response() -> None:
    """The rest of it goes without what it carried."""
    talk = Talk(origin(ANTHROPIC)).user("a").reply(thought(ANTHROPIC, "t", "SIG"), say("x"), say("y")).end().user("b")
    built = build(erased(talk, "assistant"), PLACE)
    assert b"SIG" not in built.body
    assert "y" == built.messages[1]["content"]
    assert [("reasoning", "erased: gone"), ("signature", "erased: gone"), ("text", "erased: gone")] == built.dropped
    again = erased(talk, "assistant", say("z"))
    assert [{"type": "text", "text": "z"}, {"type": "text", "text": "y"}] == build(again, PLACE).messages[1]["content"]


def test_erased_reasoning_is_gone() -> None:
    """What the endpoint demands of the turn under way cannot be sent, and what is left of it is text."""
    talk = Talk(origin(ANTHROPIC)).user("a").reply(thought(ANTHROPIC, "t", "SIG"), call()).result()
    with pytest.raises(ReplayRefused, match="erased: gone"):
        build(erased(talk, "reasoning"), PLACE)
    talk = Talk().turn("a", think("secret"), say("x")).user("b")
    assert [("reasoning", "erased: gone")] == build(erased(talk, "reasoning")).dropped
    assert ["***"] == build(erased(talk, "reasoning", think("***"))).fields
    assert [None] == build(erased(talk, "reasoning", say("***"))).fields


def test_a_placeholder_stands_for_erased_reasoning() -> None:
    """Where the endpoint demands some."""
    row = rule(open_turn="must", missing=("placeholder",), placeholder="(none)")
    assert ["(none)"] == build(erased(Talk().loop("a"), "reasoning"), row).fields


def test_an_erased_call_goes_with_its_result() -> None:
    """The other calls keep theirs."""
    talk = Talk().user("a").reply(call("c1"), call("c2"), content="null").result("c1", "one").result("c2", "two")
    assert ["a", "c2", "two"] == build(erased(talk, "tool_call")).texts


def test_an_erased_result_is_said_to_be_erased() -> None:
    """It stands with the first call that has none; what is left of it goes."""
    talk = Talk().user("a").reply(call("c1"), call("c2"), content="null").result("c1", "one").result("c2", "two")
    assert ["a", "c1,c2", "one", "(erased)"] == build(erased(talk, "tool_result", at=1)).texts
    assert ["a", "c1,c2", "(erased)", "(erased)"] == build(erased(talk, "tool_result")).texts
    left = ToolResult("c1", "on*")
    assert ["a", "c1,c2", "on*", "(erased)"] == build(erased(talk, "tool_result", left)).texts
    talk.result("", "stray", "")
    assert ["a", "c1,c2", "on*", "(erased)"] == build(erased(talk, "tool_result", at=2)).texts


def test_an_erased_response_is_nobodys() -> None:
    """Its text goes, its carriers do not; with an origin left they do not either."""
    talk = Talk().turn("a", entry("t", signature="SIG"), say("x")).user("b")
    row = rule(form="details", field="reasoning")
    built = build(erased(talk, "response"), row)
    assert ["a", "x", "b"] == built.texts
    assert b"SIG" not in built.body
    left = Response(Origin("openai-chat", "https://api.example.com/v1", "m1", account="acme", account_known=True))
    built = build(erased(talk, "response", left), row)
    assert b"SIG" not in built.body
    assert {"erased: gone"} == {reason for _, reason in built.dropped}


def test_the_rest_of_a_log_may_be_erased() -> None:
    """Ends of turns are ends, tools and records and what was said about commits are nothing."""
    talk = Talk().tools("look").turn("a").content("note").summary("s")
    talk.annotate(talk.hashes("user")[0]).compact(talk.commits[0].hash, talk.commits[3].hash).user("b")
    before = build(talk).texts
    assert "a" not in before
    for kind in ("tools", "turn_ended", "annotation", "compaction", "content", "branch_summary"):
        erased(talk, kind)
    assert ["a", "re a", "b"] == build(talk).texts


def test_what_is_left_is_of_the_kind_of_its_commit() -> None:
    """Anything else in a tombstone is nothing: whoever wrote it, it does not become what the commit never was."""
    talk = Talk().user("a").answer(target(), say("x")).end().note("provider_usage", Usage(1, 2), "resp1")
    talk.repair("all").content("note").summary("s").user("b")
    for kind in ("request", "provider_usage", "repair", "content", "branch_summary"):
        erased(talk, kind, think("left"))
    assert ["a", "x", "b"] == build(talk).texts
    assert [] == build(talk).decisions


def test_an_erased_edit_does_not_bring_the_original_back() -> None:
    """What is left of the edit goes; an edit of what was erased goes as it is."""
    talk = Talk().user("a")
    talk.edit(talk.commits[0].hash, Message("b")).user("c")
    edit = talk.commits[1].hash
    assert ["c"] == build(talk.erase(edit)).texts
    assert ["*", "c"] == build(talk.erase(edit, Message("*"))).texts
    talk = Talk().user("a")
    talk.edit(talk.commits[0].hash, Message("b"))
    assert ["b"] == build(erased(talk, "user")).texts


def test_an_original_that_was_restored_goes_where_only_one_of_the_two_is_erased() -> None:
    """What stands last decides: a restored original goes, without what it carried; an erased restoration does not."""
    talk = Talk().user("a")
    talk.edit(talk.commits[0].hash, Message("a")).user("c")
    assert ["a", "c"] == build(erased(talk, "user")).texts
    assert ["c"] == build(talk.erase(talk.commits[1].hash)).texts
    talk = Talk().user("a")
    talk.edit(talk.commits[0].hash, Message("a")).user("c")
    assert ["c"] == build(talk.erase(talk.commits[1].hash)).texts
    original = thought(ANTHROPIC, "t", "SIG")
    talk = Talk(origin(ANTHROPIC)).user("a").reply(original, say("x")).end()
    talk.edit(talk.hashes("reasoning")[0], original)
    assert b"SIG" in build(talk, PLACE).body
    assert b"SIG" not in build(erased(talk, "reasoning"), PLACE).body


def test_what_was_made_before_the_erasing_was_made_behind_what_is_gone() -> None:
    """On a target that binds reasoning to its prefix it stays away; what was made since goes."""
    place = target(native(need_signature=("thinking",), prefix_bound=True, missing=("none",)), ANTHROPIC)
    talk = Talk(origin(ANTHROPIC))
    for number in range(2):
        talk.turn(f"q{number}", thought(ANTHROPIC, "t", f"SIG{number}"), say("x"))
    erasing = talk.commits[-1].time
    talk.turn("q2", thought(ANTHROPIC, "t", "SIG2"), say("x")).user("b")
    body = build(talk.erase(talk.hashes()[0], time=erasing), place).body
    assert [b"SIG2"] == [value for value in (b"SIG0", b"SIG1", b"SIG2") if value in body]
    body = build(talk.erase(talk.hashes()[0], time=10**9), place).body
    assert b"SIG" not in body


def test_grouping_passes_tombstones_over() -> None:
    """It says that they are there, for whoever knows what to do."""
    talk = erased(Talk().turn("a"), "user")
    grouper = Grouper()
    grouper.take(talk.commits)
    assert grouper.curated
    assert 1 == len(grouper.turns)


def test_tombstones_hold_their_ground_step_by_step() -> None:
    """A state that knows of one says the same as one that is made anew."""
    talk = erased(Talk().turn("a").turn("b"), "user")
    built = build(talk)
    before = len(talk.commits)
    talk.turn("c")
    state = fold.extend(built.state, talk.commits[before:], built.writer)
    assert list(fold.request(state, built.writer)[1].fragments()) == build(talk).raw
