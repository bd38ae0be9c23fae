"""Calls that a rule or a person decides: asked about, run, denied, and what the log and the model are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import pytest

from tests.turn.playbook import (
    ANSWER,
    CALLS,
    Playbook,
    answers,
    asks,
    begins,
    ends,
    gives,
    interrupts,
    keeps,
    refused,
    rule,
    runs,
    said,
    says,
    sends,
    stored,
    stores,
    target,
)
from thinkback.errors import SettingError
from thinkback.model.blocks import Origin, ToolCall, ToolResult
from thinkback.model.commits import Draft, Message, PermissionDecision, Response, Tool, TurnEnded
from thinkback.settings.permissions import read_rules
from thinkback.turn.calls import LEAKED, NOBODY
from thinkback.turn.permissions import Mode, Permissions, Verdict, decide
from thinkback.turn.plan import Plan

TOOLS = frozenset({"look", "go", "pay"})
TWO = "request response reasoning tool_call tool_call"
THREE = f"{TWO} tool_call"


def permits(rules: str = "", mode: Mode = "auto") -> Callable[[ToolCall], Verdict]:
    """Permissions under which ``look`` reads and the rest runs."""
    permissions = Permissions(mode, read_rules(rules) or ())
    return lambda call: decide(permissions, call, "reads" if call.name == "look" else "runs")


def called(*ids: str, rules: str = "", mode: Mode = "auto", asks: bool = True, **more: object) -> Playbook:
    """A turn whose first response calls ``ids``."""
    play = Playbook(runnable=TOOLS, permit=permits(rules, mode), asks=asks, **more)  # type: ignore[arg-type]
    play >> begins << keeps("user") << sends
    return play >> answers(said("", "Hm.", *ids)) << keeps(f"request response reasoning{' tool_call' * len(ids)}")


def decisions(play: Playbook) -> list[PermissionDecision]:
    """What the log says of permissions."""
    return [commit.value for commit in play.history.commits if isinstance(commit.value, PermissionDecision)]


def results(play: Playbook) -> list[ToolResult]:
    """What the log says of calls."""
    return [commit.value for commit in play.history.commits if isinstance(commit.value, ToolResult)]


def test_a_person_who_says_yes_lets_the_call_run() -> None:
    """The decision is in the log before anything runs, and no model is sent it."""
    play = called("go-1", mode="ask") << asks("go") >> says(True) << stores("allowed")
    play.nothing()
    play >> stored << runs("go") >> gives("go-1", "gone") << keeps("result") << sends
    assert ["user", "assistant", "tool"] == [role for role, _ in play.texts]
    assert [
        PermissionDecision("go-1", "go", "allowed", "person", "runs", "permissions.mode is ask, and go runs")
    ] == decisions(play)
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    assert ["sending", "asking", "tool_started", "tool_finished", "sending"] == play.statuses


@pytest.mark.parametrize("person", [True, False])
def test_a_leaked_call_of_an_old_log_waits_for_a_person(person: bool) -> None:
    """One that an earlier version found in reasoning and left open does not run by itself when the turn goes on."""
    call = ToolCall("go-1", "go", "{}", source_field="reasoning_content")
    header = Response(Origin("openai-chat", "https://house.example/v1", "thinker"), finish="stop", blocks=1)
    log = [Draft("user", Message("Why?")), Draft("response", header, "r1"), Draft("tool_call", call, "r1", 0)]
    play = Playbook(None, log=log, runnable=TOOLS, permit=permits("go=allow"), asks=person) >> begins
    if person:
        play << asks("go") >> says(True) << keeps("allowed") << runs("go")
    else:
        play << keeps("denied result:not_run denied") << ends("denied")
    assert [LEAKED if person else f"{LEAKED}, and {NOBODY}"] == [decision.reason for decision in decisions(play)]


SECTION = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.go:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    "<|tool_calls_section_end|>"
)


@pytest.mark.parametrize("leaked_calls", ["text", "ask", "pass"])
@pytest.mark.parametrize("leaks", [True, False])
def test_what_becomes_of_a_leaked_call_is_said_by_rule_and_plan(
    leaked_calls: Literal["text", "ask", "pass"], leaks: bool
) -> None:
    """Reasoning, a call that a person decides before the caller gets it, or one for the caller at once."""
    play = Playbook(at=target(rule(leaked_calls="kimi" if leaks else "")), asks=True, plan=lambda: plan(play))

    def plan(play: Playbook) -> Plan:
        return msgspec.structs.replace(play._plan(), leaked_calls=leaked_calls)

    play >> begins << keeps("user") << sends >> answers(said("", SECTION))
    if not leaks or leaked_calls == "text":
        play << keeps("request response reasoning completed") << ends("completed")
    elif leaked_calls == "ask":
        play << keeps("request response reasoning tool_call") << asks("go") >> says(True)
        play << keeps("allowed") << ends(None)
    else:
        play << keeps("request response reasoning tool_call") << ends(None)


def test_a_person_is_told_what_and_why() -> None:
    """The call as it came, what the tool does, why that is asked, and what "always" would add."""
    play = called("go-1", rules="go=ask") << asks("go")
    assert play.asked is not None
    request = play.asked.request
    assert ("go-1", "runs", "the rule go=ask", "go=allow") == (
        request.call.id,
        request.effect,
        request.reason,
        request.always,
    )


def test_a_person_who_says_no_ends_the_turn() -> None:
    """The call is told so with the note, and the next request is valid."""
    play = called("go-1", mode="ask") << asks("go") >> says(False, "not on a Friday")
    play << keeps("denied result:not_run denied") << ends("denied")
    assert play.outcome is not None
    assert "go was denied by a person: not on a Friday" == play.outcome.reason
    assert ["This call was not run: it was denied by a person: not on a Friday."] == [r.content for r in results(play)]
    assert [("denied", "person", "not on a Friday")] == [(d.decision, d.by, d.note) for d in decisions(play)]
    ended = play.history.commits[-1].value
    assert TurnEnded("denied", "go was denied by a person: not on a Friday") == ended
    following = Playbook("And?", history=play.history) >> begins << keeps("user") << sends
    assert ["user", "assistant", "tool", "user"] == [role for role, _ in following.texts]
    assert ["Hm."] == following.reasoning()


def test_a_no_with_words_goes_on_with_them() -> None:
    """They are the result of the call, once; nothing of the response runs, and the model is asked again."""
    play = called("look-1", "go-1", "own-1", mode="ask", tools=None)
    play << keeps("allowed") << asks("go") >> says(False, "use make", goes_on=True) << keeps("denied")
    beside = "This call was not run: the user refused another call of the same response."
    play << refused(look=beside, go="The user refused this call: use make", own=beside)
    (
        play
        >> gives("look-1", beside, True)
        << keeps("result")
        >> gives("go-1", "The user refused this call: use make", True)
    )
    play << keeps("result") >> gives("own-1", beside, True) << keeps("result") << sends
    assert ["user", "assistant", "tool", "tool", "tool"] == [role for role, _ in play.texts]
    assert [("allowed", ""), ("denied", "use make")] == [(d.decision, d.note) for d in decisions(play)]


def test_nobody_is_asked_about_a_call_that_cannot_run() -> None:
    """The model gets the fault as its result; a call beside it is asked about."""

    def permit(call: ToolCall) -> Verdict:
        return Verdict("allow", "runs", fault="no such file") if call.name == "pay" else Verdict("ask", "runs", "mode")

    play = Playbook(runnable=TOOLS, permit=permit, asks=True) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "pay-1")) << keeps("request response reasoning tool_call")
    play << refused(pay="no such file") >> gives("pay-1", "no such file", True) << keeps("result") << sends
    assert [] == decisions(play)


def test_the_calls_beside_a_denied_one_are_not_run() -> None:
    """Each is answered, those too that had been allowed or wait for the caller, in the order of the calls."""
    play = called("look-1", "go-1", "pay-1", "own-1", mode="ask", tools=None)
    play << keeps("allowed") << asks("go") >> says(True) << keeps("allowed") << asks("pay") >> says(False)
    play << keeps("denied result:not_run result:not_run result:not_run result:not_run denied") << ends("denied")
    told = [result.content for result in results(play)]
    assert told[0] == told[1] == told[3] != told[2]
    assert "another call of the same response was denied" in told[0]
    assert "This call was not run: it was denied by a person." == told[2]


def test_nothing_runs_before_all_are_decided() -> None:
    """One question after the other, in the order of the calls."""
    play = called("go-1", "look-1", "pay-1", mode="ask") << asks("go") >> says(True)
    play << keeps("allowed allowed") << asks("pay") >> says(True) << keeps("allowed") << runs("go", "look", "pay")
    play >> gives("pay-1") << keeps("result") >> gives("go-1") << keeps("result") >> gives("look-1") << keeps("result")
    play << sends
    assert ["mode", "person", "person"] == sorted(decision.by for decision in decisions(play))


def test_nobody_is_asked_beside_a_call_that_is_denied_anyway() -> None:
    """The denial ends the turn whatever a person would say."""
    play = called("go-1", "pay-1", rules="go=ask,pay=deny")
    play << keeps("denied result:not_run result:not_run denied") << ends("denied")
    assert play.outcome is not None
    assert "pay was denied: the rule pay=deny" == play.outcome.reason


def test_read_only_denies_what_does_not_read() -> None:
    """No rule needs to say so."""
    called("look-1", mode="read_only") << keeps("allowed") << runs("look")
    play = called("go-1", mode="read_only") << keeps("denied result:not_run denied") << ends("denied")
    assert ["mode"] == [decision.by for decision in decisions(play)]


def test_where_nobody_is_there_a_question_is_a_denial() -> None:
    """It says what would have made it a question."""
    play = called("go-1", mode="ask", asks=False) << keeps("denied result:not_run denied") << ends("denied")
    assert NOBODY in results(play)[0].content
    assert [("denied", "mode")] == [(decision.decision, decision.by) for decision in decisions(play)]


def test_what_no_rule_speaks_of_runs_without_a_record() -> None:
    """In ``auto`` nobody decided anything; a rule that allows is on record."""
    called("go-1") << runs("go")
    play = called("go-1", rules="go=allow") << keeps("allowed") << runs("go")
    assert [("rule", "the rule go=allow")] == [(decision.by, decision.reason) for decision in decisions(play)]


def test_a_name_that_nobody_offered_is_not_asked_about() -> None:
    """There is nothing to run: the model is told that there is no such tool."""
    called("peek-1", mode="ask") << runs("peek")


def test_rules_are_read_again_after_each_answer() -> None:
    """A rule that "always" added answers for the next call."""
    rules = [""]
    play = Playbook(runnable=TOOLS, permit=lambda call: permits(rules[0], "ask")(call), asks=True)
    play >> begins << keeps("user") << sends >> answers(said("", "Hm.", "go-1", "go-2")) << keeps(TWO) << asks("go")
    rules[0] = "go=allow"
    play >> says(True, always=True) << keeps("allowed allowed") << runs("go", "go")
    assert [("person", True), ("rule", False)] == [(decision.by, decision.always) for decision in decisions(play)]


def test_permissions_that_cannot_be_read_allow_nothing() -> None:
    """A broken file is no permission."""

    def broken(call: ToolCall) -> Verdict:
        raise SettingError("the file is broken")

    play = Playbook(runnable=TOOLS, permit=broken, asks=True) >> begins << keeps("user") << sends
    play >> answers(said("", "Hm.", "go-1")) << keeps(CALLS) << keeps("denied result:not_run denied") << ends("denied")
    assert play.outcome is not None
    assert "go was denied: the permissions could not be read: the file is broken" == play.outcome.reason


def test_answers_that_nobody_waits_for_count_for_nothing() -> None:
    """A second answer, and one to no question."""
    play = called("go-1", "pay-1", rules="go=ask,pay=ask") << asks("go")
    first = play.asked
    play >> says(True) << keeps("allowed") << asks("pay")
    second, play.asked = play.asked, first
    play >> says(False)
    play.nothing()
    play.asked = second
    play >> says(True) << keeps("allowed") << runs("go", "pay") >> says(False)
    play.nothing()


def test_interrupted_while_a_person_is_asked() -> None:
    """The calls are told so; an answer that comes later counts for nothing."""
    play = called("go-1", "pay-1", mode="ask") << asks("go") >> says(True) << keeps("allowed") << asks("pay")
    play >> interrupts << keeps("result:interrupted result:interrupted interrupted") << ends("interrupted")
    play >> says(True)
    play.nothing()


def test_interrupted_while_a_decision_is_being_stored() -> None:
    """Nothing is run behind it."""
    play = called("go-1", mode="ask") << asks("go") >> says(True) << stores("allowed") >> interrupts
    play.nothing()
    play >> stored << keeps("result:interrupted interrupted") << ends("interrupted")


def test_interrupted_while_a_denial_is_being_stored() -> None:
    """The turn is over as it was to be."""
    play = called("go-1", mode="ask") << asks("go") >> says(False) << stores("denied result:not_run denied")
    play >> interrupts >> stored << ends("denied")


@pytest.mark.parametrize("answered", [False, True])
def test_after_a_crash_while_asking(answered: bool) -> None:
    """The next message repairs the calls; going on without one asks again."""
    play = called("go-1", mode="ask") << asks("go")
    if answered:
        play >> says(True) << keeps("allowed")
    log = [Draft(c.kind, c.value, c.response, c.index) for c in play.history.commits]
    following = Playbook("And?", log=log, runnable=TOOLS) >> begins << keeps("result:interrupted interrupted user")
    following << sends
    assert ["user", "assistant", "tool", "user"] == [role for role, _ in following.texts]
    again = Playbook(None, log=log, runnable=TOOLS, permit=permits(mode="ask"), asks=True) >> begins << asks("go")
    again >> says(True) << keeps("allowed") << runs("go")


def test_calls_for_the_caller_are_answered_when_a_call_beside_them_is_denied() -> None:
    """The turn is over: the caller is not asked for a result that nobody reads."""
    tools = (Tool("go"), Tool("own"))
    play = Playbook(runnable=TOOLS, tools=tools, permit=permits("go=deny")) >> begins << keeps("tools user") << sends
    play >> answers(said("", "Hm.", "own-1", "go-1")) << keeps(TWO)
    play << keeps("denied result:not_run result:not_run denied") << ends("denied")
    assert ["own", "go"] == [result.name for result in results(play)]


def test_calls_under_one_id_are_told_apart() -> None:
    """The first is denied, the second was beside it."""
    play = called("go-1", "go-1", mode="ask") << asks("go") >> says(False, "no")
    play << keeps("denied result:not_run result:not_run denied") << ends("denied")
    assert [True, False] == ["denied by a person" in result.content for result in results(play)]
