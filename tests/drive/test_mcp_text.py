"""What MCP servers say, as providers and models get it."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

from thinkback.drive.mcp_text import LONGEST_NAME, named, output_of


def listed(name: str) -> Tool:
    return Tool(name=name, input_schema={"type": "object"})


def test_names_are_what_every_provider_takes() -> None:
    """At most 64 of a few characters, and each once: what would be another's gets a digest."""
    long = "x" * 100
    found = [name for name, _ in named("srv", map(listed, ["plain", "a.b", "a/b", "a b", long, f"{long}y"]))]
    assert ["mcp__srv__plain", "mcp__srv__a_b"] == found[:2]
    assert 6 == len(set(found))
    assert all(len(name) <= LONGEST_NAME for name in found)
    assert all(name.replace("_", "").replace("-", "").isalnum() for name in found)
    assert found == [name for name, _ in named("srv", map(listed, ["plain", "a.b", "a/b", "a b", long, f"{long}y"]))]


def test_a_name_that_comes_twice_is_one_tool() -> None:
    """A server that says it twice means one; a third time it is left out."""
    found = [name for name, _ in named("srv", map(listed, ["a", "a", "a"]))]
    assert "mcp__srv__a" == found[0]
    assert 2 == len(found)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (TextContent(text="words"), "words"),
        (ImageContent(data="QUJD", mime_type="image/png"), "[image: image/png, 3 bytes, not shown]"),
        (AudioContent(data="QUI=", mime_type="audio/wav"), "[audio: audio/wav, 2 bytes, not shown]"),
        (ResourceLink(uri="file:///a.txt", name="a.txt"), "[resource: file:///a.txt a.txt]"),
        (EmbeddedResource(resource=TextResourceContents(uri="file:///a", text="inside")), "inside"),
        (
            EmbeddedResource(resource=BlobResourceContents(uri="file:///a", blob="QUJD")),
            "[resource: file:///a, 3 bytes, not shown]",
        ),
    ],
)
def test_content_becomes_text(block: Any, text: str) -> None:
    """What is no text is named."""
    assert (text, False) == output_of(CallToolResult(content=[block]))[:2]


def test_structured_content_stands_in_for_text() -> None:
    """Where there is no other; of nothing it is said that it is nothing."""
    assert '{"a":1}' == output_of(CallToolResult(content=[], structured_content={"a": 1})).content
    assert "words" == output_of(CallToolResult(content=[TextContent(text="words")], structured_content={})).content
    assert ("[the tool gave nothing]", True) == output_of(CallToolResult(content=[], is_error=True))[:2]
