"""Reasoning that is bound to its prefix: what stood before it still stands there, and no block before it is missing."""

from __future__ import annotations

from typing import Any

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
from thinkback.model.commits import Message, Payload, Priority
from thinkback.model.rule import Rule
from thinkback.model.target import Target
from thinkback.turn.plan import Plan

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


def test_changed_tools_void_what_was_made_under_others() -> None:
    """Back with the old ones, what the gap cuts off stays away, and what follows the gap goes."""
    talk = turns(1).tools("look")
    plan = talk.user("b").plan(HERE)
    assert [] == sent(plan)
    assert {"it is bound to its prefix, and the tools differ from those it was made with"} == reasons(plan)
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG1"), say("x")).end().tools().user("c")
    assert ["SIG0"] != sent(talk.plan(HERE))
    talk.answer(HERE, thought(ANTHROPIC, "t", "SIG2"), say("x")).end().user("d")
    plan = talk.plan(HERE)
    assert ["SIG2"] == sent(plan)
    assert "reasoning behind it had to be dropped, and what is sent must not have a gap" in reasons(plan)


def changed(talk: Talk, at: int, text: str) -> Talk:
    """The same conversation with one user message edited."""
    again = Talk(talk.origin)
    for number, commit in enumerate(talk.commits):
        value = Message(text) if number == at else commit.value
        again.note(commit.kind, value, commit.response)
    return again


def test_an_edited_message_voids_what_stands_behind_it() -> None:
    """What stands before it stays valid by itself, but would leave a gap when more is made behind."""
    talk = turns(3).user("c")
    second = [number for number, commit in enumerate(talk.commits) if commit.kind == "user"][1]
    plan = changed(talk, second, "another question").plan(HERE)
    assert [] == sent(plan)
    assert {
        "it is bound to its prefix, and a message from index 1 on differs",
        "reasoning behind it had to be dropped, and what is sent must not have a gap",
    } == reasons(plan)
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
    assert [] == sent(talk.plan(HERE))


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
    for record, expected in (("", ["SIG0", "SIG5"]), ("resp of another line", [])):
        talk = turns(1).user("b")
        talk.reply(thought(ANTHROPIC, "t5", "SIG5"), say("c"), origin=origin(ANTHROPIC, request=record))
        plan = talk.end().user("d").plan(HERE)
        assert expected == sent(plan)
        assert bool(record) == any("copied here from another line" in reason for reason in reasons(plan))


@pytest.mark.parametrize("kind", ["user", "assistant", "reasoning"])
def test_what_people_changed_voids_what_was_made_behind_it(kind: Any) -> None:
    """All later responses, with a record or without; what is made from then on goes, and leaves no gap."""
    for talk in (turns(3).user("b"), adopted(3)):
        words: dict[str, Payload] = {"user": Message("c"), "assistant": say("c"), "reasoning": think("c")}
        talk.edit(talk.hashes(kind)[1], words[kind])
        plan = talk.plan(HERE)
        assert [] == sent(plan)
        assert "it is bound to its prefix, and what stands before it was changed after it was made" in reasons(plan)
        talk.answer(HERE, thought(ANTHROPIC, "t", "SIG5"), say("x")).end().user("c")
        assert ["SIG5"] == sent(talk.plan(HERE))


def adopted(number: int) -> Talk:
    """Finished turns of which there is no record."""
    talk = Talk(origin(ANTHROPIC)).system()
    for turn in range(number):
        talk.turn(f"question {turn}", thought(ANTHROPIC, f"t{turn}", f"SIG{turn}"), say(f"a{turn}"))
    return talk.user("b")


def test_what_was_skipped_voids_what_was_made_behind_it() -> None:
    """Until a system message or an answer comes back, which is another change to what was made in between."""
    talk = turns(2).user("b")
    before = sent(talk.plan(HERE))
    talk.annotate(talk.hashes("user")[1])
    assert [] == sent(talk.plan(HERE))
    talk.annotate(talk.hashes("user")[1], None, default=True)
    assert ["SIG0", "SIG1"] == before == sent(talk.plan(HERE))
    talk.annotate(talk.hashes("system")[0])
    why = "it is bound to its prefix, and what stands before it was changed after it was made"
    assert {"annotated as skip", why} == reasons(talk.plan(HERE))


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
    assert ["SIG5"] == sent(talk.plan(HERE))


def test_what_is_pinned_before_what_is_stripped_would_leave_a_gap() -> None:
    """An annotation asks for the first thought and a setting strips the second: the third goes alone."""
    talk = turns(3)
    talk.annotate(talk.hashes()[0], Priority.PINNED).user("b")
    plan = talk.plan(HERE, settings(keep_last=1))
    assert ["SIG2"] == sent(plan)
    assert any("must not have a gap" in reason for reason in reasons(plan))
