"""``compile`` from the command line."""

from __future__ import annotations

import pytest

from tests.cli.command import Command


def test_now_and_then(talked: Command) -> None:
    """What holds now, at a commit, with reasoning where it is asked for; never an opaque value."""
    thoughts = [commit["text"] for commit in talked("log", "--kind", "reasoning", "--json").json]
    plain, full = talked("compile"), talked("compile", "--with-reasoning")
    assert (0, True, False) == (plain.code, "weather in Oslo" in plain.out, "[reasoning]" in plain.out)
    assert "[reasoning]" in full.out
    assert thoughts[0].split()[0] in full.out
    told = talked("compile", "--format", "json", "--strategy", "last", "--turns", "1").json
    assert "user" == told["messages"][0]["role"]
    assert told["token_count"] > 0
    first = talked("log", "--kind", "user", "--json").json[0]["hash"]
    assert 1 == len(talked("compile", first[:10], "--format", "json").json["messages"])
    assert 2 == talked("compile", "ffffffff").code


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "gemini", "openai-responses"])
def test_as_a_request(talked: Command, dialect: str) -> None:
    """In the words of a dialect."""
    body = talked("compile", "--format", dialect).json
    assert "Oslo" in str(body)
    assert any(key in body for key in ("messages", "contents", "input"))
