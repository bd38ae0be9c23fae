"""Counts: raw and effective, calibrated, never raising."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import (
    ELSEWHERE,
    Talk,
    build,
    call,
    entry,
    native,
    origin,
    rule,
    say,
    settings,
    signed_call,
    target,
    think,
)
from thinkback.compile.counts import estimate_thinking_tokens
from thinkback.model.blocks import Media, Text, ThinkingBlock, Unknown
from thinkback.model.commits import Message, Tool, Tools, Usage
from thinkback.model.rule import ModelInfo, Overhead, Switch
from thinkback.model.target import Settings

LONG = think("r" * 400)
TEXT = say("t" * 80)


def counted(talk: Talk, row: Any = None, wanted: Settings | None = None) -> tuple[int, int, int]:
    """(raw, effective, effective reasoning) of the next request."""
    counts = build(talk, row, wanted).counts
    return counts.raw, counts.effective, counts.effective_reasoning


def test_raw_is_what_is_stored_and_effective_what_goes() -> None:
    """Raw counts everything in the log, effective what the next request carries, at four characters a token."""
    talk = Talk().user("q" * 40).reply(LONG, TEXT).end().user("q" * 40)
    assert (140, 140, 100) == counted(talk)
    assert (140, 40, 0) == counted(talk, None, settings(strip_from_context="all"))
    assert (140, 40, 0) == counted(talk, rule(later="may"))


@pytest.mark.parametrize(
    ("wanted", "reasoning"),
    [
        (Settings(), 300),
        (settings(strip_from_context="allButLast"), 100),
        (settings(strip_from_context="allButLast", include_in_context=False), 0),
        (settings(keep_last=2), 200),
        (settings(enabled=False), 0),
    ],
)
def test_effective_follows_the_settings(wanted: Settings, reasoning: int) -> None:
    """Each setting that keeps reasoning away takes its tokens out of the effective count."""
    talk = Talk()
    for text in "abc":
        talk.turn(text, LONG, TEXT)
    raw, effective, effective_reasoning = counted(talk.user("d"), None, wanted)
    assert (361, reasoning, effective - reasoning) == (raw, effective_reasoning, 61)


def test_withheld_responses_count_as_stored_only() -> None:
    """A response that is not replayed, with its results, is raw and not effective."""
    talk = Talk().user("a").reply(LONG, TEXT, call(), complete=False).result(text="w" * 40).end("failed").user("b")
    assert (132, 0, 0) == counted(talk)


def test_results_and_calls_count() -> None:
    """Calls count by name and arguments, results by their text; an answer that only the request has is effective."""
    calls = call("c1"), call("c2")
    answered = Talk().user("q" * 40).reply(*calls).result("c1", "w" * 40).result("c2", "w" * 40)
    assert (33, 33, 0) == counted(answered)
    orphaned = Talk().user("q" * 40).reply(*calls).result("c1", "w" * 40)
    assert (23, 34, 0) == counted(orphaned)


def test_opaque_reasoning_counts_by_its_carriers() -> None:
    """Reasoning without text counts by its opaque value, stored and sent; a hidden double is not counted twice."""
    talk = Talk().turn("", entry(data="d" * 400), say("")).user("")
    assert (100, 100, 100) == counted(talk, rule(form="details"))
    double = Talk().turn("", LONG, think("r" * 400, "reasoning", is_hidden=True), say("")).user("")
    assert (100, 100, 100) == counted(double)


def test_placeholders_and_prose_count() -> None:
    """What stands in for reasoning is sent and so counts."""
    row = rule(later="must", placeholder="p" * 40, missing=("placeholder",))
    assert (0, 10, 10) == counted(Talk().turn("", say("")).user(""), row)
    foreign = Talk(ELSEWHERE).turn("", LONG, say("")).user("")
    assert (100, 100, 100) == counted(foreign, rule(form="none", later="never"), settings(foreign="text"))


@pytest.mark.parametrize(
    ("mode", "usage", "reasoning", "other"),
    [
        ("inside", Usage(0, 300, 200), 200, 100),
        ("added", Usage(0, 100, 200), 200, 100),
        ("unknown", Usage(0, 300, 200), 200, 50),
        ("inside", Usage(0, 300), 250, 50),
        ("inside", Usage(0, 40), 100, 50),
        ("added", Usage(0, 100), 100, 100),
        ("inside", Usage(0, 200, 200), 200, 50),
        ("inside", Usage(0, None, 200), 100, 50),
        ("inside", None, 100, 50),
        ("inside", Usage(0, 60, 40), 40, 20),
        ("inside", Usage(0, 4000, 3900), 3900, 100),
        ("inside", Usage(0, 100, 200, counted=("reasoning_beside_output",)), 200, 100),
        # fewer tokens than 400 characters can have are no count
        ("inside", Usage(0, 300, 5), 250, 50),
        ("inside", Usage(0, 55, 5), 100, 50),
    ],
)
def test_what_the_provider_counted_of_a_response_goes(
    mode: Any, usage: Usage | None, reasoning: int, other: int
) -> None:
    """By what the rule says of where reasoning is counted; where it was not, it is what the visible text leaves.

    400 characters of reasoning and 200 of text; what cannot be told apart is estimated at four a token.
    """
    built = build(Talk().user("").reply(LONG, say("t" * 200), usage=usage), rule(reasoning_tokens=mode))
    assert (reasoning + other, reasoning) == (built.counts.effective, built.counts.effective_reasoning)


@pytest.mark.parametrize(
    ("blocks", "reasoning"),
    [((think("r" * 400, kind="summary"), TEXT), 100), ((entry(data="d" * 400), TEXT), 200)],
)
def test_a_summary_is_no_more_than_it_says(blocks: Any, reasoning: int) -> None:
    """Where it goes as text; an opaque value is all of the reasoning that it stands for."""
    built = build(Talk().user("").reply(*blocks, usage=Usage(0, 220, 200)), rule(form="details", field="r"))
    assert reasoning == built.counts.effective_reasoning


def test_a_response_without_reasoning_has_its_whole_output() -> None:
    """Nothing is taken off for thoughts that there were none of."""
    assert (33, 33, 0) == counted(Talk().user("").reply(TEXT, usage=Usage(0, 33)))


def test_the_model_s_own_reports_count() -> None:
    """Those of another endpoint or model are no measure."""
    usage = Usage(1000, 300, 200)
    talk = Talk(ELSEWHERE).user("").reply(LONG, TEXT, usage=usage)
    assert not build(talk).counts.calibrated
    assert build(talk, target(base_url=ELSEWHERE.endpoint, model="m9")).counts.calibrated
    assert not build(talk, target(base_url=ELSEWHERE.endpoint, model="m8")).counts.calibrated


def test_the_last_reported_input_is_the_anchor() -> None:
    """Input with what was cached, what of the output goes back, and what is new; so far off the estimates may be."""
    talk = Talk().user("q" * 40).reply(LONG, TEXT, usage=Usage(5000, 300, 200)).end().user("n" * 80)
    assert 5000 + 300 + 20 == build(talk).counts.effective
    assert 5000 + 100 + 20 == build(talk, None, settings(strip_from_context="all")).counts.effective
    cached = Usage(1000, 300, 200, 3500, 500, ("cache_beside_input",))
    talk = Talk().user("q" * 40).reply(LONG, TEXT, usage=cached).end().user("n" * 80)
    assert 5000 + 300 + 20 == build(talk).counts.effective


def test_settled_turns_keep_the_anchor() -> None:
    """However long ago it was reported, folded at once or step by step."""
    talk = Talk().turn("a", say("t" * 80), usage=Usage(5000, 20))
    for _ in range(4):
        talk.turn("q" * 40, say("t" * 80))
    assert 5000 + 20 + 4 * 30 + 10 == build(talk.user("q" * 40)).counts.effective


def test_calls_that_the_provider_made_are_no_size() -> None:
    """Where it ran tools only the last call's input is the anchor; where nobody says that, there is none."""
    ran = Unknown('{"type":"web_search_call"}')
    total = Talk().user("q" * 40).reply(ran, TEXT, usage=Usage(90_000, 20)).end().user("")
    assert not build(total).counts.calibrated
    last = Talk().user("q" * 40).reply(ran, TEXT, usage=Usage(90_000, 20, last_input=4000)).end().user("")
    assert 4000 < build(last).counts.effective < 4100
    none = Talk().user("q" * 40).reply(TEXT, usage=Usage(0, 20, last_input=0)).end().user("")
    assert not build(none).counts.calibrated


def test_a_request_is_measured_by_the_estimate_of_the_last_one() -> None:
    """What was sent then and is not now is taken off: reasoning of a finished turn, turns behind a checkpoint."""
    to = target(rule(later="never"))
    talk = Talk().tools("look").user("q" * 400).answer(to, LONG, call(), usage=Usage(120, 110, 100))
    size = talk.result(text="w" * 40).plan(to).record().size
    assert 200 < size < 250
    talk.answer(to, TEXT, usage=Usage(size, 20))
    assert size + 20 == talk.plan(to).counts.effective
    talk.end().user("n" * 80)
    assert size + 20 + 20 - 100 == talk.plan(to).counts.effective
    talk.compact(talk.commits[1].hash, talk.commits[-3].hash, "s" * 100)
    shorter = talk.plan(to)
    assert shorter.record().size == shorter.counts.effective < 100


def test_an_input_that_leaves_much_out_is_no_anchor() -> None:
    """A host that reports only what was not in its cache."""
    talk = Talk().user("q" * 4000).reply(TEXT, usage=Usage(12, 20)).end().user("n" * 80)
    assert (1040, False) == (build(talk).counts.effective, build(talk).counts.calibrated)


def test_an_input_that_cannot_be_is_no_anchor() -> None:
    """A token is a byte at least; what a provider adds of its own has bounds."""
    talk = Talk().user("q" * 4000).reply(TEXT, usage=Usage(90_000_000, 20)).end().user("n" * 80)
    assert (1040, False) == (build(talk).counts.effective, build(talk).counts.calibrated)


def test_a_record_s_estimate_judges_its_report_too() -> None:
    """An earlier request that was counted right is the anchor then."""
    to = target()
    talk = Talk().user("q" * 4000).answer(to, TEXT, usage=Usage(1500, 20)).end().user("n" * 80)
    size = talk.plan(to).counts.effective
    talk.answer(to, TEXT, usage=Usage(12, 20)).end().user("n" * 80)
    assert size + 20 + 20 == talk.plan(to).counts.effective
    never = Talk().user("q" * 4000).answer(to, TEXT, usage=Usage(12, 20)).end().user("n" * 80)
    assert not never.plan(to).counts.calibrated


@pytest.mark.parametrize("bytes_per_token", [2, 3, 4, 6])
def test_a_checkpoint_is_worth_what_the_tokens_were(bytes_per_token: int) -> None:
    """Whatever the model's tokens are like: what is left is within a quarter of what the provider would count."""
    to = target()
    talk = Talk().user("q" * 80_000).answer(to, TEXT, usage=Usage(80_000 // bytes_per_token, 20)).end().user("n" * 8000)
    talk.compact(talk.commits[0].hash, talk.commits[-3].hash, "s" * 100)
    left = (8000 + 100 + 60) / bytes_per_token
    assert left * 0.6 < talk.plan(to).counts.effective < left * 1.4


def test_without_an_estimate_a_checkpoint_ends_the_anchor() -> None:
    """What stood before the response then is not known any more."""
    talk = Talk().user("q" * 4000).reply(TEXT, usage=Usage(1500, 20)).end().user("n" * 80)
    assert 1540 == build(talk).counts.effective
    talk.turn("x", TEXT, usage=Usage(1560, 20)).compact(talk.commits[0].hash, talk.commits[2].hash, "s" * 100)
    assert build(talk.user("y")).counts.effective < 200


def test_the_later_of_two_anchors_counts() -> None:
    """A response that was imported has no estimate, one that was asked for has."""
    to = target()
    imported = Talk().user("q" * 40).reply(TEXT, usage=Usage(5000, 20)).end().user("n" * 40)
    imported.answer(to, TEXT, usage=Usage(6000, 20)).end().user("n" * 40)
    assert 6000 + 20 + 10 == imported.plan(to).counts.effective
    imported.reply(TEXT, usage=Usage(7000, 20)).end().user("n" * 40)
    assert 7000 + 20 + 10 == imported.plan(to).counts.effective


def test_tools_count_before_anything_is_reported() -> None:
    """They go beside the messages."""
    bare = Talk().user("q" * 40).plan(target()).counts.effective
    tools = Tools((Tool("look", "d" * 400), Tool("search", wire='{"type":"web_search"}')))
    offered = Talk().note("tools", tools).user("q" * 40).plan(target()).counts.effective
    assert (10, 10 + 107) == (bare, offered)


@pytest.mark.parametrize(
    ("text", "tokens"), [("字" * 400, 300), ("かな" * 200, 300), ("글자" * 200, 300), ("й" * 400, 200)]
)
def test_a_letter_is_not_always_a_quarter_of_a_token(text: str, tokens: int) -> None:
    """Chinese, Japanese and Korean have more tokens a letter than English."""
    assert tokens == build(Talk().user(text)).counts.effective
    assert tokens == estimate_thinking_tokens([ThinkingBlock(text)])


def test_media_count() -> None:
    """An image has no size in letters; a text that is attached has its own, and what nobody understands some."""
    image, text = Media("image/png", "A" * 400_000), Media("text/plain", "A" * 1600)
    sent = [
        Message("", (part,)) for part in (image, text, Unknown("{}" * 2), Unknown("x" * 400_000), Text("not twice"))
    ]
    sizes = [build(Talk().note("user", message)).counts.effective for message in sent]
    assert [1500, 300, 1, 1500, 0] == sizes


def test_reasoning_that_a_signature_stands_for_counts() -> None:
    """Gemini's goes back inside a call, and is read until the turn ends."""
    row = native(need_signature=("thought",), reads_later=False, reasoning_tokens="added")
    to = target(row, "gemini")
    talk = Talk(origin("gemini")).user("q" * 40).reply(signed_call(), usage=Usage(0, 20, 700)).result(text="w" * 40)
    assert 10 + 20 + 700 + 10 == build(talk, to).counts.effective
    assert 10 + 20 + 10 == build(talk.reply(say("")).end().user(""), to).counts.effective


def test_what_is_not_read_is_not_counted() -> None:
    """A provider that prunes finished turns by itself counts their reasoning only while it is told to keep it."""
    usage = Usage(0, 300, 200)
    finished = Talk().user("").reply(LONG, TEXT, usage=usage).end().user("")
    assert 100 == build(finished, rule(reads_later=False)).counts.effective
    assert 300 == build(finished, rule(keep_switch=Switch({"keep": True}))).counts.effective
    assert 100 == build(finished, rule(keep_switch=Switch({"keep": True}, asked=True))).counts.effective


def test_reasoning_that_a_host_does_not_count_in_a_loop_is_not_counted() -> None:
    """It goes back, and the next input is larger by the call and its result alone."""
    talk = Talk().user("q" * 40).reply(LONG, call(), usage=Usage(200, 120, 100)).result(text="w" * 40)
    assert 200 + 120 + 10 == build(talk).counts.effective
    assert 200 + 20 + 10 == build(talk, rule(reads_open=False)).counts.effective


def test_what_a_chat_template_adds_counts_until_the_provider_counts() -> None:
    """For the request, its messages and its tools; the reported input has it."""
    to = target(info=ModelInfo("m1", overhead=Overhead(100, 3, 200, 10)))
    talk = Talk().user("q" * 40)
    assert 10 + 100 + 3 == talk.plan(to).counts.effective == talk.plan(to).counts.raw
    offered = Talk().note("tools", Tools((Tool("look", "d" * 400),))).user("q" * 40)
    assert 10 + 100 + 3 + 101 + 200 + 10 == offered.plan(to).counts.effective
    assert 112 == offered.plan(to).record().size
    offered.answer(to, TEXT, usage=Usage(500, 20)).end().user("n" * 40)
    assert 500 + 20 + 10 == offered.plan(to).counts.effective


def test_stored_has_what_the_provider_adds_and_not_what_the_settings_take() -> None:
    """By the last report, where the record of its request has an estimate."""
    to = target()
    talk = Talk().user("q" * 40).answer(to, LONG, TEXT, usage=Usage(5000, 300, 200)).end().user("n" * 80)
    assert 5000 + 300 + 20 == talk.plan(to).counts.raw == talk.plan(to, settings(keep_last=0)).counts.raw
    few = Talk().user("q" * 4000).answer(to, TEXT, usage=Usage(800, 20)).end().user("n" * 80)
    assert 1000 + 20 + 20 == few.plan(to).counts.raw


def test_limit_is_the_model_s() -> None:
    """The limit is the model's context, 0 where it is not known."""
    assert build(Talk()).counts.limit == 0
    assert build(Talk(), target(info=ModelInfo("m1", context=1000))).counts.limit == 1000


@pytest.mark.parametrize(
    ("texts", "expected"), [((), 0), (("",), 0), (("a",), 1), (("abcd", "efgh"), 2), (("x" * 399,), 100)]
)
def test_estimate(texts: tuple[str, ...], expected: int) -> None:
    """Thinking is estimated at four characters a token, all blocks together, and never at nothing."""
    assert expected == estimate_thinking_tokens([ThinkingBlock(text) for text in texts])


def test_estimate_with_a_tokenizer() -> None:
    """A tokenizer given is believed."""
    assert estimate_thinking_tokens([ThinkingBlock("a b"), ThinkingBlock(" c")], lambda text: len(text.split())) == 3


def test_a_tokenizer_that_fails() -> None:
    """Where the tokenizer fails the estimate falls back to three characters a token, rounded up, with a warning."""

    def broken(text: str) -> int:
        raise RuntimeError(text)

    with pytest.warns(UserWarning, match="token count failed \\(RuntimeError\\); using characters / 3"):
        assert estimate_thinking_tokens([ThinkingBlock("x" * 10)], broken) == 4
