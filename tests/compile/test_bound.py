"""Reasoning that is bound to its prefix: what stood before it still stands there, and no block before it is missing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.compile.build import (
    ANTHROPIC,
    BEDROCK,
    Talk,
    call,
    native,
    origin,
    rule,
    say,
    settings,
    target,
    think,
    thought,
)
from thinkback.model.commits import Message, Payload, Priority, Request
from thinkback.model.rule import Rule
from thinkback.model.target import Settings, Target
from thinkback.turn.plan import History, Plan

BOUND = native(prefix_bound=True, system="late", need_signature=("thinking",), follower=True)
HERE = target(BOUND, ANTHROPIC)


def at(speech: str = ANTHROPIC, **fields: Any) -> Target:
    """The target under a row that differs."""
    row: Rule = native(**{"prefix_bound": True, "need_signature": ("*",), **fields})
    return target(row, speech)


def turns(number: int, place: Target = HERE, talk: Talk | None = None) -> Talk:
    """Finished turns, each with reasoning whose opaque value is that of its number."""
    talk = talk or Talk(origin(ANTHROPIC)).system()
    for turn in range(number):
        talk.user(f"question {turn}").answer(place, thought(ANTHROPIC, f"t{turn}", f"SIG{turn}"), say(f"a{turn}")).end()
    return talk


def sent(plan: Plan) -> list[str]:
    """The opaque values in a request."""
    body = bytes(plan).decode()
    return [f"SIG{number}" for number in range(9) if f"SIG{number}" in body]


def reasons(plan: Plan) -> set[str]:
    """Why anything was dropped."""
    return {decision.reason for decision in plan.decisions if decision.action == "drop"}


def test_what_stands_behind_the_same_prefix_is_sent() -> None:
    """Turn after turn, as long as only something is added behind it; a late system message is added too."""
    talk = turns(2).user("b")
    assert ["SIG0", "SIG1"] == sent(talk.plan(HERE))
    talk.system("From now on in verse.").user("c")
    plan = talk.plan(HERE)
    assert ["SIG0", "SIG1"] == sent(plan)
    assert b'{"role":"system","content":"From now on in verse."}' in bytes(plan)
    assert bytes(plan).count(b"Be brief.") == 1


def test_a_changed_system_prompt_voids_what_was_made_under_the_other() -> None:
    """Where system messages all stand on top a late one changes them; what is made from then on is valid."""
    top = at(system="top")
    talk = turns(2, top).system("In verse.").user("b")
    plan = talk.plan(top)
    assert [] == sent(plan)
    assert {"it is bound to its prefix, and the system prompt differs from the one it was made with"} == reasons(plan)
    talk.answer(top, thought(ANTHROPIC, "t", "SIG5"), say("x")).end().user("c")
    assert ["SIG5"] == sent(talk.plan(top))


def test_a_system_prompt_among_the_messages_counts_too() -> None:
    """In dialects whose first message it is."""
    inline = at("openai-responses", system="inline", need_signature=())
    talk = Talk(origin("openai-responses")).system()
    talk.user("a").answer(inline, thought("openai-responses", "t", "SIG0", "rs_0"), say("x")).end().user("b")
    assert ["SIG0"] == sent(talk.plan(inline))


def test_a_setting_of_another_dialect_is_no_part_of_the_prefix() -> None:
    """It is left out of what is sent, so of what reasoning is judged under too."""
    top = at(system="top")
    setting = Message("", (), '{"type":"configuration_update","reasoning":{"effort":"low"}}', "openai-responses")
    talk = Talk(origin(ANTHROPIC)).system().user("a").note("system", setting)
    talk.answer(top, thought(ANTHROPIC, "t", "SIG0"), say("x")).end().user("b")
    assert ["SIG0"] == sent(talk.plan(top))


CHANGED = "it is bound to its prefix, and what stands before it was changed after it was made"
OTHER_TOOLS = "it is bound to its prefix, and the tools differ from those it was made with"
OTHER_SYSTEM = "it is bound to its prefix, and the system prompt differs from the one it was made with"


def test_changed_tools_void_what_was_made_under_others() -> None:
    """Back with the old ones, what was made with them goes again, and so does what is made behind it."""
    talk = turns(1).tools("look")
    plan = talk.user("b").plan(HERE)
    assert [] == sent(plan)
    assert {OTHER_TOOLS} == reasons(plan)
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG1"), say("x")).end().tools().user("c")
    assert ["SIG0"] == sent(talk.plan(HERE))
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG2"), say("x")).end().user("d")
    plan = talk.plan(HERE)
    assert ["SIG0", "SIG2"] == sent(plan)
    assert {OTHER_TOOLS} == reasons(plan)


def test_a_system_prompt_that_comes_back_makes_valid_again_what_was_made_under_it() -> None:
    """Prompts A, C, A: edits in between prove nothing. Under C again, what was made under C goes."""
    talk = turns(1)
    prompt = talk.hashes("system")[0]
    talk.edit(prompt, Message("In verse.")).user("b")
    assert [] == sent(talk.plan(HERE))
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG1"), say("x")).end().edit(prompt, Message("Be brief.")).user("c")
    assert ["SIG0"] == sent(talk.plan(HERE))
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG2"), say("x")).end().user("d")
    plan = talk.plan(HERE)
    assert ["SIG0", "SIG2"] == sent(plan)
    assert {OTHER_SYSTEM} == reasons(plan)
    assert ["SIG1"] == sent(talk.edit(prompt, Message("In verse.")).plan(HERE))


def test_what_a_later_thought_was_made_without_stays_away() -> None:
    """One request went without earlier reasoning: what it brought is valid only without it, and the latest goes."""
    talk = turns(2).user("b")
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG2"), say("x"), wanted=settings(keep_last=1)).end().user("c")
    plan = talk.plan(HERE)
    assert ["SIG1", "SIG2"] == sent(plan)
    without = "reasoning behind it was made without it before it, and goes"
    assert {without} == reasons(plan)
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG3"), say("x"), wanted=settings(keep_last=0)).end().user("d")
    plan = talk.plan(HERE)
    assert ["SIG3"] == sent(plan)
    assert {without} == reasons(plan)


def test_what_was_skipped_when_a_later_thought_was_made_stays_between() -> None:
    """The second thought went without the first two turns' and with the first one's only: so does the third."""
    talk = turns(2)
    talk.annotate(talk.hashes()[1]).user("b")
    assert ["SIG0"] == sent(talk.plan(HERE))
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG2"), say("x")).end().user("c")
    assert ["SIG0", "SIG2"] == sent(talk.plan(HERE))
    talk.annotate(talk.hashes()[1], None, default=True)
    plan = talk.plan(HERE)
    assert ["SIG0", "SIG2"] == sent(plan)
    assert {"reasoning behind it was made without it before it, and goes"} == reasons(plan)


def forgotten(talk: Talk) -> Talk:
    """The same conversation with records as earlier versions wrote them."""
    again = Talk(talk.origin)
    for commit in talk.commits:
        value = commit.value
        if isinstance(value, Request):
            value = msgspec.structs.replace(value, chain=None)
        again.note(commit.kind, value, commit.response)
    return again


def test_records_of_earlier_versions_say_that_nothing_was_missing_in_between() -> None:
    """Their programs left no gap: what follows the gap was made without what stands before it."""
    talk = forgotten(turns(2).user("b"))
    assert ["SIG0", "SIG1"] == sent(talk.plan(HERE))
    talk = forgotten(turns(1).tools("look").user("b"))
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG1"), say("x")).end().tools().user("c")
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG2"), say("x")).end().user("d")
    assert ["SIG0", "SIG2"] == sent(talk.plan(HERE))
    plan = forgotten(talk).plan(HERE)
    assert ["SIG2"] == sent(plan)
    assert {OTHER_TOOLS, "reasoning behind it had to be dropped, and what is sent must not have a gap"} == reasons(plan)


def test_requests_of_earlier_versions_are_judged_as_they_were() -> None:
    """Any change voided what was made before it, and nothing went before what had to stay away."""
    talk = turns(3)
    talk.edit(talk.hashes()[1], think("c")).user("b")
    history = History(talk.commits)
    assert ["SIG2"] == sent(history.plan(HERE, Settings(), None, {}))
    plan = history.plan(HERE, Settings(), None, {}, recipe=1)
    assert [] == sent(plan)
    assert CHANGED in reasons(plan)
    talk = turns(1).tools("look").user("b")
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG1"), say("x")).end().tools().user("c")
    assert [] == sent(History(talk.commits).plan(HERE, Settings(), None, {}, recipe=1))
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG2"), say("x")).end().user("d")
    assert ["SIG2"] == sent(History(talk.commits).plan(HERE, Settings(), None, {}, recipe=1))


def changed(talk: Talk, at: int, text: str) -> Talk:
    """The same conversation with one user message edited."""
    again = Talk(talk.origin)
    for number, commit in enumerate(talk.commits):
        value = Message(text) if number == at else commit.value
        again.note(commit.kind, value, commit.response)
    return again


def test_an_edited_message_voids_what_stands_behind_it() -> None:
    """What stands before it stays valid."""
    talk = turns(3).user("c")
    second = [number for number, commit in enumerate(talk.commits) if commit.kind == "user"][1]
    plan = changed(talk, second, "another question").plan(HERE)
    assert ["SIG0"] == sent(plan)
    assert {"it is bound to its prefix, and a message from index 1 on differs"} == reasons(plan)
    first = changed(turns(1).user("c"), 1, "another question").plan(HERE)
    assert {"it is bound to its prefix, and a message from index 0 on differs"} == reasons(first)


def test_a_block_that_is_void_leaves_no_gap() -> None:
    """A refused block in the middle takes all before it along; the request of later turns grows from there."""
    talk = turns(3).user("b")
    talk.repair("block", talk.hashes()[1])
    assert ["SIG2"] == sent(talk.plan(HERE))
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG3"), say("x")).end().user("c")
    assert ["SIG2", "SIG3"] == sent(talk.plan(HERE))


def test_what_came_late_does_not_break_the_fold() -> None:
    """A tool's result that came after its turn changes a message: what was made with it is valid, step by step too."""
    talk = Talk(origin(ANTHROPIC)).user("a").answer(HERE, thought(ANTHROPIC, "t", "SIG0"), call())
    talk.end("interrupted").user("b").answer(HERE, thought(ANTHROPIC, "t", "SIG1"), say("x")).end().user("c")
    assert ["SIG0", "SIG1"] == sent(talk.plan(HERE))
    talk.result("c1", "late", "resp1")
    assert ["SIG0"] == sent(talk.plan(HERE))


def test_keep_last_takes_from_the_start() -> None:
    """Nothing is missing between what is sent, so nothing else is lost."""
    talk = turns(4).user("b")
    plan = talk.plan(HERE, settings(keep_last=2))
    assert ["SIG2", "SIG3"] == sent(plan)
    assert {"reasoning.keepLast is 2; it went along before, so a prompt cache ends at this message"} >= reasons(plan)
    assert [] == sent(talk.plan(HERE, settings(include_in_context=False)))


def test_an_adopted_history_is_vouched_for_with_its_place() -> None:
    """Without records there is nothing to compare; without an origin no opaque value goes."""
    talk = Talk(origin(ANTHROPIC)).turn("a", thought(ANTHROPIC, "t", "SIG0"), say("x")).user("b")
    assert ["SIG0"] == sent(talk.plan(HERE))
    talk = Talk(origin(ANTHROPIC, endpoint="")).turn("a", thought(ANTHROPIC, "t", "SIG0"), say("x")).user("b")
    assert [] == sent(talk.plan(HERE))


def test_responses_of_others_do_not_break_the_chain() -> None:
    """What another model thought was never sent here, so nothing is missing without it; its answers count."""
    talk = turns(1)
    other = target(rule(), base_url="https://other.example")
    talk.user("b").answer(other, think("chat"), say("y"), origin=origin("openai-chat")).end()
    talk.user("c").answer(HERE, thought(ANTHROPIC, "t", "SIG1"), say("z")).end().user("d")
    assert ["SIG0", "SIG1"] == sent(talk.plan(HERE))


def test_a_model_switch_inside_an_open_loop() -> None:
    """The new model is sent the loop without what it cannot read, and back at the old one all is valid again."""
    talk = turns(1).user("b").answer(HERE, thought(ANTHROPIC, "t", "SIG1"), call()).result()
    other = target(BOUND, ANTHROPIC, model="m2")
    assert [] == sent(talk.plan(other))
    talk.answer(other, thought(ANTHROPIC, "t", "SIG2"), call("c2"), origin=origin(ANTHROPIC, requested_model="m2"))
    talk.result("c2")
    assert ["SIG0", "SIG1"] == sent(talk.plan(HERE))
    assert ["SIG2"] == sent(talk.plan(other))


@pytest.mark.parametrize("speech", [ANTHROPIC, BEDROCK])
def test_the_next_request_begins_with_the_last(speech: str) -> None:
    """With requests on record, tool loops, interrupted turns and a late system message."""
    place = at(speech, system="late" if speech == ANTHROPIC else "")
    talk, last, plan = Talk(origin(speech)).system(), b"", Talk().plan(place)
    for number in range(3):
        talk.user(f"q{number}").answer(place, thought(speech, "t", f"SIG{2 * number}"), call(f"c{number}"))
        if number == 1:
            talk.result("c1").end("interrupted")
            continue
        talk.result(f"c{number}").answer(place, thought(speech, "t", f"SIG{2 * number + 1}"), say("done")).end()
        plan = talk.user("more").plan(place)
        body = b"".join(plan.messages)
        assert body.startswith(last)
        last = body
    assert ["SIG0", "SIG1", "SIG2", "SIG4", "SIG5"] == sent(plan)


def test_what_was_copied_from_another_line_stays_away() -> None:
    """It names a record of its request that is not here; what nobody has a record of is where it was vouched for."""
    for record, expected in (("", ["SIG0", "SIG5"]), ("resp of another line", ["SIG0"])):
        talk = turns(1).user("b")
        talk.reply(thought(ANTHROPIC, "t5", "SIG5"), say("c"), origin=origin(ANTHROPIC, request=record))
        plan = talk.end().user("d").plan(HERE)
        assert expected == sent(plan)
        assert bool(record) == any("copied here from another line" in reason for reason in reasons(plan))


@pytest.mark.parametrize("kind", ["user", "assistant"])
def test_what_people_changed_voids_what_was_made_behind_it(kind: Any) -> None:
    """All later responses, with a record or without; what is made from then on goes behind what stands before it."""
    for talk, why in ((turns(3).user("b"), "a message from index "), (adopted(3), CHANGED)):
        words: dict[str, Payload] = {"user": Message("c"), "assistant": say("c")}
        talk.edit(talk.hashes(kind)[1], words[kind])
        plan = talk.plan(HERE)
        assert ["SIG0"] == sent(plan)
        assert any(why in reason for reason in reasons(plan))
        talk.answer(HERE, thought(ANTHROPIC, "t", "SIG5"), say("x")).end().user("c")
        assert ["SIG0", "SIG5"] == sent(talk.plan(HERE))


def test_a_thought_that_people_changed_leaves_no_gap() -> None:
    """What was made behind it goes without what stands before it; of an adopted history nothing behind it goes."""
    talk = turns(3).user("b")
    plan = talk.edit(talk.hashes()[1], think("c")).plan(HERE)
    assert ["SIG2"] == sent(plan)
    assert "reasoning behind it had to be dropped, and what is sent must not have a gap" in reasons(plan)
    talk = adopted(3)
    assert ["SIG0"] == sent(talk.edit(talk.hashes()[1], think("c")).plan(HERE))


def adopted(number: int) -> Talk:
    """Finished turns of which there is no record."""
    talk = Talk(origin(ANTHROPIC)).system()
    for turn in range(number):
        talk.turn(f"question {turn}", thought(ANTHROPIC, f"t{turn}", f"SIG{turn}"), say(f"a{turn}"))
    return talk.user("b")


def test_what_was_skipped_voids_what_was_made_behind_it() -> None:
    """Until it comes back."""
    talk = turns(2).user("b")
    before = sent(talk.plan(HERE))
    talk.annotate(talk.hashes("user")[1])
    assert ["SIG0"] == sent(talk.plan(HERE))
    talk.annotate(talk.hashes("user")[1], None, default=True)
    assert ["SIG0", "SIG1"] == before == sent(talk.plan(HERE))
    talk.annotate(talk.hashes("system")[0])
    assert {"annotated as skip", OTHER_SYSTEM} == reasons(talk.plan(HERE))


def test_reasoning_that_is_required_binds_no_less_for_being_skipped() -> None:
    """What was made behind it in the turn under way goes too."""
    talk = turns(1).user("b").answer(HERE, thought(ANTHROPIC, "t", "SIG1"), call()).result()
    talk.annotate(talk.hashes()[1]).answer(HERE, thought(ANTHROPIC, "t", "SIG2"), call("c2")).result("c2")
    assert ["SIG0", "SIG1", "SIG2"] == sent(talk.plan(HERE))
    talk.answer(HERE, say("x")).end().user("c")
    assert ["SIG2"] == sent(talk.plan(HERE))


def test_a_checkpoint_voids_what_was_made_before_it() -> None:
    """What follows it was made behind other words; what is made from then on goes."""
    talk = turns(3).user("b")
    talk.compact(talk.hashes("user")[0], talk.hashes("turn_ended")[0], "s", kept=(talk.hashes("response")[0],))
    assert [] == sent(talk.plan(HERE))
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG5"), say("x")).end().user("c")
    assert ["SIG5"] == sent(talk.plan(HERE))


def test_saying_it_again_voids_nothing_more() -> None:
    """What was made since the first time was made behind what goes now; tags and notes change nothing."""
    talk = turns(2).annotate(turns(2).hashes("user")[1]).user("b")
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG5"), say("x")).end().user("c")
    talk.annotate(talk.hashes("user")[1], None, tags=("noise",)).annotate(talk.hashes("user")[1], reason="noise")
    assert ["SIG0", "SIG5"] == sent(talk.plan(HERE))


def test_what_is_pinned_before_what_is_stripped_would_leave_a_gap() -> None:
    """An annotation asks for the first thought and a setting strips the second: the third goes alone."""
    talk = turns(3)
    talk.annotate(talk.hashes()[0], Priority.PINNED).user("b")
    plan = talk.plan(HERE, settings(keep_last=1))
    assert ["SIG2"] == sent(plan)
    assert any("must not have a gap" in reason for reason in reasons(plan))


def test_what_went_as_its_client_wrote_it_has_nothing_before_it() -> None:
    """Nobody knows which reasoning was in it."""
    talk = turns(1).user("b")
    plan = msgspec.structs.replace(talk.plan(HERE), sent_instead="0" * 64)
    talk.note("request", plan.record(), "resp2")
    talk.reply(thought(ANTHROPIC, "t", "SIG1"), say("x"), id="server2").end().user("c")
    assert ["SIG1"] == sent(talk.plan(HERE))
    assert None is msgspec.structs.replace(talk.plan(at(prefix_bound=False)), sent_instead="0" * 64).record().chain


def test_a_system_message_stands_where_its_program_puts_it() -> None:
    """Before the commit that it names, in the order they came; one that names what is not here stands where it came."""
    talk = turns(1)
    question = talk.hashes("user")[0]
    talk.note("system", Message("B", before=question)).note("system", Message("C", before=question))
    talk.note("system", Message("late", before="of another line")).user("b")
    body = bytes(talk.plan(HERE))
    assert (
        b'"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"B"},{"type":"text","text":"C"}]' in body
    )
    assert b'{"role":"system","content":"late"}' in body
    last = talk.hashes("system")[1]
    talk.edit(last, Message("B", before=talk.hashes("user")[1]))
    assert b'{"role":"system","content":"B"},{"role":"user","content":"b"}' in bytes(talk.plan(HERE))


def test_system_messages_that_stand_before_each_other_stay_where_they_came() -> None:
    """Nobody says so, and nothing is lost."""
    talk = turns(1).system("B").system("C").user("b")
    first, second = talk.hashes("system")[1:]
    talk.edit(first, Message("B", before=second)).edit(second, Message("C", before=first))
    body = bytes(talk.plan(HERE))
    assert b'{"role":"system","content":"B"},{"role":"system","content":"C"}' in body


def test_a_system_message_may_stay_where_it_came() -> None:
    """By a setting, where that keeps bound reasoning valid, and the decision says so; elsewhere in its place."""
    talk = turns(1)
    talk.note("system", Message("B", before=talk.hashes("user")[0])).user("b")
    assert [] == sent(talk.plan(HERE))
    appended = Settings(system_changes="append")
    plan = talk.plan(HERE, appended)
    assert ["SIG0"] == sent(plan)
    (told,) = (decision for decision in plan.decisions if decision.block == talk.hashes("system")[1])
    assert ("text", 2) == (told.action, told.message)
    assert told.reason.startswith("context.systemChanges=append")
    for place in (at(system="top"), at(system="late", prefix_bound=False)):
        assert b'"text":"Be brief."},{"type":"text","text":"B"}' in bytes(talk.plan(place, appended))
    state = History(talk.commits)
    state.plan(HERE, Settings(), None, {})
    talk.note("system", Message("C", before=talk.hashes("user")[0]))
    state.take(talk.commits[-1:])
    assert bytes(talk.plan(HERE)) == bytes(state.plan(HERE, Settings(), None, {}))
