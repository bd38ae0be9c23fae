"""A chat in this process, against the referee: its lines are said one by one, what it prints is read back."""

from __future__ import annotations

import io
import sys

import thinkback
from tests.cli.command import KEY
from thinkback.cli.chat import loop
from thinkback.cli.chat.chat import Chat
from thinkback.cli.chat.lines import LineReader
from thinkback.referee import Referee
from thinkback.session.store import SessionStore


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


def asked(referee: Referee) -> list[str]:
    """The last user message of each request."""
    sent = [exchange.body["messages"] for exchange in referee.requests]
    return [next(one["content"] for one in reversed(messages) if one["role"] == "user") for messages in sent]


def memory() -> SessionStore:
    """A log in memory that reads no files."""
    return thinkback.open(":memory:", rules={}, settings={})
