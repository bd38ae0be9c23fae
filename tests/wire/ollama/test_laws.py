"""Laws of the reader: no input makes it raise, cuts never matter, a stream says what a body says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.feeding import check, cuts
from tests.wire.ollama.feeding import body, call, feed, line, ndjson, read, stream

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
TEXT = st.lists(
    st.sampled_from(["<think>", "</think>", "<thi", "nk>", "`", "\n", "a", "\ud83d", "\ude00"]) | st.text(max_size=3),
    max_size=4,
).map("".join)
CALL = (
    st.builds(call, st.dictionaries(TEXT, TEXT, max_size=2) | ANY, TEXT, index=st.integers(0, 2))
    | st.fixed_dictionaries({}, optional={"id": ANY, "function": ANY})
    | ANY
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "content": TEXT | ANY,
        "thinking": TEXT | ANY,
        "tool_calls": st.lists(CALL, max_size=2) | ANY,
        "images": st.lists(TEXT, max_size=2) | ANY,
        "odd": ANY,
    },
)
LINE = st.builds(line, MESSAGE) | st.fixed_dictionaries(
    {"message": MESSAGE | ANY},
    optional={"done": ANY, "done_reason": ANY, "model": ANY, "error": ANY, "eval_count": ANY, "logprobs": ANY},
)


@given(st.binary(max_size=60) | st.lists(ANY | LINE, max_size=4).map(lambda lines: ndjson(*lines)), st.integers(0, 9))
def test_no_stream_makes_the_reader_raise(raw: bytes, seed: int) -> None:
    """Whatever comes, the result is the same at any cut, and the deltas say what the blocks say."""
    whole = feed([raw])

    check(*whole)
    assert whole == feed(cuts(raw, seed, 7))


@pytest.mark.covers(True)
@given(st.binary(max_size=60) | MESSAGE.map(body), st.integers(0, 9))
def test_no_body_makes_the_reader_raise(raw: bytes, seed: int) -> None:
    """The same for a body that is not streamed."""
    whole = feed([raw], "json")

    check(*whole)
    assert whole == feed(cuts(raw, seed, 7), "json")


WHOLE = TEXT.map(lambda text: text.encode("utf-8", "ignore").decode())


@given(
    st.lists(WHOLE, max_size=4), st.lists(WHOLE, max_size=4), st.lists(st.dictionaries(st.text(), WHOLE), max_size=2)
)
def test_a_stream_gives_the_blocks_of_the_body_that_it_stands_for(
    thinking: list[str], content: list[str], arguments: list[dict[str, Any]]
) -> None:
    """Thinking, content and calls in the order in which Ollama gives them."""
    calls = [call(value, f"c{at}") for at, value in enumerate(arguments)]
    streamed = read(
        stream(
            *[{"thinking": t} for t in thinking],
            *[{"content": c} for c in content],
            *[{"tool_calls": [c]} for c in calls],
        )
    )
    whole = read(body({"thinking": "".join(thinking), "content": "".join(content), "tool_calls": calls}), "json")

    assert whole.blocks == streamed.blocks
