"""A user's rule file that moves endpoints of the catalogue to the referee."""

from __future__ import annotations

from pathlib import Path

from thinkback.referee import Referee


def at_referee(config: Path, referee: Referee) -> None:
    """DeepSeek and Anthropic at the referee, for the configuration directory ``config``."""
    config.mkdir(exist_ok=True)
    (config / "rules.toml").write_text(
        f"""
        [[endpoint]]
        id = "deepseek"
        name = "DeepSeek"
        base_url = "{referee.base_url("deepseek")}"
        auth = {{ env = ["DEEPSEEK_API_KEY"] }}
        source = "a test"

        [[endpoint]]
        id = "anthropic"
        name = "Anthropic"
        base_url = "{referee.base_url("anthropic")}"
        dialect = "anthropic"
        path = "/messages"
        auth = {{ scheme = "header", header = "x-api-key", env = ["ANTHROPIC_API_KEY"] }}
        headers = {{ anthropic-version = "2023-06-01" }}
        source = "a test"
        """
    )
