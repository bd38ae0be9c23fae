"""The programs whose histories can be read: the one place that knows them all. Each is imported when asked for."""

from __future__ import annotations

import functools
from importlib import import_module

from thinkback.errors import NotFoundError
from thinkback.formats.history import Format

MODULES: dict[str, str] = {
    "atif": "atif",
    "chat-jsonl": "chat_jsonl",
    "chatgpt": "chatgpt",
    "claude-ai": "claude_ai",
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini-cli": "gemini_cli",
    "llm": "llm",
    "opencode": "opencode",
    "otlp": "otlp",
    "pi": "pi",
}
"""Name of each program to its module under ``thinkback.formats``, which exports ``FORMAT``."""


@functools.cache
def program(name: str) -> Format:
    """The format of a program. Raises ``NotFoundError`` with those that exist."""
    if name not in MODULES:
        raise NotFoundError(
            f"histories of {name!r} cannot be read", next_actions=(f"use one of: {', '.join(sorted(MODULES))}",)
        )
    found: Format = import_module(f"thinkback.formats.{MODULES[name]}").FORMAT
    return found
