"""What payloads say to people."""

from __future__ import annotations

import pytest

from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import (
    LEFT_OUT,
    NOT_RECORDED,
    Annotation,
    BranchSummary,
    Compaction,
    Content,
    Erased,
    Message,
    Payload,
    PermissionDecision,
    Priority,
    Tool,
    Tools,
    TurnEnded,
)
from thinkback.model.texts import text_of, thoughts_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Message("hello"), "hello"),
        (Message("look", (Text("look"), Media("image/png", "AAAA", name="a.png"))), "look\n[image/png a.png]"),
        (Message("", (Media("audio/wav", "AAAA"),)), "[audio/wav]"),
        (Text("hi", carriers=(Carrier("signature", "opaque"),)), "hi"),
        (ThinkingBlock("hm", signature="opaque", wire='{"signature":"opaque"}'), "hm"),
        (ToolCall("c", "look", '{"at":1}'), 'look({"at":1})'),
        (ToolResult("c", "seen"), "seen"),
        (Media("image/*", url="https://example.com/a"), "[image/*]"),
        (Tools((Tool("a"), Tool("b"))), "a, b"),
        (Content("plan", "first this"), "first this"),
        (BranchSummary("it went well"), "it went well"),
        (Compaction("manual", "in short"), "in short"),
        (Compaction("tool_results", trimmed=(("h", "..."),)), "[1 results trimmed]"),
        (Compaction("thoughts", shortened=("h", "i")), "[2 thoughts shortened]"),
        (Erased("a secret", 1), "[erased: a secret]"),
        (Erased("", 1), "[erased]"),
        (Erased(LEFT_OUT, 1), "[left out of the export]"),
        (Erased(NOT_RECORDED, 1), "[not recorded]"),
        (Erased("a secret", 1, '{"type":"text","text":"the [..] rest"}'), "the [..] rest"),
        (Unknown('{"type":"new"}'), ""),
        (TurnEnded("completed"), ""),
        (PermissionDecision("c", "go", "denied", "person", "runs", "why", "no"), ""),
        (Annotation("h", Priority.SKIP), ""),
    ],
)
def test_text(value: Payload, text: str) -> None:
    """Words and names, never what is opaque; nothing for what is said to nobody."""
    assert text == text_of(value)


def test_thoughts_of_a_response_stand_apart() -> None:
    """Without those that nobody may read, markers, and those that say nothing."""
    blocks: list[Block] = [
        ThinkingBlock("one"),
        Text("x"),
        ThinkingBlock("hidden", is_hidden=True),
        ThinkingBlock(" "),
        ThinkingBlock("two"),
    ]
    assert "one\n\ntwo" == thoughts_of(blocks)
