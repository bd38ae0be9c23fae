"""A user's rule file that moves endpoints of the catalogue to the referee."""

from __future__ import annotations

from pathlib import Path

from thinkback_referee import Referee

ENDPOINTS = {
    "deepseek": """
        name = "DeepSeek"
        auth = { env = ["DEEPSEEK_API_KEY"] }
    """,
    "anthropic": """
        name = "Anthropic"
        dialect = "anthropic"
        path = "/messages"
        auth = { scheme = "header", header = "x-api-key", env = ["ANTHROPIC_API_KEY"] }
        headers = { anthropic-version = "2023-06-01" }
    """,
}


def at_referee(config: Path, referee: Referee, *names: str) -> None:
    """The endpoints ``names`` (all of them unless named) at the referee, for the configuration directory ``config``."""
    config.mkdir(exist_ok=True)
    tables = (
        f'[[endpoint]]\nid = "{name}"\nsource = "a test"\nbase_url = "{referee.base_url(name)}"\n{ENDPOINTS[name]}'
        for name in names or ENDPOINTS
    )
    (config / "rules.toml").write_text("\n".join(tables))
