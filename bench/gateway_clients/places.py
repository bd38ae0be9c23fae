"""The providers that clients are to work with, as the referee plays them, and the names the gateway has for them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench.peers.places import PLACES as PEERS_PLACES
from bench.peers.places import Place

FRONTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
"""The dialects that the gateway speaks with clients."""

_MORE = (
    Place("OpenRouter chat, Gemini", "openrouter", "google/gemini-3.1-flash-lite-preview", "openrouter", "high"),
    Place("OpenAI Responses, bound", "openai", "gpt-6-sol", "openai"),
    Place("Bedrock", "bedrock", "us.anthropic.claude-sonnet-4-5-v1:0", "bedrock", "high"),
    Place("Bedrock, bound", "bedrock", "us.anthropic.claude-opus-5-5-v1:0", "bedrock"),
    Place("Vertex Claude", "vertex-claude", "claude-sonnet-4-5", "vertex-claude", "high"),
    Place("Vertex Gemini", "vertex", "gemini-3-pro-preview", "vertex"),
    Place("Gemini Interactions", "gemini-interactions", "gemini-3-pro-preview", "gemini-interactions"),
)
PLACES: Mapping[str, Place] = {**PEERS_PLACES, **{place.name: place for place in _MORE}}

# Where a client of a front is at home: the provider speaks that front at an address that such clients take.
_HOMES = {
    "DeepSeek chat": "openai-chat",
    "Kimi chat": "openai-chat",
    "Groq chat": "openai-chat",
    "Mistral": "openai-chat",
    "OpenAI chat": "openai-chat",
    "OpenRouter chat": "openai-chat",
    "OpenRouter chat, Gemini": "openai-chat",
    "Gemini chat": "openai-chat",
    "OpenAI Responses": "openai-responses",
    "OpenAI Responses, bound": "openai-responses",
    "Azure Responses": "openai-responses",
    "xAI Responses": "openai-responses",
    "Anthropic 4.5": "anthropic",
    "Anthropic 5.5": "anthropic",
    "DeepSeek Messages": "anthropic",
    "Gemini": "gemini",
}

DEMANDS = frozenset(
    {
        "DeepSeek chat",
        "Kimi chat",
        "OpenRouter chat",
        "OpenRouter chat, Gemini",
        "Gemini chat",
        "OpenAI Responses",
        "OpenAI Responses, bound",
        "Azure Responses",
        "Anthropic 4.5",
        "Anthropic 5.5",
        "DeepSeek Messages",
        "Gemini",
        "Bedrock",
        "Bedrock, bound",
        "Vertex Claude",
        "Vertex Gemini",
        "Gemini Interactions",
    }
)
"""Those that refuse a request whose reasoning is missing; the others go on without it."""


def front_of(place: Place) -> str:
    """The front that the provider itself speaks; empty: none of them, or at an address that its clients do not take."""
    return _HOMES.get(place.name, "")


def _aliases() -> dict[str, str]:
    named: dict[str, str] = {}
    for place in PLACES.values():
        # A name that stands in an address, too.
        model = re.sub(r"[/:]", "-", place.model)
        named[place.name] = f"{model}-{place.endpoint}" if model in named.values() else model
    return named


ALIASES = _aliases()
"""The model that a client asks the gateway for, by place."""
