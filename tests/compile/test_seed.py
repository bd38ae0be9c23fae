"""The seed's requirements, business rules and edge cases that concern the next request, each by its number."""

from __future__ import annotations

import pytest

from tests.compile.build import WRITER, Built, Talk, build, call, inputs, rule, say, settings, think
from thinkback.compile import fold
from thinkback.compile.counts import estimate_thinking_tokens
from thinkback.compile.reasoning import (
    extract_thinking_blocks,
    filter_thinking_for_context,
    thinking_to_reasoning_field,
)
from thinkback.model.target import Settings

# An endpoint that takes the field and demands nothing: there the seed's defaults hold (ADR 0002).
FREE = rule(open_turn="may", later="may")
INCLUDE = settings(include_in_context=True)


def test_req_think_002_1_extract() -> None:
    """extractThinkingBlocks extracts all thinking blocks."""
    assert extract_thinking_blocks([think("a"), say("x"), think("b")]) == [think("a"), think("b")]


def test_req_think_002_2_filter() -> None:
    """filterThinkingForContext filters by the strip policy."""
    assert filter_thinking_for_context([[think("a")], [think("b")]], "allButLast") == [[], [think("b")]]


def test_req_think_002_3_field() -> None:
    """thinkingToReasoningField converts blocks to one string."""
    assert thinking_to_reasoning_field([think("a"), think("b")]) == "a\nb"


def test_req_think_002_4_estimate() -> None:
    """estimateThinkingTokens returns an estimate."""
    assert estimate_thinking_tokens([think("abcdefgh")]) == 2


def test_req_think_004_1_include_is_read() -> None:
    """The message builder reads reasoning.includeInContext."""
    talk = Talk().turn("a").user("b")
    assert build(talk, FREE, INCLUDE).body != build(talk, FREE).body


def test_req_think_004_2_strip_is_read() -> None:
    """The message builder reads reasoning.stripFromContext."""
    talk = Talk().turn("a").turn("b").user("c")
    strip = settings(include_in_context=True, strip_from_context="allButLast")
    assert build(talk, FREE, strip).fields == [None, "on b"]


def test_req_think_004_3_included() -> None:
    """With includeInContext=true assistant messages include reasoning_content."""
    assert build(Talk().turn("a").turn("b").user("c"), FREE, INCLUDE).fields == ["on a", "on b"]


@pytest.mark.parametrize("wanted", [Settings(), settings(include_in_context=False)])
def test_req_think_004_4_not_included(wanted: Settings) -> None:
    """With includeInContext=false no assistant message includes reasoning_content, in the open turn neither."""
    talk = Talk().turn("a").loop("b")
    assert build(talk, FREE, wanted).fields == [None, None]
    assert b"reasoning" not in build(talk, FREE, wanted).body


def test_req_think_004_5_strip_before_building() -> None:
    """The strip policy is applied before the messages are built."""
    strip = settings(include_in_context=True, strip_from_context="all")
    assert build(Talk().turn("a").user("b"), FREE, strip).fields == [None]


def test_req_think_005_1_display_is_effective() -> None:
    """The usage shown is the effective count, after stripping."""
    talk = Talk().turn("a", think("r" * 400), say("x")).user("b")
    kept, stripped = build(talk).counts, build(talk, None, settings(strip_from_context="all")).counts
    assert kept.effective - stripped.effective == 100


def test_req_think_005_2_compression_goes_by_effective() -> None:
    """The count that triggers compression is not the raw one."""
    counts = build(Talk().turn("a", think("r" * 400), say("x")).user("b"), FREE).counts
    assert counts.raw - counts.effective == 100


@pytest.mark.parametrize(("wanted", "reasoning"), [(Settings(), 0), (INCLUDE, 100), (settings(enabled=False), 0)])
def test_req_think_005_3_effective_follows_settings(wanted: Settings, reasoning: int) -> None:
    """The effective count respects the settings of this request."""
    talk = Talk().turn("a", think("r" * 400), say("x")).user("b")
    assert reasoning == build(talk, FREE, wanted).counts.effective_reasoning


def test_br_001_default_is_conservative() -> None:
    """By default no reasoning goes where the endpoint does not ask for it."""
    assert build(Talk().turn("a").loop("b"), FREE).fields == [None, None]
    assert not Settings().include_in_context


def test_br_002_storage_is_complete() -> None:
    """Changing the settings loses nothing: what was stripped comes back."""
    talk = Talk().turn("a").user("b")
    assert build(talk, FREE, settings(strip_from_context="all")).fields == [None]
    assert build(talk, FREE, INCLUDE).fields == ["on a"]


@pytest.mark.parametrize("shown", [True, False])
def test_br_003_display_is_independent(shown: bool) -> None:
    """includeInResponse never changes what is sent."""
    talk = Talk().turn("a").user("b")
    assert build(talk, FREE, settings(include_in_response=shown)).body == build(talk, FREE).body


def test_br_004_effective_governs() -> None:
    """Stripped reasoning does not count."""
    talk = Talk().turn("a", think("r" * 400), say("x")).user("b")
    assert build(talk, None, settings(keep_last=0)).counts.effective_reasoning == 0


def test_br_005_strip_before_include() -> None:
    """The seed's example: strip first, then include."""
    talk = Talk().turn("1").turn("2").turn("3").user("now")
    assert build(talk, FREE, settings(strip_from_context="allButLast", include_in_context=True)).fields == [
        None,
        None,
        "on 3",
    ]
    assert build(talk, FREE, settings(strip_from_context="allButLast", include_in_context=False)).fields == [None] * 3
    assert build(talk, FREE, settings(strip_from_context="none", include_in_context=True)).fields == [
        "on 1",
        "on 2",
        "on 3",
    ]


def test_br_006_off_sends_nothing_back() -> None:
    """With enabled=false nothing is sent back, not even what is included; the log keeps what came."""
    talk = Talk().turn("a").user("b")
    assert build(talk, FREE, settings(enabled=False, include_in_context=True)).fields == [None]
    assert build(talk, FREE, INCLUDE).fields == ["on a"]


def test_br_007_native_is_field() -> None:
    """format=native behaves as field."""
    talk = Talk().turn("a").user("b")
    native = settings(format="native", include_in_context=True)
    assert build(talk, FREE, native).body == build(talk, FREE, INCLUDE).body


def test_br_008_settings_are_read_at_each_request() -> None:
    """The same log under other settings is another request; nothing of the first one stays."""
    talk = Talk().turn("a").user("b")
    before, asked, after = (build(talk, FREE, wanted).body for wanted in (None, INCLUDE, None))
    assert before == after != asked


def test_br_009_strip_is_for_history() -> None:
    """The strip policy is about earlier turns; the turn under way keeps its reasoning, and the log its blocks."""
    talk = Talk().turn("a").loop("b")
    stored = [commit.payload for commit in talk.commits]
    strip = settings(include_in_context=True, strip_from_context="all")
    assert build(talk, FREE, strip).fields == [None, "plan"]
    assert [commit.payload for commit in talk.commits] == stored


def test_ec_001_no_reasoning_at_all() -> None:
    """A model that returns no reasoning makes no field and no decision."""
    built = build(Talk().turn("a", say("x")).user("b"), None, INCLUDE)
    assert built.fields == [None]
    assert built.decisions == []


def test_ec_002_empty_reasoning() -> None:
    """Empty reasoning is as none."""
    assert build(Talk().turn("a", think(""), say("x")).user("b"), None, INCLUDE).fields == [None]


def test_ec_003_reasoning_then_content() -> None:
    """Pieces that came interleaved with content go back as one field and one content."""
    built = build(Talk().turn("a", think("1"), say("x"), think("2"), say("y")).user("b"), None, INCLUDE)
    assert built.messages[1] == {"role": "assistant", "content": "xy", "reasoning_content": "12"}


def test_ec_004_settings_changed_in_between() -> None:
    """A setting changed in the middle acts from the next request on, on all that is stored."""
    talk = Talk().turn("a")
    assert build(talk, FREE).fields == [None]
    assert build(talk.turn("b").user("c"), FREE, INCLUDE).fields == ["on a", "on b"]


def test_ec_005_nothing_is_processed_again() -> None:
    """New settings fold the same commits anew; the state under the old ones is as it was."""
    talk = Talk().turn("a").turn("b").turn("c").user("d")
    old = fold.fold(inputs(FREE), talk.commits, WRITER)
    before = Built(old).body
    assert build(talk, FREE, INCLUDE).body != before
    assert before == Built(old).body


def test_ec_006_reasoning_with_a_call() -> None:
    """Reasoning with a call and no text goes back on the message with the call."""
    built = build(Talk().user("a").reply(think("t"), call(), content="null").result(), FREE, INCLUDE)
    assert set(built.messages[1]) == {"role", "content", "reasoning_content", "tool_calls"}


def test_ec_007_nothing_left_after_stripping() -> None:
    """When all is stripped the field is left out, not sent empty."""
    strip = settings(include_in_context=True, strip_from_context="all")
    assert b'"reasoning_content"' not in build(Talk().turn("a").user("b"), FREE, strip).body
