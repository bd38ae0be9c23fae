"""Replay rules, endpoints and models: dated TOML, and what reads it.

Pure: user files come in as text, and the only thing read is the package's own data, once, on first use. Nothing here
decides what is sent; it says which row is in force for an endpoint, a model and a day, and where it came from.
"""

from __future__ import annotations

from thinkback.rules.book import Rulebook, load_rulebook
from thinkback.rules.urls import normalise_url

__all__ = ["Rulebook", "load_rulebook", "normalise_url"]
