"""Counts: raw and effective, calibrated, never raising."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import ELSEWHERE, Talk, build, call, entry, rule, say, settings, target, think
from thinkback.compile.counts import estimate_thinking_tokens
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Usage
from thinkback.model.rule import ModelInfo
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
        ("inside", Usage(0, 300), 100, 50),
        ("added", Usage(0, 100), 100, 100),
        ("inside", Usage(0, 200, 200), 200, 50),
        ("inside", Usage(0, None, 200), 100, 50),
        ("inside", None, 100, 50),
        ("inside", Usage(0, 60, 40), 100, 50),
    ],
)
def test_calibration(mode: Any, usage: Usage | None, reasoning: int, other: int) -> None:
    """The provider's usage sets the characters per token, by what the rule says of where reasoning is counted.

    400 characters of reasoning and 200 of text; what cannot be told apart, or is too little, leaves four a token.
    """
    built = build(Talk().user("").reply(LONG, say("t" * 200), usage=usage), rule(reasoning_tokens=mode))
    assert (reasoning + other, reasoning) == (built.counts.effective, built.counts.effective_reasoning)
    assert built.counts.calibrated is ((reasoning, other) != (100, 50))


@pytest.mark.parametrize(
    ("blocks", "reasoning"),
    [((think("r" * 400, kind="summary"), TEXT), 100), ((entry(data="d" * 400), TEXT), 100)],
)
def test_summaries_do_not_calibrate_reasoning(blocks: Any, reasoning: int) -> None:
    """A summary or an opaque value is shorter than what was billed, so it says nothing about reasoning."""
    built = build(Talk().user("").reply(*blocks, usage=Usage(0, 220, 200)), rule(form="details", field="r"))
    assert reasoning == built.counts.effective_reasoning


@pytest.mark.parametrize("blocks", [(), (LONG,)])
def test_what_was_not_counted_does_not_calibrate(blocks: Any) -> None:
    """Reasoning that was billed and not shown, or shown and not billed, leaves the ratio of the others alone."""
    talk = Talk().turn("", LONG, usage=Usage(0, 200, 200))
    talk.turn("", *blocks, say(""), usage=Usage(0, 200, 0 if blocks else 200)).user("")
    assert build(talk).counts.effective_reasoning == (400 if blocks else 200)


def test_the_model_calibrates_itself() -> None:
    """Only responses of the target's own endpoint and model set its ratio."""
    usage = Usage(0, 300, 200)
    talk = Talk(ELSEWHERE).user("").reply(LONG, TEXT, usage=usage)
    assert not build(talk).counts.calibrated
    assert build(talk, target(base_url=ELSEWHERE.endpoint, model="m9")).counts.calibrated
    assert not build(talk, target(base_url=ELSEWHERE.endpoint, model="m8")).counts.calibrated


@pytest.mark.parametrize(("tokens", "expected"), [(4000, 400), (50, 50)])
def test_absurd_ratios_are_clamped(tokens: int, expected: int) -> None:
    """A ratio below one or above eight characters a token is not believed."""
    talk = Talk().user("").reply(LONG, usage=Usage(0, tokens, tokens))
    assert expected == build(talk).counts.effective_reasoning


def test_calibration_outlives_settling() -> None:
    """Usage of settled turns goes on counting."""
    talk = Talk()
    for _ in range(4):
        talk.turn("", LONG, say("t" * 200), usage=Usage(0, 300, 200))
    assert (1200, 1200, 800) == counted(talk.user(""))


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
