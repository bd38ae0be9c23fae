"""``replay`` as a command: a table per exchange, or the comparison as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Command

QUESTION = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Hello.", "reasoning_content": "A greeting."}


@pytest.fixture
def case(tmp_path: Path) -> str:
    """A recorded conversation of two exchanges whose second request brings the reasoning back."""

    def exchange(*messages: object) -> dict[str, object]:
        return {
            "dialect": "openai-chat",
            "provider": "deepseek",
            "request": {"body": {"model": "deepseek-v4-pro", "messages": list(messages)}},
            "response": {"status": 200, "body": {"choices": [{"finish_reason": "stop", "message": ANSWER}]}},
        }

    file = tmp_path / "case.json"
    file.write_text(json.dumps({"case": "c", "exchanges": [exchange(QUESTION), exchange(QUESTION, ANSWER, QUESTION)]}))
    return str(file)


def test_a_case_is_shown_exchange_by_exchange(command: Command, case: str) -> None:
    """Each exchange has a heading with endpoint, model and rule, and a table of what was carried and what is."""
    done = command("replay", case)

    assert 0 == done.code
    assert "exchange 1: deepseek deepseek-v4-pro, rule deepseek-v4" in done.out
    assert "  1 earlier response in the request\n" in done.out
    assert "reasoning_content" in done.out


def test_a_case_as_json_is_the_comparison(command: Command, case: str) -> None:
    """``--json`` prints the comparison as it is."""
    assert [0, 1] == [row["exchange"] for row in command("replay", case, "--json").json["exchanges"]]


def test_a_file_that_is_no_case_is_refused(command: Command, tmp_path: Path) -> None:
    """A missing file and a file of another kind are told as such."""
    (tmp_path / "other.json").write_text("[]")

    assert 2 == command("replay", str(tmp_path / "missing.json")).code
    assert 3 == command("replay", str(tmp_path / "other.json")).code
