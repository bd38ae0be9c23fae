"""Ollama's native chat API."""

from __future__ import annotations

from .persona import Ollama

__all__ = ["Ollama"]
