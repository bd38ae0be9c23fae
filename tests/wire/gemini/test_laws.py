"""What holds of every stream: cuts do not matter, deltas equal blocks, signatures survive, nothing raises."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.feeding import check, cuts, each_byte
from tests.wire.gemini.feeding import adopt, body, chunk, feed, read, rewrite, sse
from thinkback.model.blocks import carriers_of

SCALARS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "\ud83d", "\ude00", "é"])
JUNK = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
SIGNATURES = st.sampled_from(["", "c2ln", "+/=="])
PIECES = st.fixed_dictionaries(
    {"jsonPath": st.sampled_from(["$.a", "$.a[0]", "$.a[1].b", "$.b", "odd", "$"]) | JUNK},
    optional={"stringValue": SCALARS, "numberValue": st.none() | st.integers(), "boolValue": SCALARS},
)
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["", "f1", None]),
        "name": st.sampled_from(["f", "g"]),
        "args": JUNK | st.dictionaries(st.sampled_from("ab"), JUNK, max_size=2),
        "partialArgs": JUNK | st.lists(PIECES, max_size=2),
        "willContinue": st.booleans(),
    },
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "text": SCALARS,
        "thought": st.booleans() | SCALARS,
        "thoughtSignature": SIGNATURES,
        "thought_signature": SIGNATURES,
        "functionCall": CALLS | JUNK,
        "function_call": CALLS,
        "inlineData": st.fixed_dictionaries({"mimeType": st.just("image/png")}, optional={"data": SCALARS}),
        "other": JUNK,
    },
)
TEXTS = st.fixed_dictionaries({"text": st.sampled_from(["", "a", "b\n"])}, optional={"thought": st.booleans()})
CHUNKS = st.builds(
    lambda parts, finish, top: chunk(*parts, finish=finish, **top),
    st.lists(TEXTS | PARTS, max_size=3),
    st.sampled_from([None, None, "STOP", "OTHER"]),
    st.fixed_dictionaries({}, optional={"usageMetadata": JUNK, "promptFeedback": JUNK, "x": JUNK}),
)
EVENTS = CHUNKS | CHUNKS | CHUNKS | JUNK | st.lists(CHUNKS, max_size=2)


@given(st.lists(EVENTS, max_size=6), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.integers(0, 2**32))
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
    raw = sse(chunk({"text": "a"}), chunk(finish="STOP")) if streamed else body({"text": "a"})
    check(*feed([raw[:at] + noise + raw[at:]], "sse" if streamed else "json"))


@given(st.lists(PARTS, min_size=1, max_size=4))
def test_signatures_survive_reading_and_writing(parts: list[dict[str, Any]]) -> None:
    """A response written as a request has every signature where it was, byte for byte, and all the parts."""
    blocks = read(body(*parts)).blocks
    request = {"contents": [{"role": "model", "parts": parts}]}

    assert request == rewrite(adopt(request))
    found = [carrier.value for block in blocks for carrier in carriers_of(block)]
    said = [part.get("thoughtSignature") or part.get("thought_signature") for part in parts]
    assert [value for value in said if value] == found
    assert all(json.dumps(value) in json.dumps(request) for value in found)
