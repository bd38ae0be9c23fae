"""Are messages and their blocks well formed? Roles, fields, and which block may stand where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from ..jsons import as_list, as_object, as_text
from ..verdict import Verdict
from .refusals import extra, refuse, required, wrong
from .request import Block, blocks_of

# Widely reported texts, not in the reference (text unconfirmed).
EMPTY_TEXT = "messages: text content blocks must be non-empty"
EMPTY_MESSAGE = (
    "messages.{index}: all messages must have non-empty content except for the optional final assistant message"
)
NO_SYSTEM_ROLE = (
    'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
    'not "system" as an input message role.'
)
FIRST_ROLE = 'messages: first message must use the "user" role'
# The reference's own texts.
NO_SIGNATURE = "{path}.thinking.signature: Field required"
BAD_SIGNATURE = "{path}.thinking.signature.str: Input should be a valid string"
_MARKED = frozenset({"type", "cache_control"})
_KEYS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "text": _MARKED | {"text", "citations"},
        "thinking": frozenset({"type", "thinking", "signature"}),
        "redacted_thinking": frozenset({"type", "data"}),
        "tool_use": _MARKED | {"id", "name", "input", "caller"},
        "tool_result": _MARKED | {"tool_use_id", "content", "is_error"},
    }
)
_ASSISTANT_ONLY = frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"})
_USER_ONLY = frozenset({"tool_result", "image", "document", "search_result", "container_upload"})
_OTHERS = _USER_ONLY | {
    "server_tool_use",
    "mcp_tool_use",
    "tool_reference",
    "tool_addition",
    "tool_removal",
    "compaction",
    "fallback",
    "connector_text",
}
_ROLES = ("user", "assistant")
_STRING = "a valid string"


def message_faults(signed: bool, late_system: bool, messages: object) -> Iterator[Verdict]:
    """What is wrong with messages, in their order; ``signed``: thinking must carry a signature."""
    for index, value in enumerate(as_list(messages)):
        message = as_object(value)
        role = as_text(message.get("role"))
        if role == "system" and not late_system:
            yield refuse(NO_SYSTEM_ROLE, f"system message at messages.{index}")
        if role not in (*_ROLES, "system"):
            yield wrong(f"messages.{index}.role", "'user' or 'assistant'")
        if not index and role != "user":
            yield refuse(FIRST_ROLE, "first message is not the user's")
        yield from (extra(f"messages.{index}.{name}") for name in message if name not in ("role", "content"))
        content = message.get("content")
        if not isinstance(content, str | list):
            yield (
                required(f"messages.{index}.content")
                if content is None
                else wrong(f"messages.{index}.content", "a valid list")
            )
        final = index == len(as_list(messages)) - 1 and role == "assistant"
        if not content and not final:
            yield refuse(EMPTY_MESSAGE.format(index=index), f"empty messages.{index}")
        for block in blocks_of(index, content) if isinstance(content, list) else ():
            yield from _block_faults(signed, role, block)


def _block_faults(signed: bool, role: str, block: Block) -> Iterator[Verdict]:
    kind, raw = block.kind, block.raw
    if kind not in _KEYS and kind not in _OTHERS and not kind.endswith("_tool_result"):
        tags = ", ".join(f"'{tag}'" for tag in sorted({*_KEYS, *_OTHERS}))
        text = f"{block.path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        yield refuse(text, f"unknown block at {block.path}")
    for name in raw if kind in _KEYS else ():
        if name not in _KEYS[kind]:
            yield extra(f"{block.path}.{kind}.{name}")
    misplaced = _ASSISTANT_ONLY if role == "user" else _USER_ONLY if role == "assistant" else frozenset()
    if kind in misplaced:
        place = "assistant" if role == "user" else "user"
        yield refuse(f"{block.path}: `{kind}` blocks can only be in `{place}` messages", f"misplaced {block.path}")
    if kind == "thinking" and signed:
        yield from _signature_faults(block)
    yield from _FIELDS.get(kind, _no_faults)(block)


def _no_faults(block: Block) -> Iterator[Verdict]:
    return iter(())


def _text_faults(block: Block) -> Iterator[Verdict]:
    text = block.raw.get("text")
    if not isinstance(text, str):
        yield required(f"{block.path}.text.text") if text is None else wrong(f"{block.path}.text.text", _STRING)
    if not text:
        yield refuse(EMPTY_TEXT, f"empty text at {block.path}")


def _signature_faults(block: Block) -> Iterator[Verdict]:
    if "signature" not in block.raw:
        yield refuse(NO_SIGNATURE.format(path=block.path), f"unsigned {block.path}")
    if not isinstance(block.raw["signature"], str):
        yield refuse(BAD_SIGNATURE.format(path=block.path), f"bad signature at {block.path}")


def _thinking_faults(block: Block) -> Iterator[Verdict]:
    if not isinstance(block.raw.get("thinking"), str):
        yield required(f"{block.path}.thinking.thinking")


def _redacted_faults(block: Block) -> Iterator[Verdict]:
    if not isinstance(block.raw.get("data"), str):
        yield required(f"{block.path}.redacted_thinking.data")


def _call_faults(block: Block) -> Iterator[Verdict]:
    for name in ("id", "name"):
        if not as_text(block.raw.get(name)):
            yield required(f"{block.path}.tool_use.{name}")
    if not isinstance(block.raw.get("input"), dict):
        yield wrong(f"{block.path}.tool_use.input", "a valid dictionary")


def _result_faults(block: Block) -> Iterator[Verdict]:
    if not as_text(block.raw.get("tool_use_id")):
        yield required(f"{block.path}.tool_result.tool_use_id")
    parts = [as_object(part) for part in as_list(block.raw.get("content"))]
    if any(part.get("type") == "text" and not part.get("text") for part in parts):
        yield refuse(EMPTY_TEXT, f"empty text in {block.path}")


_FIELDS: Mapping[str, Callable[[Block], Iterator[Verdict]]] = MappingProxyType(
    {
        "text": _text_faults,
        "thinking": _thinking_faults,
        "redacted_thinking": _redacted_faults,
        "tool_use": _call_faults,
        "tool_result": _result_faults,
    }
)
