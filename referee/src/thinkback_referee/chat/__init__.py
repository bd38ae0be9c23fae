"""Chat completions: DeepSeek, Kimi, Groq and Mistral with readable reasoning, OpenAI without any."""

from __future__ import annotations

from .persona import Chat

__all__ = ["Chat"]
