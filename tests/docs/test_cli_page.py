"""The page on the command line is what the commands say of themselves."""

from __future__ import annotations

import subprocess
import sys

from scripts.cli_reference import PAGE


def test_the_reference_is_the_help_of_the_commands() -> None:
    """docs/cli.md holds the current help of every command; `make docs` writes it.

    In a process of its own: a command keeps the help option that it is first asked for, by whatever test.
    """
    told = "from scripts.cli_reference import page; print(page(), end='')"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, cwd=PAGE.parents[1])

    assert done.stdout == PAGE.read_text(encoding="utf-8")
