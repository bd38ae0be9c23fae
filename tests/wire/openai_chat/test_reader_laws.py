"""What holds of every stream: cuts do not matter, deltas equal blocks, nothing raises, cost is linear."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.wire.feeding import ORIGIN, check, chunk, content, cuts, each_byte, feed, sse
from thinkback.model import canonical
from thinkback.model.commits import Response, decode_payload
from thinkback.wire.framing import Framing
from thinkback.wire.openai_chat.read import Reader
from thinkback.wire.result import ReadOptions, ReadResult

# Pieces that stand for something, strewn into plain words.
MARKS = [
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "[THINK]",
    "[/THINK]",
    "<think a='1'>",
    "`",
    "```",
    "```\n",
    "~~~\n",
    "\n",
    " ",
    "<",
    "</",
    "Thinking...",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "\ud83d",
    "\ude00",
    "é",
]
TEXTS = st.lists(st.sampled_from(MARKS) | st.sampled_from(["a", "ab", "word "]), max_size=4).map("".join)
MAYBE = st.none() | TEXTS
SCALARS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "error"])
JUNK = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
)
ENTRIES = st.fixed_dictionaries(
    {"type": st.sampled_from(["reasoning.text", "reasoning.summary", "reasoning.encrypted", "other"])},
    optional={
        "text": MAYBE,
        "summary": MAYBE,
        "data": st.sampled_from(["d1", "d2"]),
        "signature": st.sampled_from(["", "s1", "s2", None]),
        "id": st.sampled_from([None, "i1", "i2"]),
        "index": st.sampled_from([0, 1, None]),
        "format": st.sampled_from(["unknown", "anthropic-claude-v1"]),
        "arguments": st.sampled_from(["{", "}"]),
    },
)
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 1, None]),
        "id": st.sampled_from(["", "c1", "c2", "functions.f:0", None]),
        "type": st.sampled_from(["function", "custom", None]),
        "function": st.none()
        | st.fixed_dictionaries(
            {},
            optional={"name": st.sampled_from(["f", "g", None]), "arguments": st.sampled_from(["{", "}", "{}", None])},
        ),
        "extra": JUNK,
    },
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": MAYBE | st.lists(JUNK | st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=2),
        "reasoning_content": MAYBE,
        "reasoning": MAYBE,
        "reasoning_text": MAYBE,
        "reasoning_details": st.none() | st.lists(ENTRIES | JUNK, max_size=3),
        "tool_calls": st.none() | st.lists(CALLS, max_size=2),
        "refusal": st.none() | st.sampled_from(["no", ""]),
        "channel": st.sampled_from(["analysis", "final"]),
        "role": st.just("assistant"),
        "unknown": JUNK,
    },
)
FINISHES = st.sampled_from([None, None, None, "", "stop", "error"])
TOPS = st.fixed_dictionaries(
    {},
    optional={
        "usage": st.none() | st.dictionaries(st.sampled_from("ab"), st.integers()),
        "x_groq": JUNK,
        "error": JUNK,
    },
)
CHUNKS = st.builds(lambda delta, finish, top: chunk(delta, finish, **top), DELTAS, FINISHES, st.just({}) | TOPS)
EVENTS = CHUNKS | CHUNKS | CHUNKS | JUNK
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
OPTIONS = st.sampled_from([None, ReadOptions(leaked_calls="kimi")])


@given(st.lists(CHUNKS, max_size=8), ENDS, st.integers(0, 2**32), OPTIONS)
def test_a_stream_reads_the_same_at_any_cut_and_its_deltas_say_what_its_blocks_say(
    events: list[Any], end: bytes, seed: int, options: ReadOptions | None
) -> None:
    """Deltas and result are equal whole, byte by byte and at random cuts, and the deltas join to the blocks."""
    raw = sse(*events, end=end)
    whole = feed([raw], options=options)

    assert whole == feed(each_byte(raw), options=options)
    assert whole == feed(cuts(raw, seed, 40), options=options)
    check(*whole)


@given(st.lists(st.builds(chunk, DELTAS, FINISHES), max_size=6), OPTIONS)
def test_a_key_nobody_knows_changes_nothing_else(events: list[Any], options: ReadOptions | None) -> None:
    """A stream reads the same with an unknown key in some of its chunks: fast and slow reading agree."""
    odd = [{**event, "odd": 1} if at % 2 else event for at, event in enumerate(events)]
    all_odd = [{**event, "odd": 1} for event in events]
    (deltas, plain), *others = (feed([sse(*found)], options=options) for found in (events, odd, all_odd))
    for theirs, result in others:
        assert (deltas, plain.blocks, plain.usage) == (theirs, result.blocks, result.usage)
        assert header(plain) == header(result)


def header(result: ReadResult) -> tuple[Response, Any]:
    """The response without its envelope, and its unknown fields whatever their order."""
    bare = msgspec.structs.replace(result.response, envelope="", message="")
    return bare, json.loads(result.response.message or "null")


@given(st.lists(TEXTS, max_size=6))
@example(["<think>", "a</think>`<think>`", "\n```\n<think>\n```\n</think>"])
@example(["lone </think>", "rest </think>"])
def test_the_slices_of_content_join_to_content(texts: list[str]) -> None:
    """Whatever tags and code stand in ``content``, the raw slices of the blocks give it back."""
    _, result = feed([sse(*(chunk({"content": text}) for text in texts))])

    assert canonical.whole("".join(texts)) == content(result.blocks)


@given(st.lists(st.tuples(st.sampled_from(["reasoning", "reasoning_content"]), TEXTS), max_size=6), TEXTS, TEXTS)
def test_a_field_and_tags_together_are_shown_once(fields: list[tuple[str, str]], thought: str, answer: str) -> None:
    """Reasoning in a field, then perhaps the same in tags: deltas and visible blocks agree."""
    raw = sse(*(chunk({name: text}) for name, text in fields), chunk({"content": f"<think>{thought}</think>{answer}"}))

    check(*feed([raw]))


@given(st.binary(max_size=300), st.sampled_from(["sse", "ndjson", "json"]))
def test_no_bytes_make_the_reader_raise(raw: bytes, framing: Framing) -> None:
    """Arbitrary bytes give a result, in every framing."""
    survive(raw, framing)


@given(st.lists(EVENTS, max_size=5), st.data())
def test_no_mutation_of_a_stream_makes_the_reader_raise(events: list[Any], data: st.DataObject) -> None:
    """Streams with bytes cut out, doubled or replaced, and events of any shape, give a result."""
    raw = bytearray(sse(*events))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(raw)))
        length = data.draw(st.integers(0, 20))
        put = data.draw(st.binary(max_size=4) | st.just(bytes(raw[at : at + length]) * 2))
        raw[at : at + length] = put

    survive(bytes(raw), "sse")


@given(JUNK, JUNK, JUNK)
def test_no_shape_of_a_body_makes_the_reader_raise(message: Any, choice: Any, top: Any) -> None:
    """A body that is JSON but no chat completion gives a result."""
    for value in (
        top,
        {"choices": top},
        {"choices": [choice], "usage": top, "error": message},
        {"choices": [{"message": message, "delta": choice, "usage": top}]},
        {"choices": [{"message": {"content": message, "tool_calls": choice, "reasoning": top, "refusal": top}}]},
        {"choices": [{"message": {"reasoning_details": message, "tool_calls": [choice, {"function": top}]}}]},
    ):
        survive(json.dumps(value).encode(), "json")


@pytest.mark.parametrize("framing", ["sse", "ndjson", "json"])
def test_deep_nesting_is_refused_rather_than_met_later(framing: Framing) -> None:
    """JSON of thousands of levels, closed or not, gives an error and no exception."""
    for depth in (90, 150, 900, 100_000):
        nested = "[" * depth + "]" * depth
        inside = '{"choices":[{"delta":{"x":' + nested + '},"index":0}]}'
        usage = '{"choices":[],"usage":{"x":' + nested + "}}"
        for text in ("[" * depth, nested, inside, usage):
            survive(f"data: {text}\n\n".encode() if framing == "sse" else text.encode(), framing)


def survive(raw: bytes, framing: Framing) -> None:
    """The body can be read in two ways, with equal results, and every value has bytes."""
    for options in (None, ReadOptions("reasoning", "kimi")):
        deltas, result = feed([raw], framing, options)
        assert (deltas, result) == feed([*each_byte(raw[:400]), raw[400:]], framing, options)
        for value in (*result.blocks, result.response):
            assert decode_payload(canonical.encode(value)) == value


def repeated(delta: dict[str, Any], count: int, **top: Any) -> bytes:
    """A stream that says the same ``count`` times."""
    return sse(chunk(delta, **top)) * count


LONG: list[tuple[str, Callable[[int], list[bytes]]]] = [
    ("one event", lambda n: [sse(chunk({"reasoning": "x" * 40 * n}))]),
    ("one event in small pieces", lambda n: cuts(sse(chunk({"content": "x" * 40 * n}), end=b"\r\n"), 1, 40)),
    (
        "a section in small pieces",
        lambda n: [repeated({"reasoning": "<|tool_calls_section_begin|>"}, 1), repeated({"reasoning": "abcd"}, n)],
    ),
    (
        "many sections",
        lambda n: [sse(chunk({"reasoning": "<|tool_calls_section_begin|> <|tool_calls_section_end|>" * n}))],
    ),
    ("many tags in one piece", lambda n: [sse(chunk({"content": "<think>a</think>" * n}))]),
    ("many literal tags on one line", lambda n: [sse(chunk({"content": "say `</think>` " * n}))]),
    ("many false starts", lambda n: [sse(chunk({"content": "a <thin b < c " * n}))]),
    ("many unknown pieces", lambda n: [repeated({"opaque": "abcd"}, n)]),
    ("many usages", lambda n: [repeated({"content": "x"}, n, usage={"prompt_tokens": 1})]),
    ("many calls", lambda n: [sse(chunk({"tool_calls": [{"index": at, "id": f"c{at}"} for at in range(n)]}))]),
    (
        "many entries",
        lambda n: [
            sse(
                *(
                    chunk({"reasoning_details": [{"type": "reasoning.text", "index": at, "text": "x"}]})
                    for at in range(n)
                )
            )
        ],
    ),
    (
        "a tag that echoes a field",
        lambda n: [
            repeated({"reasoning": "abcd"}, n),
            repeated({"content": "<think>"}, 1),
            repeated({"content": "abcd"}, n),
        ],
    ),
]


@pytest.mark.parametrize(("name", "make"), LONG, ids=[name for name, _ in LONG])
def test_memory_grows_with_the_text_and_not_with_the_number_of_chunks(
    name: str, make: Callable[[int], list[bytes]]
) -> None:
    """Reading four times as much holds about four times as much at its peak, never the square."""
    few, many = peak(make(500)), peak(make(2000))

    assert many < 6 * few + 200_000


def peak(pieces: list[bytes]) -> int:
    """Bytes allocated at the worst moment while ``pieces`` are read."""
    tracemalloc.start()
    feed(pieces)
    _, worst = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return worst


def test_usage_in_every_chunk_keeps_one() -> None:
    """A host that reports usage in each chunk costs no memory: only the last report and its chunk are held."""
    piece = sse(chunk({}, usage={"prompt_tokens": 1, "completion_tokens": 2}), done=False)
    reader = Reader(ORIGIN)
    tracemalloc.start()
    for _ in range(2000):
        reader.feed(piece)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < 20_000
