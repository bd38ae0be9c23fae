"""The registry: which personas a referee plays. One line each; a host's first persona gives its base URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from .anthropic import Anthropic
from .bedrock import Bedrock
from .chat import Chat
from .cohere import Cohere
from .gemini import Gemini
from .gemini_compat import GeminiCompat
from .interactions import Interactions
from .ollama import Ollama
from .openrouter import OpenRouter
from .persona import Persona
from .responses import Responses

FACTORIES: Mapping[str, Callable[[], Persona]] = MappingProxyType(
    {
        "chat": Chat,
        "openrouter": OpenRouter,
        "responses": Responses,
        "anthropic": Anthropic,
        "bedrock": Bedrock,
        "gemini": Gemini,
        "interactions": Interactions,
        "gemini_compat": GeminiCompat,
        "cohere": Cohere,
        "ollama": Ollama,
    }
)


def make_personas() -> tuple[Persona, ...]:
    """Fresh personas, with empty ledgers."""
    return tuple(make() for make in FACTORIES.values())


def by_host(personas: tuple[Persona, ...]) -> dict[str, list[Persona]]:
    """The personas that answer to each host name, in the order of the registry."""
    found: dict[str, list[Persona]] = {}
    for persona in personas:
        for host in persona.hosts:
            found.setdefault(host, []).append(persona)
    return found


_PLAYED = by_host(make_personas())
HOSTS: Mapping[str, str] = MappingProxyType(
    {host: f"/{host}{personas[0].base_path(host)}" for host, personas in _PLAYED.items()}
)
"""The path of each host's base URL."""


def models_of(host: str) -> list[str]:
    """The model names that a host lists, whatever the format."""
    return list(dict.fromkeys(model for persona in _PLAYED.get(host, ()) for model in persona.models(host)))
