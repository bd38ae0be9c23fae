"""Bedrock's runtime as a persona: signed requests, binary event streams, Claude's rules wrapped, other models' own."""

from __future__ import annotations

from .persona import API_KEY, Bedrock
from .plain import NO_REASONING
from .sigv4 import KEY, OTHER_KEY, TEMPORARY_KEY, Credential

__all__ = ["API_KEY", "KEY", "NO_REASONING", "OTHER_KEY", "TEMPORARY_KEY", "Bedrock", "Credential"]
