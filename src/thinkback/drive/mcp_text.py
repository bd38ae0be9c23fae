"""What MCP servers say, as providers and models get it: names of tools, and results as text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from thinkback.drive.tools import ToolOutput
from thinkback.model import canonical

if TYPE_CHECKING:
    from mcp.types import CallToolResult
    from mcp.types import Tool as Listed

# What every provider takes as the name of a tool.
LONGEST_NAME = 64
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def named(server: str, tools: Iterable[Listed]) -> Iterator[tuple[str, Listed]]:
    """Each tool of ``server`` with the name that models call it by: mcp__SERVER__TOOL, changed where it must be."""
    seen: set[str] = set()
    for tool in tools:
        plain = f"mcp__{server}__{tool.name}"
        name = _FOREIGN.sub("_", plain)
        if len(name) > LONGEST_NAME or name in seen:
            digest = hashlib.sha256(plain.encode()).hexdigest()[:8]
            name = f"{name[: LONGEST_NAME - 9]}_{digest}"
        if name not in seen:
            seen.add(name)
            yield name, tool


def output_of(result: CallToolResult) -> ToolOutput:
    """A result as text: what is no text becomes a note, structured content stands in where there is nothing else."""
    texts = [_text(block) for block in result.content]
    if not texts and result.structured_content is not None:
        texts = [canonical.encode(result.structured_content).decode()]
    return ToolOutput("\n".join(texts) or "[the tool gave nothing]", bool(result.is_error))


def _text(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}: {block.mime_type}, {_size(block.data):,} bytes, not shown]"
        case "resource_link":
            return f"[resource: {block.uri} {block.name}]"
        case "resource" if getattr(block.resource, "text", None) is not None:
            return str(block.resource.text)
        case "resource":
            return f"[resource: {block.resource.uri}, {_size(block.resource.blob):,} bytes, not shown]"
        case _:
            return f"[{block.type}, not shown]"


def _size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")
