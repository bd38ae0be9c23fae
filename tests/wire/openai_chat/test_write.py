"""The request writer: messages and bodies as bytes, and histories read and written again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.feeding import ORIGIN, body, content, read, reasoning, stream
from tests.wire.openai_chat.test_reader_laws import MARKS
from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool
from thinkback.model.plan import NOTHING, Carry
from thinkback.wire.openai_chat import write
from thinkback.wire.openai_chat.read_request import read_messages

TAGGED = ThinkingBlock("a", source_field="content", opening="<think>", closing="</think>")
CALL = ToolCall("c1", "f", '{"a": 1.0}')
PLAIN = '{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"a\\": 1.0}"}}'
NOTED = '{"type":"text","text":"n","note":1}'

LISTED = ThinkingBlock("t", source_field="content", kind="summary", signature="s", wire='{"type":"reasoning","x":1}')
IN_PLACE = '"content":[{"type":"reasoning","x":1},{"type":"text","text":"b"}]'

# name, content on the wire, blocks, carry, what follows the role
ASSISTANT: list[tuple[str, str, list[Block], Carry, str]] = [
    ("text", "text", [Text("a"), Text("b")], NOTHING, '"content":"ab"'),
    ("nothing at all", "absent", [], NOTHING, '"content":""'),
    ("null and nothing else", "null", [], NOTHING, '"content":""'),
    ("calls, content absent", "absent", [CALL], NOTHING, f'"tool_calls":[{PLAIN}]'),
    ("calls, content null", "null", [CALL], NOTHING, f'"content":null,"tool_calls":[{PLAIN}]'),
    ("calls, content empty", "text", [CALL], NOTHING, f'"content":"","tool_calls":[{PLAIN}]'),
    (
        "a call verbatim",
        "absent",
        [ToolCall("c", "f", "{}", wire='{"id":"c","x":1}')],
        NOTHING,
        '"tool_calls":[{"id":"c","x":1}]',
    ),
    ("a refusal", "null", [Text("no", source_field="refusal")], NOTHING, '"content":null,"refusal":"no"'),
    (
        "a refusal after text",
        "text",
        [Text("a"), Text("no", source_field="refusal")],
        NOTHING,
        '"content":"a","refusal":"no"',
    ),
    (
        "a field",
        "text",
        [ThinkingBlock("t", source_field="x"), Text("a")],
        Carry(fields=("x", "y"), text="t"),
        '"content":"a","x":"t","y":"t"',
    ),
    (
        "details",
        "text",
        [Text("a")],
        Carry(details=('{"b":1,"a":2}', "{}")),
        '"content":"a","reasoning_details":[{"b":1,"a":2},{}]',
    ),
    ("no details", "text", [Text("a")], Carry(details=()), '"content":"a","reasoning_details":[]'),
    (
        "tags back where they stood",
        "text",
        [TAGGED, Text("\n\nb"), TAGGED],
        Carry(tagged=True, text="aa"),
        '"content":"<think>a</think>\\n\\nb<think>a</think>"',
    ),
    ("tags gone", "text", [TAGGED, Text("\n\nb "), TAGGED], NOTHING, '"content":"b "'),
    (
        "tags made",
        "text",
        [ThinkingBlock("t", source_field="x"), Text("b")],
        Carry(tagged=True, text="t"),
        '"content":"<think>\\nt\\n</think>\\n\\nb"',
    ),
    (
        "a marker never goes back",
        "text",
        [ThinkingBlock("Thinking...", source_field="content", opening="<think>", marker=True), Text("b")],
        Carry(tagged=True, text="x"),
        '"content":"b"',
    ),
    (
        "a stand-in for the signature of the first call",
        "absent",
        [CALL, CALL],
        Carry(dummy="skip"),
        f'"tool_calls":[{PLAIN[:-1]},"extra_content":{{"google":{{"thought_signature":"skip"}}}}}},{PLAIN}]',
    ),
    (
        "the signature of a call that is not verbatim",
        "absent",
        [ToolCall("c1", "f", '{"a": 1.0}', carriers=(Carrier("thought_signature", "s/+="), Carrier("phase", "p")))],
        NOTHING,
        f'"tool_calls":[{PLAIN[:-1]},"extra_content":{{"google":{{"thought_signature":"s/+="}}}}}}]',
    ),
    (
        "the signature of the message",
        "text",
        [Text("a"), Text("b", carriers=(Carrier("thought_signature", "s/+="), Carrier("phase", "p")))],
        NOTHING,
        '"content":"ab","extra_content":{"google":{"thought_signature":"s/+="}}',
    ),
    (
        "a signature and nothing else",
        "null",
        [Text("", carriers=(Carrier("thought_signature", "s"),))],
        NOTHING,
        '"content":"","extra_content":{"google":{"thought_signature":"s"}}',
    ),
    ("reasoning as a part, in its place", "text", [LISTED, Text("b")], Carry(tagged=True, text="t"), IN_PLACE),
    ("reasoning as a part, left out", "text", [LISTED, Text(" b")], NOTHING, '"content":" b"'),
    (
        "other parts",
        "text",
        [Text("a"), Text("b"), Unknown('{"x":1}'), Text("n", wire=NOTED), Text("c")],
        NOTHING,
        '"content":[{"type":"text","text":"ab"},{"x":1},' + NOTED + ',{"type":"text","text":"c"}]',
    ),
    ("only other parts", "text", [Unknown('{"x":1}')], NOTHING, '"content":[{"x":1}]'),
    (
        "a lone surrogate",
        "text",
        [Text("\ud83d")],
        Carry(fields=("x",), text="\ude00"),
        '"content":"\\ud83d","x":"\\ude00"',
    ),
]


@pytest.mark.parametrize(
    ("name", "stood", "blocks", "carry", "expected"), ASSISTANT, ids=[case[0] for case in ASSISTANT]
)
def test_an_assistant_message_is_written_as_its_response_stood(
    name: str, stood: Any, blocks: list[Block], carry: Carry, expected: str
) -> None:
    """Content, the reasoning of the carry and the calls, in that order, opaque values spliced."""
    [fragment] = write.assistant(Response(ORIGIN, content=stood), blocks, carry)

    assert f'{{"role":"assistant",{expected}}}' == fragment.decode()


OTHERS = [
    (write.message("system", Message("s")), '{"role":"system","content":"s"}'),
    (write.message("user", Message("\ud83d")), '{"role":"user","content":"\\ud83d"}'),
    (write.message("user", Message("x", wire='{"b":1,"a":"\ud83d"}')), '{"b":1,"a":"\\ud83d"}'),
    (
        write.message(
            "user", Message("", (Text("a"), Text("n", wire=NOTED), Media("image_url", wire='{"m":1}'), Unknown("5")))
        ),
        f'{{"role":"user","content":[{{"type":"text","text":"a"}},{NOTED},{{"m":1}},5]}}',
    ),
    (write.top(Message("s")), '{"role":"system","content":"s"}'),
    (
        b"|".join(write.results([ToolResult("c", "r"), ToolResult("d", "r", wire='{"x":1}')])),
        '{"role":"tool","tool_call_id":"c","content":"r"}|{"x":1}',
    ),
    (write.end("m", (), (), {}), '],"model":"m"}'),
    (
        write.end("m", (Tool("f", "d", '{"type": "object"}'), Tool("g", wire='{"g":1}')), (), {"b": {"y": 1, "x": 2}}),
        '],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type": "object"}}},'
        '{"g":1}],"model":"m","b":{"x":2,"y":1}}',
    ),
]


@pytest.mark.parametrize(("written", "expected"), OTHERS)
def test_other_messages_and_the_end_of_a_body(written: bytes, expected: str) -> None:
    """Source text goes out as it came; a lone surrogate in it as its escape."""
    assert expected == written.decode()


def test_a_body_begins_with_its_messages() -> None:
    """The parts make one JSON document whose messages come first."""
    messages = write.separator.join([write.message("user", Message("a")), write.message("user", Message("b"))])
    document = json.loads(write.start + messages + write.end("m", (), (), {"n": 1}))

    assert ["messages", "model", "n"] == list(document)
    assert 2 == len(document["messages"])


def test_a_tool_is_written_from_what_is_known() -> None:
    """Also where nothing of it came over a wire; every message stands for itself."""
    ending = write.end("m", [Tool("f", "d", "{}")], (), {})

    assert (
        b'],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{}}}],"model":"m"}'
        == ending
    )
    assert (b"", 1) == write.turn_over("tool", "user")


def carry_of(blocks: tuple[Block, ...]) -> Carry:
    """Everything goes back in the form it came in."""
    found = [block for block in blocks if isinstance(block, ThinkingBlock) and not block.is_hidden and not block.marker]
    fields = {b.source_field: "" for b in found if b.source_field not in ("content", "reasoning_details")}
    details = tuple(block.wire for block in found if block.source_field == "reasoning_details")
    text = "".join(block.thought + block.closing for block in found if block.source_field in fields)
    tagged = any(isinstance(block, ThinkingBlock) and block.source_field == "content" for block in blocks)
    return Carry(tuple(fields), text, details or None, tagged)


TEXTS = st.lists(st.sampled_from([mark for mark in MARKS if mark != "Thinking..."]) | st.text(max_size=5), max_size=5)
TEXT = TEXTS.map("".join).map(canonical.whole)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text(min_size=1, max_size=3),
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": st.text(min_size=1, max_size=3), "arguments": TEXT}),
        },
        optional={"extra_content": st.dictionaries(st.text(max_size=2), st.integers(), min_size=1)},
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda call: str(call["id"]),
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["reasoning.text", "reasoning.encrypted"])},
        optional={"text": TEXT.filter(str.strip), "signature": st.text(max_size=3), "data": st.text(max_size=3)},
    ),
    min_size=1,
    max_size=3,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": TEXT},
    optional={"tool_calls": CALLS, "reasoning_details": ENTRIES, "refusal": st.text(min_size=1, max_size=3)},
) | st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": TEXT, "reasoning_content": st.text(min_size=1, max_size=9)},
    optional={"tool_calls": CALLS},
)


@given(MESSAGES)
def test_a_message_that_is_read_and_written_is_the_same(message: dict[str, Any]) -> None:
    """Reasoning, content, calls and refusal of an assistant message come back as they were, keys aside."""
    result = read(body(message))
    for response, blocks in ((result.response, result.blocks), adopted(message)):
        written = json.loads(write.assistant(response, blocks, carry_of(blocks))[0])
        back = {"content": "", **message} if "content" in written else message

        assert back == written


def adopted(message: dict[str, Any]) -> tuple[Response, tuple[Block, ...]]:
    """The same message as part of a history."""
    drafts = read_messages([message], lambda: "r1")
    header = drafts[0].value
    assert isinstance(header, Response)
    blocks: list[Any] = [draft.value for draft in drafts[1:]]
    return header, tuple(blocks)


def test_streamed_and_whole_responses_are_written_alike() -> None:
    """The same message, streamed or not, goes back as the same bytes."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    message = {"content": "b", "reasoning": "a", "tool_calls": [call]}
    streamed, whole = read(stream({"reasoning": "a"}, {"content": "b"}, {"tool_calls": [call]})), read(body(message))

    assert write.assistant(streamed.response, streamed.blocks, carry_of(streamed.blocks)) == write.assistant(
        whole.response, whole.blocks, carry_of(whole.blocks)
    )


HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "developer", "content": "d"},
    {"role": "user", "content": "u"},
    {"role": "user", "content": "u", "name": "n"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": "x"}},
            {"type": "new"},
            5,
        ],
    },
    {"role": "user", "content": None},
    {"role": "assistant", "content": "a", "reasoning_content": "t", "odd": 1},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "r"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}], "name": "f"},
]


def test_a_history_is_read_into_drafts() -> None:
    """Each message gives its commits in order, and goes out again as it came."""
    drafts = read_messages(HISTORY, iter(["r1", "r2"]).__next__)
    kinds = [
        "system",
        "system",
        "user",
        "user",
        "user",
        "user",
        "response",
        "reasoning",
        "assistant",
        "response",
        "tool_call",
    ]

    assert [*kinds, "tool_result", "tool_result"] == [draft.kind for draft in drafts]
    assert [HISTORY[at] for at in (0, 2, 3, 4, 5, 8, 9)] == [
        json.loads(written(drafts[at])) for at in (0, 2, 3, 4, 5, 11, 12)
    ]
    assert {"role": "developer", "content": "d"} == json.loads(written(drafts[1]))
    assert '{"odd":1}' == drafts[6].value.message  # type: ignore[union-attr]
    assert ("r1", 1, "r2", 0) == (drafts[8].response, drafts[8].index, drafts[10].response, drafts[10].index)


def written(draft: Draft) -> bytes:
    """A message or a result as bytes."""
    if isinstance(draft.value, ToolResult):
        return write.results([draft.value])[0]
    assert isinstance(draft.value, Message)
    return write.message("system" if draft.kind == "system" else "user", draft.value)


def test_a_result_without_an_id_answers_the_first_open_call() -> None:
    """Some histories leave the id of a result out."""
    calls = [{"id": id, "function": {"name": "f", "arguments": "{}"}} for id in ("c1", "c2")]
    before = read_messages([{"role": "assistant", "tool_calls": calls}], lambda: "r1")
    first = read_messages(
        [{"role": "tool", "content": "a"}, {"role": "tool", "content": "b"}], lambda: "r2", after=before
    )

    assert ["c1", "c2"] == [draft.value.id for draft in first]  # type: ignore[union-attr]
    assert [""] == [draft.value.id for draft in read_messages([{"role": "tool"}], lambda: "r3")]  # type: ignore[union-attr]


@pytest.mark.parametrize("message", [{"role": "robot"}, {}, "text", None])
def test_a_message_that_is_none_is_refused_by_its_place(message: object) -> None:
    """The error names the message and the roles there are."""
    with pytest.raises(WireError, match=r"messages\[1\]") as refused:
        read_messages([{"role": "user", "content": "u"}, message], lambda: "r1")

    assert {"message": 1} == refused.value.details


def test_what_was_tagged_is_content_again() -> None:
    """On endpoints that want tags the slices go back where they were, byte for byte."""
    text = "<think>\na\n</think>\n\nb<think>c"
    result = read(body({"content": text}))

    assert text == json.loads(write.assistant(result.response, result.blocks, carry_of(result.blocks))[0])["content"]
    assert text == content(result.blocks)
    assert "\na\nc" == reasoning(result.blocks)
