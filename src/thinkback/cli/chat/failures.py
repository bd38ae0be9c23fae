"""What goes wrong with a line of the chat: whose fault it is, its exit code and its text."""

from __future__ import annotations

import click

from thinkback.cli import exits, hints
from thinkback.errors import ThinkbackError

EXPECTED = (click.ClickException, ThinkbackError, OSError)
"""What may go wrong with a line without a fault of ours."""


def report(error: Exception) -> tuple[int, str]:
    """Exit code and text of what went wrong."""
    match error:
        case click.ClickException():
            return error.exit_code, error.format_message()
        case ThinkbackError():
            return exits.code_of(error.kind), hints.for_chat(error).for_people()
        case OSError():
            return exits.FAILED, f"{error.strerror or error}: {error.filename or 'no file is named'}"
        case _:
            text = f"unexpected failure: {type(error).__name__}: {error}\n  - THINKBACK_DEBUG=1 shows where"
            return exits.FAILED, text
