"""The page on the command line is what the commands say of themselves."""

from __future__ import annotations

from scripts.cli_reference import PAGE, page


def test_the_reference_is_the_help_of_the_commands() -> None:
    """docs/cli.md holds the current help of every command; `make docs` writes it."""
    assert page() == PAGE.read_text(encoding="utf-8")
