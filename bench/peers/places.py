"""The places that peers are sent to, and the tools that they offer there."""

from __future__ import annotations

from typing import NamedTuple

KEY = "sk-peers-0123456789"
# The version of the Messages API that the referee plays; newer clients name a newer one unless told.
VERSION = {"anthropic-version": "2023-06-01"}


class Place(NamedTuple):
    """A provider's API as the referee plays it: ``host`` is its name there."""

    name: str
    host: str
    model: str
    endpoint: str
    """What thinkback calls it."""
    effort: str = ""
    """What every client asks for; empty: nothing, since the model thinks on its own."""


PLACES = {
    place.name: place
    for place in (
        Place("DeepSeek chat", "deepseek", "deepseek-v4-pro", "deepseek"),
        Place("Kimi chat", "kimi", "kimi-k2-thinking", "kimi"),
        Place("Groq chat", "groq", "openai/gpt-oss-120b", "groq"),
        Place("Mistral", "mistral", "magistral-medium-latest", "mistral"),
        Place("OpenAI chat", "openai", "gpt-5", "openai-chat"),
        Place("OpenAI Responses", "openai", "gpt-5.6", "openai"),
        Place("Azure Responses", "azure", "gpt-5.6", "azure-openai"),
        Place("xAI Responses", "xai", "grok-4.5", "xai"),
        Place("OpenRouter chat", "openrouter", "anthropic/claude-haiku-4.5", "openrouter", "high"),
        Place("Anthropic 4.5", "anthropic", "claude-sonnet-4-5", "anthropic", "high"),
        Place("Anthropic 5.5", "anthropic", "claude-opus-5-5", "anthropic"),
        Place("DeepSeek Messages", "deepseek-anthropic", "deepseek-v4-pro", "deepseek-anthropic"),
        Place("Gemini", "gemini", "gemini-3-pro-preview", "gemini"),
        Place("Gemini chat", "gemini-openai", "gemini-3-pro-preview", "gemini-openai"),
        Place("Cohere", "cohere", "command-a-reasoning-08-2025", "cohere"),
        Place("Ollama", "ollama", "gpt-oss:20b", "ollama-native"),
    )
}

SCHEMA: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ABOUT = {"weather": "The weather of a city", "clock": "The time in a city"}
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": about, "parameters": SCHEMA}}
    for name, about in ABOUT.items()
]
RESPONSES_TOOLS = [
    {"type": "function", "name": name, "description": about, "parameters": SCHEMA} for name, about in ABOUT.items()
]
MESSAGES_TOOLS = [{"name": name, "description": about, "input_schema": SCHEMA} for name, about in ABOUT.items()]
