"""LangChain: middleware for its agents."""

from thinkback.adapters.langchain.middleware import ThinkbackMiddleware as ThinkbackMiddleware

__all__ = ["ThinkbackMiddleware"]
