"""Gemini behind Google's OpenAI-compatible endpoint."""

from __future__ import annotations

from .persona import GeminiCompat

__all__ = ["GeminiCompat"]
