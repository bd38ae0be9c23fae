"""What is erased is gone from memory, too: nothing that any process has open sends, shows or stores it afterwards."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thinkback
from tests.stores.postgres_server import Server
from thinkback.errors import NotFoundError
from thinkback.log.erasing import tombstone
from thinkback.model import canonical
from thinkback.session.session import Session
from thinkback.session.store import SessionStore

Opens: TypeAlias = Callable[[], SessionStore]
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


class Model:
    """A model that thinks each word it is asked with, and notes what it is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.answers: list[Any] = []

    def chat(self, **request: Any) -> Any:
        """The next answer, or a thought."""
        self.sent.append(str(request["messages"]))
        said = {"content": "So.", "reasoning_content": f"Thought of {request['messages'][-1]['content']}"}
        message = self.answers.pop(0) if self.answers else said
        return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


@pytest.fixture(params=["sqlite", "postgres"])
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opens]:
    """Opens the same log again and again, as other processes would."""
    place, tenant = str(tmp_path / "log.db"), "default"
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        place, tenant = server.url(), secrets.token_hex(8)
    with ExitStack() as stack:
        yield lambda: stack.enter_context(thinkback.open(place, tenant=tenant))


def talk(store: SessionStore, model: Model, name: str = "talk") -> Session:
    """A session whose reasoning goes back."""
    session = store.session(name, client=model, model="m")
    session.set("reasoning.includeInContext", True)
    return session


def shown(session: Session) -> str:
    """All that a session shows."""
    return str([commit.payload for commit in session.log()]) + str(session.compile(include_reasoning=True).messages)


def redact(store: SessionStore, word: str) -> None:
    """Take a word out wherever it is."""
    for info in store.sessions():
        for commit in store.commits(info.name):
            if word.encode() in commit.payload:
                store.care.redact(commit.hash, word, session=info.name)


def purge(store: SessionStore, word: str) -> None:
    """Erase all there is."""
    store.care.purge(before="2100-01-01")


@pytest.mark.parametrize("erase", [redact, purge])
def test_an_open_session_sends_and_shows_nothing_of_it(
    opens: Opens, erase: Callable[[SessionStore, str], None]
) -> None:
    """The one that erased it, and one of another process; what is said afterwards is there."""
    here, there = opens(), opens()
    models = Model(), Model()
    sessions = [talk(store, model) for store, model in zip((here, there), models, strict=True)]
    sessions[0].chat("secret-one")
    sessions[1].chat("secret-two")
    assert all("secret-one" in shown(session) for session in sessions)

    erase(here, "secret")
    for session in sessions:
        assert "secret" not in shown(session)
    for session, model in zip(sessions, models, strict=True):
        session.chat("And now?")
        assert "secret" not in model.sent[-1]
        assert "And now?" in model.sent[-1]


def test_a_session_that_was_deleted_sends_nothing(opens: Opens) -> None:
    """Not even where a fork holds what it said."""
    here, there, model = opens(), opens(), Model()
    session = talk(here, model)
    session.chat("secret-one")
    session.branches.fork("copy")
    there.care.delete_session("talk")
    asked = len(model.sent)
    with pytest.raises(NotFoundError):
        session.chat("And now?")
    with pytest.raises(NotFoundError):
        session.log()
    assert asked == len(model.sent)


def test_the_next_step_of_a_turn_sends_nothing_of_it(opens: Opens) -> None:
    """Words that are taken out while a tool runs."""
    here, there, model = opens(), opens(), Model()
    session = talk(here, model)
    model.answers = [{"content": "", "reasoning_content": "Thought of secret-one", "tool_calls": [CALL]}]

    def look() -> str:
        """Look."""
        redact(there, "secret")
        return "nothing"

    session.chat("secret-one", tools=[look])
    assert "secret-one" in model.sent[0]
    assert "secret" not in model.sent[1]
    assert "nothing" in model.sent[1]
    assert "secret" not in shown(session)


def test_what_is_held_of_a_turn_goes_with_its_commit(opens: Opens) -> None:
    """Reasoning that is in memory alone, as it is not to be kept, goes where its response was erased."""
    here, there, model = opens(), opens(), Model()
    session = talk(here, model)
    thought = {"content": "", "reasoning_content": "Thought of secret-one", "tool_calls": [CALL]}
    model.answers = [dict(thought), dict(thought)]

    stone = canonical.encode(tombstone("gone", 1))

    def look() -> str:
        """Look."""
        thoughts = [commit.hash for commit in there.commits("talk") if commit.kind == "reasoning"]
        if len(thoughts) > 1:
            there.log.care.erase(session.id, dict.fromkeys(thoughts, stone))
        return "nothing"

    session.chat("Well?", tools=[look], reasoning=False)
    assert "secret" in model.sent[1]
    assert "secret" not in model.sent[2]


CHILD = """
import sys, thinkback
with thinkback.open(sys.argv[1]) as store:
    for commit in store.commits("talk"):
        if b"secret" in commit.payload:
            store.care.redact(commit.hash, "secret-one")
"""


def test_another_process_erases(tmp_path: Path) -> None:
    """A process of its own: the next request and the next look are without the words."""
    with thinkback.open(tmp_path / "log.db") as store:
        model = Model()
        session = talk(store, model)
        session.chat("secret-one")
        subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "log.db")], check=True)
        assert "secret-one" not in shown(session)
        session.chat("And now?")
        assert "secret-one" not in model.sent[-1]


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "redact", "purge", "delete", "look"]), st.integers(0, 1), st.integers(0, 2)),
    max_size=12,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
@pytest.mark.parametrize("opens", ["sqlite"], indirect=True)
def test_no_history_of_erasures_brings_a_word_back(opens: Opens, steps: list[tuple[str, int, int]]) -> None:
    """Whoever asks, looks and erases in whatever order, by two open logs, in sessions that are open in both."""
    stores = [opens(), opens()]
    for info in stores[0].sessions():
        stores[0].care.delete_session(info.name)
    models = [Model(), Model()]
    sessions: dict[tuple[int, str], Session] = {}
    gone: set[str] = set()
    alive: dict[str, set[str]] = {}
    for number, (what, at, which) in enumerate(steps):
        store, name = stores[at], f"talk-{which}"
        if what == "ask":
            if name not in alive:
                sessions = {place: session for place, session in sessions.items() if place[1] != name}
            session = sessions.setdefault((at, name), talk(store, models[at], name))
            word = f"word-{number}-"
            alive.setdefault(name, set()).add(word)
            session.chat(word)
            assert not any(old in models[at].sent[-1] for old in gone)
        elif what == "look":
            for place, session in sessions.items():
                if place[1] in alive:
                    told = shown(session)
                    assert not any(old in told for old in gone)
        elif name in alive:
            gone |= alive[name]
            if what == "delete":
                store.care.delete_session(name)
                del alive[name]
            elif what == "purge":
                gone |= {word for words in alive.values() for word in words}
                alive = {each: set() for each in alive}
                store.care.purge(before="2100-01-01")
            else:
                for word in sorted(alive[name]):
                    redact(store, word)
                alive[name] = set()
