"""The page of numbers: what was used, counted as everywhere, in bounded time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

import thinkback
from scripts.hostile import HOSTILE
from tests.servers.viewer.conversations import Page, answered, asked
from tests.servers.viewer.test_hostile import UNSEEN
from tests.stores.samples import put
from thinkback.log.protocol import About, Store
from thinkback.model.blocks import Text
from thinkback.model.commits import Commit, Draft, Message, Request, Step, TurnEnded
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.numbers import FRESH, Figures, Report
from thinkback.servers.viewer.pages import page
from thinkback.session.store import SessionStore

DAY = 86_400_000_000
PATIENCE = 60.0


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """A log in memory."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        yield store


def report(store: SessionStore, days: int = 0, project: str = "") -> Report:
    """What a page says once everything is read."""
    return Figures(store).report(days, project, patience=PATIENCE)


def test_it_is_the_sum_that_usage_has(store: SessionStore) -> None:
    """Of all sessions, a fork's past once; by model, by project, by effort, and by day with the days between."""
    now = time.time_ns() // 1000
    sky, sea = asked(store, "sky", time=now - 5 * DAY), asked(store, "sea", time=now - 2 * DAY)
    answered(store, "sky", Text("It scatters."), time=now - 5 * DAY + 9_000_000)
    store.log.describe(sky.id, About("codex", "weather"))
    store.session("sky", endpoint="deepseek", model="deepseek-v4-pro").branches.fork("fork")
    for number in range(3):
        answered(store, "sea", Text(f"{number}"), time=now - 2 * DAY + (number + 1) * 60_000_000)
    found, used = report(store), store.usage().total.use

    total = found.total
    assert (used.input, used.output, used.reasoning) == (total.input, total.output, total.reasoning)
    assert (4, 4) == (total.responses, sum(row.sums.responses for row in found.models))
    assert {"weather": 1, "": 3} == {row.name: row.sums.responses for row in found.projects}
    assert [("unset", 2)] == [(row.name, row.turns) for row in found.efforts]
    responses = [row.sums.responses for row in found.days]
    assert [1, 0, 0, 3] == responses[responses.index(1) :]
    assert [180.0, 9.0] == [turn.seconds for turn in found.slowest]
    assert [sea.id, sky.id] == [turn.session for turn in found.slowest]
    assert 3 == report(store, days=4).total.responses
    assert 1 == report(store, project="weather").total.responses


class Watched:
    """A log that says which sessions' commits were read."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.read: list[str] = []

    def read_to(self, session: str, hash: str) -> Sequence[Commit]:
        """As the log has it."""
        self.read.append(session)
        found: Sequence[Commit] = self._log.read_to(session, hash)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def test_only_what_changed_is_read_again(store: SessionStore) -> None:
    """And what is deleted goes; between two looks of some seconds nothing is read."""
    clock, watched = [0.0], Watched(store.log)
    figures = Figures(SessionStore(cast("Store", watched), True, {}, {}), lambda: clock[0])
    for name in ("sky", "sea"):
        asked(store, name)
        answered(store, name, Text("Yes."))
    assert 2 == figures.report(0, patience=PATIENCE).total.responses
    answered(store, "sea", Text("More."))
    assert 2 == figures.report(0, patience=PATIENCE).total.responses
    clock[0] += FRESH
    watched.read.clear()
    assert 3 == figures.report(0, patience=PATIENCE).total.responses
    assert {"id-of-sea"} == set(watched.read)
    store.care.delete_session("sea")
    clock[0] += FRESH
    found = figures.report(0, patience=PATIENCE)
    assert (1, 1, ["id-of-sky"]) == (found.total.responses, found.read, [turn.session for turn in found.slowest])


def test_a_page_says_how_much_of_the_log_is_in_it(store: SessionStore) -> None:
    """Where not everything is read yet."""
    found = report(store)._replace(read=3, sessions=20)
    written = page("numbers.html", report=found, named={}, days=0, choices=(), model="", project="", link=lambda: "?")
    assert "3 of 20 sessions are counted so far" in Page(written.decode()).text


@pytest.mark.parametrize("where", ["", "AND position = 0"], ids=["all", "its first commit"])
def test_a_session_that_cannot_be_read_is_left_out_and_named(tmp_path: Path, where: str) -> None:
    """The others are counted, its row in the list says so, and a log that does not answer is told apart."""
    path = tmp_path / "log.db"
    with thinkback.open(path, rules={}, settings={}) as store:
        for name in ("sky", "sea"):
            asked(store, name)
            answered(store, name, Text("Yes."))
            answered(store, name, Text("Yes, still."))
    of = "SELECT segment FROM segments JOIN sessions USING (session) WHERE name = 'sea'"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE commits SET payload = x'00112233' WHERE segment IN ({of}) {where}")
    with thinkback.open(path, rules={}, settings={}) as store:
        found = report(store)
        client = TestClient(application(store), base_url="http://127.0.0.1:8000")
        numbers, listed = (Page(client.get(way).text) for way in ("/numbers?days=0", "/"))

    assert (2, 1, 2, ["id-of-sea"]) == (found.total.responses, found.read, found.sessions, found.unread)
    assert "Not counted, because the log cannot be read there: Why?." in numbers.text
    assert ("so far" in numbers.text, "/session/id-of-sea" in numbers.links) == (False, True)
    assert "damaged" in listed.text
    assert (False, True) == (found.is_stopped, report(store).is_stopped)


@pytest.mark.parametrize("name", ["script", "quote", "bidi", "surrogate", "template"])
def test_names_are_characters(store: SessionStore, name: str) -> None:
    """Of projects, titles, and of what an address asks for."""
    evil = HOSTILE[name].encode("utf-8", "replace").decode()
    info = asked(store, "evil", HOSTILE[name])
    answered(store, "evil", Text("Yes."))
    store.log.describe(info.id, About(evil, evil, evil))
    client = TestClient(application(store), base_url="http://127.0.0.1:8000")
    for asked_for in ({"days": "0"}, {"days": evil, "model": evil, "project": evil}):
        answer = client.get("/numbers", params=asked_for)
        assert 200 == answer.status_code
        if len(asked_for) == 1:
            assert f"/session/{info.id}/commit/{store.commits('evil')[0].hash}" in answer.text
        Page(answer.text)
        assert not UNSEEN.search(answer.text)


def test_a_turn_that_failed_without_a_response_counts(store: SessionStore) -> None:
    """It is one of the turns, with its effort and time; a fork's past is not its own."""
    info = asked(store, "sky", time=10_000_000)
    asking = Request({}, {"reasoning.effort": "high"}, (), "{}", info.head.hash, "", "", "", "", "", "")
    ended = Draft("turn_ended", TurnEnded("failed", "the provider is down"))
    put(store.log, info.id, Step("failed", (Draft("request", asking, "r"), ended), 12_000_000))
    alone = report(store)
    shown = TestClient(application(store), base_url="http://127.0.0.1:8000").get("/numbers?days=0").text
    put(store.log, info.id, Step("again", (Draft("user", Message("And now?")),), 20_000_000))
    answered(store, "sky", Text("It scatters."), time=29_000_000)
    store.session("sky", endpoint="deepseek", model="deepseek-v4-pro").branches.fork("fork")
    found = report(store)

    assert [("high", 1, 0.0)] == [(row.name, row.turns, row.completed) for row in alone.efforts]
    assert "Nothing was answered" not in shown
    assert "0% completed" in shown
    assert (2, 0.5) == (found.ended.turns, found.ended.completed)
    assert [("high", 1), ("unset", 1)] == [(row.name, row.turns) for row in found.efforts]
    assert [("failed", 2.0)] == [(turn.state, turn.seconds) for turn in alone.slowest]
    assert [("completed", 9.0)] == [(turn.state, turn.seconds) for turn in found.slowest]
