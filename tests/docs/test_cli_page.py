"""The page on the command line, and the manual page, are what the commands say of themselves."""

from __future__ import annotations

import subprocess
import sys

from scripts.cli_reference import MANUAL, PAGE


def test_the_reference_is_the_help_of_the_commands() -> None:
    """docs/cli.md and docs/thinkback.1 hold the current help of every command; `make docs` writes both.

    In a process of its own: a command keeps the help option that it is first asked for, by whatever test.
    """
    told = "from scripts.cli_reference import manual, page; print(page(), manual(), sep='\\0', end='')"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, cwd=PAGE.parents[1])

    sections = [line.strip('"') for line in MANUAL.read_text(encoding="utf-8").split("\n.SH ")][1:]
    names = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT"]
    assert names == [section.partition("\n")[0].strip('"') for section in sections][:7]
    assert done.stdout.split("\0") == [file.read_text(encoding="utf-8") for file in (PAGE, MANUAL)]
