"""Every dialect's package offers what the registry takes of it; mypy is the judge."""

from __future__ import annotations

from thinkback.turn.dialects import Package
from thinkback.wire import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    gemini_interactions,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)

packages: tuple[Package, ...] = (
    anthropic,
    bedrock,
    cohere,
    gemini,
    gemini_interactions,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)
