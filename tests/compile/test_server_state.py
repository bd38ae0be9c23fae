"""A conversation that the provider keeps: only what follows it is sent, and what that means for decisions."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.compile.build import (
    BEDROCK,
    INTERACTIONS,
    MISTRAL,
    RESPONSES,
    Talk,
    call,
    native,
    origin,
    say,
    settings,
    target,
    thought,
    tied,
)
from thinkback.model import canonical
from thinkback.model.commits import Failure
from thinkback.model.rule import ServerState
from thinkback.model.target import Settings
from thinkback.turn.plan import History, Plan
from thinkback.turn.repair import next_repair

STATE = ServerState("previous_response_id", {"store": True}, {"store": False})
ROW = native(server_state=STATE, tied=True, follower=True, need_signature=("reasoning",))
HERE = target(ROW, RESPONSES)
KEEP = Settings(server_state=True)


def turns(number: int, wanted: Settings = KEEP) -> Talk:
    """Finished turns that were sent and stored."""
    talk = Talk(origin(RESPONSES)).system()
    for turn in range(number):
        blocks = (thought(RESPONSES, "s", f"ENC{turn}", f"rs_{turn}"), tied(say(f"a{turn}"), f"msg_{turn}"))
        talk.user(f"q{turn}").answer(HERE, *blocks, wanted=wanted).end()
    return talk


def sent(plan: Plan) -> Any:
    """The body of a request."""
    return canonical.decode(bytes(plan))


def test_only_what_follows_is_sent() -> None:
    """The last response that is kept is named, its reasoning is the provider's to read, and what follows goes."""
    plan = turns(2).user("next").plan(HERE, KEEP)
    body = sent(plan)
    assert [{"role": "user", "content": "next"}] == body["input"]
    assert ("server2", True) == (body["previous_response_id"], body["store"])
    assert {"server"} == {decision.action for decision in plan.decisions}
    assert "the provider keeps the conversation up to response server2" == plan.decisions[0].reason
    assert ("server2", 0) == (plan.kept, plan.open_at)
    assert "1 messages" in repr(plan)


def test_results_alone_are_sent_inside_a_loop() -> None:
    """What was called is known there; what was reasoned since the kept response goes with places of its own."""
    talk = turns(1).user("look").answer(HERE, thought(RESPONSES, "", "ENC8", "rs_8"), tied(call(), "fc_8"), wanted=KEEP)
    assert ["function_call_output"] == [item["type"] for item in sent(talk.result().plan(HERE, KEEP))["input"]]
    talk.reply(thought(RESPONSES, "", "ENC9", "rs_9"), tied(call("c2"), "fc_9")).result("c2")
    plan = talk.plan(HERE, KEEP)
    kinds = [item["type"] for item in sent(plan)["input"]]
    assert ["function_call_output", "reasoning", "function_call", "function_call_output"] == kinds
    assert [1, 1, 2] == [decision.message for decision in plan.decisions if decision.message >= 0]
    assert 0 == plan.open_at


def test_it_is_off_unless_asked_for() -> None:
    """The whole history goes then, and the provider is told to keep nothing."""
    plan = turns(1).user("next").plan(HERE)
    body = sent(plan)
    assert ["system", "user", "rs_0", "msg_0", "user"] == [each.get("id") or each["role"] for each in body["input"]]
    assert "previous_response_id" not in body
    assert body["store"] is False
    assert "" == plan.kept


def test_what_was_not_stored_is_not_named() -> None:
    """Responses from before it was asked for go out in full; the first one kept ends that."""
    talk = turns(1, Settings()).user("b")
    body = sent(talk.plan(HERE, KEEP))
    assert (5, True) == (len(body["input"]), body["store"])
    talk.answer(HERE, tied(say("x"), "msg_5"), wanted=KEEP).end().user("c")
    assert 1 == len(sent(talk.plan(HERE, KEEP))["input"])
    elsewhere = target(ROW, RESPONSES, base_url="https://other.example")
    assert "previous_response_id" not in sent(talk.plan(elsewhere, KEEP))


def test_a_changed_prefix_is_not_what_the_provider_keeps() -> None:
    """A result that came late, or another system prompt, is not in its conversation."""
    talk = Talk(origin(RESPONSES)).user("a").answer(HERE, call(), wanted=KEEP).end("interrupted")
    talk.user("b").answer(HERE, say("x"), wanted=KEEP).end().user("c")
    assert 1 == len(sent(talk.plan(HERE, KEEP))["input"])
    talk.result("c1", "late", "resp1")
    assert "previous_response_id" not in sent(talk.plan(HERE, KEEP))
    branch = Talk(origin(RESPONSES)).system("Another.")
    for commit in turns(1).commits[1:]:
        branch.note(commit.kind, commit.value, commit.response)
    assert "previous_response_id" not in sent(branch.user("b").plan(HERE, KEEP))


def test_reasoning_that_is_to_stay_away_is_not_left_with_the_provider() -> None:
    """A setting that takes reasoning away wins: the provider would still read what it keeps."""
    talk = turns(2).user("next")
    for wanted in (settings(strip_from_context="all"), settings(include_in_context=False), settings(keep_last=1)):
        plan = talk.plan(
            HERE, Settings(**{**{n: getattr(wanted, n) for n in wanted.__struct_fields__}, "server_state": True})
        )
        assert "" == plan.kept
        assert "drop" in {decision.action for decision in plan.decisions}


def test_a_response_that_is_not_found_is_sent_in_full() -> None:
    """The repair says so, and from then on the whole history goes and nothing is kept."""
    talk = turns(2).user("next")
    plan = talk.plan(HERE, KEEP)
    failure = Failure("Previous response with id 'server2' not found.", 400, code="previous_response_not_found")
    repair = next_repair(plan, failure, talk.commits)
    assert repair is not None
    assert ("server_state", ()) == (repair.stage, repair.blocks)
    talk.note("repair", repair)
    again = talk.plan(HERE, KEEP)
    assert ("", False) == (again.kept, sent(again)["store"])
    assert {"native"} == {decision.action for decision in again.decisions}
    lost = Failure("Item with id 'rs_0' not found. Items are not persisted when `store` is set to false.", 404)
    assert "block" == next_repair(again, lost, talk.commits).stage  # type: ignore[union-attr]


def test_a_response_that_was_cut_off_is_not_named() -> None:
    """It is not replayed either, and what follows the last one that is kept goes out."""
    talk = turns(1).user("b").answer(HERE, say("half"), wanted=KEEP, complete=False)
    assert ["b"] == [item["content"] for item in sent(talk.plan(HERE, KEEP))["input"]]


def test_a_refusal_of_something_else_is_none_of_its_business() -> None:
    """Nothing is kept, so no response can have been forgotten."""
    talk = turns(1).user("next")
    failure = Failure("The response schema is invalid", 400)
    assert next_repair(talk.plan(HERE), failure, talk.commits) is None


def test_older_turns_are_counted_in_what_is_sent() -> None:
    """Places in a shortened array are its own, so that the turn under way is told from the older ones."""
    talk = turns(0).user("b").answer(HERE, call(), wanted=KEEP).result()
    talk.reply(thought(RESPONSES, "", "ENC5", "rs_5"), tied(say("x"), "msg_5")).end()
    talk.user("c").reply(thought(RESPONSES, "", "ENC6", "rs_6"), tied(call(), "fc_6")).result()
    plan = talk.plan(HERE, KEEP)
    assert ("server1", 3) == (plan.kept, plan.open_at)
    assert b"c" == plan.messages[plan.open_at][-3:-2]


def test_the_history_grows_step_by_step() -> None:
    """The same requests come out of a history that took the commits in one by one."""
    talk = turns(3).user("next")
    history = History()
    for commit in talk.commits:
        history.take([commit])
        history.plan(HERE, KEEP, None, {})
    assert bytes(talk.plan(HERE, KEEP)) == bytes(history.plan(HERE, KEEP, None, {}))


def test_interactions_are_kept_alike() -> None:
    """Another dialect, another parameter; its system instruction goes with every request."""
    place = target(native(server_state=ServerState("previous_interaction_id", {"store": True})), INTERACTIONS)
    talk = Talk(origin(INTERACTIONS)).system()
    talk.user("a").answer(place, thought(INTERACTIONS, "t", "SIG"), say("x"), wanted=KEEP).end().user("b")
    body = sent(talk.plan(place, KEEP))
    assert ["user_input"] == [step["type"] for step in body["input"]]
    assert ("server1", "Be brief.") == (body["previous_interaction_id"], body["system_instruction"])


def alternating(speech: str) -> tuple[Any, Talk]:
    """A place whose fragments depend on what stands before them, and a turn under way that it keeps."""
    place = target(native(server_state=STATE), speech)
    talk = Talk(origin(speech)).user("a").answer(place, thought(speech, "t", "SIG"), call(), wanted=KEEP)
    return place, talk.result()


@pytest.mark.parametrize(("speech", "results"), [(MISTRAL, "tool"), (BEDROCK, "user")])
def test_what_follows_begins_an_array_of_its_own(speech: str, results: str) -> None:
    """A fragment that is written for its place behind another is written anew where it comes first."""
    place, talk = alternating(speech)
    assert [results] == [message["role"] for message in sent(talk.plan(place, KEEP))["messages"]]
    talk.reply(thought(speech, "u", "SIG2"), say("x")).end().user("b")
    plan = talk.plan(place, KEEP)
    assert [results, "assistant", "user"] == [message["role"] for message in sent(plan)["messages"]]
    assert [-1, -1, 1, 1] == [decision.message for decision in plan.decisions]
    assert hashlib.sha256(bytes(plan)).hexdigest() == plan.record().sent_digest


def test_what_goes_on_with_a_message_goes_with_all_of_it() -> None:
    """Half of a message cannot be sent, so nothing counts as kept where the provider has the other half."""
    place = target(native(server_state=STATE), BEDROCK)
    talk = Talk(origin(BEDROCK)).user("a").answer(place, say("x"), wanted=KEEP).reply(say("y")).end().user("b")
    plan = talk.plan(place, KEEP)
    assert ["user", "assistant", "user"] == [message["role"] for message in sent(plan)["messages"]]
    assert "" == plan.kept


def test_what_the_provider_has_and_people_changed_is_sent_again() -> None:
    """It has an answer as it was before the edit, and reasoning that was skipped."""
    talk = turns(1).user("q1").answer(HERE, say("a1"), wanted=KEEP).end().user("next")
    assert "server2" == talk.plan(HERE, KEEP).kept
    talk.edit(talk.hashes("assistant")[1], say("better"))
    plan = talk.plan(HERE, KEEP)
    assert "" == plan.kept
    assert ["q1", "better", "next"] == [item["content"] for item in sent(plan)["input"][-3:]]
    talk = turns(2).user("next")
    talk.annotate(talk.hashes()[0])
    assert "" == talk.plan(HERE, KEEP).kept


def test_what_stays_away_of_what_the_provider_keeps_is_told_as_it_is() -> None:
    """Somebody else's reasoning was never sent."""
    talk = Talk(origin(RESPONSES, endpoint="https://other.example")).system().turn("a", thought(RESPONSES, "s", "ENC8"))
    talk.user("b").answer(HERE, thought(RESPONSES, "s", "ENC0", "rs_0"), say("x"), wanted=KEEP).end().user("c")
    plan = talk.plan(HERE, KEEP)
    assert "server2" == plan.kept
    assert ["drop", "drop", "server", "server", "server"] == [decision.action for decision in plan.decisions]
