"""Blocks, commits and deltas: what goes back, what is hashed, what is shown."""

from __future__ import annotations

import hashlib
import json
from typing import Any, get_args

import pytest

from thinkback.model.blocks import (
    Block,
    Carrier,
    Media,
    Origin,
    Text,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    Unknown,
    carriers_of,
    content_slice,
    wire_object,
    within,
)
from thinkback.model.commits import (
    KIND_OF,
    PAYLOAD_OF,
    Draft,
    Erased,
    Kind,
    Message,
    Payload,
    block_draft,
    commit_hash,
    fits,
)

ORIGIN = Origin("openai-chat", "https://api.example.org", "m")
ENCRYPTED = Carrier("encrypted", "secret")


def test_the_signature_of_a_thought_is_its_first_carrier() -> None:
    """All opaque values of a block, once each, in order."""
    assert (Carrier("signature", "s"), ENCRYPTED) == carriers_of(
        ThinkingBlock("", signature="s", carriers=(ENCRYPTED,))
    )
    assert (ENCRYPTED,) == carriers_of(ThinkingBlock("a", carriers=(ENCRYPTED,)))
    assert (ENCRYPTED,) == carriers_of(ToolCall("c", "f", "{}", carriers=(ENCRYPTED,)))


def test_a_carrier_never_shows_its_value() -> None:
    """Opaque values do not end up in logs by way of ``repr``."""
    assert "Carrier(encrypted, 6 characters)" == repr(ENCRYPTED)
    assert "secret" not in repr(ThinkingBlock("a", carriers=(ENCRYPTED,)))


@pytest.mark.parametrize(
    ("content", "field", "told"),
    [
        ('{"output":[1]}', "output", "[1]"),
        ('{"output":"[1]"}', "output", "[1]"),
        ('{"output":[1]}', "", None),
        ('{"result":1}', "output", None),
        ("{no json", "output", None),
        ("Rain.", "output", None),
    ],
)
def test_an_object_around_a_result_is_part_of_its_content(content: str, field: str, told: str | None) -> None:
    """Where it has nothing but the member that it came in."""
    assert told == within(ToolResult("c", content, source_field=field))


def test_the_slice_of_content() -> None:
    """A text is its slice; a tagged thought has its tags around it."""
    assert "a" == content_slice(Text("a"))
    assert "<think>\na</think>" == content_slice(ThinkingBlock("\na", opening="<think>", closing="</think>"))


WIRES: list[tuple[Block, object]] = [
    (Text("a"), {"content": "a"}),
    (Text("no", source_field="refusal"), {"refusal": "no"}),
    (ThinkingBlock("a"), {"reasoning_content": "a"}),
    (ThinkingBlock("a", source_field="reasoning"), {"reasoning": "a"}),
    (ThinkingBlock("a", source_field="content", opening="<think>"), {"content": "<think>a"}),
    (ToolCall("c", "f", "{}"), {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}),
    (ToolResult("c", "r"), {"role": "tool", "tool_call_id": "c", "content": "r"}),
    (Media("image_url", wire='{"x":1}'), {"x": 1}),
    (Unknown('{"y":1}'), {"y": 1}),
    (Media("image_url"), None),
]


@pytest.mark.parametrize(("block", "expected"), WIRES, ids=[type(block).__name__ for block, _ in WIRES])
def test_the_object_of_a_block(block: Block, expected: object) -> None:
    """The provider's object is kept where it cannot be rebuilt, else rebuilt."""
    assert expected == json.loads(wire_object(block))


def test_the_draft_of_a_block_leaves_the_origin_to_its_response() -> None:
    """The origin is stored once; everything else of the block stays."""
    assert Draft("reasoning", ThinkingBlock("a"), "r", 2) == block_draft(ThinkingBlock("a", origin=ORIGIN), "r", 2)
    assert Draft("assistant", Text("a"), "r", 0) == block_draft(Text("a"), "r", 0)
    assert {"assistant", "reasoning", "tool_call", "tool_result", "media", "other"} == set(KIND_OF.values())


def test_each_kind_of_commit_says_one_sort_of_thing() -> None:
    """What was erased says nothing, or what is left of it."""
    assert set(get_args(Kind)) == set(PAYLOAD_OF)
    assert {*get_args(Payload), Erased} == {*PAYLOAD_OF.values(), Erased}
    left = Erased("asked", 1, '{"type":"message","text":"a"}')
    assert all((fits("user", Message("a")), fits("user", left), fits("repair", Erased("asked", 1))))
    assert not any((fits("assistant", Message("a")), fits("assistant", left), fits("x", left)))


def test_the_hash_of_a_commit_covers_all_that_identifies_it() -> None:
    """It is SHA-256 over the fields by line, and each field changes it."""
    fields: list[Any] = [("p1", "p2"), "user", "digest", "", "r", 1, 42]
    text = "1\np1,p2\nuser\ndigest\n\nr\n1\n42"
    others: list[Any] = [("p1",), "system", "other", "e", "s", 2, 43]
    changed = {commit_hash(*[*fields[:at], other, *fields[at + 1 :]]) for at, other in enumerate(others)}

    assert hashlib.sha256(text.encode()).hexdigest() == commit_hash(*fields)
    assert 7 == len(changed - {commit_hash(*fields)})
