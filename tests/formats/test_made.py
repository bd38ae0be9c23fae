"""Files that real programs wrote (``make histories``), against a count of their lines made without the readers."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.formats.samples import drafts, read
from tests.formats.test_every import check

MADE = Path(__file__).parent / "made"
FILES = sorted(path.name for path in MADE.iterdir())
# Which lines hold what was said, and what a block is called in them.
SAID = {"claude-code": {"assistant", "user"}, "codex": {"response_item"}, "pi": {"message"}, "gemini-cli": {"gemini"}}
CALLS = {"tool_use", "function_call", "custom_tool_call", "toolCall"}
RESULTS = {"tool_result", "function_call_output", "custom_tool_call_output"}


def counted(name: str, data: str) -> Counter[str]:
    """Calls, results and thoughts, by the names of types and members alone."""
    found: Counter[str] = Counter()
    calls: dict[str, dict[str, Any]] = {}
    for line in map(json.loads, data.splitlines()):
        if line.get("type") not in SAID[name]:
            continue
        if name == "gemini-cli":  # the last line with an id holds all of the message
            calls[line["id"]] = line
            continue
        content = [line["payload"]] if name == "codex" else line["message"]["content"]
        for part in content if isinstance(content, list) else []:
            found["calls"] += part.get("type") in CALLS
            found["results"] += part.get("type") in RESULTS
            found["thoughts"] += part.get("type") in ("thinking", "reasoning")
        found["results"] += name == "pi" and line["message"]["role"] == "toolResult"
    for line in calls.values():
        found["calls"] += len(line.get("toolCalls", []))
        found["results"] += sum("result" in call for call in line.get("toolCalls", []))
        found["thoughts"] += len(line.get("thoughts", []))
    return found


@pytest.mark.parametrize("file", FILES)
def test_every_thought_call_and_result_is_there(file: str) -> None:
    """No more, no fewer, in an order that a log can hold; usage is there, and no line is damaged."""
    match = re.fullmatch(r"(.+)-([0-9.]+)\.jsonl", file)
    assert match is not None
    data = (MADE / file).read_text(encoding="utf-8")
    found = read(match[1], data.encode())
    check(found)
    kinds = Counter(draft.kind for history in found.sessions for draft in drafts(history))
    expected = counted(match[1], data)
    assert expected == Counter(calls=kinds["tool_call"], results=kinds["tool_result"], thoughts=kinds["reasoning"])
    assert 0 < kinds["provider_usage"] <= kinds["response"]
    assert not [left for left in found.left if "damaged" in left.what]
