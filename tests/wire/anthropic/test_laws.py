"""Laws of the reader and the writer: nothing raises, cuts do not matter, what must go back goes back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.anthropic.feeding import START, adopt, body, ending, feed, opens, piece, read, rewrite, sse, stops
from tests.wire.feeding import check, cuts, each_byte
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock, ToolCall, Unknown, carriers_of
from thinkback.model.commits import decode_payload
from thinkback.model.plan import NOTHING
from thinkback.wire.anthropic import write
from thinkback.wire.anthropic.blocks import wire_object
from thinkback.wire.anthropic.read import raw_response
from thinkback.wire.result import ReadResult

KINDS = ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "compaction", "new")
FIELDS = ("text", "thinking", "signature", "data", "partial_json", "input", "citations", "content", "id", "name", "x")
DELTAS = ("text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "compaction_delta")
EVENTS = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "message",
    "ping",
)
words = st.text(st.characters(), max_size=8)
simple: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-9, 9) | words | st.lists(words, max_size=2)
values = simple | st.dictionaries(st.sampled_from(FIELDS), simple, max_size=3)
inputs = st.dictionaries(words, words | st.integers() | st.lists(st.booleans()), max_size=3)


def objects(kinds: tuple[str, ...], fields: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of a type, with some of the members that such objects have."""
    return st.builds(
        lambda kind, rest: {**kind, **rest},
        st.fixed_dictionaries({}, optional={"type": st.sampled_from(kinds)}),
        st.dictionaries(st.sampled_from(fields), values, max_size=4),
    )


messages = st.fixed_dictionaries(
    {},
    optional={
        "content": st.lists(objects(KINDS, FIELDS) | values, max_size=3) | values,
        "usage": values,
        "model": values,
        "stop_reason": values,
    },
)
events = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from((*EVENTS, *EVENTS, *EVENTS, "error")),
        "index": st.integers(0, 2) | values,
        "content_block": objects(KINDS, FIELDS) | values,
        "delta": objects(DELTAS, (*FIELDS, "citation", "stop_reason", "partial_json")) | values,
        "message": messages | values,
        "usage": values,
    },
)
# Blocks as the provider makes them: each with what a request has to bring back.
blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, words.filter(bool)),
    st.builds(lambda text, key: {"type": "thinking", "thinking": text, "signature": key}, words, words),
    st.builds(lambda data: {"type": "redacted_thinking", "data": data}, words.filter(bool)),
    st.builds(lambda id, args: {"type": "tool_use", "id": str(id), "name": "f", "input": args}, st.uuids(), inputs),
    st.builds(lambda args: {"type": "server_tool_use", "id": "s", "name": "g", "input": args}, inputs),
    st.builds(lambda text, key: {"type": "compaction", "content": text, "signature": key}, words, words.filter(bool)),
)
contents = st.lists(blocks, min_size=1, max_size=5)


def streamed(content: list[dict[str, Any]], cut: int) -> bytes:
    """The stream of a message: strings that grow come in pieces of ``cut`` characters."""
    made: list[Any] = [START]
    for at, block in enumerate(content):
        kind = block["type"]
        if kind in ("redacted_thinking", "compaction"):
            made += [opens(block, at), stops(at)]
            continue
        if kind in ("text", "thinking"):
            made.append(opens({**block, kind: "", **({"signature": ""} if kind == "thinking" else {})}, at))
            made += [piece(f"{kind}_delta", kind, text, at) for text in pieces(block[kind], cut)]
        else:
            made.append(opens({**block, "input": {}}, at))
            source = json.dumps(block["input"]) if block["input"] else ""
            made += [piece("input_json_delta", "partial_json", text, at) for text in pieces(source, cut)]
        if kind == "thinking":
            made.append(piece("signature_delta", "signature", block["signature"], at))
        made.append(stops(at))
    return sse(*made, *ending())


def pieces(text: str, length: int) -> list[str]:
    """``text`` in pieces."""
    return [text[at : at + length] for at in range(0, len(text), length)]


@given(st.lists(events, max_size=8), st.integers(0, 9))
def test_any_events_are_read_the_same_at_any_cut(made: list[Any], seed: int) -> None:
    """Nothing raises; deltas are what the blocks say; every value survives its bytes; the response can be rebuilt."""
    raw = sse(*made)

    whole = feed([raw])

    check(*whole)
    assert whole == feed(each_byte(raw)) == feed(cuts(raw, seed))
    raw_response(whole[1])


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_read(raw: bytes) -> None:
    """As a stream, after the start of one, and as a body."""
    check(*feed([raw]))
    check(*feed([sse(START), b"data: ", raw]))
    check(*feed([raw], "json"))


@given(st.dictionaries(st.sampled_from(("type", "content", "usage", "error", "model", "stop_reason")), values))
def test_any_object_is_read_as_a_body(made: dict[str, Any]) -> None:
    """A message, an error, or a failure that says that it is neither."""
    read(json.dumps(made).encode())


@given(contents, st.integers(1, 5))
def test_a_stream_says_what_the_whole_body_says(content: list[dict[str, Any]], cut: int) -> None:
    """The same blocks, whose objects are those of the body."""
    whole, stream = read(body(*content)), read(streamed(content, cut))

    assert _plain(whole) == _plain(stream)
    for result in (whole, stream):
        assert content == raw_response(result)["content"]


def _plain(result: ReadResult) -> list[Any]:
    """The blocks, source text as values."""
    plain: list[Any] = []
    for block in result.blocks:
        if isinstance(block, ToolCall):
            plain.append((block.id, block.name, json.loads(block.arguments), block.wire))
        elif isinstance(block, Unknown):
            plain.append((json.loads(block.wire), block.carriers))
        else:
            plain.append(block)
    return plain


@given(contents)
def test_what_has_to_go_back_goes_back(content: list[dict[str, Any]]) -> None:
    """Read, stored, written, read again: the same message, with the same carriers."""
    result = read(body(*content))
    stored = [decode_payload(canonical.encode(block)) for block in result.blocks]

    (written,) = write.assistant(result.response, stored, NOTHING)  # type: ignore[arg-type]

    assert {"role": "assistant", "content": content} == canonical.decode(written)
    request = adopt({"model": "m", "messages": [canonical.decode(written)]})
    again = [draft.value for draft in request.drafts[1:]]
    assert [carriers_of(block) for block in result.blocks] == [carriers_of(block) for block in again]  # type: ignore[arg-type]
    assert [{"role": "assistant", "content": content}] == rewrite(request)["messages"]


@given(st.text(), st.text(), st.text())
def test_neutral_blocks_survive_the_wire(thought: str, key: str, said: str) -> None:
    """What is rebuilt from fields is read back into them."""
    made: list[Block] = [
        ThinkingBlock(thought, source_field="thinking", signature=key, kind="raw" if thought else "none"),
        ThinkingBlock("", source_field="redacted_thinking", kind="none", carriers=(Carrier("redacted", key or "E"),)),
        Text(said),
    ]

    assert made == list(read(body(*(json.loads(wire_object(block)) for block in made))).blocks)
