"""Google's Interactions API: steps instead of messages, kept by the server or sent back whole."""

from __future__ import annotations

from .persona import Interactions

__all__ = ["Interactions"]
