"""Reasoning between tags in the text of an answer, in the readers of all dialects."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.wire.event_stream import event
from thinkback.model.blocks import Block, Origin, Text, ThinkingBlock, ToolCall, content_slice
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, TextDelta, ToolCallDelta
from thinkback.model.slices import sliced, whole
from thinkback.model.think_tags import Where
from thinkback.wire.framing import Framing
from thinkback.wire.registry import dialect
from thinkback.wire.result import ReadOptions, ReadResult
from thinkback.wire.tagging import Tagging

FRAMINGS: dict[str, Framing] = {"bedrock": "event-stream", "ollama": "ndjson"}
DIALECTS = (
    "anthropic",
    "bedrock",
    "cohere",
    "gemini",
    "gemini-interactions",
    "mistral",
    "ollama",
    "openai-chat",
    "openai-responses",
)


def stream(name: str, texts: list[str]) -> bytes:
    """An answer that comes in ``texts`` and then ends as it should."""
    match name:
        case "anthropic":
            start: Any = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
            deltas: list[Any] = [
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
                for text in texts
            ]
            end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
            return _sse(start, *deltas, {"type": "content_block_stop", "index": 0}, end, {"type": "message_stop"})
        case "bedrock":
            pieces = [event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}}) for text in texts]
            return b"".join([*pieces, event("messageStop", {"stopReason": "end_turn"})])
        case "cohere":
            content = [{"index": 0, "delta": {"message": {"content": {"text": text}}}} for text in texts]
            begin = {
                "type": "content-start",
                "index": 0,
                "delta": {"message": {"content": {"type": "text", "text": ""}}},
            }
            last = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
            return _sse(begin, *({"type": "content-delta", **piece} for piece in content), last)
        case "gemini":
            parts = [{"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in texts]
            return _sse(*parts, {"candidates": [{"finishReason": "STOP"}]})
        case "gemini-interactions":
            said = [{"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": text}} for text in texts]
            first = {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}}
            return _sse(first, *said, {"event_type": "interaction.completed", "interaction": {"status": "completed"}})
        case "ollama":
            lines = [{"model": "m", "message": {"role": "assistant", "content": text}} for text in texts]
            closing = {
                "model": "m",
                "message": {"role": "assistant", "content": ""},
                "done": True,
                "done_reason": "stop",
            }
            return b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, closing])
        case "openai-responses":
            item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
            whole_text = {"type": "output_text", "text": "".join(texts), "annotations": []}
            return _sse(
                {"type": "response.output_item.added", "output_index": 0, "item": item},
                *(
                    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}
                    for text in texts
                ),
                {"type": "response.output_item.done", "output_index": 0, "item": {**item, "content": [whole_text]}},
                {"type": "response.completed", "response": {"status": "completed"}},
            )
        case _:
            chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
            return _sse(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]")


def _sse(*events: Any) -> bytes:
    said = [one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) for one in events]
    return b"".join(b"data: " + one.encode() + b"\n\n" for one in said)


def read(name: str, pieces: list[bytes], where: Where = "start") -> tuple[list[Delta], ReadResult]:
    """What a reader shows and gives of a body in ``pieces``."""
    origin = Origin(name, "https://models.example.org", "m")
    reader = dialect(name).reader(origin, FRAMINGS.get(name, "sse"), ReadOptions(tags=where), "r")
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.close()
    return deltas, reader.result()


def told(blocks: tuple[Block, ...]) -> list[tuple[str, str]]:
    """Who says what: reasoning and text, empty texts left out."""
    found = [
        ("thought", block.thought) if isinstance(block, ThinkingBlock) else ("text", block.text)
        for block in blocks
        if isinstance(block, Text | ThinkingBlock)
    ]
    return [(kind, text) for kind, text in found if text or kind == "thought"]


CASES: list[tuple[Where, str, list[tuple[str, str]]]] = [
    ("start", "<think>a</think>Hi", [("thought", "a"), ("text", "Hi")]),
    ("start", "<THINK>a</Think>Hi", [("thought", "a"), ("text", "Hi")]),
    ("start", "so</think>Hi", [("thought", "so"), ("text", "Hi")]),
    ("start", "<think>one two and", [("thought", "one two and")]),
    ("start", "<think>a</think>b<think>c</think>d", [("thought", "a"), ("text", "b"), ("thought", "c"), ("text", "d")]),
    ("start", "Hello <think>x</think> world", [("text", "Hello <think>x</think> world")]),
    ("lines", "Hello <think>x</think> world", [("text", "Hello <think>x</think> world")]),
    ("lines", "Hello\n<think>x</think>\nworld", [("text", "Hello\n"), ("thought", "x"), ("text", "\nworld")]),
    ("lines", 'He wrote "<think>" so', [("text", 'He wrote "<think>" so')]),
    ("start", "<think>w</think><think>hy</think>Hi", [("thought", "why"), ("text", "Hi")]),
    ("start", "<think>so,</think>\n\n<think>why</think> Hi", [("thought", "so,\n\nwhy"), ("text", " Hi")]),
    ("start", "<think>Think</think><think>ing... so</think>Hi", [("thought", "so"), ("text", "Hi")]),
    ("anywhere", "Hello <think>x</think> world", [("text", "Hello "), ("thought", "x"), ("text", " world")]),
    ("anywhere", "Answer. <think>one two and", [("text", "Answer. "), ("thought", "one two and")]),
    ("anywhere", "Write `<think>` so.", [("text", "Write `<think>` so.")]),
    ("off", "<think>a</think>Hi", [("text", "<think>a</think>Hi")]),
]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(("where", "content", "expected"), CASES, ids=[f"{where}, {text}" for where, text, _ in CASES])
def test_every_dialect_reads_tags(name: str, where: Where, content: str, expected: list[tuple[str, str]]) -> None:
    """Whole, byte by byte and with a piece of text for each character."""
    body = stream(name, [content])
    assert expected == told(read(name, [body], where)[1].blocks)
    assert expected == told(read(name, [bytes([byte]) for byte in body], where)[1].blocks)
    assert expected == told(read(name, [stream(name, list(content))], where)[1].blocks)


MARKS = ["<think>", "</think>", "<THINK>", "[THINK]", "[/THINK]", "a", " b\n", "`", "<", "\n", "c d"]
CONTENTS = st.lists(st.sampled_from(MARKS), min_size=1, max_size=8)


@pytest.mark.parametrize("name", DIALECTS)
@given(
    texts=CONTENTS,
    at=st.lists(st.integers(0, 2000), max_size=3),
    where=st.sampled_from(["start", "lines", "anywhere", "off"]),
)
@settings(max_examples=60)
def test_cuts_do_not_matter_and_nothing_is_lost(name: str, texts: list[str], at: list[int], where: Where) -> None:
    """Whole, byte by byte and at random cuts: the same blocks, which joined are the answer, and so is what is shown."""
    body = stream(name, texts)
    places = [0, *sorted(min(place, len(body)) for place in at), len(body)]
    deltas, result = read(name, [body], where)
    cut = [body[start:end] for start, end in itertools.pairwise(places)]

    assert result == read(name, [bytes([byte]) for byte in body], where)[1] == read(name, cut, where)[1]
    said = [block for block in result.blocks if isinstance(block, Text | ThinkingBlock)]
    assert "".join(texts) == "".join(map(content_slice, said))
    assert told(result.blocks) == told(read(name, [stream(name, list("".join(texts)))], where)[1].blocks)
    assert shown_of(deltas) == {
        at: told((block,))[0] for at, block in enumerate(result.blocks) if told((block,)) not in ([], [("thought", "")])
    }


def shown_of(deltas: list[Delta]) -> dict[int, tuple[str, str]]:
    """What was shown under each index, and whether as reasoning in the end."""
    found: dict[int, tuple[str, str]] = {}
    for delta in deltas:
        if isinstance(delta, Reclassified):
            if delta.text:
                assert ("text", delta.text) == found[delta.index]
                found[delta.index] = ("thought", delta.text)
        elif isinstance(delta, TextDelta | ReasoningDelta):
            kind = "text" if isinstance(delta, TextDelta) else "thought"
            found[delta.index] = (kind, found.get(delta.index, (kind, ""))[1] + delta.text)
    return found


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "texts",
    [["<think>", "why", "</think>", "Hi"], ["<think>w</think>", "<think>h</think>\n", "<think>y</think>", "Hi"]],
)
def test_a_response_is_put_together_again_with_its_tags(name: str, texts: list[str]) -> None:
    """The provider's own document has the text as it came, and one block of it."""
    result = read(name, [stream(name, texts)])[1]
    plain = read(name, [stream(name, texts)], "off")[1]

    assert dialect(name).raw_response(plain) == dialect(name).raw_response(result)
    assert [("thought", "why"), ("text", "Hi")] == [(kind, "".join(text.split())) for kind, text in told(result.blocks)]


def test_slices_are_one_text_again() -> None:
    """With what it carried; where the tag at its beginning is left out, the white space behind it is, too."""
    result = read("openai-responses", [stream("openai-responses", ["<think>why</think>\n\nHi"])])[1]
    thought, answer = result.blocks
    plain = read("openai-responses", [stream("openai-responses", ["<think>why</think>\n\nHi"])], "off")[1]

    assert plain.blocks == whole(result.blocks)
    (left,) = whole([answer])
    assert isinstance(left, Text)
    assert isinstance(answer, Text)
    assert isinstance(thought, ThinkingBlock)
    assert ("Hi", answer.carriers) == (left.text, left.carriers)
    assert "why" not in left.wire + answer.wire


def test_reasoning_is_a_text_by_itself_where_its_text_is_gone() -> None:
    """No dialect has another place for it; what stands beside other texts stays what it is."""
    thought = ThinkingBlock("why", source_field="content", opening="<think>", closing="</think>")
    call = ToolCall("c", "f", "{}")
    bedrock = Text("Hi", source_field="text_ends")
    begins = Text("Well. ", source_field="content_begins")

    assert (Text("<think>why</think>"),) == whole([thought])
    assert (Text("<think>why</think>"), call) == whole([thought, call])
    assert (Text("Well. <think>why</think>"), call) == whole([begins, thought, call])
    assert (thought, bedrock) == whole([thought, bedrock])
    assert (call, bedrock) == whole([call, bedrock])


def test_what_a_provider_says_beside_a_text_stays_beside_it() -> None:
    """Its object has the text in one member; where it has none, or several, it is made anew."""
    cited = '{"type":"text","citations":[{"text":"x"},7],"text":"<think>a</think>b"}'
    thought = ThinkingBlock("a", source_field="content", opening="<think>", closing="</think>")
    block = Text("<think>a</think>b", wire=cited)
    parts = Text(block.text, wire='{"content":[{"text":"<think>a"},{"text":"</think>b"}]}')

    slices = sliced(block, [thought, Text("b")])
    assert "think" not in slices[-1].wire
    assert (block,) == whole(slices)
    assert (Text(block.text),) == whole(sliced(parts, [thought, Text("b")]))


@pytest.mark.parametrize("name", DIALECTS)
def test_a_block_can_be_looked_at_under_its_index(name: str) -> None:
    """As it was shown: reasoning between tags is a block before the text behind it."""
    origin = Origin(name, "https://api.example.org", "m")
    reader = dialect(name).reader(origin, FRAMINGS.get(name, "sse"), ReadOptions(tags="start"), "r")
    reader.feed(stream(name, ["<think>why</think>", "Hi"]))

    found = [reader.block(index) for index in range(2)]
    assert [("thought", "why"), ("text", "Hi")] == told(tuple(block for block in found if block is not None))
    assert reader.block(9) is None


def test_a_closing_tag_behind_reasoning_in_a_place_of_its_own_is_text() -> None:
    """The reasoning is known: the tag is a slip of the model."""
    thought = {"type": "thinking", "thinking": "why", "signature": "s"}
    blocks = [thought, {"type": "text", "text": "so</think>Hi"}]
    body = json.dumps({"id": "m1", "role": "assistant", "content": blocks, "stop_reason": "end_turn"}).encode()
    reader = dialect("anthropic").reader(
        Origin("anthropic", "https://api.example.org", "m"), "json", ReadOptions(tags="start"), "r"
    )
    reader.feed(body)
    reader.close()

    assert [("thought", "why"), ("text", "so</think>Hi")] == told(reader.result().blocks)


def test_reasoning_goes_on_behind_text_of_another_block() -> None:
    """Texts that come by turns: what an open tag of the one makes reasoning is a slice of its own in the other."""
    texts = [Text("plain"), Text("")]
    tagging = Tagging("anywhere", texts_begun(texts))
    deltas = [*tagging.show([TextDelta("plain", 0), TextDelta("<think>a", 1), TextDelta("b", 0)])]

    assert ["TextDelta", "ReasoningDelta", "ReasoningDelta"] == [type(delta).__name__ for delta in deltas]
    assert [("text", "plain"), ("thought", "b")] == told(tuple(part.block() for part in tagging.slices(0)))


BY_TURNS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([*MARKS, "a", "b", "[x]", "\\[", "x <", "\0"])), max_size=24
)


@given(
    turns=BY_TURNS, at=st.lists(st.integers(0, 24), max_size=3), where=st.sampled_from(["start", "lines", "anywhere"])
)
@example(turns=[(1, "a"), (0, "a"), (0, "b"), (1, "c"), (1, "</think>")], at=[2, 4], where="start")
def test_deltas_by_turns_are_shown_as_if_each_came_alone(
    turns: list[tuple[int, str]], at: list[int], where: Where
) -> None:
    """Texts, a thought and a call in any order: many at once, or one by one."""
    blocks: list[Block] = [Text(""), Text(""), ToolCall("c", "f", ""), ThinkingBlock("")]
    deltas: list[Delta] = [
        ToolCallDelta(index, arguments=said)
        if index == 2
        else (ReasoningDelta if index == 3 else TextDelta)(said, index)
        for index, said in turns
    ]

    cut = [deltas[start:end] for start, end in itertools.pairwise([0, *sorted(at), len(deltas)])]
    alone = shown_in([[delta] for delta in deltas], blocks, where)
    assert alone == shown_in(cut, blocks, where)
    assert alone[1] == ["".join(said for index, said in turns if index == at) for at in range(2)]


def shown_in(batches: list[list[Delta]], blocks: list[Block], where: Where) -> tuple[list[Delta], list[str]]:
    """What is shown of deltas that come in ``batches``, and what the first two blocks, of text, then say."""
    tagging = Tagging(where, texts_begun(blocks))
    shown = [tagging.show(list(batch)) for batch in batches]
    tagging.show([TextDelta("", index) for index in range(2)])
    tagging.end()
    said = ["".join(content_slice(part.block()) for part in tagging.slices(index)) for index in range(2)]
    return list(itertools.chain.from_iterable(shown)), said


def test_what_was_held_back_of_a_text_is_shown_before_what_is_no_text() -> None:
    """Alone and in one go."""
    call = ToolCallDelta(1, arguments="{}")
    deltas: list[Delta] = [call, TextDelta("a <", 0), call]
    expected = [call, TextDelta("a ", 0), TextDelta("<", 0), call]
    blocks: list[Block] = [Text(""), ToolCall("c", "f", "")]

    for batches in ([deltas], [deltas[:2], deltas[2:]]):
        tagging = Tagging("start", texts_begun(blocks))
        assert expected == [delta for batch in batches for delta in tagging.show(list(batch))]


class _Begun:
    def __init__(self, text: Block) -> None:
        self._text = text

    def block(self) -> Block:
        return self._text


def texts_begun(blocks: Sequence[Block]) -> list[_Begun]:
    """Parts as a reader begins them."""
    return list(map(_Begun, blocks))


@pytest.mark.parametrize("name", ["openai-chat", "ollama"])
def test_white_space_behind_a_thought_stands_before_the_call_that_follows(name: str) -> None:
    """It is not held back for a tag to come; a thought behind the call is another."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {} if name == "ollama" else "{}"}}
    deltas: list[dict[str, object]] = [
        {"content": "<think>a</think>"},
        {"content": "\n"},
        {"tool_calls": [call]},
        {"content": "<think>b</think>"},
    ]
    if name == "ollama":
        lines: list[dict[str, object]] = [{"model": "m", "message": {**delta, "role": "assistant"}} for delta in deltas]
        body = b"".join(
            json.dumps(line).encode() + b"\n" for line in [*lines, {"model": "m", "message": {}, "done": True}]
        )
    else:
        body = _sse(*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas), "[DONE]")
    blocks = read(name, [body])[1].blocks

    assert ["ThinkingBlock", "Text", "ToolCall", "ThinkingBlock"] == [type(block).__name__ for block in blocks]
    assert ["<think>a</think>", "\n"] == [
        content_slice(one) for one in blocks[:2] if isinstance(one, Text | ThinkingBlock)
    ]
