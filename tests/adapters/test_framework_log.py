"""What adapters of frameworks share: one open log for a path, in each process; a log in trouble; what was erased."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.adapters.transport.provider import URL, Provider, question, streams
from thinkback.adapters.openai_agents import Session
from thinkback.errors import MissingPackageError, SettingError, StoreError
from thinkback.stores import sqlite_open

SECRET = "gAAAAABencrypted" * 4


def items(*said: str) -> list[Any]:
    """Questions."""
    return [{"role": "user", "content": text} for text in said]


def words(session: Session) -> list[str]:
    """What a session has."""
    return [item.get("content") for item in asyncio.run(session.get_items())]


def test_a_log_that_is_locked_stores_nothing_and_says_so(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And takes what comes later."""
    monkeypatch.setattr(sqlite_open, "BUSY_SECONDS", 0.05)
    session = Session("s", log)
    asyncio.run(session.add_items(items("before")))
    with closing(sqlite3.connect(log, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="locked"):
            asyncio.run(session.add_items(items("meanwhile")))
        other.execute("ROLLBACK")
    asyncio.run(session.add_items(items("after")))
    assert ["before", "after"] == words(session)
    session.close()


def test_one_path_is_one_open_log_until_its_last_user_closes_it(log: Path) -> None:
    """One durability for all; a file is one tenant, an open store has its own; in memory each has its own."""
    first, second = Session("s", log), Session("s", log)
    asyncio.run(first.add_items(items("one")))
    assert ["one"] == words(second)
    with pytest.raises(SettingError, match="is open with durability='full' already"):
        asyncio.run(Session("s", log, durability="normal").get_items())
    with pytest.raises(StoreError, match="a file is one tenant"):
        asyncio.run(Session("s", log.with_name("other.db"), tenant="ada").get_items())
    with thinkback.open(log) as store, pytest.raises(SettingError, match="has its tenant already"):
        Session("s", store, tenant="ada")
    first.close()
    first.close()
    assert ["one"] == words(second)
    second.close()
    third = Session("s", log, durability="normal")
    assert ["one"] == words(third)
    third.close()
    here, there = Session("s", ":memory:"), Session("s", ":memory:")
    asyncio.run(here.add_items(items("mine")))
    assert (["mine"], []) == (words(here), words(there))
    here.close()
    there.close()


@pytest.mark.parametrize("name", ["s", ""])
def test_a_history_and_the_transport_may_share_a_log(log: Path, name: str) -> None:
    """Each keeps its own record of the conversation, also in a session of one name: what the framework stored comes
    back, and the reasoning that its client forgot goes back to the provider.
    """
    provider, said = Provider(streams()), list[str]()
    session = Session("s", log)
    with thinkback.http_client(log, transport=provider) as client:
        for asked in ("Why?", "And?", "So?"):
            said.append(asked)
            asyncio.run(session.add_items(items(asked)))
            with thinkback.conversation(name) if name else nullcontext():
                client.post(URL, content=question(*said)).raise_for_status()
                assert thinkback.why().recorded
            said.append("42.")
            asyncio.run(session.add_items([{"role": "assistant", "content": "42."}]))
    assert said == words(session)
    session.close()
    sent = provider.bodies[-1]["messages"]

    assert ["Hm.", "Hm."] == [message["reasoning_content"] for message in sent if message["role"] == "assistant"]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_opens_the_log_for_itself(log: Path) -> None:
    """A session goes on in both; a store that was open before is the parent's."""
    session = Session("s", log)
    asyncio.run(session.add_items(items("parent")))
    with thinkback.open(log) as store:
        given = Session("s", store)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                asyncio.run(session.add_items(items("child")))
                asyncio.run(given.get_items())
            except StoreError as error:
                code = 0 if "before this process was forked" in error.message else 2
            finally:
                os._exit(code)
        assert 0 == os.waitpid(child, 0)[1]
        assert ["parent", "child"] == words(given)
    asyncio.run(session.add_items(items("again")))
    assert ["parent", "child", "again"] == words(session)
    session.close()


def test_what_is_erased_in_the_log_is_gone_for_the_framework(log: Path) -> None:
    """A commit without its text, a turn without its items: the rest comes back as it was."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A secret."}]}
    said = {"role": "assistant", "content": "Nothing.", "id": "msg_1", "type": "message"}

    async def add(session: Session) -> None:
        await session.add_items(items("My name is Ada."))
        await session.add_items([{**thought, "encrypted_content": SECRET}, said])

    with thinkback.open(log) as store:
        session = Session("s", store)
        asyncio.run(add(session))
        (hash,) = [commit.hash for commit in store.commits("s") if commit.kind == "user"]
        store.care.redact(hash, "Ada", session="s")
        (thinking,) = [commit.hash for commit in store.commits("s") if commit.kind == "reasoning"]
        store.care.redact(thinking, "secret", session="s")
        first, *rest = asyncio.run(session.get_items())
        assert "Ada" not in first["content"]
        assert "My name is" in first["content"]
        assert SECRET not in str(rest)
        assert "secret" not in str(rest)
        assert "Nothing." in str(rest)
        store.care.purge(before=2**52)
        assert "Nothing." not in str(asyncio.run(session.get_items()))
        assert [] == store.fsck()


def test_a_framework_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    for name in [name for name in sys.modules if name.startswith("thinkback.adapters.pydantic_ai")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(MissingPackageError, match=r"pydantic-ai 2.68 or newer is not installed(.|\n)*\[pydantic-ai\]"):
        from thinkback.adapters.pydantic_ai import ConversationStore  # noqa: F401
