"""Every dialect's package exports its ``DIALECT``, and every front its ``FRONT``; mypy is the judge."""

from __future__ import annotations

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
from thinkback.wire.anthropic import front as anthropic_front
from thinkback.wire.dialect import Dialect
from thinkback.wire.front import Front
from thinkback.wire.gemini import front as gemini_front
from thinkback.wire.openai_chat import front as openai_chat_front
from thinkback.wire.openai_responses import front as openai_responses_front

packages: tuple[Dialect, ...] = (
    anthropic.DIALECT,
    bedrock.DIALECT,
    cohere.DIALECT,
    gemini.DIALECT,
    gemini_interactions.DIALECT,
    mistral.DIALECT,
    ollama.DIALECT,
    openai_chat.DIALECT,
    openai_responses.DIALECT,
)
fronts: tuple[Front, ...] = (
    anthropic_front.FRONT,
    gemini_front.FRONT,
    openai_chat_front.FRONT,
    openai_responses_front.FRONT,
)
