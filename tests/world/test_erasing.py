"""What was erased is gone from open sessions too; and work on a large log does not grow with what it does not touch."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import thinkback
from tests.cli.conftest import Inside
from tests.counting import calls
from tests.servers.viewer.conversations import answered, asked
from tests.world.clients import KEY, openai_client
from tests.world.gateway import gateway
from tests.world.server import PLACES, World
from thinkback.log.protocol import About
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.servers.viewer.app import application
from thinkback.session.session import Session
from thinkback.session.store import SessionStore

SECRET = "My name is Ada Lovelace."
DAY = 86_400_000_000
START = 1_790_000_000_000_000


# -- gone from memory too ----------------------------------------------------------------------------------------------


def purge(store: SessionStore, session: Session) -> None:
    """Everything up to now."""
    store.care.purge(before=max(commit.time for commit in session.log()) + 1)


def redact(store: SessionStore, session: Session) -> None:
    """The words alone, wherever they stand."""
    for commit in session.log():
        if "Ada Lovelace" in str(commit.value):
            store.care.redact(commit.hash, "Ada Lovelace")


@pytest.mark.parametrize("erase", [purge, redact])
@pytest.mark.parametrize("provider", ["kimi", "openai", "anthropic", "gemini", "bedrock"])
def test_an_open_session_sends_nothing_that_was_erased(
    world: World, tmp_path: Path, provider: str, erase: Callable[[SessionStore, Session], None]
) -> None:
    """From the first request after it returned, by the same handle of the log or by another."""
    place = PLACES[provider]
    with (
        thinkback.open(tmp_path / "log.db", rules={}, settings={}) as store,
        thinkback.open(tmp_path / "log.db", rules={}, settings={}) as other,
    ):
        for name, hand in (("a", store), ("b", other)):
            session = store.session(
                name, endpoint=place.endpoint, model=place.model, base_url=world.url(provider), api_key=KEY
            )
            session.chat(SECRET)
            session.chat("And so?")
            assert "Ada" in str(world.exchanges[-1].body)
            erase(hand, session)
            session.chat("Who am I?")

            assert "Ada Lovelace" not in str(world.exchanges[-1].body), name
            assert "Ada Lovelace" not in str([commit.value for commit in session.log()]), name


def test_the_gateway_puts_back_nothing_that_was_erased(world: World, tmp_path: Path) -> None:
    """While it runs: the client still sends the words itself, and the thoughts about them stay away."""
    messages: Any = [{"role": "user", "content": SECRET}]
    with gateway(world, tmp_path) as house:
        client = openai_client(f"http://127.0.0.1:{house.port}/v1")
        for question in ("And so?", "Who am I?"):
            answer = client.chat.completions.create(model="kimi/kimi-k2.6", messages=messages)
            messages += [{"role": "assistant", "content": answer.choices[0].message.content}]
            messages += [{"role": "user", "content": question}]
            with thinkback.open(tmp_path / "default.db", rules={}, settings={}) as store:
                newest = max(commit.time for info in store.sessions() for commit in store.commits(info.name))
                store.care.purge(before=newest + 1)
        client.chat.completions.create(model="kimi/kimi-k2.6", messages=messages)

    assert [] == world.exchanges[-1].carried


# -- work, counted -----------------------------------------------------------------------------------------------------


class Work:
    """Steps of SQLite's machine, in hundreds, on every connection that is opened while it counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps = 0
        work = self

        class Counted(sqlite3.Connection):
            def __init__(self, *arguments: Any, **more: Any) -> None:
                super().__init__(*arguments, **more)
                self.set_progress_handler(work._count, 100)

        def connect(*arguments: Any, **more: Any) -> sqlite3.Connection:
            return Counted(*arguments, **more)

        monkeypatch.setattr(sqlite3, "connect", connect)

    def _count(self) -> int:
        self.steps += 1
        return 0

    def of(self, work: Callable[[], object]) -> int:
        """What ``work`` costs: its steps in the database, and the functions that it calls."""
        before = self.steps
        called = calls(work)
        return (self.steps - before) * 100 + called


def fill(db: Path, sessions: int) -> None:
    """A log of so many sessions, a day apart."""
    with thinkback.open(db, rules={}, settings={}, durability="normal") as store:
        for number in range(sessions):
            time = START + number * DAY
            info = asked(store, f"session-{number}", f"Question {number}: which file?", time=time)
            thought = ThinkingBlock(f"I look at {number}.")
            answered(store, f"session-{number}", thought, Text("notes.txt"), time=time)
            store.log.describe(info.id, About("claude-code", f"project-{number % 7}"))
        store.search("notes")


SMALL, LARGE = 60, 360


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A small log and a large one, of equal sessions."""
    place = tmp_path_factory.mktemp("logs")
    for sessions in (SMALL, LARGE):
        fill(place / f"{sessions}.db", sessions)
    return {sessions: place / f"{sessions}.db" for sessions in (SMALL, LARGE)}


def test_a_purge_costs_what_it_erases(logs: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ten sessions of a log that is six times as large: twice as much at most."""
    costs = {}
    for sessions, log in logs.items():
        shutil.copy(log, tmp_path / log.name)
        work = Work(monkeypatch)
        with thinkback.open(tmp_path / log.name, rules={}, settings={}, durability="normal") as store:
            costs[sessions] = work.of(partial(store.care.purge, before=START + 10 * DAY))

    assert costs[LARGE] < 2 * costs[SMALL], costs


COMMANDS = (
    ("log", "session-3"),
    ("sessions", "-n", "3"),
    ("search", "-n", "20", "3"),
    ("search", "-n", "20", "--project", "project-3", "--since", "2026-09-01", "question"),
    ("why", "session-3", "--next", "--endpoint", "kimi", "--model", "kimi-k2.6"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_reads_what_it_shows(
    logs: dict[int, Path], cli: Inside, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """And not every session: six times as many cost at most half as much again."""
    costs = {}
    for sessions, log in logs.items():
        first = cli(*words, THINKBACK_DB=str(log))  # what is imported for it is not counted
        assert 0 == first.code, first.err
        costs[sessions] = Work(monkeypatch).of(partial(cli, *words, THINKBACK_DB=str(log)))

    assert costs[LARGE] < 1.5 * costs[SMALL], costs


def test_the_first_page_of_the_viewer_reads_what_it_shows(
    logs: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty rows of sixty sessions, and of six times as many."""
    costs = {}
    for sessions, log in logs.items():
        work = Work(monkeypatch)
        with (
            thinkback.open(log, rules={}, settings={}) as store,
            TestClient(application(store), base_url="http://127.0.0.1:8000") as browser,
        ):
            costs[sessions] = work.of(partial(browser.get, "/"))

    assert costs[LARGE] < 1.5 * costs[SMALL], costs
