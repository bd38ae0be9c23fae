"""Whose words a refusal over reasoning has: the provider's, or the referee's own, where no provider's are known.

An answer in words of the referee's own says so in the header ``x-referee-wording``; clients must not rely on them.
"""

from __future__ import annotations

import re

from .anthropic.replay import INVALID_DATA
from .chat.profiles import GROQ, MISTRAL
from .cohere import profiles as cohere
from .gemini import signatures as gemini
from .ollama import profiles as ollama

OWN = (
    # Interactions: what it says to a step that is missing or altered is not documented at all.
    "Invalid signature in step {index}.",
    "Thought step {index} was modified.",
    "A thought step is missing at step {index}.",
    "Steps are out of order at step {index}.",
    "Duplicate signature in step {index}.",
    # Chat completions and Responses: providers cannot tell a stranger's text from their own.
    "The reasoning of messages[{index}] was issued by another provider",
    "The reasoning of messages[{index}] repeats that of an earlier message",
    "The reasoning of messages[{index}] is not the one that was issued",
    "The reasoning text of {place} is not the one that was issued",
    "The reasoning text of {place} was issued by another provider",
    GROQ.changed,
    MISTRAL.changed,
    cohere.CHANGED,
    cohere.REPEATED,
    ollama.CHANGED,
    ollama.REPEATED,
    gemini.REPEATED,
    gemini.MOVED,
    gemini.LATE_DUMMY,
    INVALID_DATA,
    " The messages before it differ from those this block was created with.",
)
"""Texts of refusals over reasoning, with names in braces for what differs."""


def is_own(text: str) -> bool:
    """Whether ``text`` is worded by the referee itself."""
    return _OWN.search(text) is not None


def _pattern(text: str) -> str:
    return ".+?".join(map(re.escape, re.split(r"\{\w+\}", text)))


_OWN = re.compile("|".join(map(_pattern, OWN)))
