"""pydantic-ai: its conversations in the log, and a capability that repairs refused requests and explains them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thinkback.errors import MissingPackageError, install_hint

if TYPE_CHECKING:
    from thinkback.adapters.pydantic_ai.capability import Reasoning as Reasoning
    from thinkback.adapters.pydantic_ai.capability import Sent as Sent
    from thinkback.adapters.pydantic_ai.store import ConversationStore as ConversationStore

_HOMES = {"ConversationStore": "store", "Reasoning": "capability", "Sent": "capability"}

__all__ = ["ConversationStore", "Reasoning", "Sent"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("pydantic", "pydantic_ai"):
            raise
        raise MissingPackageError(
            "pydantic-ai 2.68 or newer is not installed",
            details={"package": "pydantic-ai-slim", "extra": "pydantic-ai"},
            next_actions=(install_hint("pydantic-ai"),),
        ) from error
