"""The Responses API: OpenAI, Azure, xAI, ChatGPT's Codex backend, Copilot, OpenRouter, DeepSeek, LM Studio."""

from __future__ import annotations

from .persona import Responses

__all__ = ["Responses"]
