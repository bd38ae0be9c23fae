"""Where requests go that nobody says a place for: the session remembers, as with the commands."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import msgspec
import pytest

import thinkback
from tests.formats.samples import SAMPLES
from tests.session.chats import KEY, PERSONAS, open_session
from thinkback.errors import NotFoundError
from thinkback.model.commits import Draft
from thinkback.session.exchange.histories import Wanted, run
from thinkback.session.store import SessionStore
from thinkback.settings.registry import IMPORTED
from thinkback_referee import Referee


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration directory of its own, with a key for DeepSeek in the environment."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    return tmp_path


def where(session: thinkback.Session) -> tuple[str, str, str]:
    """Endpoint, model and address of the next request."""
    target = session.target
    return target.endpoint.id, target.model, target.base_url


def test_session_remembers_its_place(store: SessionStore, referee: Referee) -> None:
    """Opened by its name alone it goes on where it was, in asyncio too; what is named is not what is remembered."""
    first = open_session(store, referee, "deepseek")
    first.chat("hello")
    there = where(first)
    assert "completed" == store.session("chat").chat("again").state
    assert "completed" == asyncio.run(store.session("chat").aio.chat("and again")).state
    assert there == where(store.session("chat"))
    assert ("deepseek", "other", there[2]) == where(store.session("chat", model="other"))
    assert ("kimi", "kimi-k2.6") == where(store.session("chat", endpoint="kimi", model="kimi-k2.6"))[:2]
    again = store.session("chat")
    again.use(model="other")
    assert ("deepseek", "other", there[2]) == where(again)


def test_environment_then_default_profile_say_where(
    store: SessionStore, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with the commands; a session that nothing is said of says that."""
    with pytest.raises(NotFoundError, match="no endpoint was given"):
        store.session("x").chat("hi")
    (config / "profiles").mkdir()
    (config / "profiles" / "usual.toml").write_text('endpoint = "openai"\nmodel = "gpt-5.2"\n')
    (config / "settings.toml").write_text('[session]\nprofile = "usual"\n')
    assert ("openai", "gpt-5.2") == where(store.session("x"))[:2]
    monkeypatch.setenv("THINKBACK_ENDPOINT", "deepseek")
    monkeypatch.setenv("THINKBACK_MODEL", PERSONAS["deepseek"])
    assert ("deepseek", PERSONAS["deepseek"]) == where(store.session("x"))[:2]
    assert ("openai", "mine") == where(store.session("x", endpoint="openai", model="mine"))[:2]


def test_address_of_an_imported_session_is_not_gone_to(store: SessionStore, referee: Referee) -> None:
    """No key goes by itself to an address that only somebody's file names."""
    session = open_session(store, referee, "deepseek")
    session.chat("hello")
    store.log.write_settings(session.id, {IMPORTED: "true"})
    with pytest.raises(NotFoundError, match="no endpoint was given"):
        _ = store.session("chat").target


def test_a_history_of_another_program_stays_where_it_was_gone_on_with(
    store: SessionStore, referee: Referee, tmp_path: Path
) -> None:
    """Its file names no address: the endpoint that a person chose once stays, until an export adds to the session."""
    file = tmp_path / "s1.jsonl"
    file.write_bytes(SAMPLES["claude-code"])
    ((took,), _) = run(store.log, Wanted("claude-code", str(file)))
    first = open_session(store, referee, "deepseek", name=took.name)
    first.chat("hello")
    there = where(first)
    assert there == where(store.session(took.name))
    assert there == where(first.branches.fork("aside"))
    with thinkback.open(":memory:") as other:
        added = io.BytesIO()
        store.export(added, session=took.name, complete=True)
        other.import_(added.getvalue().splitlines(keepends=True))
        more = open_session(other, referee, "deepseek", name=took.name)
        more.chat("from elsewhere")
        file = tmp_path / "more.jsonl"
        other.export(str(file), session=took.name, complete=True)
    store.import_(file)
    with pytest.raises(NotFoundError, match="no endpoint was given"):
        _ = store.session(took.name).target


def test_misspelt_endpoint_is_told_at_once(store: SessionStore) -> None:
    """With the names most like it, and no session is made."""
    with pytest.raises(NotFoundError, match="no endpoint is called 'deepsek'") as raised:
        store.session("x", endpoint="deepsek", model="m")
    assert "did you mean deepseek?" in raised.value.next_actions
    assert [] == store.sessions()


def test_a_record_of_a_request_asked_elsewhere_names_no_place(store: SessionStore, referee: Referee) -> None:
    """A gateway records of restored reasoning that it was asked elsewhere: the session opens, asks on and shows it."""
    first = open_session(store, referee, "deepseek")
    first.chat("hello")
    there = where(first)
    record = next(commit.value for commit in first.log(kinds=("request",)))
    first.conversation.append(
        [
            Draft("request", msgspec.structs.replace(record, target={}), response="r"),
            Draft("response", next(commit.value for commit in first.log(kinds=("response",))), response="r"),
        ]
    )
    session = store.session("chat")
    assert there == where(session)
    assert "completed" == session.chat("again").state
    assert all(session.facts(commit.hash).endpoint for commit in session.log(kinds=("response",)))


def test_a_question_taken_back_leaves_its_place(store: SessionStore, referee: Referee) -> None:
    """Where the current branch has no request any more, another one of the session says where they go."""
    first = open_session(store, referee, "deepseek")
    first.chat("hello")
    there = where(first)
    first.branches.branch("kept")
    first.branches.reset(first.log()[0].hash)
    assert [] == first.log(kinds=("request",))
    assert there == where(store.session("chat"))
