"""Branches as a picture, with edits and checkpoints, and what two branches or commits say differently."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import thinkback
from tests.servers.viewer.conversations import Page, answered, asked
from tests.stores.samples import put
from thinkback.errors import ThinkbackError
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.commits import Draft, Message, Step
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.tree import differences, lanes_of
from thinkback.session.session import Session
from thinkback.session.store import SessionStore


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """A log in memory."""
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        yield store


def grown(store: SessionStore) -> Session:
    """A session with an edit, a branch that thinks otherwise, a fork, and a checkpoint behind them."""
    asked(store, "sky", "Why is it blue? " * 40)
    answered(store, "sky", ThinkingBlock("Light. " * 40), Text("It scatters. " * 40))
    session = store.session("sky", endpoint="deepseek", model="deepseek-v4-pro", api_key="a key")
    session.commit("Why is the sky blue?", edit=session.log()[0].hash)
    session.branches.branch("other", switch=True)
    session.reasoning("Only <b>here</b>.")
    session.branches.switch("main")
    session.branches.fork("sea").commit("In the fork.")
    session.compaction.run("manual", 0, text="Light scatters.")
    return session


def shown(store: SessionStore, session: Session, query: str = "") -> str:
    """What the page says, on one line; it has nothing that has no place in a page."""
    client = TestClient(application(store), base_url="http://127.0.0.1:8000")
    answer = client.get(f"/session/{session.id}/tree{query}")
    assert 200 == answer.status_code
    Page(answer.text)
    return " ".join(re.sub("<[^>]*>", " ", answer.text).split())


def test_edits_and_checkpoints_stand_on_the_branch_that_has_them(store: SessionStore) -> None:
    """Each once, in order, with what was edited; a branch that left later has them behind it, not on it."""
    session = grown(store)
    lanes = {lane.name: lane for lane in lanes_of(store, store.find("sky"))}
    edit, checkpoint = lanes["main"].marks

    assert {"main", "other", "sea:main"} == set(lanes)
    assert ("edit", session.log()[0].hash, "checkpoint") == (edit.what, edit.hash, checkpoint.what)
    assert checkpoint.hash == session.compaction.list()[0].hash
    assert edit.x < checkpoint.x <= lanes["main"].end
    assert [(), ()] == [lanes[name].marks for name in ("other", "sea:main")]
    told = shown(store, session)
    assert "1 edit (" in told
    assert "1 checkpoint (" in told


def test_two_branches_are_compared_reasoning_included(store: SessionStore) -> None:
    """As they are named in the picture, a fork too; what is alike is said to be."""
    session = grown(store)
    told = shown(store, session, "?old=main&new=other")
    assert "Thought Only in other" in told
    assert "Only &lt;b&gt;here&lt;/b&gt;." in told
    assert "Checkpoint Only in main" in told
    assert "In the fork." in shown(store, session, "?old=main&new=sea:main")
    assert "They say the same." in shown(store, session, "?old=main&new=main")


def test_two_commits_are_compared_and_an_edit_by_its_lines(store: SessionStore) -> None:
    """Before it and after it."""
    session = grown(store)
    client = TestClient(application(store), base_url="http://127.0.0.1:8000")
    before = store.commits("sky")[5].hash
    page = client.get(f"/session/{session.id}/tree?old={before[:16]}&new=other").text

    assert "<ins>+Why is the sky blue?</ins>" in page
    assert "Here they differ" in page


def test_what_names_nothing_and_what_is_too_much_is_said(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture stays."""
    session = grown(store)
    told = shown(store, session, "?old=nowhere&new=main")
    assert "nowhere" in told.partition("Compare")[2]
    assert "3 branches" in told
    monkeypatch.setattr("thinkback.servers.viewer.tree._MOST_DIFFERENT", 1)
    with pytest.raises(ThinkbackError, match="differ by more than 1 commits"):
        differences(store, store.find("sky"), "HEAD^4", "main")


def test_many_differences_come_a_page_at_a_time(store: SessionStore) -> None:
    """A hundred, then the rest."""
    session = grown(store)
    drafts = tuple(Draft("user", Message(f"Question {number}.")) for number in range(130))
    put(store.log, session.id, Step("many", drafts, 9_000_000))
    first, last = (shown(store, session, f"?old=other&new=main&page={number}") for number in (1, 2))

    assert ("Question 5." in first, "Question 129." in first) == (True, False)
    assert ("Question 5." in last, "Question 129." in last) == (False, True)
