"""Google's generateContent, at AI Studio and at Vertex."""

from __future__ import annotations

from .persona import Gemini

__all__ = ["Gemini"]
