"""Cohere's chat API, version 2."""

from __future__ import annotations

from .persona import Cohere

__all__ = ["Cohere"]
