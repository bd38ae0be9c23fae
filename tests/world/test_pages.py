"""The viewer's lists and numbers, where a log is larger and worse than those of its own tests."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import thinkback
from tests.servers.viewer.conversations import answered, asked
from tests.world.clients import KEY, QUESTION
from tests.world.mind import Mood
from tests.world.server import PLACES, World
from tests.world.talks import get_weather
from thinkback.errors import ThinkbackError
from thinkback.model.blocks import Text
from thinkback.servers.viewer.app import application
from thinkback.session.store import SessionStore


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """A log in memory."""
    with thinkback.open(":memory:", rules={}, settings={}) as opened:
        yield opened


def page(store: SessionStore, path: str) -> str:
    """The words of a page."""
    with TestClient(application(store), base_url="http://127.0.0.1:8000") as browser:
        answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return " ".join(re.sub(r"<[^>]*>", " ", answer.text).split())


def searched(store: SessionStore, query: str, expected: str) -> str:
    """The list that a search leads to; the index behind it is filled by and by."""
    found = ""
    for _ in range(20):
        found = page(store, f"/?q={query}")
        if expected in found:
            break
    return found


def test_a_search_finds_every_session_and_counts_them_all(store: SessionStore) -> None:
    """The newest 300 hits are in one long session; thirty others have one each."""
    for number in range(30):
        asked(store, f"short-{number}", "Which?")
        answered(store, f"short-{number}", Text("An advisory lock."))
    asked(store, "long", "Why?")
    for number in range(300):
        answered(store, "long", Text(f"The advisory lock number {number}."))

    assert "31 of 31 sessions" in searched(store, "advisory+lock", "31 of 31")


def test_a_search_of_many_sessions_states_their_number(store: SessionStore) -> None:
    """250 sessions with one hit each, which is more than one page of hits."""
    for number in range(260):
        asked(store, f"s{number}", "Which?")
        answered(store, f"s{number}", Text("An advisory lock." if number < 250 else "None."))

    assert "250 of 260 sessions" in searched(store, "advisory+lock", "250 of 260")


def test_turns_that_failed_without_a_response_count(world: World, store: SessionStore) -> None:
    """Of five turns two got a 500 alone: Numbers has five, and three that completed."""
    place = PLACES["kimi"]
    session = store.session("s", endpoint="kimi", model=place.model, base_url=world.url("kimi"), api_key=KEY)
    for turn in range(5):
        world.mood = Mood(status=400 if turn in (1, 3) else 200)
        try:
            session.chat(f"Question {turn}")
        except ThinkbackError:
            assert turn in (1, 3)
    numbers = page(store, "/numbers")

    assert re.search(r"\b60 ?%", numbers), numbers
    assert not re.search(r"\b100 ?%", numbers), numbers


@pytest.mark.parametrize("name", PLACES)
def test_with_one_tool_each_message_stands_where_it_went(world: World, store: SessionStore, name: str) -> None:
    """The declaration of the tool is one, not the call that names it; everything that was said has its message."""
    place = PLACES[name]
    session = store.session("s", endpoint=place.endpoint, model=place.model, base_url=world.url(name), api_key=KEY)
    session.commit("You are terse.", kind="system")
    session.chat(QUESTION, tools=[get_weather])
    session.chat("Thanks.", tools=[get_weather])
    (*_, last) = [commit for commit in store.commits("s") if commit.kind == "request"]
    shown = page(store, f"/session/{store.find('s').id}/request/{last.hash}")

    assert re.search(r"Tools [0-9a-f]{8} get_weather Declared beside the messages", shown), shown
    assert re.search(rf"You [0-9a-f]{{8}} {re.escape(QUESTION)} Went message [01] ", shown), shown
    assert "Not among the messages" not in shown
