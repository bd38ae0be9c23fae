"""Cohere's models as rows, and its sentences. Those without a mark are Cohere's own."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Profile:
    """One model."""

    model: str
    reasons: bool = True
    """Whether it has thoughts, and takes them back."""


_ROWS = (
    Profile("command-a-reasoning-08-2025"),
    Profile("command-a-plus-05-2026"),
    Profile("command-a-03-2025", reasons=False),
    Profile("command-r-plus-08-2024", reasons=False),
    Profile("command-r7b-12-2024", reasons=False),
)
PROFILES: MappingProxyType[str, Profile] = MappingProxyType({row.model: row for row in _ROWS})

UNAUTHORIZED = "invalid api token"
NO_KEY = "no api key supplied"
UNKNOWN_MODEL = (
    "model '{model}' not found, make sure the correct model ID was used and that you have access to the model."
)
NO_MODEL = "a model parameter is required for this endpoint."
UNKNOWN_FIELD = "unknown field: parameter '{name}' is not a valid field"
BAD_JSON = "invalid json syntax: {error}"
STRAY = "tool call id not found in previous tool calls"
DUPLICATE_ID = "cannot have duplicate tool ids"
NO_CALL_ID = "tool call id must be provided with tool message"
NOT_A_FUNCTION = "tool call must be of type function"
EMPTY_TURN = "message must not be empty in a turn"
SYSTEM_FIRST = "system turn must be the first in the list"

# Texts below are unconfirmed.
NO_MESSAGES = "invalid request: messages must not be empty"
BAD_ROLE = "invalid request: invalid role '{role}' provided for messages[{index}]"
BAD_CONTENT = "invalid request: invalid content of messages[{index}]"
UNANSWERED = "invalid request: tool calls of messages[{index}] must be followed by their results"
LAST = "invalid request: the last message must be from the user or a tool"
ALONE = "invalid request: messages[{index}] must have text or tool calls beside its thinking"
NO_THINKING = "invalid request: thinking is not supported by the provided model: {model}"
BAD_THINKING = "invalid request: thinking type must be one of 'enabled' or 'disabled'"
BAD_BUDGET = "invalid request: thinking token_budget must be a positive integer"
CHANGED = "invalid request: the thinking of messages[{index}] is not the one that was generated"
REPEATED = "invalid request: the thinking of messages[{index}] repeats that of an earlier message"
OWN = (
    NO_MESSAGES, BAD_ROLE, BAD_CONTENT, UNANSWERED, LAST, ALONE, NO_THINKING, BAD_THINKING, BAD_BUDGET, CHANGED,
    REPEATED,
)  # fmt: skip
