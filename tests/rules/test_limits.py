"""Limits from a catalogue: below every row, known for the models that people use most."""

from __future__ import annotations

import tomllib

import pytest

from thinkback.rules import load_rulebook, packaged

BOOK = load_rulebook()
TODAY = "2026-11-23"


def test_each_table_is_for_endpoints_that_there_are() -> None:
    """Each endpoint once, each limit a number of tokens, each with its day and its source."""
    tables = tomllib.loads(packaged.texts()["limits.toml"])["limit"]
    named = [id for table in tables for id in table["endpoint"]]
    assert len(named) == len(set(named))
    assert {place.id for place in BOOK.endpoints()} >= set(named)
    for table in tables:
        assert table["since"] <= TODAY
        assert "models.dev" in table["source"]
        assert all(1_000 <= int(tokens) <= 20_000_000 for tokens in table["models"])
        assert set(packaged.limits(table["endpoint"][0])) == {
            name.lower() for names in table["models"].values() for name in names
        }


@pytest.mark.parametrize(
    ("endpoint", "model", "context"),
    [
        ("anthropic", "claude-fable-5-1", 1_000_000),
        ("anthropic", "claude-fable-5-1-20990101", 1_000_000),
        ("anthropic", "Claude-Fable-5-1", 1_000_000),
        ("vllm", "claude-fable-5-1", 0),
        ("anthropic", "claude-nobody-knows", 0),
    ],
)
def test_a_model_without_a_row_of_its_own_has_the_catalogue_s_limit(endpoint: str, model: str, context: int) -> None:
    """Also under a name with another day; nothing is known of a server's own models."""
    info = BOOK.model_info(endpoint, model, TODAY)
    assert context == info.context
    assert ("models.dev" in info.source) == (context > 0)


def test_rows_go_before_the_catalogue() -> None:
    """A person's and the package's; and nothing is known before the day of the snapshot."""
    own = '[[model]]\nmodel = "claude-fable-5-1"\nendpoint = "anthropic"\ncontext = 7\nsource = "us"\n'
    assert 7 == load_rulebook({"own.toml": own}).model_info("anthropic", "claude-fable-5-1", TODAY).context
    assert 0 == BOOK.model_info("anthropic", "claude-fable-5-1", "2025-01-01").context
    assert 1_000_000 == BOOK.model_info("deepseek", "deepseek-v4-pro", TODAY).context
