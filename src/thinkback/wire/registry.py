"""The dialects that are built in: the one place that knows them all. Each is imported when it is first asked for.

Promises: importing this module imports no dialect. Must not: know anything of a dialect but its name and its package.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING

from thinkback.errors import NotFoundError

if TYPE_CHECKING:
    from thinkback.wire.dialect import Dialect
    from thinkback.wire.front import Front

PACKAGES: dict[str, str] = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "gemini": "gemini",
    "gemini-interactions": "gemini_interactions",
    "mistral": "mistral",
    "ollama": "ollama",
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
}
"""Name of each dialect to its package under ``thinkback.wire``, which exports ``DIALECT``."""

FRONTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
"""The dialects that clients of a gateway speak. Where several claim a request, the last one has it."""

CHAT = "openai-chat"
"""The dialect of what names none: an endpoint, a program's history or tools, a client."""


@functools.cache
def dialect(name: str) -> Dialect:
    """The dialect ``name``. Raises ``NotFoundError`` with those that exist."""
    if name not in PACKAGES:
        raise NotFoundError(
            f"there is no dialect {name!r}", next_actions=(f"use one of: {', '.join(sorted(PACKAGES))}",)
        )
    found: Dialect = import_module(f"thinkback.wire.{PACKAGES[name]}").DIALECT
    return found


@functools.cache
def front(name: str) -> Front:
    """The front of the dialect ``name``. Raises ``NotFoundError`` with those that exist."""
    made = dialect(name).front if name in PACKAGES else None
    if made is None:
        raise NotFoundError(
            f"responses cannot be written in the dialect {name!r}",
            next_actions=(f"use one of: {', '.join(sorted(FRONTS))}",),
        )
    return made()
