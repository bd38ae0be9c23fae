"""Steps of an interaction, streamed and whole, as blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.gemini_interactions.feeding import ORIGIN, body, completed, delta, feed, read, sse, start, stop, stream
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.wire.gemini_interactions.read import Reader, raw_response

SIGNED = (Carrier("signature", "c2ln"),)
CALL = {"type": "function_call", "id": "f1", "name": "look", "arguments": {"a": 1}}
STEPS: list[tuple[dict[str, Any], tuple[Block, ...]]] = [
    (
        {"type": "thought", "signature": "c2ln"},
        (ThinkingBlock("", source_field="thought", signature="c2ln", kind="none"),),
    ),
    (
        {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "why"}]},
        (ThinkingBlock("why", source_field="thought", signature="c2ln", kind="summary"),),
    ),
    (
        {"type": "thought", "signature": "", "summary": []},
        (
            ThinkingBlock(
                "", source_field="thought", kind="none", wire='{"type":"thought","signature":"","summary":[]}'
            ),
        ),
    ),
    ({"type": "model_output", "content": [{"type": "text", "text": "hi"}]}, (Text("hi"),)),
    (
        {"type": "model_output", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        (Text("a"), Text("b")),
    ),
    (
        {"type": "model_output", "content": [{"type": "text", "text": "hi", "annotations": [1]}]},
        (Text("hi", wire='{"type":"text","annotations":[1],"text":"hi"}'),),
    ),
    (
        {"type": "model_output", "content": [{"type": "image", "data": "aGk=", "mime_type": "image/png"}]},
        (Media("image/png", data="aGk="),),
    ),
    (
        {"type": "model_output", "content": [{"type": "image", "uri": "https://example.org/i"}]},
        (Media("image/*", url="https://example.org/i"),),
    ),
    (
        {"type": "model_output", "content": [{"type": "image", "data": "aGk="}]},
        (Unknown('{"type":"model_output","content":[{"type":"image","data":"aGk="}]}'),),
    ),
    (
        {"type": "model_output", "content": [{"type": "novel"}]},
        (Unknown('{"type":"model_output","content":[{"type":"novel"}]}'),),
    ),
    (
        {"type": "model_output", "id": "o", "signature": "c2ln", "content": [{"type": "text", "text": "hi"}]},
        (
            Text(
                "hi",
                carriers=SIGNED,
                wire='{"type":"model_output","id":"o","signature":"c2ln","content":[{"type":"text","text":"hi"}]}',
            ),
        ),
    ),
    (CALL, (ToolCall("f1", "look", '{"a": 1}'),)),
    ({**CALL, "signature": "c2ln"}, (ToolCall("f1", "look", '{"a": 1}', carriers=SIGNED),)),
    (
        {**CALL, "signature": ""},
        (
            ToolCall(
                "f1",
                "look",
                '{"a": 1}',
                wire='{"type":"function_call","id":"f1","name":"look","arguments":{"a":1},"signature":""}',
            ),
        ),
    ),
    ({**CALL, "arguments": {}}, (ToolCall("f1", "look", "{}"),)),
    (
        {"type": "function_call", "name": "look"},
        (ToolCall("", "look", "{}", wire='{"type":"function_call","name":"look"}'),),
    ),
    (
        {"type": "google_search_call", "id": "s", "signature": "c2ln"},
        (Unknown('{"type":"google_search_call","id":"s","signature":"c2ln"}', carriers=SIGNED),),
    ),
    ({"type": "novel", "signature": ""}, (Unknown('{"type":"novel","signature":""}'),)),
    ({}, (Unknown("{}"),)),
]


@pytest.mark.parametrize(("step", "blocks"), STEPS)
def test_a_step_is_its_blocks_and_comes_back_as_it_was(step: dict[str, Any], blocks: tuple[Block, ...]) -> None:
    """Each step becomes the same blocks streamed and whole, and the raw response has it as it was."""
    whole = read(body(step))
    streamed = read(stream(start(0, **step), stop(0)))

    assert blocks == whole.blocks
    assert [json.loads(call.arguments) for call in blocks if isinstance(call, ToolCall)] == [
        json.loads(call.arguments) for call in streamed.blocks if isinstance(call, ToolCall)
    ]
    assert [type(block) for block in blocks] == [type(block) for block in streamed.blocks]
    assert json.loads(body(step)) == raw_response(whole)
    assert [step] == raw_response(streamed)["steps"]


PLAIN = {"type": "text", "text": "why"}


@pytest.mark.parametrize(
    ("deltas", "summary"),
    [
        ([delta(0, "thought_summary", content=PLAIN)], [PLAIN]),
        ([start(0, type="thought"), *[delta(0, "thought_summary", content=PLAIN)] * 3], [PLAIN] * 3),
        (
            [
                start(0, type="thought", summary=[PLAIN]),
                delta(0, "thought_summary", content=PLAIN),
                delta(0, "thought_summary", content={**PLAIN, "annotations": [1]}),
                delta(0, "thought_summary", content={"type": "text", "text": ""}),
                delta(0, "thought_summary", content=PLAIN),
            ],
            [PLAIN, PLAIN, {**PLAIN, "annotations": [1]}, {"type": "text", "text": ""}, PLAIN],
        ),
    ],
    ids=["without a beginning", "several", "among others"],
)
def test_a_summary_is_what_was_added_in_order(deltas: list[Any], summary: list[Any]) -> None:
    """Plain texts and others, with the beginning of their step or without; asking twice changes nothing."""
    raw = stream(*deltas)
    read(raw)
    reader = Reader(ORIGIN)
    reader.feed(raw)
    reader.close()

    assert [{"type": "thought", "summary": summary}] == raw_response(reader.result())["steps"]
    assert reader.result() == reader.result()


def test_a_plain_text_beside_something_else_is_no_summary() -> None:
    """What stands in the place of a summary in a delta of another type is kept with its step."""
    (block,) = read(stream(delta(0, "novel", content=PLAIN))).blocks

    assert Unknown('{"type":"novel","content":{"type":"text","text":"why"}}') == block


def test_steps_grow_by_index() -> None:
    """Text, summaries, signatures, arguments and what is not known go to the step of their index, also interleaved."""
    result = read(
        stream(
            start(0, type="thought"),
            delta(0, "thought_summary", content={"type": "text", "text": "one"}),
            delta(0, "thought_summary", content={"type": "text", "text": "two"}),
            delta(0, "thought_summary", content=None),
            delta(0, "thought_signature", signature="c2ln"),
            start(1, type="model_output"),
            delta(1, "text", text="a"),
            start(2, type="function_call", id="f1", name="f", arguments={}),
            delta(2, "arguments_delta", arguments='{"x":'),
            delta(1, "text", text="b"),
            delta(1, "text", text=""),
            delta(2, "arguments_delta", arguments=" 1.0}"),
            delta(2, "arguments_delta", arguments=""),
            stop(2),
            delta(1, "text_annotation_delta", annotations=[1]),
            stop(1),
            start(3, type="google_search_call", id="s", signature=""),
            delta(3, "google_search_call", arguments={"queries": ["q"]}, signature="c2ln"),
        )
    )
    thought, text, call, search = result.blocks

    assert isinstance(thought, ThinkingBlock)
    assert ("one\n\ntwo", "c2ln", "summary") == (thought.thought, thought.signature, thought.kind)
    assert Text("ab", wire='{"type":"text","annotations":[1],"text":"ab"}') == text
    assert ToolCall("f1", "f", '{"x": 1.0}') == call
    wire = '{"type":"google_search_call","id":"s","signature":"c2ln","arguments":{"queries":["q"]}}'
    assert Unknown(wire, carriers=SIGNED) == search


def test_an_output_has_a_block_for_each_content() -> None:
    """A text after an image begins anew, one with more to say stands alone; annotations without a text are kept."""
    image = {"data": "aGk=", "mime_type": "image/png"}
    contents = [
        {"type": "text", "text": "c"},
        {"type": "text", "text": "d", "x": 1},
        {"type": "image", **image},
        {"type": "text", "text": "e"},
    ]
    result = read(
        stream(
            start(0, type="model_output", content=1),
            delta(0, "text_annotation_delta", annotations=[]),
            delta(0, "image", **image),
            delta(0, "text", text="a"),
            delta(0, "text", text="b", x=1),
            delta(0, "text", text=2),
            start(0, type="model_output", id="o"),
            delta(0, "text", text="c"),
            delta(0, "text", text="d", x=1),
            delta(0, "image", **image),
            delta(0, "text", text="e"),
        )
    )

    assert (
        Unknown('{"type":"model_output","content":[{"type":"text_annotation_delta","annotations":[]}]}'),
        Media("image/png", data="aGk="),
        Text("a"),
        Text("b", wire='{"type":"text","x":1,"text":"b"}'),
        Unknown('{"type":"model_output","content":[{"type":"text","text":2}]}'),
        Text("cde", wire=json.dumps({"type": "model_output", "id": "o", "content": contents}, separators=(",", ":"))),
    ) == result.blocks


def test_a_step_that_was_never_begun_begins_with_its_first_delta() -> None:
    """What a delta is of says what step it is; a delta of another kind than its step is kept in it."""
    result = read(
        stream(
            delta(0, "text", text="a"),
            delta(1, "thought_signature", signature="c2ln"),
            delta(1, "text", text="odd"),
            delta(1, "arguments_delta", arguments="odd"),
            delta(2, "arguments_delta", arguments="{}"),
            delta(3, "novel", x=1),
            delta(4, "text", arguments="{}"),
        )
    )

    assert isinstance(result.blocks[1], ThinkingBlock)
    assert ["text", "thinking", "tool_call", "novel", "text"] == [
        {Text: "text", ThinkingBlock: "thinking", ToolCall: "tool_call"}.get(type(block), "novel")
        if "novel" in block.wire or not isinstance(block, Unknown)
        else "text"
        for block in result.blocks
    ]
    assert '"text":"odd"' in result.blocks[1].wire


def test_pieces_with_more_than_the_usual_keys_are_read_alike() -> None:
    """Half a surrogate pair, a key that is not listed, arguments that are an object already."""
    result = read(
        stream(
            start(0, type="model_output"),
            delta(0, "text", text="\ud83d"),
            delta(0, "text", text="\ude00"),
            start(1, type="function_call", id="f1", name="f", arguments={}),
            {**delta(1, "arguments_delta", arguments='{"a":'), "novel": 1},
            {**delta(1, "arguments_delta", arguments="1}"), "novel": 1},
            start(2, type="function_call", id="f2", name="f"),
            delta(2, "arguments_delta", arguments={"b": 2}),
        )
    )

    assert (Text("\U0001f600"), ToolCall("f1", "f", '{"a":1}'), ToolCall("f2", "f", '{"b":2}')) == result.blocks


def test_arguments_that_break_off_are_kept_as_text() -> None:
    """They are shown as they came."""
    result = read(sse(start(0, type="function_call", id="f1", name="f"), delta(0, "arguments_delta", arguments='{"x')))

    (call,) = result.blocks
    assert isinstance(call, ToolCall)
    assert '{"x' == call.arguments
    assert not result.response.complete


def test_arguments_of_a_body_are_source_text() -> None:
    """White space, order and digits are those of the body; also in the outputs of older interactions."""
    source = '{"b" : 1.0, "a":12345678901234567890123}'
    step = b'{"type":"function_call","id":"f1","name":"f","arguments":%b}' % source.encode()

    for name in (b"steps", b"outputs"):
        assert (ToolCall("f1", "f", source),) == read(b'{"status":"completed","%b":[%b]}' % (name, step)).blocks
    lone = read(b'{"status":"completed","steps":[{"type":"function_call","arguments":{"a":"\\ud83d"}}]}').blocks[0]
    assert isinstance(lone, ToolCall)
    assert {"a": "\ud83d"} == json.loads(lone.arguments)
    odd = {"type": "function_call", "id": "f1", "name": "f", "arguments": "\ud83d"}
    assert [odd] == raw_response(read(body(odd)))["steps"]


def test_older_interactions_have_contents_as_outputs() -> None:
    """Texts and images beside thoughts and calls, and events named after contents."""
    outputs = [{"type": "thought", "signature": "c2ln"}, {"type": "text", "text": "hi"}, 1]
    whole = read(json.dumps({"id": "i", "status": "completed", "outputs": outputs}).encode())
    streamed = read(
        sse(
            {"event_type": "content.start", "index": 0, "content": {"type": "text"}},
            {"event_type": "content.delta", "index": 0, "delta": {"type": "text", "text": "hi"}},
            {"event_type": "content.stop", "index": 0},
            {"event_type": "interaction.complete", "interaction": {"status": "completed"}},
        )
    )

    assert (ThinkingBlock("", source_field="thought", signature="c2ln", kind="none"), Text("hi")) == whole.blocks
    assert Text("hi").text == "".join(block.text for block in streamed.blocks if isinstance(block, Text))
    assert streamed.response.complete


def test_summaries_of_a_whole_thought_are_parted_by_a_blank_line() -> None:
    """The texts are one thought; the step is kept, because it would not be rebuilt."""
    summary = [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]
    step = {"type": "thought", "summary": summary}
    (thought,) = read(body(step)).blocks

    assert isinstance(thought, ThinkingBlock)
    assert "one\n\ntwo" == thought.thought
    assert step == json.loads(thought.wire)


def test_a_signature_is_in_no_repr() -> None:
    """Opaque values are not shown."""
    deltas, result = feed([sse(start(0, type="novel", signature="c2VjcmV0"), completed())])

    assert [] == deltas
    assert "c2VjcmV0" not in repr(result)
