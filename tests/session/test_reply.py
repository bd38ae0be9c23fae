"""What a reply says of the blocks of its responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thinkback.model.blocks import Origin, Text, ThinkingBlock
from thinkback.model.commits import Response, Usage
from thinkback.session.reply import Reply, StepReply, readable_reasoning, visible_text
from thinkback.turn.events import Outcome
from thinkback.wire.openai_chat.read import Reader, raw_response
from thinkback.wire.result import ReadResult

ORIGIN = Origin("openai-chat", "https://house.example/v1", "thinker")


def read(message: dict[str, Any], **body: Any) -> ReadResult:
    """A whole response as the reader gives it."""
    reader = Reader(ORIGIN, "json")
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    reader.feed(json.dumps({"id": "r", "choices": [choice], **body}).encode())
    reader.close()
    return reader.result()


def reply(*results: ReadResult) -> Reply:
    return Reply(Outcome("completed", tuple((result, ()) for result in results), None), "Why?")


def test_turn_without_a_response_has_an_empty_reply() -> None:
    """It failed or was interrupted before anything came."""
    empty = reply()
    assert ("", None, None, None, None, [], [], {}, None, False, "", "") == (
        empty.text,
        empty.reasoning,
        empty.reasoning_commit,
        empty.commit_info,
        empty.usage,
        empty.decisions,
        empty.tool_calls,
        empty.generation_config,
        empty.raw_response,
        empty.is_reasoning_only,
        empty.outcome,
        empty.ending,
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "42."}, ""),
        ({"content": " "}, "the answer has no text"),
        ({"refusal": "No."}, "the model refused to answer"),
    ],
    ids=["answered", "white space", "refused"],
)
def test_an_answer_that_is_none_is_told(message: dict[str, Any], expected: str) -> None:
    """Of the last response, in a sentence."""
    assert expected == reply(read(message)).ending


def test_usage_is_summed_over_the_responses() -> None:
    """Counts that were never reported stay unknown."""
    first = ReadResult(Response(ORIGIN), (), Usage(input=3, output=5, reasoning=2))
    second = ReadResult(Response(ORIGIN), (), Usage(input=10, output=1))
    silent = ReadResult(Response(ORIGIN), (), None)
    assert Usage(input=13, output=6, reasoning=2) == reply(first, silent, second).usage
    assert Usage(input=10, output=1) == reply(silent, second).usage
    assert reply(silent).usage is None


def test_visible_text_leaves_what_tags_left_behind() -> None:
    """White space around a think block goes; without one it stays."""
    tagged = ThinkingBlock("Hm.", source_field="content", opening="<think>", closing="</think>")
    assert "42" == visible_text([tagged, Text("\n\n42\n")])
    assert "\n42\n" == visible_text([Text("\n"), Text("42\n")])


def test_readable_reasoning_is_said_once() -> None:
    """No markers, nothing hidden, no empty pieces."""
    blocks = [
        ThinkingBlock("Hm. "),
        ThinkingBlock("Hm. ", is_hidden=True),
        ThinkingBlock("Thinking...", marker=True),
        ThinkingBlock("Yes."),
    ]
    assert "Hm. \n\nYes." == readable_reasoning(blocks)
    assert readable_reasoning([ThinkingBlock("", signature="opaque")]) is None


@pytest.mark.parametrize(
    "message",
    [
        {"content": "42"},
        {"content": "42", "reasoning_content": "Hm."},
        {"content": "42", "reasoning_content": "Hm.", "reasoning": "Hm."},
        {
            "content": "42",
            "reasoning_content": "Hm.",
            "reasoning": "Hm.",
            "reasoning_details": [{"type": "reasoning.summary", "summary": "In short: hm.", "index": 0}],
        },
        {"content": "<think>Hm.</think>\n42"},
        {"content": "", "refusal": "No."},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                {"type": "text", "text": "42"},
            ]
        },
        {"content": [{"type": "text", "text": "42", "annotations": []}]},
        {"content": "42", "annotations": [1], "audio": {"id": "x"}},
        {
            "content": "42",
            "reasoning": "Hm.",
            "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "opaque", "index": 0}],
        },
        {
            "content": None,
            "reasoning": "Hm.",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"x": 1}}
            ],
        },
    ],
)
def test_raw_response_is_the_providers_own(message: dict[str, Any]) -> None:
    """Rebuilt from the blocks; envelope and usage around it."""
    raw = raw_response(read(message, created=7, usage={"prompt_tokens": 3}))
    assert {"role": "assistant", **message} == raw["choices"][0]["message"]
    assert ("r", 7, {"prompt_tokens": 3}) == (raw["id"], raw["created"], raw["usage"])


def test_step_knows_its_own() -> None:
    """Each response of a turn by itself."""
    step = StepReply(read({"content": "42", "reasoning_content": "Hm."}), ())
    assert ("42", "Hm.", []) == (step.text, step.reasoning, step.tool_calls)
