"""The writer: messages and bodies as bytes, and histories read and written again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.mistral.feeding import ORIGIN, answer, body, call, read, rewritten, said, think
from thinkback.errors import UnsupportedContent, WireError
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool
from thinkback.model.plan import NOTHING
from thinkback.wire.mistral import write
from thinkback.wire.mistral.read_request import read_messages, read_request, read_tool
from thinkback.wire.mistral.write import call_id, call_ids

THOUGHT = ThinkingBlock("t", source_field="thinking")
CALL = ToolCall("abcDEF123", "f", '{"a":1.0}')
PLAIN = r'{"id":"abcDEF123","function":{"name":"f","arguments":"{\"a\":1.0}"}}'
CLOSED = '{"type":"thinking","thinking":[{"type":"reference","reference_ids":[1]}],"closed":true,"signature":"s/+="}'
OPEN = '{"type":"thinking","thinking":[{"type":"reference","reference_ids":[1]}],"signature":"s/+="}'

# name, content on the wire, blocks, what follows the role; nothing: no message
ASSISTANT: list[tuple[str, str, list[Block], str]] = [
    ("plain text", "text", [Text("a"), Text("b")], '"content":"ab"'),
    ("nothing", "text", [], ""),
    ("no text", "text", [Text("")], ""),
    ("thinking alone", "text", [THOUGHT], ""),
    ("thinking and no text", "text", [THOUGHT, Text("")], ""),
    (
        "thinking and text",
        "text",
        [THOUGHT, Text("a")],
        '"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"a"}]',
    ),
    (
        "signed thinking between texts",
        "text",
        [Text("a"), ThinkingBlock("t", source_field="thinking", signature="s/+="), Text("b")],
        '"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"type":"text","text":"t"}],'
        '"signature":"s/+="},{"type":"text","text":"b"}]',
    ),
    (
        "thinking verbatim, without what is only given",
        "text",
        [ThinkingBlock("", source_field="thinking", signature="s/+=", wire=CLOSED), Text("a")],
        '"content":[' + OPEN + ',{"type":"text","text":"a"}]',
    ),
    (
        "other chunks",
        "text",
        [Unknown('{"x":1}'), Text("n", wire='{"type":"text","text":"n","y":1}')],
        '"content":[{"x":1},{"type":"text","text":"n","y":1}]',
    ),
    (
        "an image of another dialect",
        "text",
        [Media("image/png", url="https://e.org/i")],
        '"content":[{"image_url":"https://e.org/i","type":"image_url"}]',
    ),
    (
        "thinking and a call",
        "text",
        [THOUGHT, CALL],
        '"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]}],"tool_calls":[' + PLAIN + "]",
    ),
    ("a call, content absent", "absent", [CALL], f'"tool_calls":[{PLAIN}]'),
    ("a call, content null", "null", [CALL], f'"content":null,"tool_calls":[{PLAIN}]'),
    ("a call, content empty", "text", [CALL], f'"content":"","tool_calls":[{PLAIN}]'),
    ("a call verbatim", "absent", [ToolCall("abcDEF123", "f", "{}", wire='{"x":1}')], '"tool_calls":[{"x":1}]'),
]


@pytest.mark.parametrize(("name", "stood", "blocks", "expected"), ASSISTANT, ids=[case[0] for case in ASSISTANT])
def test_an_assistant_message_is_its_chunks_in_order(name: str, stood: Any, blocks: list[Block], expected: str) -> None:
    """A string where only text is left, no message where only thinking is; opaque values are spliced."""
    fragments = write.assistant(Response(ORIGIN, content=stood), blocks, NOTHING)

    assert ([f'{{"role":"assistant",{expected}}}'] if expected else []) == [part.decode() for part in fragments]


def test_a_prefix_of_its_own_dialect_goes_back() -> None:
    """Other fields of the message, and those of other dialects, are refused by the provider and stay away."""
    own = Response(ORIGIN, message='{"prefix":true,"odd":1}')
    other = Response(ORIGIN.__class__("openai-chat", "", ""), message='{"prefix":true}')

    assert b'{"role":"assistant","content":"a","prefix":true}' == write.assistant(own, [Text("a")], NOTHING)[0]
    assert b'{"role":"assistant","content":"a"}' == write.assistant(other, [Text("a")], NOTHING)[0]


def test_ids_that_do_not_fit_are_mapped_alike_for_calls_and_results() -> None:
    """Nine letters and digits, the same for the same id; calls that share an id are told apart."""
    ids = ["abcDEF123", "call_1", "", "", "call_1"]
    calls = json.loads(write.assistant(Response(ORIGIN), [ToolCall(id, "f", "{}") for id in ids], NOTHING)[0])
    results = [json.loads(fragment) for fragment in write.results([ToolResult(id, "r") for id in ids])]
    written = [call["id"] for call in calls["tool_calls"]]

    assert written == [result["tool_call_id"] for result in results] == call_ids(ids)
    assert "abcDEF123" == written[0]
    assert 5 == len(set(written))
    assert all(len(id) == 9 and id.isalnum() and id.isascii() for id in written)


@given(st.text())
def test_a_mapped_id_fits_and_stays(id: str) -> None:
    """Mapping is deterministic, and a fitting id is its own image."""
    mapped = call_id(id)

    assert mapped == call_id(id) == call_id(mapped)


def test_a_verbatim_call_or_result_whose_id_does_not_fit_is_written_from_what_is_known() -> None:
    """Both must have the id that fits."""
    [message] = write.assistant(Response(ORIGIN), [ToolCall("call_1", "f", "{}", wire='{"id":"call_1"}')], NOTHING)
    [result] = write.results([ToolResult("call_1", "r", wire='{"tool_call_id":"call_1"}')])

    assert call_id("call_1") == json.loads(message)["tool_calls"][0]["id"] == json.loads(result)["tool_call_id"]


OTHERS: list[tuple[bytes, str]] = [
    (write.top(Message("s")), '{"role":"system","content":"s"}'),
    (write.message("system", Message("s")), '{"role":"system","content":"s"}'),
    (write.message("user", Message("x", wire='{"b":1,"a":2}')), '{"b":1,"a":2}'),
    (
        write.message(
            "user", Message("a", (Text("a"), Text("b", wire='{"t":1}'), Media("image/*", wire='{"m":1}'), Unknown("5")))
        ),
        '{"role":"user","content":[{"type":"text","text":"a"},{"t":1},{"m":1},5]}',
    ),
    (
        b"|".join(write.results([ToolResult("abcDEF123", "r", "f"), ToolResult("abcDEF124", "r", wire='{"x":1}')])),
        '{"role":"tool","tool_call_id":"abcDEF123","name":"f","content":"r"}|{"x":1}',
    ),
    (write.results([ToolResult("abcDEF123", "r")])[0], '{"role":"tool","tool_call_id":"abcDEF123","content":"r"}'),
    (write.end("m", (), (), {}), '],"model":"m"}'),
    (
        write.end(
            "m",
            (
                Tool("f", "d", '{"type": "object"}'),
                Tool("g", wire='{"g":1}'),
                Tool("h", "d"),
            ),
            (),
            {"b": {"y": 1, "x": 2}},
        ),
        '],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type": "object"}}},'
        '{"g":1},{"type":"function","function":{"name":"h","description":"d","parameters":{}}}],'
        '"model":"m","b":{"x":2,"y":1}}',
    ),
]


@pytest.mark.parametrize(("written", "expected"), OTHERS)
def test_other_messages_and_the_end_of_a_body(written: bytes, expected: str) -> None:
    """Source text goes out as it came; other tools are written from what is known."""
    assert expected == written.decode()


@pytest.mark.parametrize(
    ("before", "role", "messages", "between"),
    [
        ("", "user", 1, ""),
        ("user", "assistant", 1, ","),
        ("assistant", "tool", 1, ","),
        ("tool", "tool", 1, ","),
        ("tool", "assistant", 1, ","),
        ("user", "user", 1, ","),
        ("tool", "user", 2, ',{"role":"assistant","content":"(No answer was given.)"},'),
        ("tool", "system", 2, ',{"role":"assistant","content":"(No answer was given.)"},'),
    ],
)
def test_a_user_message_behind_tool_results_gets_an_answer_in_between(
    before: str, role: str, messages: int, between: str
) -> None:
    """Mistral refuses the role 'user' after the role 'tool'."""
    assert (between.encode(), messages) == write.turn_over(before, role)
    assert write.alternates
    assert not write.separator


MEDIA: list[tuple[Media, dict[str, Any]]] = [
    (Media("image/png", data="QQ=="), {"type": "image_url", "image_url": "data:image/png;base64,QQ=="}),
    (Media("audio/wav", data="QQ=="), {"type": "input_audio", "input_audio": "QQ=="}),
    (Media("audio/*", url="https://e.org/a"), {"type": "input_audio", "input_audio": "https://e.org/a"}),
    (
        Media("application/pdf", url="https://e.org/d", name="d.pdf"),
        {"type": "document_url", "document_url": "https://e.org/d", "document_name": "d.pdf"},
    ),
    (Media("text/plain", data="QQ=="), {"type": "document_url", "document_url": "data:text/plain;base64,QQ=="}),
]


@pytest.mark.parametrize(("media", "chunk"), MEDIA)
def test_media_have_chunks_of_their_own(media: Media, chunk: dict[str, Any]) -> None:
    """Images, sounds and documents, by data or address."""
    assert {"role": "user", "content": [chunk]} == json.loads(write.message("user", Message("", (media,))))


@pytest.mark.parametrize("media", [Media("video/mp4", url="https://e.org/v"), Media("image/png")])
def test_media_without_a_place_are_refused(media: Media) -> None:
    """The error names the kind and the way out."""
    with pytest.raises(UnsupportedContent) as refused:
        write.message("user", Message("", (media,)))

    assert {"media_type": media.media_type, "dialect": "mistral"} == refused.value.details


CHUNKS: list[tuple[dict[str, Any], Media]] = [
    ({"type": "image_url", "image_url": "data:image/png;base64,QQ=="}, Media("image/png", data="QQ==")),
    ({"type": "image_url", "image_url": {"url": "https://e.org/i"}}, Media("image/*", url="https://e.org/i")),
    ({"type": "image_url", "image_url": 5}, Media("image/*")),
    ({"type": "image_url", "image_url": "data:image/png,x"}, Media("image/*", url="data:image/png,x")),
    ({"type": "input_audio", "input_audio": "QQ=="}, Media("audio/*", data="QQ==")),
    ({"type": "input_audio", "input_audio": "https://e.org/a"}, Media("audio/*", url="https://e.org/a")),
    (
        {"type": "document_url", "document_url": "https://e.org/d", "document_name": "d"},
        Media("application/*", url="https://e.org/d", name="d"),
    ),
    ({"type": "file", "file_id": "x"}, Media("application/*")),
]


@pytest.mark.parametrize(("chunk", "expected"), CHUNKS)
def test_chunks_of_a_user_message_are_understood_and_kept(chunk: dict[str, Any], expected: Media) -> None:
    """Kind, data, address and name; the message itself goes out verbatim."""
    message = {"role": "user", "content": [said("a"), chunk, {"type": "new"}]}
    [draft] = read_messages([message], lambda: "r1")
    assert isinstance(draft.value, Message)
    text, media, unknown = draft.value.parts
    assert isinstance(media, Media)

    assert (Text("a", wire='{"type":"text","text":"a"}'), Unknown('{"type":"new"}')) == (text, unknown)
    assert expected == Media(media.media_type, media.data, media.url, media.name)
    assert (chunk, "a", "mistral") == (json.loads(media.wire), draft.value.text, draft.value.dialect)
    assert message == json.loads(write.message("user", draft.value))


FUNCTION = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
TYPED = {"type": "function", "index": 0, **call("{}")}
HISTORY: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "user", "content": [said("u"), {"type": "image_url", "image_url": "https://e.org/i"}], "odd": 1},
        {"role": "assistant", "content": [think("t", signature="s/+="), said("a")], "tool_calls": [call('{"b": 1.0}')]},
        {"role": "tool", "tool_call_id": "abcDEF123", "name": "f", "content": "r"},
        {"role": "assistant", "content": "", "tool_calls": [TYPED], "prefix": False},
        {"role": "tool", "tool_call_id": "abcDEF123", "content": "r"},
        {"role": "assistant", "tool_calls": [call("{}", 1, "xyzXYZ789")]},
        {"role": "tool", "tool_call_id": "xyzXYZ789", "name": "f", "content": [said("r")]},
        {"role": "assistant", "content": [said("a"), said("b")]},
        {"role": "user", "content": "u", "name": "n"},
        {"role": "assistant", "content": "a", "prefix": True},
    ],
    "tools": [FUNCTION, {"type": "web_search"}],
    "model": "m",
    "reasoning_effort": "high",
    "response_format": {"type": "text"},
}


def test_a_request_that_is_read_and_written_is_the_same() -> None:
    """Messages, tools and parameters, and every opaque value to the byte."""
    assert HISTORY == rewritten(HISTORY)


def test_a_request_is_read_into_drafts() -> None:
    """Tools first; each message gives its commits in order; a result without a name gets that of its call."""
    request = read_request(HISTORY, iter(["r1", "r2", "r3", "r4", "r5"]).__next__)
    results = [draft.value for draft in request.drafts if isinstance(draft.value, ToolResult)]

    assert ["tools", "system", "user", "user", "response", "reasoning", "assistant", "tool_call", "tool_result"] == [
        draft.kind for draft in request.drafts
    ][:9]
    assert ("m", {"reasoning_effort": "high", "response_format": {"type": "text"}}) == (request.model, request.params)
    assert [("f", ""), ("f", "mistral"), ("f", "mistral")] == [(result.name, result.dialect) for result in results]


def test_a_result_without_an_id_answers_the_first_open_call() -> None:
    """Also one of what came before."""
    after = read_messages(
        [
            {
                "role": "assistant",
                "tool_calls": [call("{}"), call("{}", None, "xyzXYZ789", "g"), call("{}", None, "c", "h")],
            },
            {"role": "tool", "tool_call_id": "abcDEF123", "content": "r"},
        ],
        lambda: "r1",
    )
    found = read_messages([{"role": "tool", "content": "r"}] * 3, lambda: "r2", after=after)

    assert [("xyzXYZ789", "g"), ("c", "h"), ("", "")] == [
        (draft.value.id, draft.value.name) for draft in results(found)
    ]


def results(drafts: list[Draft]) -> list[Any]:
    """The drafts of results."""
    return [draft for draft in drafts if isinstance(draft.value, ToolResult)]


@pytest.mark.parametrize("message", [{"role": "developer"}, {}, "text", None])
def test_a_message_that_is_none_is_refused_by_its_place(message: object) -> None:
    """The error names the message and the roles there are."""
    with pytest.raises(WireError, match=r"messages\[1\]") as refused:
        read_messages([{"role": "user", "content": None}, message], lambda: "r1")

    assert {"message": 1} == refused.value.details


@pytest.mark.parametrize("messages", [None, "text"])
def test_a_request_without_messages_is_refused(messages: object) -> None:
    """There is nothing to read."""
    with pytest.raises(WireError, match="no list of messages"):
        read_request({"messages": messages, "tools": []}, lambda: "r1")


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (FUNCTION, ("f", "d", '{"type":"object"}')),
        ({"function": {}}, ("", "", "{}")),
        ({"type": "web_search"}, ("web_search", "", "{}")),
        ("odd", ("", "", "{}")),
    ],
)
def test_a_tool_keeps_what_its_program_wrote(wire: Any, expected: tuple[str, str, str]) -> None:
    """Name, description and parameters where it is a function, else its type for a name."""
    assert Tool(*expected, wire=json.dumps(wire, separators=(",", ":")), dialect="mistral") == read_tool(wire)


CHUNK = (
    st.builds(said, st.text(min_size=1))
    | st.builds(think, st.text(), signature=st.text(min_size=1))
    | st.builds(think, st.text(), st.text())
    | st.just({"type": "reference", "reference_ids": [1]})
)


@given(st.lists(CHUNK, max_size=5))
def test_content_that_is_read_goes_back_as_it_was(content: list[dict[str, Any]]) -> None:
    """Streamed by nobody: a body's chunks, in order, signatures to the byte."""
    written = answer(read(body({"content": [*content, said("end")]})))

    assert [*content, said("end")] == written["content"]
