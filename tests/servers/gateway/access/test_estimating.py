"""What is counted of a response of which nobody says what it used."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.stores.samples import ORIGIN, response_step, user_step
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Draft, Message, Response, Step, Usage, block_draft
from thinkback.servers.gateway.access.estimating import estimate, estimate_input, use_of
from thinkback.stores.gateway_state.records import Use


def step(*blocks: Text | ThinkingBlock | ToolCall, usage: Usage | None = None) -> Step:
    """A response that broke off, behind what it was asked."""
    drafts = [Draft("user", Message("A question that is in no response.")), Draft("response", Response(ORIGIN), "r")]
    drafts += [block_draft(block, "r", number) for number, block in enumerate(blocks)]
    drafts += [Draft("provider_usage", usage, "r")] if usage else []
    return Step("id", tuple(drafts), 1)


def test_what_arrived_is_counted_by_its_characters() -> None:
    """Text, calls and reasoning, four characters a token; the request by its bytes."""
    broken = step(ThinkingBlock("t" * 400), Text("x" * 40), ToolCall("c", "f", '{"a":"' + "x" * 34 + '"}'))
    assert Use(1, 25, 120, 100) == estimate(broken, 100)


def test_what_a_provider_has_said_so_far_counts_where_it_is_more() -> None:
    """Some say the input at the beginning, and an output that grows."""
    assert Use(1, 77, 20, 10) == estimate(step(ThinkingBlock("t" * 40), Text("x" * 40), usage=Usage(77, 1)), 100)
    assert Use(1, 77, 500, 300) == estimate(step(Text("x" * 40), usage=Usage(77, 500, 300)), 100)


def test_a_step_without_a_response_used_nothing() -> None:
    """What a client brings is no use."""
    assert None is estimate(user_step("u"), 100)
    assert None is not estimate(response_step("r"), 100)


@given(*[st.none() | st.integers(0, 100)] * 3, st.none() | st.builds(Use, st.just(1), st.integers(0, 9)))
def test_what_was_said_goes_before_what_is_guessed(
    input: int | None, output: int | None, reasoning: int | None, guessed: Use | None
) -> None:
    """A request is always counted; a guess only where the output was not said."""
    used = use_of((input, output, reasoning), guessed)
    assert 1 == used.requests
    if output is not None or guessed is None:
        known = guessed.input if input is None and guessed is not None else input
        assert (known or 0, output or 0, reasoning or 0) == used[1:]
    else:
        assert guessed == used


def test_a_number_below_zero_gives_no_budget_back() -> None:
    """It says nothing."""
    assert Use(1, 25, 10, 0) == estimate(step(Text("x" * 40), usage=Usage(-77, -500, -300)), 100)


def test_a_number_above_all_bounds_is_estimated() -> None:
    """What could not be stored with the spending of all keys is no use either."""
    said = Usage(2**62 + 13, 2**63, 10**30)
    assert Use(1, 25, 10, 0) == estimate(step(Text("x" * 40), usage=said), 100)


def test_input_of_a_request_is_estimated_by_its_text() -> None:
    """A file in it counts as an image does; what has spaces is no file."""
    text = b"word " * 4_000
    image = b'{"data": "' + b"A" * 2_000_000 + b'"}'

    assert 4_000 < estimate_input(text) < 8_000
    assert 1_500 <= estimate_input(image) < 1_600
    assert estimate_input(text + image) - estimate_input(text) < 1_600
