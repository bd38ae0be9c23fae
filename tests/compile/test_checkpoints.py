"""Checkpoints: a summary in the place of a run of commits, what is kept of it, and what is trimmed."""

from __future__ import annotations

from typing import Any

from tests.compile.build import (
    ANTHROPIC,
    Talk,
    build,
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
from thinkback.model.commits import Compaction, Kind, Message, Priority, Repair

SUMMARY = "This is a summary of the part of the conversation that stood here.\n\n"


def turns(*texts: str) -> Talk:
    """Finished turns."""
    talk = Talk().system()
    for text in texts:
        talk.turn(text)
    return talk


def first(talk: Talk, number: int, kind: Kind = "user") -> str:
    """The hash of the commit of that number, of its kind."""
    return talk.hashes(kind)[number]


def said(talk: Talk, **fields: Any) -> list[str]:
    """What each message says, summaries without their introduction."""
    return [text.removeprefix(SUMMARY) for text in build(talk, **fields).texts]


def test_a_run_is_replaced_by_its_summary() -> None:
    """At the place of its first commit; its reasoning and carriers are told of one by one."""
    talk = turns("a", "b", "c").user("d")
    talk.compact(first(talk, 1), first(talk, 1, "turn_ended"), "Then b.")
    built = build(talk)
    checkpoint = talk.commits[-1].hash[:12]
    assert ["Be brief.", "a", "re a", f"{SUMMARY}Then b.", "c", "re c", "d"] == built.texts
    assert ["on a", "on c"] == built.fields
    why = f"summarised by checkpoint {checkpoint}"
    assert [("text", why), ("reasoning", why)] == built.dropped


def test_everything_stored_is_counted() -> None:
    """``raw`` is what the log has, the summary among it; ``effective`` is what goes."""
    talk = turns("a" * 400, "b").user("d")
    before = build(talk).counts
    talk.compact(first(talk, 0), first(talk, 0, "turn_ended"), "")
    after = build(talk).counts
    assert after.raw == before.raw + round(len(SUMMARY) / 4)
    assert after.effective < before.effective


def test_system_messages_tools_and_repairs_stay() -> None:
    """They are no conversation, wherever they stand."""
    talk = Talk().system("one").turn("a").tools("look").system("two").content("three", "system").turn("b")
    talk.repair("block", *talk.hashes()[1:]).user("c")
    talk.compact(talk.commits[0].hash, talk.commits[-2].hash, "s")
    assert ["one", "two", "three", "s", "c"] == said(talk)
    assert 1 == len([c for c in talk.commits if isinstance(c.value, Repair)])


def test_what_is_kept_goes_word_for_word_behind_the_summary() -> None:
    """In order; of a kept block its whole response goes, with the results of its calls."""
    talk = turns("a").user("b").reply(think("t"), call("c1"), content="null").result("c1", "r").reply(say("x")).end()
    talk.turn("c").user("d")
    talk.compact(
        first(talk, 0),
        first(talk, 2, "turn_ended"),
        "s",
        kept=(first(talk, 2), first(talk, 1, "reasoning"), "unknown"),
    )
    assert ["Be brief.", "s", "c1", "r", "c", "d"] == said(talk)
    assert ["t"] == build(talk).fields[:1]


def test_a_kept_result_keeps_its_call() -> None:
    """Also where the result does not say whose it is."""
    for tie in ("last", ""):
        talk = Talk().user("a").reply(call("c1"), content="null").result("c1", "r", tie).reply(say("x")).end().user("b")
        talk.compact(first(talk, 0), first(talk, 0, "turn_ended"), "s", kept=(first(talk, 0, "tool_result"),))
        assert ["s", "c1", "r", "b"] == said(talk)


def test_a_run_never_parts_a_call_from_its_result() -> None:
    """A response belongs to the run in which it begins."""
    talk = Talk().user("a").reply(call("c1"), content="null").result("c1", "r").reply(say("x")).end().user("b")
    results, blocks = first(talk, 0, "tool_result"), first(talk, 0, "tool_call")
    assert ["a", "c1", "r", "s", "b"] == said(talk.compact(results, first(talk, 0, "turn_ended"), "s"))
    talk = Talk().user("a").reply(call("c1"), content="null").result("c1", "r").reply(say("x")).end().user("b")
    assert ["s", "x", "b"] == said(talk.compact(first(talk, 0), blocks, "s"))


def test_a_result_without_a_call_belongs_to_nobody() -> None:
    """It never went."""
    talk = Talk().user("a").result("c9", "stray", "").end().user("b")
    assert ["s", "b"] == said(talk.compact(first(talk, 0), first(talk, 0, "turn_ended"), "s"))


def test_a_later_checkpoint_takes_in_an_earlier_one() -> None:
    """Named by its commits, or by the checkpoint itself, also by one that took in another."""
    talk = turns("a", "b", "c", "d").user("e")
    talk.compact(first(talk, 0), first(talk, 0, "turn_ended"), "one")
    one = talk.commits[-1].hash
    talk.compact(first(talk, 0), first(talk, 1, "turn_ended"), "two", kept=(first(talk, 0),))
    assert ["Be brief.", "two", "a", "c", "re c", "d", "re d", "e"] == said(talk)
    talk.compact(one, first(talk, 2, "turn_ended"), "three")
    three = talk.commits[-1].hash
    assert ["Be brief.", "three", "d", "re d", "e"] == said(talk)
    talk.compact(three, first(talk, 3, "turn_ended"), "four")
    assert ["Be brief.", "four", "e"] == said(talk)


def test_runs_that_overlap_lose_nothing() -> None:
    """Both summaries go; what both cover, the later one says whether it is kept."""
    talk = turns("a", "b", "c", "d").user("e")
    talk.compact(first(talk, 1), first(talk, 2, "turn_ended"), "early", kept=(first(talk, 1), first(talk, 2)))
    talk.compact(first(talk, 0), first(talk, 1, "turn_ended"), "late")
    assert ["Be brief.", "late", "early", "c", "d", "re d", "e"] == said(talk)


def test_checkpoints_that_stand_side_by_side() -> None:
    """Each in its place."""
    talk = turns("a", "b", "c", "d").user("e")
    talk.compact(first(talk, 2), first(talk, 2, "turn_ended"), "two")
    talk.compact(first(talk, 0), first(talk, 0, "turn_ended"), "one")
    assert ["Be brief.", "one", "b", "re b", "two", "d", "re d", "e"] == said(talk)


def test_a_later_run_covers_the_place_where_an_earlier_checkpoint_was_made() -> None:
    """The earlier summary stays where it stands: its run is not covered."""
    talk = turns("a", "b")
    talk.compact(first(talk, 0), first(talk, 0, "turn_ended"), "one")
    talk.turn("c").user("d").compact(first(talk, 1), first(talk, 2, "turn_ended"), "two")
    assert ["Be brief.", "one", "two", "d"] == said(talk)


def test_a_run_that_is_not_here_is_passed_over() -> None:
    """Ends that are unknown or the wrong way round, and a checkpoint that came to nothing."""
    talk = turns("a", "b").user("c")
    before = said(talk)
    talk.compact("gone", first(talk, 0), "s").compact(first(talk, 1), first(talk, 0), "s").compact(note="failed")
    assert before == said(talk)


def test_trimmed_results_go_out_with_the_given_text() -> None:
    """Until they are edited; the calls and what they carry stay as they are."""
    talk = Talk(origin(ANTHROPIC)).user("a").reply(thought(ANTHROPIC, "t", "SIG"), call()).result("c1", "long")
    result = first(talk, 0, "tool_result")
    talk.compact(trimmed=((result, "short"),))
    place = target(native(need_signature=("thinking",)), ANTHROPIC)
    body = build(talk, place).body
    assert b'"content":"short"' in body
    assert b"SIG" in body
    talk.edit(result, Message("other"))
    assert b'"content":"other"' in build(talk, place).body
    talk.compact(trimmed=((result, "shorter"),))
    assert b'"content":"shorter"' in build(talk, place).body


def test_a_checkpoint_may_be_edited_and_taken_back() -> None:
    """The last edit of its summary goes; a skipped checkpoint does not hold."""
    talk = turns("a").user("b")
    talk.compact(first(talk, 0), first(talk, 0, "turn_ended"), "wrong")
    checkpoint = talk.commits[-1].hash
    talk.edit(checkpoint, Compaction("manual", "right", first(talk, 0), first(talk, 0, "turn_ended")))
    assert ["Be brief.", "right", "b"] == said(talk)
    talk.annotate(checkpoint)
    assert ["Be brief.", "a", "re a", "b"] == said(talk)
    talk.annotate(checkpoint, Priority.NORMAL).edit(checkpoint, Message("nonsense"))
    assert ["Be brief.", "a", "re a", "b"] == said(talk)


def test_what_is_kept_of_a_finished_turn_is_no_turn_under_way() -> None:
    """Settings act on it as on all finished turns, also before the next question."""
    talk = turns("a", "b")
    talk.compact(first(talk, 0), first(talk, 1, "turn_ended"), "s", kept=(first(talk, 1, "response"),))
    assert [None] == build(talk, None, settings(keep_last=0)).fields
    assert [None] == build(talk.user("c"), None, settings(keep_last=0)).fields


def test_a_checkpoint_inside_the_turn_under_way() -> None:
    """What follows it, and what it keeps, still belongs to that turn: its reasoning is never stripped."""
    talk = Talk().user("a")
    for number in range(4):
        talk.reply(think(f"t{number}"), call(f"c{number}"), content="null").result(f"c{number}")
    talk.compact(first(talk, 0), first(talk, 2, "tool_result"), "s", kept=(first(talk, 1, "tool_call"),))
    built = build(talk, rule(open_turn="must", missing=("none",)), settings(strip_from_context="all"))
    assert [f"{SUMMARY}s", "c1", "42", "c3", "42"] == built.texts
    assert ["t1", "t3"] == built.fields
    assert 0 == built.request.open_at


def test_a_checkpoint_from_the_middle_of_a_turn() -> None:
    """What stands before it stays, and is finished as far as the endpoint can see."""
    talk = Talk().user("a")
    for number in range(3):
        talk.reply(think(f"t{number}"), call(f"c{number}"), content="null").result(f"c{number}")
    talk.compact(first(talk, 1, "response"), first(talk, 1, "tool_result"), "s")
    built = build(talk, None, settings(strip_from_context="all"))
    assert ["a", "c0", "42", f"{SUMMARY}s", "c2", "42"] == built.texts
    assert [None, "t2"] == built.fields


def test_a_run_of_a_request_that_brought_nothing() -> None:
    """Records of requests go along with what they brought, and say nothing themselves."""
    place = target()
    talk = Talk().user("a").answer(place, say("x")).end().user("b").end("failed")
    talk.note("request", talk.plan(place).record(), "lost").user("c")
    talk.compact(first(talk, 0), talk.commits[-2].hash, "s", kept=(first(talk, 0, "response"),))
    assert ["s", "x", "c"] == said(talk)
