"""What chat templates add to requests: measured, sourced, below a person's row."""

from __future__ import annotations

import tomllib

import pytest

from thinkback.model.rule import Overhead
from thinkback.rules import load_rulebook, packaged

BOOK = load_rulebook()
TODAY = "2026-11-23"


def test_each_row_says_where_it_is_from() -> None:
    """Each has patterns, sane numbers, and a source that says how they were measured; none is hidden by one above."""
    seen: list[str] = []
    for row in tomllib.loads(packaged.texts()["overheads.toml"])["overhead"]:
        assert {"model", "tokens", "source"} == set(row)
        assert row["model"]
        assert row["source"].startswith("measured: ")
        assert all(0 <= tokens <= 2_000 for tokens in row["tokens"].values())
        assert set(seen).isdisjoint(row["model"])
        seen += row["model"]


@pytest.mark.parametrize(
    ("endpoint", "model", "overhead"),
    [
        ("anthropic", "claude-sonnet-4-5", Overhead(25, 4, 450, 40)),
        ("openrouter", "anthropic/claude-sonnet-4.5", Overhead(25, 4, 450, 40)),
        ("bedrock", "us.anthropic.claude-3-7-sonnet-20250219-v1:0", Overhead(25, 4, 280, 40)),
        ("openai", "o3", Overhead(3, 4)),
        ("groq", "openai/gpt-oss-120b", Overhead(62, 4)),
        ("gemini", "gemini-3-pro-preview", Overhead()),
        ("vllm", "a-model-of-1999", Overhead()),
    ],
)
def test_it_is_the_model_s_wherever_it_is_served(endpoint: str, model: str, overhead: Overhead) -> None:
    """The template belongs to the model; nothing is added for one that nobody measured."""
    assert overhead == BOOK.model_info(endpoint, model, TODAY).overhead


def test_a_person_s_row_is_believed() -> None:
    """It goes before the measured table."""
    own = '[[model]]\nmodel = "claude-sonnet-4-5"\nsource = "us"\noverhead.request = 7\n'
    assert Overhead(7) == load_rulebook({"own.toml": own}).model_info("anthropic", "claude-sonnet-4-5", TODAY).overhead


def test_a_request_has_what_its_messages_and_tools_add() -> None:
    """What tools add once is added where there is one."""
    overhead = Overhead(100, 3, 200, 10)
    assert (0, 106, 326) == (overhead.tokens(0, 2), overhead.tokens(2, 0), overhead.tokens(2, 2))
