"""What holds of every stream and every item: cuts do not matter, nothing raises, what is opaque comes back."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.feeding import check, cuts, each_byte
from tests.wire.openai_responses.feeding import (
    added,
    completed,
    delta,
    done,
    event,
    feed,
    read_body,
    response,
    rewritten,
    sse,
)
from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Block, carriers_of
from thinkback.model.commits import decode_payload
from thinkback.model.plan import NOTHING
from thinkback.wire.openai_responses import write
from thinkback.wire.openai_responses.events import PIECES
from thinkback.wire.openai_responses.read import raw_response
from thinkback.wire.openai_responses.read_request import read_messages

TEXTS = st.text(st.sampled_from('ab \n"\\é😀'), max_size=6)
OPAQUE = st.text(st.sampled_from('aZ9+/=\\"\n '), min_size=1, max_size=8)
IDS = st.sampled_from(["rs_1", "msg_2", "fc_3"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "\ud83d"])
JUNK = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
)
STATUSES = st.sampled_from(["completed", "incomplete", None])


def parts(kind: str, name: str = "text") -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists of parts of one type."""
    return st.lists(st.fixed_dictionaries({"type": st.just(kind), name: TEXTS}), max_size=3)


REASONING = st.fixed_dictionaries(
    {"type": st.just("reasoning"), "summary": parts("summary_text")},
    optional={"id": IDS, "encrypted_content": OPAQUE, "status": STATUSES, "signature": OPAQUE, "format": TEXTS},
)
RAW = st.fixed_dictionaries(
    {"type": st.just("reasoning"), "summary": st.just([]), "content": parts("reasoning_text")},
    optional={"id": IDS, "status": STATUSES},
)
SAID = st.fixed_dictionaries(
    {
        "type": st.just("message"),
        "role": st.just("assistant"),
        "content": parts("output_text") | parts("refusal", "refusal"),
    },
    optional={"id": IDS, "status": STATUSES, "phase": st.sampled_from(["commentary", None])},
)
CALLS = st.fixed_dictionaries(
    {"type": st.just("function_call"), "call_id": st.just("c1"), "name": st.just("f"), "arguments": TEXTS},
    optional={"id": IDS, "status": STATUSES, "namespace": TEXTS},
)
CUSTOM = st.fixed_dictionaries(
    {"type": st.just("custom_tool_call"), "call_id": st.just("c1"), "name": st.just("f"), "input": TEXTS},
    optional={"id": IDS},
)
OTHER = st.fixed_dictionaries(
    {"type": st.sampled_from(["web_search_call", "compaction"])},
    optional={"id": IDS, "encrypted_content": OPAQUE, "action": st.dictionaries(st.sampled_from("ab"), st.integers())},
)
ITEMS = st.lists(REASONING | RAW | SAID | CALLS | CUSTOM | OTHER, max_size=4)
EVENTS = (
    st.builds(
        lambda kind, text, index, at: {
            "type": kind,
            "delta": text,
            "output_index": index,
            "content_index": at,
            "summary_index": at,
        },
        st.sampled_from(sorted(PIECES)),
        TEXTS | st.sampled_from(["\ud83d", "\ude00"]) | JUNK,
        st.sampled_from([0, 0, 1, None]),
        st.sampled_from([0, 1]) | JUNK,
    )
    | st.builds(added, REASONING | SAID | CALLS | CUSTOM | JUNK, st.sampled_from([0, 1]))
    | st.builds(done, REASONING | RAW | SAID | CALLS | CUSTOM | OTHER | JUNK, st.sampled_from([0, 1]))
    | st.builds(lambda part: event("content_part.added", output_index=0, content_index=0, part=part), JUNK)
    | st.builds(lambda items: completed(*items), st.lists(REASONING | SAID | JUNK, max_size=3))
    | st.builds(lambda junk: event("created", response=junk), JUNK)
    | st.builds(lambda junk: {"error": junk}, JUNK)
    | JUNK
)


@given(st.lists(EVENTS, max_size=8), st.integers(0, 2**32))
def test_any_stream_is_read_and_the_same_at_any_cut(events: list[Any], seed: int) -> None:
    """Nothing raises, cuts do not matter, and every value survives its bytes."""
    raw = sse(*events)
    whole = feed([raw])

    assert whole == feed(each_byte(raw))
    assert whole == feed(cuts(raw, seed, 40))
    for value in (*whole[1].blocks, whole[1].response):
        assert decode_payload(canonical.encode(value)) == value
    raw_response(whole[1])


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_read(raw: bytes) -> None:
    """As a stream and as a body: a result with an error, never an exception."""
    for framed in (raw, b"data: " + raw + b"\n\n", b"data: {" + raw + b"}\n\n"):
        assert feed([framed]) == feed(each_byte(framed))
    feed([raw], "json")


@given(ITEMS, st.booleans())
def test_a_stream_brings_what_the_body_would(items: list[Any], begun: bool) -> None:
    """The same blocks, and deltas that join to them, whether items begin, come in pieces, or come whole only."""
    events = [streamed for at, item in enumerate(items) for streamed in stream_of(item, at, begun)]
    deltas, result = feed([sse(*events, completed())])
    body = read_body(response(*items))

    check(deltas, result)
    assert body == result
    assert items == raw_response(body)["output"]


def stream_of(item: dict[str, Any], at: int, begun: bool) -> list[Any]:
    """The events of one item: its beginning, its texts letter by letter, and all of it."""
    start = {key: [] if isinstance(value, list) else value for key, value in item.items()}
    start.update({key: "" for key in ("arguments", "input") if key in item})
    found = [added(start, at)] if begun else []
    names = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}
    for name in ("content", "summary"):
        for index, part in enumerate(item.get(name, [])):
            kind = "reasoning_summary_text" if part["type"] == "summary_text" else part["type"]
            found += [delta(kind, letter, at, index) for letter in part[names[part["type"]]]]
    kinds = {
        "function_call": ("function_call_arguments", "arguments"),
        "custom_tool_call": ("custom_tool_call_input", "input"),
    }
    if item["type"] in kinds:
        kind, name = kinds[item["type"]]
        found += [delta(kind, letter, at) for letter in item[name]]
    return [*found, done(item, at)]


@given(ITEMS)
def test_what_goes_back_has_every_opaque_value_and_is_read_the_same(items: list[Any]) -> None:
    """Read, written, read again and written again: the same bytes, and each carrier as it came."""
    found = read_body(response(*items))
    written = write.assistant(found.response, found.blocks, NOTHING)
    counter = itertools.count()
    again = read_messages([json.loads(item) for item in written], lambda: f"r{next(counter)}")
    blocks = [draft.value for draft in again if isinstance(draft.value, Block)]

    assert opaque(found.blocks) == opaque(blocks)
    rewritten = write.assistant(found.response, blocks, NOTHING)
    assert list(map(json.loads, written)) == list(map(json.loads, rewritten))


def opaque(blocks: Any) -> list[tuple[str, str]]:
    """Kind and value of every carrier."""
    return [(carrier.kind, carrier.value) for block in blocks for carrier in carriers_of(block)]


ENTRIES = (
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["message", "function_call_output", "compaction", "item_reference"]) | JUNK,
            "role": st.sampled_from(["user", "assistant", "developer"]) | JUNK,
            "content": JUNK
            | st.lists(st.fixed_dictionaries({"type": st.just("input_text"), "text": JUNK}), max_size=2),
            "call_id": st.sampled_from(["c1", "functions.f:0"]) | JUNK,
            "output": JUNK,
            "id": IDS | JUNK,
        },
    )
    | REASONING
    | SAID
    | CALLS
    | JUNK
)


@given(st.lists(ENTRIES, max_size=4), JUNK, JUNK)
def test_any_input_is_read_or_refused_and_what_is_read_can_be_written(
    entries: list[Any], tools: Any, other: Any
) -> None:
    """Entries that are none raise ``WireError`` and nothing else; written again, opaque values are as they came."""
    try:
        written = rewritten({"input": entries, "tools": tools, "instructions": other, "store": other})
    except WireError:
        return

    given = [entry.get("encrypted_content") for entry in entries if isinstance(entry, dict)]
    found = [entry.get("encrypted_content") for entry in written["input"]]
    assert [value for value in given if value] == [value for value in found if value]
