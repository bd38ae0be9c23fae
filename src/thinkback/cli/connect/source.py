"""What the readers of the agents' formats share: the error for a text that cannot be changed, and places in a text."""

from __future__ import annotations

import json
from typing import NamedTuple


class Damaged(Exception):
    """A text that its format does not allow, or in a form that cannot be changed; lines count from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line, self.reason = line, reason


class Span(NamedTuple):
    """Where a value stands in a text."""

    start: int
    end: int


def line_of(text: str, at: int) -> int:
    """The number of the line that ``at`` is on."""
    return text.count("\n", 0, at) + 1


def newline_of(text: str) -> str:
    """How lines of ``text`` end."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def end_of_line(text: str, at: int) -> int:
    """The place behind the end of the line that ``at`` is on."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def quoted(value: object) -> str:
    """A text or truth value as JSON, TOML and YAML all write it."""
    # DEL is a control character that JSON lets through and TOML does not
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
