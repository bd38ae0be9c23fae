"""Child sessions: what they begin with, what comes back from them, and the timeline of a family."""

from __future__ import annotations

from typing import Any

import pytest

import thinkback
from tests.log.build import texts
from tests.session.chats import DEFINITION, open_session
from tests.session.history.test_branches import said, session, turn
from thinkback.errors import BranchError, OpenTurnError, UnsupportedContent
from thinkback.model.blocks import Origin, Text
from thinkback.model.commits import BranchSummary, Commit, Compaction, Draft, Priority, Response, block_draft
from thinkback.session.history.children import collapse, neutral, spawn, timeline
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step

__all__ = ["session"]


@pytest.fixture
def parent(store: SessionStore) -> Session:
    """A session with a system prompt, reasoning and two turns."""
    made = store.session("parent")
    made.commit("Be brief.", kind="system")
    turn(made, "q1", "a1")
    made.reasoning("because")
    turn(made, "q2", "a2")
    return made


def summary(commit: Commit) -> BranchSummary:
    assert isinstance(commit.value, BranchSummary)
    return commit.value


def test_a_clone_shares_the_history(parent: Session) -> None:
    """All of it, and the parent goes on untouched."""
    child = spawn(parent, "child", purpose="to try")
    assert parent.log() == child.log()
    child.commit("more")
    assert ["Be brief.", "q1", "a1", "because", "q2", "a2"] == said(parent)


def test_a_snapshot_begins_with_the_prompt_and_one_message(store: SessionStore, parent: Session) -> None:
    """It tells what was said as it stands, without reasoning and what was skipped, and where to read it in full."""
    first = next(commit for commit in parent.log() if texts([commit]) == ["q1"])
    parent.annotate(first.hash, Priority.SKIP)
    child = spawn(parent, "child", purpose="to try", inheritance="head_snapshot")
    prompt, told = child.log()
    assert (["Be brief."], "branch_summary") == (texts([prompt]), told.kind)
    head = parent.log()[-1].hash
    text = "assistant: a1\n\nuser: q2\n\nassistant: a2"
    assert BranchSummary(text, parent.id, "main", head, "to try") == summary(told)
    assert parent.id == store.find("child").parent == store.find("child").family


def test_a_snapshot_keeps_the_newest(parent: Session) -> None:
    """As many tokens as it may; of nothing there is nothing to tell."""
    told = spawn(parent, inheritance="head_snapshot", max_tokens=7).log()[-1]
    assert "user: q2\n\nassistant: a2" == summary(told).text
    empty = parent.conversation.store.session("empty")
    assert [] == spawn(empty, inheritance="head_snapshot").log()


def tagged(session: Session, text: str, *tags: str) -> None:
    commit = next(commit for commit in session.log() if texts([commit]) == [text])
    session.annotate(commit.hash, tags=tags)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, ["q1", "a1", "because", "q2", "a2"]),
        ({"tags": ["good"]}, ["a1", "q2"]),
        ({"tags": ["good"], "without_tags": ["old"]}, ["q2"]),
        ({"without_tags": ["old"]}, ["q1", "because", "q2", "a2"]),
        ({"kinds": ["user"]}, ["q1", "q2"]),
        ({"kinds": ["assistant"]}, ["a1", "a2"]),
        ({"max_tokens": 1}, ["q2", "a2"]),
        ({"tags": ["none"]}, []),
    ],
)
def test_a_selection(parent: Session, chosen: dict[str, Any], expected: list[str]) -> None:
    """By tags and kinds, whole responses and messages, the newest where there is a limit; the prompt always."""
    tagged(parent, "a1", "good", "old")
    tagged(parent, "q2", "good")
    child = spawn(parent, inheritance="selective", **chosen)
    assert ["Be brief.", *expected] == said(child)
    assert parent.conversation.store.fsck() == []


def test_a_selection_leaves_out_what_is_not_whole(store: SessionStore, referee: Referee) -> None:
    """A response whose calls wait for their results; what is said about what is copied comes along."""
    referee.push(Step(tool_calls=[Call("get_weather", {"city": "Oslo"}, "c1")]))
    session = open_session(store, referee)
    session.chat("What is the weather?", tools=[DEFINITION])
    session.annotate(session.log()[1].hash, Priority.PINNED)
    child = spawn(session, inheritance="selective")
    assert ["tools", "user", "annotation"] == [commit.kind for commit in child.log()]


def test_arguments_that_go_with_nothing(parent: Session) -> None:
    """Are refused before anything is made."""
    with pytest.raises(ValueError, match="inheritance must be one of full_clone"):
        spawn(parent, inheritance="half")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="go with inheritance='selective'"):
        spawn(parent, tags=["x"])
    assert 1 == len(parent.conversation.store.sessions())
    with pytest.raises(BranchError, match="'parent' already"):
        spawn(parent, "parent", inheritance="head_snapshot")


def test_the_parent_reads_all_of_a_child(store: SessionStore, referee: Referee) -> None:
    """Its reasoning too; it is a session as any other."""
    parent = open_session(store, referee)
    parent.chat("first")
    child = spawn(parent, "child")
    child.chat("second")
    thoughts = [commit for commit in store.commits("child") if commit.kind == "reasoning"]
    assert 2 == len(thoughts)
    assert () != parent.branches.diff("HEAD", "child:").changes


def test_collapse(parent: Session) -> None:
    """One message in the parent: purpose, counts of what the child did, its last answer; the child stays."""
    child = spawn(parent, "child", purpose="Find the cause")
    turn(child, "why?", "No idea.")
    answer = turn(child, "really?", "A loose wire.")
    child.commit("A loose cable.", edit=answer.hash)
    before = child.log()
    made = collapse(child, parent)
    assert parent.log()[-1] == made
    text = "Find the cause: 2 messages, 2 responses, 0 tool calls.\n\nA loose cable."
    assert BranchSummary(text, child.id, "main", before[-1].hash, "Find the cause") == summary(made)
    assert before == child.log()


def test_collapse_in_other_words(parent: Session) -> None:
    """Given, or written from the child's messages."""
    child = spawn(parent, "child")
    assert "child: 0 messages, 0 responses, 0 tool calls." == summary(collapse(child, parent)).text
    assert "It went well." == summary(collapse(child, parent, "It went well.")).text
    seen: list[dict[str, str]] = []

    def write(messages: list[dict[str, str]]) -> str:
        seen.extend(messages)
        return "written"

    assert "written" == summary(collapse(child, parent, write=write)).text
    assert ["system", "user", "assistant", "user", "assistant"] == [message["role"] for message in seen]
    with pytest.raises(UnsupportedContent, match="the summary is empty"):
        collapse(child, parent, " ")


def test_collapse_elsewhere(store: SessionStore, parent: Session, referee: Referee) -> None:
    """Only within a family, and not into a turn that waits for results."""
    with pytest.raises(BranchError, match="not of one family"):
        collapse(store.session("stranger"), parent, "words")
    referee.push(Step(tool_calls=[Call("get_weather", {"city": "Oslo"}, "c1")]))
    waiting = open_session(store, referee)
    child = spawn(waiting)
    waiting.chat("What is the weather?", tools=[DEFINITION])
    with pytest.raises(OpenTurnError):
        collapse(child, waiting, "words")


def test_roles_of_what_is_told(store: SessionStore) -> None:
    """Content of a type of one's own is of its role, a summary of the user's."""
    store.register_type("plan", role="assistant")
    session = store.session("s")
    session.commit("first this", kind="plan")
    child = spawn(session)
    collapse(child, session, "done")
    assert ["assistant", "user"] == [message["role"] for message in neutral(session.log())]


def test_what_is_told_is_what_a_model_would_be_told(parent: Session) -> None:
    """A checkpoint's summary instead of its run, what it kept word for word; nothing of what never completed."""
    first, last = parent.log()[1], parent.log()[4]
    kept = next(commit for commit in parent.log() if texts([commit]) == ["a1"])
    header = next(commit for commit in parent.log() if commit.response == kept.response)
    run = Compaction("manual", "In short.", first.hash, last.hash, (header.hash,))
    parent.conversation.append([Draft("compaction", run)])
    cut = [
        Draft("response", Response(Origin("", "", ""), complete=False, blocks=1), "r"),
        block_draft(Text("cu"), "r", 0),
    ]
    parent.conversation.append(cut)
    told = [message["content"].rpartition("\n")[2] for message in neutral(parent.log())]
    assert ["Be brief.", "In short.", "a1", "q2", "a2"] == told
    parent.annotate(header.hash, "skip")
    parent.annotate(parent.log()[-3].hash, "skip")
    assert "a1" not in [message["content"] for message in neutral(parent.log())]


def test_timeline(store: SessionStore, parent: Session) -> None:
    """The commits of a family by time, each once, with the session that first had it."""
    child = spawn(parent, "child")
    child.commit("c1")
    parent.branches.branch("try", switch=True)
    parent.commit("p1")
    child.commit("c2")
    store.session("stranger").commit("nothing of theirs")
    events = timeline(store.log, parent.id)
    told = [(event.session, *texts([event.commit])) for event in events if texts([event.commit])]
    assert [("child", "c1"), ("parent", "p1"), ("child", "c2")] == told[-3:]
    assert len(events) == len({event.commit.hash for event in events}) == len(parent.log()) + 2


class Counting:
    """A log that counts how often a line is read."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.reads = 0

    def read(self, *place: Any, **named: Any) -> Any:
        self.reads += 1
        return self._inner.read(*place, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_fork_costs_no_history() -> None:
    """The child's line is read when it is first needed."""
    with thinkback.open(":memory:") as store:
        session = store.session("parent")
        said = [session.commit(text) for text in ("one", "two")]
        log: Any = Counting(store.log)
        store.log = session.conversation.line._log = log
        child = session.branches.fork("child", at=said[1].hash)
        assert (0, "<Session 'child': 2 commits, >") == (log.reads, repr(child))
        assert (said, 2) == (child.log()[:2], len(child.log()))
        assert "<Session 'child': 2 commits, >" == repr(child)
