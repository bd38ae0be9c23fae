"""Request writer and request reader of the dialect."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.wire.gemini.feeding import adopt, rewrite
from thinkback.errors import UnsupportedContent, WireError
from thinkback.log import echo_digests
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool, Tools
from thinkback.model.plan import NOTHING, Carry
from thinkback.wire.gemini import write
from thinkback.wire.gemini.blocks import wire_object
from thinkback.wire.gemini.read_request import UNKNOWN_ORIGIN, read_messages

HEADER = Response(UNKNOWN_ORIGIN)
SIGNED = (Carrier("thought_signature", "c2ln"),)


def said(*blocks: Block, carry: Carry = NOTHING) -> list[Any]:
    """The parts of the response that ``blocks`` are."""
    (content,) = write.assistant(HEADER, blocks, carry)
    assert "model" == json.loads(content)["role"]
    return list(json.loads(content)["parts"])


def ended(*, tools: tuple[Tool, ...] = (), system: tuple[bytes, ...] = (), **params: Any) -> dict[str, Any]:
    """What stands in the body beside the contents."""
    found: dict[str, Any] = json.loads(write.start + write.end("model", tools, system, params))
    assert [] == found.pop("contents")
    return found


def test_a_foreign_response_is_written_in_this_dialect() -> None:
    """Texts, calls and media of other dialects become parts; arguments that are no object are put into one."""
    blocks = (
        Text("hi", source_field="refusal"),
        Text(""),
        ToolCall("call_1", "f", '{"a": 1}'),
        ToolCall("", "g", ""),
        ToolCall("call_3", "h", "1 2"),
        Media("image/png", data="aGk="),
    )

    assert [
        {"text": "hi"},
        {"functionCall": {"id": "call_1", "name": "f", "args": {"a": 1}}},
        {"functionCall": {"name": "g", "args": {}}},
        {"functionCall": {"id": "call_3", "name": "h", "args": {"arguments": "1 2"}}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    ] == said(*blocks)


def test_own_parts_go_back_in_place() -> None:
    """Thoughts, signed empty texts, calls and unknown parts stand where they stood."""
    blocks = (
        ThinkingBlock("why", source_field="thought", carriers=SIGNED),
        Unknown('{"executableCode":{}}'),
        ToolCall("", "f", "{}", carriers=SIGNED),
        Text("", carriers=SIGNED),
    )

    assert [
        {"text": "why", "thought": True, "thoughtSignature": "c2ln"},
        {"executableCode": {}},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"},
        {"text": "", "thoughtSignature": "c2ln"},
    ] == said(*blocks)


def test_nothing_left_is_no_content() -> None:
    """A response without blocks, or with an empty text only, is not written, nor are no results."""
    assert () == write.assistant(HEADER, (), NOTHING) == write.assistant(HEADER, (Text(""),), NOTHING)
    assert () == write.results(())


def test_the_dummy_goes_on_the_first_call_only() -> None:
    """Later parallel calls get none, and a signed call keeps what it has."""
    carry = Carry(dummy="skip")
    first, second = said(ToolCall("", "f", "{}"), ToolCall("", "g", "{}"), carry=carry)
    (signed,) = said(ToolCall("", "f", "{}", carriers=SIGNED), carry=carry)

    assert ("skip", None) == (first["thoughtSignature"], second.get("thoughtSignature"))
    assert "c2ln" == signed["thoughtSignature"]


def test_results_are_one_content_in_order() -> None:
    """Each with its name, its id if it has one, and its text, object or error."""
    results = (
        ToolResult("a", "4 °C", "f"),
        ToolResult("", ' {"x": [1]}', "g"),
        ToolResult("c", "{no", "h"),
        ToolResult("d", '{"x":1}', "i", is_error=True),
        ToolResult("e", "", "j", wire='{"functionResponse":{"name":"j","response":{}},"x":1}'),
    )
    (content,) = write.results(results)

    assert {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": "a", "name": "f", "response": {"result": "4 °C"}}},
            {"functionResponse": {"name": "g", "response": {"x": [1]}}},
            {"functionResponse": {"id": "c", "name": "h", "response": {"result": "{no"}}},
            {"functionResponse": {"id": "d", "name": "i", "response": {"error": '{"x":1}'}}},
            {"functionResponse": {"name": "j", "response": {}}, "x": 1},
        ],
    } == json.loads(content)


def test_user_messages_hold_text_and_media() -> None:
    """Data goes inline, addresses as files, what is understood by nobody as it came."""
    parts = (
        Text("look"),
        Media("image/png", data="aGk="),
        Media("video/mp4", url="https://example.org/v"),
        Media("image/*", url="https://example.org/i"),
        Unknown('{"videoMetadata":{}}'),
    )

    assert {"role": "user", "parts": [{"text": "hi"}]} == json.loads(write.message("user", Message("hi")))
    assert [
        {"text": "look"},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"fileData": {"fileUri": "https://example.org/v", "mimeType": "video/mp4"}},
        {"fileData": {"fileUri": "https://example.org/i"}},
        {"videoMetadata": {}},
    ] == json.loads(write.message("user", Message("look", parts)))["parts"]
    assert (b"", 1) == write.turn_over("user", "user")


@pytest.mark.parametrize("media", [Media("image/*", data="aGk="), Media("image/png"), Media("", data="aGk=")])
def test_media_without_content_or_type_is_refused(media: Media) -> None:
    """Before anything is sent."""
    with pytest.raises(UnsupportedContent):
        write.message("user", Message("", (media,)))


def test_system_stands_on_top() -> None:
    """One instruction goes as it is; of several the parts are joined; parameters come last."""
    one, held = write.top(Message("be brief")), write.top(Message("x", wire='{"parts":{"text":"x"},"role":"user"}'))

    assert {"systemInstruction": {"parts": [{"text": "be brief"}]}} == ended(system=(one,))
    assert {"parts": {"text": "x"}, "role": "user"} == ended(system=(held,))["systemInstruction"]
    both = {"parts": [{"text": "be brief"}, {"text": "x"}]}
    assert {"systemInstruction": both, "labels": {}} == ended(system=(one, held), labels={})


def test_functions_share_an_entry_and_other_tools_have_their_own() -> None:
    """Tools of other dialects are declared with their JSON schema, own definitions go out as they were."""
    tools = (
        Tool("f", "does f", '{"type": "object"}', wire='{"type":"function"}', dialect="openai-chat"),
        Tool("g"),
        Tool("h", wire='{"name":"h","parameters":{"type":"OBJECT"}}', dialect="gemini"),
        Tool("googleSearch", wire='{"googleSearch":{}}', dialect="gemini"),
        Tool("i", wire='{"functionDeclarations":[{"name":"i"}]}'),
    )

    assert [
        {
            "functionDeclarations": [
                {"name": "f", "description": "does f", "parametersJsonSchema": {"type": "object"}},
                {"name": "g"},
                {"name": "h", "parameters": {"type": "OBJECT"}},
            ]
        },
        {"googleSearch": {}},
        {"functionDeclarations": [{"name": "i"}]},
    ] == ended(tools=tools)["tools"]


@pytest.mark.parametrize("name", ["", "a b", "x" * 65])
def test_a_name_that_no_function_can_have_is_refused(name: str) -> None:
    """Before anything is sent."""
    with pytest.raises(UnsupportedContent):
        ended(tools=(Tool(name),))


REQUEST: dict[str, Any] = {
    "contents": [
        {"role": "user", "parts": [{"text": "Weather?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"functionCall": {"id": "a", "name": "f", "args": {"c": "Oslo"}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "b", "name": "g", "args": {}}},
                {"text": ""},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "a", "name": "f", "response": {"result": "4 °C"}}},
                {"functionResponse": {"id": "b", "name": "g", "response": {"error": "no"}}},
            ],
        },
        {"parts": [{"text": "and"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}, {"odd": 1}]},
        {"role": None, "parts": [{"text": "x", "thought": False}, {"text": "y", "thought": True}]},
        {"role": "user", "parts": {"text": "alone"}},
        {"role": "user"},
    ],
    "systemInstruction": {"parts": [{"text": "be brief"}], "role": "user"},
    "tools": [
        {"functionDeclarations": [{"name": "f", "description": "d", "parameters": {"type": "OBJECT"}}]},
        {"googleSearch": {}},
        {"functionDeclarations": [{"name": "g", "parametersJsonSchema": {"type": "object"}}]},
    ],
    "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}},
    "safetySettings": None,
}


def test_a_request_is_read_and_written_as_it_was() -> None:
    """Contents, system instruction, tools and parameters are the same JSON value, signatures byte for byte."""
    request = adopt(REQUEST)
    kinds = [draft.kind for draft in request.drafts]

    assert REQUEST == rewrite(request)
    assert ["tools", "system", "user", "response", "reasoning", "tool_call", "tool_call", "assistant"] == kinds[:8]
    assert ["tool_result"] * 2 + ["user"] * 4 == kinds[8:]
    results = [draft.value for draft in request.drafts if isinstance(draft.value, ToolResult)]
    assert [("a", "4 °C", False, ""), ("b", "no", True, "")] == [(r.id, r.content, r.is_error, r.wire) for r in results]


@pytest.mark.parametrize(
    ("output", "is_alone"),
    [
        ("4 °C", True),
        ('{"a":1,"b":2}', True),
        ("{no", True),
        ("", True),
        ('{"output":"4 °C"}', False),
        ('[{"type":"text","text":"4 °C"}]', False),
    ],
)
def test_a_text_alone_in_output_is_the_result(output: str, is_alone: bool) -> None:
    """It is written as it came, under another id too, and known again as when the object was the result."""
    response = {"output": output}
    part = {"functionResponse": {"id": "a", "name": "f", "response": response}}
    (draft,) = adopt({"contents": [{"role": "user", "parts": [part]}]}).drafts
    result = draft.value
    whole = ToolResult("a", canonical.source(response), "f")

    assert isinstance(result, ToolResult)
    assert (output if is_alone else whole.content) == result.content
    (content,) = write.results([msgspec.structs.replace(result, id="b", wire="")])
    assert response == json.loads(content)["parts"][0]["functionResponse"]["response"]
    seen = [echo_digests.echoed_messages([each])[0].value for each in (draft, Draft("tool_result", whole))]
    assert seen[0] == seen[1]


def test_the_sdks_spelling_is_understood() -> None:
    """Snake case in parts, instruction and tools."""
    request = adopt(
        {
            "system_instruction": {"parts": [{"text": "be brief"}]},
            "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"type": "object"}}]}],
            "contents": [
                {"role": "model", "parts": [{"function_call": {"name": "f"}, "thought_signature": "c2ln"}]},
                {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"a": 1}}}]},
                {"role": "user", "parts": [{"file_data": {"file_uri": "gs://b", "mime_type": "video/mp4"}}]},
            ],
        }
    )
    values = [draft.value for draft in request.drafts]

    assert isinstance(values[0], Tools)
    assert ("f", '{"type":"object"}') == (values[0].tools[0].name, values[0].tools[0].parameters)
    assert Message("be brief") == values[1]
    call, result, message = values[3:]
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert isinstance(message, Message)
    assert SIGNED == call.carriers
    assert ("", "f", '{"a":1}') == (result.id, result.name, result.content)
    assert (Media("video/mp4", url="gs://b"),) == tuple(
        Media(part.media_type, url=part.url) for part in message.parts if isinstance(part, Media)
    )


def test_an_instruction_may_be_a_text() -> None:
    """Clients write it so, and it is not lost."""
    request = adopt({"systemInstruction": "be brief", "contents": []})

    assert [Message("be brief")] == [draft.value for draft in request.drafts]


def test_one_content_may_stand_alone() -> None:
    """As in examples of Vertex, which also write roles in capitals."""
    drafts = adopt({"contents": {"role": "USER", "parts": {"text": "Hi"}}}).drafts

    assert [("user", "Hi")] == [(draft.kind, draft.value.text) for draft in drafts if isinstance(draft.value, Message)]


def test_neighbouring_contents_of_the_model_are_one_response() -> None:
    """And results beside other parts are taken out of the message."""
    drafts = adopt(
        {
            "contents": [
                {"role": "model", "parts": [{"text": "a"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {"role": "user", "parts": [{"text": "b"}, {"functionResponse": {"name": "f", "response": {}}}]},
            ]
        }
    ).drafts

    assert ["response", "assistant", "tool_call", "tool_result", "user"] == [draft.kind for draft in drafts]
    assert Message("b") == drafts[-1].value


@pytest.mark.parametrize(
    ("response", "id", "name"),
    [
        ({"name": "g"}, "2", "g"),
        ({"name": "x"}, "1", "x"),
        ({"id": "3"}, "3", "h"),
        ({"id": "9", "name": "x"}, "9", "x"),
        ({}, "1", "f"),
    ],
)
def test_results_find_their_calls(response: dict[str, Any], id: str, name: str) -> None:
    """By id; without one by name, else in order, among the calls that are open, earlier ones included."""
    calls = [
        Draft("tool_call", ToolCall(id, name, "{}")) for id, name in [("0", "g"), ("1", "f"), ("2", "g"), ("3", "h")]
    ]
    after = [
        Draft("user", Message("hi")),
        *calls,
        Draft("tool_result", ToolResult("0", "")),
        Draft("tool_result", ToolResult("8", "")),
    ]
    part = {"functionResponse": response}
    (draft,) = read_messages([{"role": "user", "parts": [part]}], str, after=after)

    assert isinstance(draft.value, ToolResult)
    assert (id, name, "{}") == (draft.value.id, draft.value.name, draft.value.content)


@pytest.mark.parametrize("more", [{}, {"willContinue": False}])
def test_a_result_gets_the_id_that_its_client_forgot(more: dict[str, Any]) -> None:
    """The API wants that of the call back; everything else goes as it came."""
    after = [Draft("user", Message("hi")), Draft("tool_call", ToolCall("c1", "f", "{}"))]
    part = {"functionResponse": {"name": "f", "response": {"result": "4"}, **more}}
    (draft,) = read_messages([{"role": "user", "parts": [part]}], str, after=after)

    assert isinstance(draft.value, ToolResult)
    assert {"functionResponse": {"id": "c1", **part["functionResponse"]}} == json.loads(wire_object(draft.value))


@pytest.mark.parametrize(
    ("response", "content", "is_error"),
    [
        ({"result": "4"}, "4", False),
        ({"output": "4"}, "4", False),
        ({"error": "no"}, "no", True),
        ({"output": "4", "unit": "C"}, '{"output":"4","unit":"C"}', False),
        ({"output": {"x": 1}}, '{"output":{"x":1}}', False),
        ({"output": "[1, 2]"}, '{"output":"[1, 2]"}', False),
    ],
)
def test_the_object_around_a_text_is_no_part_of_a_result(
    response: dict[str, Any], content: str, is_error: bool
) -> None:
    """Other dialects are told the text; in its own one it goes back as it came."""
    part = {"functionResponse": {"id": "c1", "name": "f", "response": response}}
    (draft,) = read_messages([{"role": "user", "parts": [part]}], str)

    assert isinstance(draft.value, ToolResult)
    assert (content, is_error) == (draft.value.content, draft.value.is_error)
    assert part == json.loads(wire_object(draft.value))
    assert part == json.loads(wire_object(msgspec.structs.replace(draft.value, wire="")))


def test_a_result_without_any_call_is_kept() -> None:
    """It answers nothing that is known."""
    (draft,) = read_messages([{"role": "function", "parts": [{"functionResponse": {"name": "f"}}]}], str)

    assert isinstance(draft.value, ToolResult)
    assert ("", "f") == (draft.value.id, draft.value.name)


@pytest.mark.parametrize(
    "contents",
    ["hello", None, [1], [{"role": "assistant"}], [{"parts": "hi"}], [{"role": "model", "parts": [1]}], [None]],
)
def test_contents_that_are_none_are_refused(contents: Any) -> None:
    """The error names the place."""
    with pytest.raises(WireError):
        adopt({"contents": contents})


def test_tools_are_told_to_other_dialects() -> None:
    """Gemini's own kind of schema becomes a JSON schema; what it runs itself has a name; null says nothing."""
    schema = {
        "type": "OBJECT",
        "nullable": True,
        "propertyOrdering": ["a"],
        "properties": {
            "a": {"type": "ARRAY", "items": {"type": "STRING"}},
            "b": {"anyOf": [{"type": "STRING"}, 1]},
            "c": {"enum": ["X"]},
        },
    }
    entries = [
        {"functionDeclarations": [{"name": "f", "parameters": schema}, 1], "codeExecution": None, "googleSearch": {}},
        2,
    ]
    (draft,) = adopt({"contents": [], "tools": entries, "model": "m"}).drafts
    assert isinstance(draft.value, Tools)
    f, odd, search, last = draft.value.tools

    assert {
        "type": ["object", "null"],
        "properties": {
            "a": {"type": "array", "items": {"type": "string"}},
            "b": {"anyOf": [{"type": "string"}, 1]},
            "c": {"enum": ["X"]},
        },
    } == json.loads(f.parameters)
    assert ("googleSearch", '{"googleSearch":{}}') == (search.name, search.wire)
    assert [1, {"googleSearch": {}}, 2] == ended(tools=(odd, search, last))["tools"]
    assert () == adopt({"contents": [], "tools": "x"}).drafts
