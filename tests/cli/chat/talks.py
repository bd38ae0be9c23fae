"""A chat in this process, against the referee: its lines are said one by one, what it prints is read back."""

from __future__ import annotations

import io
import sys
from typing import Any

import thinkback
from tests.cli.command import KEY
from thinkback.cli.chat import loop
from thinkback.cli.chat.chat import Chat
from thinkback.cli.chat.lines import LineReader
from thinkback.session.store import SessionStore
from thinkback_referee import Referee


class Standard(io.StringIO):
    """Whatever standard output is when something is written: pytest puts another one there for each phase of a test."""

    def write(self, text: str) -> int:
        return sys.stdout.write(text)


def open_chat(store: SessionStore, referee: Referee, name: str = "talk") -> Chat:
    """A chat with the referee's deepseek."""
    session = store.session(
        name, endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek"), api_key=KEY
    )
    return Chat(store, session, LineReader([]), Standard())


def say(chat: Chat, *lines: str) -> None:
    """Each of ``lines``, as if it was entered."""
    for line in lines:
        loop.handle(chat, line)


def messages(referee: Referee, at: int = -1) -> list[dict[str, Any]]:
    """The messages of a request."""
    sent: Any = referee.requests[at].body["messages"]
    return [dict(one) for one in sent]


def asked(referee: Referee) -> list[str]:
    """The last user message of each request."""
    every = [messages(referee, at) for at in range(len(referee.requests))]
    return [next(str(one["content"]) for one in reversed(sent) if one["role"] == "user") for sent in every]


def memory() -> SessionStore:
    """A log in memory that reads no files."""
    return thinkback.open(":memory:", rules={}, settings={})
