"""The registry: which providers a referee plays. One line each; a host's first provider gives its base URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .anthropic import ANTHROPIC
from .bedrock import BEDROCK
from .chat import CHAT
from .cohere import COHERE
from .gemini import GEMINI
from .gemini_compat import GEMINI_COMPAT
from .interactions import INTERACTIONS
from .ollama import OLLAMA
from .openrouter import OPENROUTER
from .persona import AnyPersona, Persona, Provider
from .responses import RESPONSES

PROVIDERS: Mapping[str, Provider[Any, Any]] = MappingProxyType(
    {
        "chat": CHAT,
        "openrouter": OPENROUTER,
        "responses": RESPONSES,
        "anthropic": ANTHROPIC,
        "bedrock": BEDROCK,
        "gemini": GEMINI,
        "interactions": INTERACTIONS,
        "gemini_compat": GEMINI_COMPAT,
        "cohere": COHERE,
        "ollama": OLLAMA,
    }
)


def make_personas() -> tuple[AnyPersona, ...]:
    """Fresh personas, with empty ledgers."""
    return tuple(Persona(provider) for provider in PROVIDERS.values())


def by_host(personas: Sequence[AnyPersona]) -> dict[str, list[AnyPersona]]:
    """The personas that answer to each host name, in the order of the registry."""
    found: dict[str, list[AnyPersona]] = {}
    for persona in personas:
        for host in persona.provider.hosts:
            found.setdefault(host, []).append(persona)
    return found


_PLAYED = by_host(make_personas())
HOSTS: Mapping[str, str] = MappingProxyType(
    {host: f"/{host}{personas[0].provider.hosts[host]}" for host, personas in _PLAYED.items()}
)
"""The path of each host's base URL."""


def models_of(host: str) -> list[str]:
    """The model names that a host lists, whatever the format."""
    return list(dict.fromkeys(model for persona in _PLAYED.get(host, ()) for model in persona.provider.models(host)))
