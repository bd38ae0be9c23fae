"""What a recorded or compiled request carries of earlier reasoning: counts, and the hashes of its opaque values.

Walks any request body; what people and tools said is passed over. Must not: show an opaque value.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

COUNTED = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_items",
    "summaries",
    "content",
    "thinking",
    "thinking_blocks",
    "redacted",
    "thought_parts",
    "reasoning_blocks",
    "think_tags",
    "signatures",
    "encrypted",
    "tool_calls",
    "previous_response_id",
    "previous_interaction_id",
)
"""What is counted; a text counts where it holds more than white space: a placeholder is no reasoning."""

_TAG = re.compile(r"</?(think|thinking|thought|reasoning|analysis)>|\[/?THINK\]")
_MESSAGES = ("messages", "contents", "input")
_PEOPLE = frozenset({"user", "system", "developer", "tool", "function"})
_RESULTS = frozenset(
    {"tool_result", "function_call_output", "custom_tool_call_output", "function_result", "user_input"}
)
_CALLS = frozenset({"tool_use", "function_call", "custom_tool_call"})
_CALL_MEMBERS = frozenset({"functionCall", "function_call", "toolUse"})
_SIGNATURES = frozenset({"signature", "thoughtSignature", "thought_signature"})
_ENCRYPTED = frozenset({"encrypted_content", "redactedContent"})
_SECRET_DATA = frozenset({"redacted_thinking", "reasoning.encrypted"})
_ENCRYPTED_REASONING = frozenset({("encrypted_content", "reasoning"), ("data", "reasoning.encrypted")})
_FIELDS = frozenset({"reasoning_content", "reasoning", "thinking"})
# What belongs to tools: whatever stands in there was not made by a provider to be given back.
_FOREIGN = frozenset({"arguments", "args", "input", "output", "response", "result", "toolResult"})
# Gemini's documented stand-ins for a signature, plain and as the base64 that its SDK makes of them.
_STAND_INS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_DUMMIES = frozenset({*_STAND_INS, *(base64.b64encode(each.encode()).decode() for each in _STAND_INS)})
_STANDARD = str.maketrans("-_", "+/")


def carry(body: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of what the messages of ``body`` carry, and the sha256 prefixes of their opaque values in order."""
    found = _Scan()
    for name in _MESSAGES:
        found.walk(body.get(name))
    for name in ("previous_response_id", "previous_interaction_id"):
        found.count(name, bool(body.get(name)))
    counts = {key: found.counts[key] for key in COUNTED if found.counts.get(key)}
    return {**counts, "opaque_sha256": found.opaque}


class _Scan:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.opaque: list[str] = []

    def count(self, key: str, number: int) -> None:
        self.counts[key] = self.counts.get(key, 0) + number

    def walk(self, node: Any) -> None:
        """Everything under ``node`` that a provider made."""
        if isinstance(node, list | tuple):
            for each in node:
                self.walk(each)
        elif isinstance(node, dict) and node.get("role") not in _PEOPLE and node.get("type") not in _RESULTS:
            self._object(node)

    def _object(self, node: Mapping[str, Any]) -> None:
        kind = str(node.get("type") or "")
        if node.get("role") in ("assistant", "model"):
            self._message(node)
        if kind == "reasoning" and "role" not in node:
            self.count("reasoning_items", 1)
            self.count("summaries", bool(node.get("summary")))
            self.count("content", bool(node.get("content")))
        self.count("thinking_blocks", kind == "thinking")
        self.count("redacted", kind == "redacted_thinking" or bool(node.get("redactedContent")))
        self.count("reasoning_blocks", "reasoningContent" in node)
        self.count("thought_parts", node.get("thought") is True)
        self.count("tool_calls", kind in _CALLS or not _CALL_MEMBERS.isdisjoint(node))
        for key, value in node.items():
            if isinstance(value, str):
                self._value(kind, key, value)
            elif key not in _FOREIGN:
                self.walk(value)

    def _message(self, node: Mapping[str, Any]) -> None:
        for field in _FIELDS:
            value = node.get(field)
            self.count(field, isinstance(value, str) and bool(value.strip()))
        calls, details = node.get("tool_calls"), node.get("reasoning_details")
        self.count("tool_calls", len(calls) if isinstance(calls, list) else 0)
        self.count("reasoning_details", isinstance(details, list) and any(isinstance(each, dict) for each in details))
        self.count("think_tags", sum(_TAG.search(text) is not None for text in _visible_texts(node)))

    def _value(self, kind: str, key: str, value: str) -> None:
        """A text of an object: one that is opaque is counted and listed."""
        if not value or not (key in _SIGNATURES or key in _ENCRYPTED or (key == "data" and kind in _SECRET_DATA)):
            return
        self.count("signatures", key in _SIGNATURES)
        self.count("encrypted", (key, kind) in _ENCRYPTED_REASONING)
        self.opaque.append(_prefix(key, value))


def _prefix(key: str, value: str) -> str:
    """The beginning of a value's hash. Gemini's are bytes, which clients write in either alphabet of base64."""
    if value in _DUMMIES:
        return "stand-in"
    if key in ("thoughtSignature", "thought_signature"):
        value = value.translate(_STANDARD)
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _visible_texts(message: Mapping[str, Any]) -> list[str]:
    """The visible texts of a message."""
    content = message.get("content", message.get("parts"))
    if not isinstance(content, Sequence) or isinstance(content, str):
        return [content] if isinstance(content, str) else []
    return [str(part.get("text", "")) for part in content if isinstance(part, dict) and not part.get("thought")]
