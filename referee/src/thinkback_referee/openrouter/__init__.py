"""OpenRouter's chat completions: ``reasoning_details`` with the carriers of the model's own provider."""

from __future__ import annotations

from .persona import OpenRouter

__all__ = ["OpenRouter"]
