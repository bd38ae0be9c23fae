"""What holds of every stream: cuts do not matter, deltas equal blocks, signatures survive, nothing raises."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.feeding import check, cuts, each_byte
from tests.wire.gemini_interactions.feeding import (
    adopt,
    body,
    completed,
    delta,
    feed,
    read,
    rewrite,
    sse,
    start,
    stop,
    stream,
)
from thinkback.model.blocks import carriers_of

SCALARS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "\ud83d", "\ude00", "é"])
JUNK = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
TYPES = st.sampled_from(["thought", "model_output", "function_call", "google_search_call", "text", "image"])
SIGNATURES = st.sampled_from(["", "c2ln", "+/=="])
CONTENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "novel"])},
    optional={"text": SCALARS, "data": SCALARS, "mime_type": st.just("image/png"), "uri": SCALARS, "annotations": JUNK},
)
STEPS = st.fixed_dictionaries(
    {"type": TYPES},
    optional={
        "id": st.sampled_from(["f1", ""]),
        "name": st.sampled_from(["f"]),
        "arguments": JUNK,
        "signature": SIGNATURES,
        "summary": JUNK | st.lists(CONTENTS, max_size=2),
        "content": JUNK | st.lists(CONTENTS, max_size=2),
    },
)
DELTAS = st.builds(
    lambda index, kind, more: delta(index, kind, **more),
    st.integers(0, 2),
    TYPES | st.sampled_from(["thought_summary", "thought_signature", "arguments_delta", "text_annotation_delta"]),
    st.fixed_dictionaries(
        {},
        optional={
            "text": SCALARS,
            "arguments": SCALARS | JUNK,
            "signature": SCALARS,
            "content": CONTENTS | JUNK,
            "annotations": JUNK,
            "data": SCALARS,
        },
    ),
)
EVENTS = (
    st.builds(lambda index, step: start(index, **step), st.integers(0, 2), STEPS)
    | DELTAS
    | DELTAS
    | st.builds(stop, st.integers(0, 2))
    | JUNK
    | st.builds(completed, st.sampled_from(["completed", "failed"]))
)


@given(st.lists(EVENTS, max_size=8), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.integers(0, 2**32))
def test_a_stream_reads_the_same_at_any_cut(events: list[Any], end: bytes, seed: int) -> None:
    """Deltas and result are equal whole, byte by byte and at random cuts, and the deltas join to the blocks."""
    raw = sse(*events, end=end)
    whole = feed([raw])

    assert whole == feed(each_byte(raw))
    assert whole == feed(cuts(raw, seed, 40))
    check(*whole)


@given(st.binary(max_size=60), st.integers(0, 400), st.booleans())
def test_bytes_of_any_kind_never_raise(noise: bytes, at: int, streamed: bool) -> None:
    """Noise inside a stream or a body gives a result all the same."""
    raw = stream(delta(0, "text", text="a")) if streamed else body({"type": "thought"})
    check(*feed([raw[:at] + noise + raw[at:]], "sse" if streamed else "json"))


@given(st.lists(STEPS, min_size=1, max_size=3))
def test_signatures_survive_reading_and_writing(steps: list[dict[str, Any]]) -> None:
    """A response written as a request has every signature it was read with, byte for byte and in order."""
    blocks = read(body(*steps)).blocks
    written = rewrite(adopt({"input": rewrite_of(steps)}))

    found = [carrier.value for block in blocks for carrier in carriers_of(block)]
    again = read(body(*written["input"])).blocks
    assert found == [carrier.value for block in again for carrier in carriers_of(block)]


def rewrite_of(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs of older interactions as steps of today, since in an input they would be the user's."""
    return [
        {"type": "model_output", "content": [step]} if step["type"] in ("text", "image") else step for step in steps
    ]
