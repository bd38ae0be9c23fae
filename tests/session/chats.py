"""What the tests of sessions talk about, and to whom."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from thinkback.model.commits import Commit, TurnEnded
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee

T = TypeVar("T")
KEY = "sk-key-of-the-tests"
PERSONAS = {
    "deepseek": "deepseek-v4-pro",
    "kimi": "kimi-k2.6",
    "groq": "openai/gpt-oss-120b",
    "mistral": "magistral-medium-latest",
}


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 7 degrees, rain"


def get_time(city: str) -> str:
    """The local time of a city."""
    return f"{city}: noon"


DEFINITION = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def open_session(
    store: SessionStore, referee: Referee, host: str = "deepseek", name: str = "chat", **more: Any
) -> Session:
    """A session with a persona of the referee."""
    given = {"model": PERSONAS.get(host), "api_key": KEY, **more}
    return store.session(name, endpoint=host, base_url=referee.base_url(host), **given)


def kinds(session: Session) -> list[str]:
    """The kinds of the session's commits; the end of a turn as its state."""
    return [_word(commit) for commit in session.log()]


def _word(commit: Commit) -> str:
    return commit.value.state if isinstance(commit.value, TurnEnded) else commit.kind


def statuses(referee: Referee) -> list[int]:
    """What the referee answered."""
    return [exchange.status for exchange in referee.requests]


def refusals(referee: Referee) -> list[str]:
    """Why the referee refused what it refused."""
    return [exchange.verdict.reason for exchange in referee.requests if not exchange.verdict.ok]


def roles(referee: Referee) -> list[str]:
    """The roles of the messages of the last request."""
    return [message["role"] for message in messages(referee)]


def messages(referee: Referee) -> list[dict[str, Any]]:
    """The messages of the last request."""
    sent: Any = referee.requests[-1].body["messages"]
    return [dict(message) for message in sent]


def run(work: Coroutine[Any, Any, T]) -> T:
    """``work`` in an event loop; anything left running is an error."""

    async def alone() -> T:
        result = await work
        closing = asyncio.all_tasks() - {asyncio.current_task()}
        _, left = await asyncio.wait(closing, timeout=5) if closing else (set(), set())
        assert set() == left
        return result

    return asyncio.run(alone())
