"""Laws of the Converse dialect: nothing raises, cuts do not matter, carriers come back byte for byte."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.bedrock.feeding import STOP, body, content, delta, feed, read, rewritten, start, stop, stream
from tests.wire.feeding import check, cuts, each_byte
from thinkback.model import canonical
from thinkback.model.blocks import carriers_of
from thinkback.wire.bedrock.read import raw_response

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "input", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
TEXT = st.lists(st.sampled_from(["<thinking>", "</thinking>", "</think>", "a", " ", "`", "é", "<"]), max_size=6).map(
    "".join
)
OPAQUE = st.text(alphabet="abcDEF012+/=", min_size=1, max_size=20)
INDEX = st.integers(0, 2)
EVENT = st.one_of(
    st.builds(lambda at, text: delta(at, text=text), INDEX, TEXT),
    st.builds(lambda at, text: delta(at, reasoningContent={"text": text}), INDEX, TEXT),
    st.builds(lambda at, value: delta(at, reasoningContent={"signature": value}), INDEX, OPAQUE),
    st.builds(lambda at, value: delta(at, reasoningContent={"redactedContent": value}), INDEX, OPAQUE),
    st.builds(lambda at, text: delta(at, toolUse={"input": text}), INDEX, TEXT),
    st.builds(lambda at, value: delta(at, citation=value), INDEX, JSON),
    st.builds(
        lambda at, key, value: delta(at, **{key: value}),
        INDEX,
        st.sampled_from(["text", "toolUse", "image", "reasoningContent", "new"]),
        JSON,
    ),
    st.builds(lambda at, value: start(at, toolUse={"toolUseId": value, "name": "f"}), INDEX, OPAQUE),
    st.builds(
        lambda at, key, value: start(at, **{key: value}),
        INDEX,
        st.sampled_from(["toolUse", "toolResult", "image"]),
        JSON,
    ),
    st.builds(stop, INDEX),
    st.builds(
        lambda key, value: {key: value},
        st.sampled_from(["messageStart", "metadata", "messageStop", "message", "output"]),
        JSON,
    ),
)


@given(st.lists(EVENT, max_size=12), st.integers(0, 99))
def test_any_events_give_a_result(events: list[dict[str, Any]], seed: int) -> None:
    """Whatever comes in whatever order is read, equal at any cut, and the deltas say what the blocks say."""
    raw = stream(*events, STOP)
    whole = feed([raw])

    check(*whole)
    canonical.encode(raw_response(whole[1]))
    assert whole == feed(cuts(raw, seed, 50)) == feed(each_byte(raw))


@given(st.binary(max_size=60), st.sampled_from(["event-stream", "json", "ndjson", "sse"]))
def test_any_bytes_give_a_result(raw: bytes, framing: Any) -> None:
    """An error, or nothing that came whole."""
    whole = feed([raw], framing)

    assert whole == feed(each_byte(raw), framing)
    assert whole[1].response.error is not None


@given(
    st.lists(
        JSON | st.dictionaries(st.sampled_from(["text", "toolUse", "reasoningContent", "image"]), JSON), max_size=4
    )
)
def test_any_content_blocks_are_kept(blocks: list[Any]) -> None:
    """A body of anything is read, and what is no text or call comes back as it was."""
    result = read(body(*blocks))

    assert all(block in content(result) for block in blocks if not isinstance(block, dict))


SAID = [
    "say",
    "<thinking>a</thinking>",
    "<thinking>b</thinking>c",
    "\n<thinking>d</thinking>e<thinking>f</thinking>",
    "g<",
]
BLOCK = st.one_of(
    st.builds(
        lambda text, value: {"reasoningContent": {"reasoningText": {"text": text, "signature": value}}}, TEXT, OPAQUE
    ),
    st.builds(lambda value: {"reasoningContent": {"redactedContent": value}}, OPAQUE),
    st.sampled_from(SAID).map(lambda text: {"text": text}),
    st.builds(
        lambda id, value: {"toolUse": {"toolUseId": id, "name": "f", "input": value}},
        st.sampled_from(["t1", "t2"]),
        st.dictionaries(st.text(max_size=3), JSON, max_size=2),
    ),
)


@given(st.lists(BLOCK, min_size=1, max_size=6))
def test_what_came_goes_back_as_it_came(blocks: list[Any]) -> None:
    """A response read, and a request with it read and written, have the same content blocks and carriers."""
    request = {"messages": [{"role": "user", "content": [{"text": "?"}]}, {"role": "assistant", "content": blocks}]}
    result = read(body(*blocks))
    opaque = [carrier.value for block in result.blocks for carrier in carriers_of(block)]

    assert blocks == content(result)
    assert request == rewritten(request)
    assert all(json.dumps(value) in json.dumps(blocks) for value in opaque)
