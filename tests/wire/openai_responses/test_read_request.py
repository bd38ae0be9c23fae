"""Request bodies and histories: what is understood of them, and that they can be written again."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.wire.openai_responses.feeding import call, message, raw_thought, reasoning, rewritten
from thinkback.errors import WireError
from thinkback.model.blocks import Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.wire.openai_responses.read_request import read_messages, read_request

USER = {"role": "user", "content": "u"}
PLAIN_CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "o"}


def drafts(*entries: Any, after: Any = ()) -> list[Draft]:
    """The drafts of some input items."""
    counter = itertools.count()
    return read_messages(list(entries), lambda: f"r{next(counter)}", after=after)


# Items that are written as they were read.
SAME: list[tuple[str, list[Any]]] = [
    ("plain", [{"role": "system", "content": "s"}, USER, {"role": "assistant", "content": "a"}]),
    ("a developer", [{"role": "developer", "content": "d"}]),
    (
        "typed",
        [{"type": "message", "role": "user", "content": "u"}, {"type": "message", "role": "assistant", "content": "a"}],
    ),
    (
        "parts",
        [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "a"},
                    {"type": "input_image", "image_url": "data:image/png;base64,aa", "detail": "low"},
                    {"type": "input_image", "file_id": "file_1"},
                    {"type": "input_file", "filename": "n", "file_data": "data:;base64,aa"},
                    {"type": "input_audio", "input_audio": {"data": "aa", "format": "mp3"}},
                    {"type": "other"},
                ],
            },
            {"role": "user", "content": None},
        ],
    ),
    ("a tool loop", [USER, reasoning(encrypted_content="x"), {**PLAIN_CALL, "id": "fc_1"}, OUTPUT, USER]),
    (
        "raw thought",
        [reasoning(content=raw_thought("t")), {"role": "assistant", "content": "a", "phase": "commentary"}],
    ),
    (
        "a message with its id",
        [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a", "annotations": []}],
            }
        ],
    ),
    ("output parts", [{"role": "assistant", "content": [{"type": "output_text", "text": "a"}]}, USER]),
    ("nothing said", [{"role": "assistant", "content": ""}, {"type": "reasoning", "summary": []}]),
    ("a reference", [USER, {"type": "item_reference", "id": "rs_1"}, {"id": "msg_1"}, USER]),
    ("compaction", [{"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}, USER]),
    ("settings", [USER, {"type": "configuration_update", "reasoning": {"effort": "low"}}, USER]),
    ("tools on the way", [{"type": "additional_tools", "role": "developer", "tools": []}, USER]),
    ("server tools", [USER, {"type": "web_search_call", "id": "ws_1", "status": "completed"}, PLAIN_CALL, OUTPUT]),
    (
        "other results",
        [
            {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "o"},
        ],
    ),
    ("a result with more", [PLAIN_CALL, {**OUTPUT, "status": "completed"}]),
    ("a result in parts", [PLAIN_CALL, {**OUTPUT, "output": [{"type": "input_text", "text": "o"}]}]),
    ("namespaces", [{**PLAIN_CALL, "namespace": "n"}, OUTPUT]),
]


def test_settings_among_the_items_are_parameters() -> None:
    """Each stays until the next of its kind, for whoever asks in another dialect; no message tells it."""
    entries = [
        {"type": "configuration_update", "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}},
        USER,
        {"type": "configuration_update", "reasoning": {"effort": "high"}},
        {"type": "configuration_update", "reasoning": None},
        {"type": "compaction_trigger"},
    ]
    read = read_request({"input": entries, "reasoning": {"effort": "none"}}, lambda: "r")
    expected = {"reasoning": {"effort": "high"}, "text": {"format": {"type": "text"}}, "compaction_trigger": True}
    assert (expected, {"reasoning": {"effort": "none"}}) == (read.amid, read.params)
    assert [("", ())] * 4 == [
        (draft.value.text, draft.value.parts)
        for draft in read.drafts
        if draft.kind == "system" and isinstance(draft.value, Message)
    ]


@pytest.mark.parametrize(("name", "entries"), SAME, ids=[case[0] for case in SAME])
def test_input_is_written_as_it_was_read(name: str, entries: list[Any]) -> None:
    """The same JSON value, with tools and parameters."""
    body = {
        "model": "m",
        "input": entries,
        "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": True}, {"type": "web_search"}],
        "previous_response_id": "resp_1",
        "instructions": None,
    }

    assert body == rewritten(body)


def test_what_only_a_response_has_is_not_written_again() -> None:
    """The status of items, and nulls of reasoning."""
    entries = [reasoning("s", encrypted_content=None, status="completed"), message("a"), call()]

    assert [
        reasoning("s"),
        {key: value for key, value in message("a").items() if key != "status"},
        {key: value for key, value in call().items() if key != "status"},
    ] == rewritten({"input": entries})["input"]


def test_items_that_stand_together_are_one_response() -> None:
    """Reasoning, message and calls are blocks of one response; results know the name of their call."""
    found = drafts(USER, reasoning("s"), {"role": "assistant", "content": "a"}, PLAIN_CALL, OUTPUT, PLAIN_CALL)

    assert [
        ("user", "", -1),
        ("response", "r0", -1),
        ("reasoning", "r0", 0),
        ("assistant", "r0", 1),
        ("tool_call", "r0", 2),
        ("tool_result", "", -1),
        ("response", "r1", -1),
        ("tool_call", "r1", 0),
    ] == [(draft.kind, draft.response, draft.index) for draft in found]
    assert (
        ThinkingBlock("s", source_field="reasoning", kind="summary", carriers=(Carrier("item_id", "rs_1"),))
        == found[2].value
    )
    assert (Text("a"), ToolCall("c1", "f", "{}"), ToolResult("c1", "o", name="f")) == tuple(
        draft.value for draft in found[3:6]
    )
    header = found[1].value
    assert isinstance(header, Response)
    assert (3, "openai-responses") == (header.blocks, header.origin.dialect)


def test_a_result_finds_the_name_of_an_earlier_call() -> None:
    """A history may be read in pieces."""
    before = drafts(PLAIN_CALL)

    assert [ToolResult("c1", "o", name="f")] == [draft.value for draft in drafts(OUTPUT, after=before)]


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "ab"),
        ([{"type": "input_image", "image_url": "u"}], '[{"type":"input_image","image_url":"u"}]'),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_a_result_that_is_no_string_is_told_as_text_and_kept(output: Any, content: str) -> None:
    """Text parts as their text, other things as their source."""
    entry = {**OUTPUT, "output": output}
    (found,) = drafts(entry)

    assert isinstance(found.value, ToolResult)
    assert (content, entry, "openai-responses") == (
        found.value.content,
        json.loads(found.value.wire),
        found.value.dialect,
    )


def test_the_parts_of_a_message_are_understood() -> None:
    """Text, images, files and sounds; what is not understood is kept."""
    (found,) = drafts(SAME[3][1][0])

    assert isinstance(found.value, Message)
    wires = [json.dumps(part, separators=(",", ":")) for part in SAME[3][1][0]["content"]]
    assert (
        Text("a", wire=wires[0]),
        Media("image/png", data="aa", wire=wires[1]),
        Media("image/*", wire=wires[2]),
        Media("application/*", data="aa", name="n", wire=wires[3]),
        Media("audio/mp3", data="aa", wire=wires[4]),
        Unknown(wires[5]),
    ) == found.value.parts
    assert "a" == found.value.text


def test_a_request_is_read_whole() -> None:
    """Tools first, then instructions as a system message, then the input; the rest are parameters."""
    tools = [
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}},
        {"type": "function", "function": {"name": "g", "parameters": {"a": 1}}},
        {"type": "web_search"},
        "odd",
    ]
    found = read_request({"model": "m", "input": "u", "instructions": "i", "tools": tools, "store": False}, lambda: "r")

    wires = [json.dumps(tool, separators=(",", ":")) for tool in tools]
    assert ("m", {"store": False}) == (found.model, found.params)
    assert (
        Draft(
            "tools",
            Tools(
                (
                    Tool("f", "d", '{"type":"object"}', wires[0], "openai-responses"),
                    Tool("g", "", '{"a":1}', wires[1], "openai-responses"),
                    Tool("web_search", wire=wires[2], dialect="openai-responses"),
                    Tool("", wire=wires[3], dialect="openai-responses"),
                )
            ),
        ),
        Draft("system", Message("i")),
        Draft("user", Message("u")),
    ) == found.drafts


def test_a_tool_that_takes_any_text_has_its_name() -> None:
    """Elsewhere it can be offered as a function with one text for input."""
    custom = {"type": "custom", "name": "patch", "description": "Applies a patch.", "format": {"type": "text"}}
    found = read_request({"model": "m", "input": "u", "tools": [custom]}, lambda: "r").drafts[0].value

    assert isinstance(found, Tools)
    tool = found.tools[0]
    assert ("patch", "Applies a patch.", custom) == (tool.name, tool.description, json.loads(tool.wire))
    assert ["input"] == json.loads(tool.parameters)["required"]


def test_a_request_may_have_no_input() -> None:
    """A stored prompt may stand for it."""
    assert () == read_request({"prompt": {"id": "p"}}, lambda: "r").drafts


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (1, "no object"),
        ({}, "type ''"),
        ({"role": "tool"}, "role 'tool'"),
        ({"type": "message"}, "role ''"),
        ({"type": "function_call_output", "output": "o"}, "without call_id"),
    ],
)
def test_an_entry_that_is_none_is_named(entry: Any, says: str) -> None:
    """Its place and what is wrong with it."""
    with pytest.raises(WireError, match=r"input\[1\] cannot be adopted") as raised:
        drafts(USER, entry)
    assert says in raised.value.message


def test_input_that_is_no_list_is_refused() -> None:
    """Neither a string nor a list."""
    with pytest.raises(WireError, match="no list of input items"):
        read_request({"input": 1}, lambda: "r")


@pytest.mark.parametrize(
    ("answer", "is_own"),
    [
        ({"type": "shell_call_output", "call_id": "c1", "output": []}, True),
        ({"type": "shell_call_output", "call_id": "c1", "output": [], "id": "sho_1"}, False),
        ({"type": "local_shell_call_output", "id": "lsh_1", "output": "o"}, True),
        ({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}, True),
    ],
)
def test_answer_to_a_hosted_call_is_no_part_of_the_response_before_it(answer: dict[str, Any], is_own: bool) -> None:
    """Its provider knows that response without; what the provider itself answered has an id, and belongs to it."""
    found = drafts(USER, {"role": "assistant", "content": "a"}, answer, {"type": "item", "id": "i_1"})
    assert (["r0", "r1", "r2"] if is_own else ["r0"]) == list(dict.fromkeys(each.response for each in found[1:]))
    (block,) = (draft.value for draft in found if isinstance(draft.value, Unknown) and "i_1" not in draft.value.wire)
    assert (json.loads(block.wire), block.carriers == ()) == (answer, is_own)
