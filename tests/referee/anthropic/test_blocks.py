"""Shape of content blocks, and that every call is answered once, directly after."""

from __future__ import annotations

import pytest

from tests.referee.anthropic.talk import WEATHER, Talk, call, results, said, thought, user
from thinkback_referee.anthropic import ANTHROPIC
from thinkback_referee.jsons import JsonObject
from thinkback_referee.persona import Persona


def verdict(*messages: JsonObject, model: str = "claude-opus-4-8", **parameters: object) -> tuple[int, str]:
    base: JsonObject = {"model": model, "max_tokens": 4096, "tools": [WEATHER]}
    return Talk(Persona(ANTHROPIC), base, messages=list(messages)).verdict(**parameters)


def test_plain_loops_are_taken() -> None:
    """Calls of anybody's making with their results are accepted while thinking is off."""
    assert (200, "") == verdict(user("hi"), said("Sure.", call()), results("toolu_1"))
    both = said(call("a"), call("b"))
    assert (200, "") == verdict(user("hi"), both, results("b", "a"), said("done"), user("on"))


def unanswered(index: int, *calls: str) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([said(call("a"))], unanswered(1, "a")),
        ([said(call("a")), user("on")], unanswered(1, "a")),
        ([said(call("a"), call("b")), results("a")], unanswered(1, "b")),
        ([results("a")], "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a."),
        ([said(call("a")), results("a", "a")], "each tool_use must have a single result."),
        ([said(call("a")), results("a"), said(call("a")), results("a")], "messages: `tool_use` ids must be unique"),
    ],
)
def test_calls_and_results_must_pair(messages: list[JsonObject], text: str) -> None:
    """A call without its result, a result without its call, and repeated ids are refused."""
    status, said_ = verdict(user("hi"), *messages)
    assert (400, True) == (status, text in said_), said_


def test_results_come_before_other_words() -> None:
    """A text in front of the results parts them from their calls."""
    late = results("a")
    blocks = [{"type": "text", "text": "here:"}, *list(late["content"])]  # type: ignore[call-overload]
    assert (400, unanswered(1, "a")) == verdict(user("hi"), said(call("a")), {"role": "user", "content": blocks})
    first = [*blocks[1:], blocks[0]]
    assert (200, "") == verdict(user("hi"), said(call("a")), {"role": "user", "content": first})


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": ""}, "messages: text content blocks must be non-empty"),
        ({"type": "text"}, "messages.1.content.0.text.text: Field required"),
        ({"type": "text", "text": 1}, "messages.1.content.0.text.text: Input should be a valid string"),
        ({"type": "text", "text": "x", "parsed": 1}, "messages.1.content.0.text.parsed: Extra inputs"),
        ({"type": "reasoning", "text": "x"}, "messages.1.content.0: Input tag 'reasoning' found"),
        ({"type": "thinking", "thinking": "x"}, "messages.1.content.0.thinking.signature: Field required"),
        (thought(signature=1), "messages.1.content.0.thinking.signature.str: Input should be a valid string"),  # type: ignore[arg-type]
        ({"type": "thinking", "signature": "x"}, "messages.1.content.0.thinking.thinking: Field required"),
        ({**thought(), "cache_control": {"type": "ephemeral"}}, "thinking.cache_control: Extra inputs"),
        ({"type": "redacted_thinking"}, "messages.1.content.0.redacted_thinking.data: Field required"),
        ({**call(), "input": "{}"}, "messages.1.content.0.tool_use.input: Input should be a valid dictionary"),
        ({**call(), "name": ""}, "messages.1.content.0.tool_use.name: Field required"),
        ({"type": "tool_result", "tool_use_id": "a"}, "`tool_result` blocks can only be in `user` messages"),
    ],
)
def test_blocks_of_the_assistant_must_be_right(block: JsonObject, text: str) -> None:
    """Wrong fields, kinds and places of an assistant's blocks are refused with their path."""
    status, said_ = verdict(user("hi"), said(block, "yo"), user("on"))
    assert (400, True) == (status, text in said_), said_


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (thought(), "`thinking` blocks can only be in `assistant` messages"),
        ({"type": "tool_result", "content": "x"}, "messages.0.content.0.tool_result.tool_use_id: Field required"),
        (
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": ""}]},
            "text content blocks must be non-empty",
        ),
    ],
)
def test_blocks_of_the_user_must_be_right(block: JsonObject, text: str) -> None:
    """Thoughts of the user's and unusable results are refused."""
    status, said_ = verdict({"role": "user", "content": [block]})
    assert (400, True) == (status, text in said_), said_


def test_other_kinds_of_block_pass() -> None:
    """Server tools, compaction and their like are not looked into."""
    search: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found: JsonObject = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    assert (200, "") == verdict(user("hi"), said(search, found, "done"), user("on"), thinking={"type": "adaptive"})


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_a_message_must_not_end_in_a_thought(kind: str) -> None:
    """A thought as last block of an assistant message is refused, whoever made it."""
    redacted: JsonObject = {"type": kind, "data": "EmwK"}
    block = thought() if kind == "thinking" else redacted
    expected = (400, f"messages.1: The final block in an assistant message cannot be `{kind}`.")
    assert expected == verdict(user("hi"), said("yo", block), user("on"))
