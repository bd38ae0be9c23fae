"""Opaque values of the message itself: Gemini's signature, Copilot's encrypted reasoning, Databricks' listed parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.feeding import body, chunk, read, sse, stream
from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock, ToolCall
from thinkback.model.plan import NOTHING, Carry
from thinkback.wire.openai_chat import write
from thinkback.wire.openai_chat.read import raw_response
from thinkback.wire.openai_chat.read_request import read_messages
from thinkback.wire.result import ReadResult

SIGNED = (Carrier("thought_signature", "c2ln+/="),)


def google(signature: str = "c2ln+/=") -> dict[str, Any]:
    """Gemini's place for a signature."""
    return {"extra_content": {"google": {"thought_signature": signature}}}


def call(**fields: Any) -> dict[str, Any]:
    """A tool call."""
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, **fields}


def answer(result: ReadResult, carry: Carry = NOTHING) -> Any:
    """The message that goes back."""
    [fragment] = write.assistant(result.response, result.blocks, carry)
    return json.loads(fragment)


SIGNATURES: list[tuple[str, dict[str, Any], tuple[Block, ...]]] = [
    ("on the text", {"content": "a", **google()}, (Text("a", carriers=SIGNED),)),
    ("said twice", {"content": "a", "thought_signature": "c2ln+/=", **google()}, (Text("a", carriers=SIGNED),)),
    ("under the short name", {"content": "a", "thought_signature": "c2ln+/="}, (Text("a", carriers=SIGNED),)),
    ("without text", {"content": None, **google()}, (Text("", carriers=SIGNED),)),
    (
        "on the last text",
        {"content": "<thought>t</thought>a", **google()},
        (
            ThinkingBlock("t", source_field="content", opening="<thought>", closing="</thought>"),
            Text("a", carriers=SIGNED),
        ),
    ),
    ("empty", {"content": "a", **google("")}, (Text("a"),)),
    ("something else", {"content": "a", "extra_content": {"google": {"thought_signature": 5}}}, (Text("a"),)),
    ("no object", {"content": "a", "extra_content": 5}, (Text("a"),)),
]


@pytest.mark.parametrize(("name", "message", "expected"), SIGNATURES, ids=[case[0] for case in SIGNATURES])
def test_a_signature_on_the_message_belongs_to_its_text(
    name: str, message: dict[str, Any], expected: tuple[Block, ...]
) -> None:
    """It is a carrier of the last text, or of an empty one, and goes back once on the message."""
    result = read(body(message))
    written = answer(result)
    signed = any(block.carriers for block in expected)

    assert expected == result.blocks
    assert (google()["extra_content"] if signed else None) == written.get("extra_content")
    assert {"role": "assistant", **message} == raw_response(result)["choices"][0]["message"]


def test_a_streamed_signature_belongs_to_the_text_it_follows() -> None:
    """Whatever chunk it comes in."""
    deltas = [{"content": "a"}, {"content": "b"}, {"content": "", **google()}]

    assert (Text("ab", carriers=SIGNED),) == read(stream(*deltas)).blocks


def test_a_signature_that_a_call_has_goes_back_with_the_call_only() -> None:
    """The host repeats the call's signature on the message; nothing opaque is sent twice."""
    result = read(body({"content": "a", "tool_calls": [call(**google())], **google()}))
    written = write.assistant(result.response, result.blocks, NOTHING)[0]

    assert () == result.blocks[0].carriers
    assert SIGNED == result.blocks[1].carriers
    assert 1 == written.count(b"c2ln+/=")


def test_an_adopted_message_keeps_its_signature() -> None:
    """A history that holds the message as the provider gave it."""
    drafts = read_messages([{"role": "assistant", "content": "a", **google()}], lambda: "r1")

    assert Text("a", carriers=SIGNED) == drafts[1].value


OPAQUE: list[tuple[str, list[dict[str, Any]], list[tuple[str, str]]]] = [
    ("after its text", [{"reasoning_text": "a"}, {"reasoning_text": "b"}, {"reasoning_opaque": "x="}], [("ab", "x=")]),
    ("beside its text", [{"reasoning_text": "a", "reasoning_opaque": "x="}], [("a", "x=")]),
    ("without text", [{"content": "c"}, {"reasoning_opaque": "x="}], [("", "x=")]),
    ("in pieces", [{"reasoning_opaque": "x"}, {"reasoning_opaque": "y="}], [("", "xy=")]),
    ("again", [{"reasoning_opaque": "x="}, {"reasoning_opaque": "x="}], [("", "x=")]),
    ("empty", [{"reasoning_text": "a", "reasoning_opaque": ""}], [("a", "")]),
    ("before its text", [{"reasoning_opaque": "x="}, {"reasoning_text": "a"}], [("", "x="), ("a", "")]),
    ("a placeholder", [{"reasoning_text": "Thinking...", "reasoning_opaque": "x="}], [("", "x=")]),
]


@pytest.mark.parametrize(("name", "deltas", "expected"), OPAQUE, ids=[case[0] for case in OPAQUE])
def test_encrypted_reasoning_belongs_to_its_readable_text(
    name: str, deltas: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    """It is a carrier of the ``reasoning_text`` block, or reasoning without readable text."""
    blocks = [block for block in read(stream(*deltas)).blocks if isinstance(block, ThinkingBlock)]

    assert expected == [(block.thought, "".join(carrier.value for carrier in block.carriers)) for block in blocks]
    assert all(block.source_field == "reasoning_text" and not block.marker for block in blocks)
    assert ["raw" if thought else "none" for thought, _ in expected] == [block.kind for block in blocks]


@pytest.mark.parametrize("fields", [{"reasoning_opaque": "x="}, {"reasoning_text": "a", "reasoning_opaque": "x="}])
def test_a_response_with_encrypted_reasoning_can_be_put_together_again(fields: dict[str, Any]) -> None:
    """Both fields stand where they stood."""
    message = {"role": "assistant", "content": "b", **fields}

    assert message == raw_response(read(body(message)))["choices"][0]["message"]


def listed(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A reasoning part of a content list."""
    return {"type": "reasoning", "summary": list(items), **fields}


def item(text: str, **fields: Any) -> dict[str, Any]:
    """A summary item."""
    return {"type": "summary_text", "text": text, **fields}


def test_reasoning_parts_of_a_content_list_are_blocks_in_their_place() -> None:
    """Each part is a block with its signature, and the list goes back as it came."""
    parts = [
        listed(item("a", signature="s1"), item("b", signature="s2"), {"odd": 1}),
        listed(item("c"), id="r"),
        item("t"),
    ]
    parts[2]["type"] = "text"
    result = read(body({"content": parts}))
    first, second, text = result.blocks

    assert isinstance(first, ThinkingBlock)
    assert isinstance(second, ThinkingBlock)
    assert ("ab", "s1", (Carrier("signature", "s2"),), "summary") == (
        first.thought,
        first.signature,
        first.carriers,
        first.kind,
    )
    assert ("c", "", Text("t")) == (second.thought, second.signature, text)
    assert parts == answer(result, Carry(tagged=True, text="abc"))["content"]
    assert parts == raw_response(result)["choices"][0]["message"]["content"]
    assert "t" == answer(result)["content"]


def test_streamed_reasoning_parts_are_one_until_something_comes_between() -> None:
    """Texts are joined, a signature that comes last belongs to them."""
    deltas = [
        {"content": [listed(item("a", signature=""))]},
        {"content": [listed(item("b", signature=""))]},
        {"content": [listed(item("", signature="s="))]},
        {"content": [{"type": "text", "text": "t"}]},
        {"content": [listed(item("c"))]},
    ]
    result = read(stream(*deltas))

    assert [("ab", "s="), ("c", "")] == [
        (block.thought, block.signature) for block in result.blocks if isinstance(block, ThinkingBlock)
    ]
    assert listed(item("ab", signature="s=")) == json.loads(result.blocks[0].wire)


@pytest.mark.parametrize("part", [{"type": "reasoning"}, {"type": "reasoning", "summary": ["a"]}, {"type": "other"}, 5])
def test_other_parts_stay_as_they_are(part: object) -> None:
    """What is no reasoning that can be read goes through verbatim."""
    result = read(body({"content": [part]}))

    assert [part] == [json.loads(block.wire) for block in result.blocks]


OUTCOMES: list[tuple[str, Any, str | None, str]] = [
    ("an answer", {"content": "a"}, "stop", "answered"),
    ("an unknown word", {"content": "a"}, "eos", "answered"),
    ("no word", {"content": "a"}, "", "answered"),
    ("calls", {"tool_calls": [call()]}, "tool_calls", "tool_calls"),
    ("an old call", {"tool_calls": [call()]}, "function_call", "tool_calls"),
    ("calls, and another word", {"tool_calls": [call()]}, "stop", "tool_calls"),
    ("too long", {"content": "a"}, "length", "max_tokens"),
    ("too long, in reasoning", {"reasoning": "a"}, "length", "max_tokens_in_reasoning"),
    ("reasoning alone", {"reasoning": "a"}, "stop", "reasoning_only"),
    ("nothing", {}, "stop", "empty"),
    ("a refusal", {"refusal": "no"}, "stop", "refused"),
    ("a filter", {"content": "a"}, "content_filter", "safety"),
    ("an error", {"content": "a"}, "error", "failed"),
]


@pytest.mark.parametrize(("name", "message", "finish", "expected"), OUTCOMES, ids=[case[0] for case in OUTCOMES])
def test_the_outcome_says_how_a_response_came_out(name: str, message: Any, finish: str | None, expected: str) -> None:
    """From the provider's word and from what the message brought, streamed or not."""
    streamed = sse(chunk(message), chunk({}, finish))

    assert expected == read(body(message, finish)).response.outcome == read(streamed).response.outcome


def test_a_stream_that_breaks_off_is_cut() -> None:
    """Whatever arrived."""
    assert "cut" == read(sse(chunk({"content": "a"}), done=False)).response.outcome


def test_calls_and_texts_that_carry_nothing_have_no_carriers() -> None:
    """Only Gemini's place counts."""
    result = read(body({"content": "a", "tool_calls": [call(extra_content={"other": 1})]}))

    assert [(Text, ()), (ToolCall, ())] == [(type(block), block.carriers) for block in result.blocks]
