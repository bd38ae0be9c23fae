"""The page on the MCP server names the tools that there are, and says of each when it is on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec

import thinkback
from thinkback.cli.mcp import DEFAULT_BUDGET, QUERIES
from thinkback.servers.mcp.asking import Asked, Asker, Query, asking_tools
from thinkback.servers.mcp.budget import TokenBudget
from thinkback.servers.mcp.reading import LONGEST_TEXT
from thinkback.servers.mcp.tools import READING

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")


def test_the_table_has_every_tool_and_says_when_it_is_on() -> None:
    """A row for each tool in the order of the server: what only reads is always on, the rest by its option."""
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (.+) \|$", PAGE, re.MULTILINE)
    with thinkback.open(":memory:") as store:
        asking = asking_tools(Asker(store, [Asked("deepseek", "deepseek-v4-pro")], TokenBudget(1)))

    assert QUERIES == tuple(tool.name for tool in asking)
    tools = [(tool.name, "always") for tool in READING]
    assert [*tools, *((tool.name, f"`--allow-queries {tool.name}`") for tool in asking)] == rows


def test_the_examples_are_calls_that_the_server_takes() -> None:
    """Each example names a tool and gives arguments that fit it."""
    snippets = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    examples = [snippet for snippet in snippets if "arguments" in snippet]
    with thinkback.open(":memory:") as store:
        asking = asking_tools(Asker(store, [Asked("deepseek", "deepseek-v4-pro")], TokenBudget(1)))
    arguments = {tool.name: tool.arguments for tool in (*READING, *asking)}

    assert 4 == len(examples)
    for example in examples:
        msgspec.convert(example["arguments"], arguments[example["name"]])


def test_the_numbers_are_those_of_the_server() -> None:
    """Budget, output limit and the longest text stand on the page as they are."""
    for number in (DEFAULT_BUDGET, Query(prompt="-").max_output_tokens, LONGEST_TEXT):
        assert f"{number:,}" in PAGE
