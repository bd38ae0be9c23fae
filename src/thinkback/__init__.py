"""thinkback keeps a model's reasoning and gives it back.

``open`` a store, take a session, ``chat``: every block of every response is in the log, and each next request
carries exactly the reasoning its endpoint requires, accepts, or must not see. Names load on first use.
"""

from __future__ import annotations

# Importing typing or importlib would be nine tenths of what this import costs.
TYPE_CHECKING = False

__version__ = "0.1.0"

_HOMES = {
    "open": "thinkback.session.store",
    "SessionStore": "thinkback.session.store",
    "Session": "thinkback.session.session",
    "Reply": "thinkback.session.reply",
    "Timeouts": "thinkback.drive.http",
    "toolbox": "thinkback.session.agents.toolbox",
    "Decision": "thinkback.model.target",
    "Priority": "thinkback.model.commits",
    "Media": "thinkback.model.blocks",
    "Origin": "thinkback.model.blocks",
    "Text": "thinkback.model.blocks",
    "ThinkingBlock": "thinkback.model.blocks",
    "ToolCall": "thinkback.model.blocks",
    "ToolResult": "thinkback.model.blocks",
    "PermissionAnswer": "thinkback.turn.permissions",
    "PermissionRequest": "thinkback.turn.permissions",
    "TextDelta": "thinkback.model.deltas",
    "ReasoningDelta": "thinkback.model.deltas",
    "ToolCallDelta": "thinkback.model.deltas",
    "Reclassified": "thinkback.model.deltas",
    "Status": "thinkback.model.deltas",
    "extract_thinking_blocks": "thinkback.compile.reasoning",
    "filter_thinking_for_context": "thinkback.compile.reasoning",
    "thinking_to_reasoning_field": "thinkback.compile.reasoning",
    "estimate_thinking_tokens": "thinkback.compile.counts",
    "http_client": "thinkback.adapters.transport.transports",
    "async_http_client": "thinkback.adapters.transport.transports",
    "Transport": "thinkback.adapters.transport.transports",
    "AsyncTransport": "thinkback.adapters.transport.transports",
    "conversation": "thinkback.adapters.transport.telling",
    "why": "thinkback.adapters.transport.telling",
    "errors": "",
}

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from typing import Any

    from thinkback import errors as errors
    from thinkback.adapters.transport.telling import conversation as conversation
    from thinkback.adapters.transport.telling import why as why
    from thinkback.adapters.transport.transports import AsyncTransport as AsyncTransport
    from thinkback.adapters.transport.transports import Transport as Transport
    from thinkback.adapters.transport.transports import async_http_client as async_http_client
    from thinkback.adapters.transport.transports import http_client as http_client
    from thinkback.compile.counts import estimate_thinking_tokens as estimate_thinking_tokens
    from thinkback.compile.reasoning import extract_thinking_blocks as extract_thinking_blocks
    from thinkback.compile.reasoning import filter_thinking_for_context as filter_thinking_for_context
    from thinkback.compile.reasoning import thinking_to_reasoning_field as thinking_to_reasoning_field
    from thinkback.drive.http import Timeouts as Timeouts
    from thinkback.model.blocks import Media as Media
    from thinkback.model.blocks import Origin as Origin
    from thinkback.model.blocks import Text as Text
    from thinkback.model.blocks import ThinkingBlock as ThinkingBlock
    from thinkback.model.blocks import ToolCall as ToolCall
    from thinkback.model.blocks import ToolResult as ToolResult
    from thinkback.model.commits import Priority as Priority
    from thinkback.model.deltas import ReasoningDelta as ReasoningDelta
    from thinkback.model.deltas import Reclassified as Reclassified
    from thinkback.model.deltas import Status as Status
    from thinkback.model.deltas import TextDelta as TextDelta
    from thinkback.model.deltas import ToolCallDelta as ToolCallDelta
    from thinkback.model.target import Decision as Decision
    from thinkback.session.agents.toolbox import toolbox as toolbox
    from thinkback.session.reply import Reply as Reply
    from thinkback.session.session import Session as Session
    from thinkback.session.store import SessionStore as SessionStore
    from thinkback.session.store import open as open
    from thinkback.turn.permissions import PermissionAnswer as PermissionAnswer
    from thinkback.turn.permissions import PermissionRequest as PermissionRequest


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'thinkback' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name) if home else import_module(f"thinkback.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
