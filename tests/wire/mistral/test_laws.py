"""Laws of the reader: no input makes it raise, cuts never matter, carriers survive."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.feeding import check, cuts, sse
from tests.wire.mistral.feeding import HEAD, answer, body, feed, read, said, stream, think
from thinkback.model.blocks import ThinkingBlock

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
TEXT = st.text(max_size=4) | st.just("\ud83d") | st.just("\ude00")
CHUNK = (
    st.builds(said, TEXT)
    | st.builds(think, TEXT, closed=st.booleans())
    | st.builds(think, TEXT, TEXT, signature=TEXT | st.none())
    | st.builds(lambda inner: {"type": "thinking", "thinking": inner}, ANY)
    | st.fixed_dictionaries({"type": st.sampled_from(["text", "thinking", "reference"])}, optional={"text": ANY})
    | ANY
)
CALL = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(0, 2) | ANY,
        "id": st.sampled_from(["abcDEF123", "null", ""]) | ANY,
        "type": st.just("function") | ANY,
        "function": st.fixed_dictionaries({"name": TEXT, "arguments": TEXT}) | ANY,
    },
)
DELTA = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant"),
        "content": TEXT | st.lists(CHUNK, max_size=3) | ANY,
        "tool_calls": st.lists(CALL, max_size=3) | ANY,
        "prefix": ANY,
    },
)
CHOICE = st.fixed_dictionaries(
    {"delta": DELTA | ANY},
    optional={"index": st.integers(0, 1) | ANY, "finish_reason": st.just("stop") | ANY, "x": ANY},
)
EVENT = st.fixed_dictionaries(
    {"choices": st.lists(CHOICE, max_size=2) | ANY},
    optional={"id": ANY, "model": ANY, "usage": ANY, "error": ANY, "detail": ANY, "message": ANY, "p": ANY},
)


@given(st.binary(max_size=60) | st.lists(ANY | EVENT, max_size=4).map(sse), st.integers(0, 9))
def test_no_stream_makes_the_reader_raise(raw: bytes, seed: int) -> None:
    """Whatever comes, the result is the same at any cut, and the deltas say what the blocks say."""
    whole = feed([raw])

    check(*whole)
    assert whole == feed(cuts(raw, seed, 7))


@given(st.binary(max_size=60) | DELTA.map(body), st.integers(0, 9))
def test_no_body_makes_the_reader_raise(raw: bytes, seed: int) -> None:
    """The same for a body that is not streamed."""
    whole = feed([raw], "json")

    check(*whole)
    assert whole == feed(cuts(raw, seed, 7), "json")


PIECES = st.lists(st.tuples(st.sampled_from(["think", "text", "string"]), st.text(min_size=1, max_size=4)), max_size=8)


@given(PIECES, st.text(min_size=1))
def test_a_stream_gives_the_blocks_of_the_body_that_it_stands_for(
    pieces: list[tuple[str, str]], signature: str
) -> None:
    """Neighbouring fragments joined are what the API gives in one piece."""
    deltas: list[Any] = []
    content: list[dict[str, Any]] = []
    for kind, text in pieces:
        chunk = think(text, closed=True) if kind == "think" else said(text)
        deltas.append({"content": text if kind == "string" else [chunk]})
        if content and content[-1]["type"] == chunk["type"]:
            inner = content[-1]["thinking"][0] if kind == "think" else content[-1]
            inner["text"] += text
        else:
            content.append(copy.deepcopy(chunk))
    deltas.append({"content": [think("s", closed=True, signature=signature)]})
    if content and content[-1]["type"] == "thinking":
        content[-1]["thinking"][0]["text"] += "s"
        content[-1]["signature"] = signature
    else:
        content.append(think("s", closed=True, signature=signature))
    streamed, whole = read(stream(*deltas)), read(body({"content": content}))

    assert whole.blocks == streamed.blocks
    assert all(not block.wire for block in streamed.blocks)
    assert answer(whole) == answer(streamed)
    assert signature == [block.signature for block in whole.blocks if isinstance(block, ThinkingBlock)][-1]


def test_a_typed_chunk_and_a_general_one_say_the_same() -> None:
    """A key that is not listed takes the general way, with the same blocks."""
    deltas = [
        {"content": "a"},
        {"content": [think("t", closed=True), said("b")]},
        {"content": [think("", signature="s")]},
    ]
    typed = read(stream(*deltas))
    general = read(
        sse(
            *({**HEAD, "new": 1, "choices": [{"index": 0, "delta": delta}]} for delta in deltas),
            {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        )
    )

    assert typed.blocks == general.blocks
    assert typed.response.outcome == general.response.outcome
