"""LangChain: middleware for its agents, and its message histories in the log."""

from thinkback.adapters.langchain.history import ChatMessageHistory as ChatMessageHistory
from thinkback.adapters.langchain.middleware import ThinkbackMiddleware as ThinkbackMiddleware

__all__ = ["ChatMessageHistory", "ThinkbackMiddleware"]
