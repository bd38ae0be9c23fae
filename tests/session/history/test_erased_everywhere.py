"""What was erased is in no byte of a log: a word is put wherever a log has words, and looked for everywhere."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import thinkback
from tests.stores.postgres_server import Server
from thinkback.log.protocol import TASK_PURPOSE, About, Origin
from thinkback.model.commits import Priority
from thinkback.session.history.children import collapse, spawn
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.settings.registry import TITLE
from thinkback.stores.rows import unpack

WORD = "zebrasecret"
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": f'{{"at": "{WORD} in arguments"}}'}}


class Model:
    """A model that says the word in thought and answer, and calls a tool with it first."""

    def __init__(self) -> None:
        self._answers: list[dict[str, Any]] = [
            {"content": f"{WORD} in a text", "reasoning_content": f"{WORD} in a thought", "tool_calls": [CALL]},
            {"content": f"{WORD} in an answer", "reasoning_content": f"{WORD} in another thought"},
        ]

    def chat(self, **request: Any) -> Any:
        """The next answer, or one without it."""
        message = self._answers.pop(0) if self._answers else {"content": "So."}
        return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


def look(at: str) -> str:
    """Look."""
    return f"{WORD} in a result"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a log may be made, which nobody else has."""
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    server: Server = request.getfixturevalue("postgres")
    return server.make_database(f"everywhere {secrets.token_hex(4)}")


def plant(store: SessionStore) -> Session:
    """A session with the word wherever words stand."""
    session = store.session("talk", client=Model(), model="m")
    session.commit(f"{WORD} in a system prompt", kind="system")
    session.chat(f"{WORD} in a question", tools=[look])
    (asked,) = [commit for commit in session.log() if commit.kind == "user"]
    session.annotate(asked.hash, Priority.PINNED, reason=f"{WORD} in a reason", message=f"{WORD} in a note")
    session.annotate(asked.hash, tags=[f"{WORD}-tag"])
    store.log.write_settings(session.id, {**session.conversation.info.settings, TITLE: f"{WORD} in a title"})
    child = spawn(session, "child", purpose=f"{WORD} in a purpose")
    child.commit(f"{WORD} in a child's answer", kind="assistant")
    collapse(child, session)
    task = Origin(session.id, session.conversation.line.branch, None, f"{TASK_PURPOSE}{WORD} in a task")
    store.log.create_session("task", "task", 1, task)
    while store.log.search.fill():
        pass
    return session


def rows(place: str, sql: str) -> list[tuple[Any, ...]]:
    """What a query gives, by no way of ours."""
    if "://" in place:
        with closing(psycopg.connect(place, autocommit=True)) as db:
            return db.execute(sql.encode()).fetchall()
    with closing(sqlite3.connect(place)) as db:
        return db.execute(sql).fetchall()


def traces_of(place: str) -> list[bytes]:
    """How the word is in the log: as it is, and in payloads that are compressed."""
    table = "thinkback.commits" if "://" in place else "commits"
    stored = rows(place, f"SELECT codec, payload FROM {table}")
    return [WORD.encode(), *(payload for codec, payload in stored if WORD.encode() in unpack(codec, payload))]


def held(place: str, traces: Sequence[bytes]) -> set[str]:
    """The files, or tables and columns, that hold any of the traces."""
    if "://" not in place:
        files = [path for path in Path(place).parent.iterdir() if path.is_file()]
        return {path.name for path in files if any(trace in path.read_bytes() for trace in traces)}
    found = set[str]()
    columns = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'thinkback'"
    for table, column in rows(place, columns):
        for (value,) in rows(place, f'SELECT "{column}" FROM thinkback."{table}"'):
            data = bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
            if any(trace in data for trace in traces):
                found.add(f"{table}.{column}")
    return found


def purge(store: SessionStore) -> None:
    """All that was said."""
    store.care.purge(before="2100-01-01")


def redact(store: SessionStore) -> None:
    """The word, commit by commit."""
    for info in store.sessions():
        for branch in store.log.refs.list(info.id):
            for commit in store.log.read(info.id, branch=branch.name):
                if WORD.encode() in commit.payload:
                    store.care.redact(commit.hash, rf"\S*{WORD}\S*", session=info.id)


def delete(store: SessionStore) -> None:
    """The sessions."""
    for info in store.sessions():
        store.care.delete_session(info.name)


@pytest.mark.parametrize("erase", [purge, redact, delete])
def test_no_byte_of_the_log_has_it(place: str, erase: Callable[[SessionStore], None]) -> None:
    """Before it is in many places; afterwards in none, while the log is open and once it is closed."""
    with thinkback.open(place) as store:
        session = plant(store)
        if erase is not purge:  # what a program says of a session goes with it, or with the word
            store.log.describe(session.id, About("codex", WORD, f"/home/{WORD}"))
        traces = traces_of(place)
        assert len(traces) > 10
        assert held(place, traces)
        erase(store)
        assert set() == held(place, traces)
        assert [] == store.fsck()
    assert set() == held(place, traces)
