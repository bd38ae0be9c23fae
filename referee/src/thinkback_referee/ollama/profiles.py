"""Ollama's models as rows, and its sentences. Those without a mark are Ollama's own."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Profile:
    """One model."""

    model: str
    thinking: bool = True
    """Whether it can think, and reads thoughts that come back."""
    tools: bool = True
    switch: bool = True
    """Whether ``think: false`` turns thinking off; gpt-oss ignores booleans."""
    leaks: bool = False
    """Whether a thought that comes in spite of ``think: false`` stands in the content, closed by a lone tag."""


_ROWS = (
    Profile("qwen3:4b", leaks=True),
    Profile("gpt-oss:20b", switch=False),
    Profile("deepseek-r1:8b"),
    Profile("llama3.2:3b", thinking=False),
    Profile("gemma3:4b", thinking=False, tools=False),
)
PROFILES: MappingProxyType[str, Profile] = MappingProxyType({row.model: row for row in _ROWS})

LEVELS = ("high", "medium", "low", "max")
BAD_THINK = 'invalid think value: "{value}" (must be "high", "medium", "low", "max", true, or false)'
NO_THINKING = '"{model}" does not support thinking'
NO_TOOLS = "registry.ollama.ai/library/{model} does not support tools"
NO_MODEL = "model is required"
UNKNOWN_MODEL = "model '{model}' not found"
BAD_ARGUMENTS = (
    "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type "
    "api.ToolCallFunctionArguments"
)

# Ollama ignores what the sentences below refuse; their texts are the referee's.
UNKNOWN_FIELD = 'unknown field "{name}" at {place}'
BAD_ROLE = 'invalid role "{role}" at messages[{index}]'
STRAY = "no tool call precedes messages[{index}]"
UNANSWERED = "tool calls of messages[{index}] are not answered"
LAST = "the last message is the assistant's"
UNREADABLE = "messages[{index}].thinking is for models that think"
CHANGED = "messages[{index}].thinking is not the one that was generated"
REPEATED = "messages[{index}].thinking repeats that of an earlier message"
OWN = (UNKNOWN_FIELD, BAD_ROLE, STRAY, UNANSWERED, LAST, UNREADABLE, CHANGED, REPEATED)
