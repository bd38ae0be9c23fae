"""What a request goes by is read once: which files are opened, when, by which thread."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.session.chats import KEY, PERSONAS, get_weather, open_session, run
from tests.session.opens import opens, settled
from thinkback.errors import NotFoundError, RuleFileError
from thinkback.session.store import SessionStore
from thinkback_referee import Referee

QUESTION = "What is the weather in Paris? Use the tool."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration directory with every kind of file that bears on a request."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    for folder in ("profiles", "apps"):
        (tmp_path / folder).mkdir()
    (tmp_path / "settings.toml").write_text('[reasoning]\neffort = "low"\n')
    (tmp_path / "profiles" / "deep.toml").write_text('[reasoning]\neffort = "high"\n')
    (tmp_path / "apps" / "helper.toml").write_text('name = "helper"\nmodel = ["deepseek-v4-pro"]\n')
    (tmp_path / "keys.toml").write_text("[keys]\n")
    (tmp_path / "keys.toml").chmod(0o600)
    settled(*(path for path in tmp_path.rglob("*.toml")))
    return tmp_path


def files(opened: list[tuple[str, int]]) -> dict[str, int]:
    """How often each file was opened."""
    return dict(Counter(name for name, _ in opened))


def test_a_chat_of_two_requests_opens_the_settings_once(home: Path, store: SessionStore, referee: Referee) -> None:
    """It was opened 28 times."""
    session = open_session(store, referee)
    with opens(home) as opened:
        session.chat(QUESTION, tools=[get_weather])
    assert 2 == len(referee.requests)
    assert {"settings.toml": 1} == files(opened)
    with opens(home) as opened:
        session.chat("And tomorrow?")
    assert {} == files(opened)


def test_profiles_and_apps_are_opened_once_too(home: Path, store: SessionStore, referee: Referee) -> None:
    """The session goes by both in every request."""
    session = open_session(store, referee, profile="deep", app="helper")
    with opens(home) as opened:
        session.chat(QUESTION, tools=[get_weather])
    assert 2 == len(referee.requests)
    assert all(count == 1 for count in files(opened).values()), opened


def test_a_file_that_is_edited_in_a_tool_loop_counts_at_the_next_request(
    home: Path, store: SessionStore, referee: Referee
) -> None:
    """One snapshot is one request's: the first goes by the old file, the second by the new one."""

    session = open_session(store, referee)
    edited = '[reasoning]\neffort = "high"\n'
    session.on("post_tool", lambda _: (home / "settings.toml").write_text(edited))
    efforts: list[object] = []
    session.on("pre_send", lambda plan: efforts.append(plan.wanted.effort))
    session.chat(QUESTION, tools=[get_weather])
    assert ["low", "high"] == efforts


def test_no_file_is_opened_by_the_thread_of_the_loop(home: Path, store: SessionStore, referee: Referee) -> None:
    """With asyncio they are read in threads, also where each tool changes them again."""

    def edit(told: object) -> None:
        (home / "settings.toml").write_text('[reasoning]\neffort = "high"\n')
        (home / "keys.toml").write_text('[keys]\nOTHER = "x"\n')
        settled(home / "settings.toml", home / "keys.toml")

    session = store.session(
        "chat", endpoint="deepseek", base_url=referee.base_url("deepseek"), model=PERSONAS["deepseek"], api_key=KEY
    )
    session.set("session.profile", "deep")
    session.on("post_tool", edit)
    loop: list[int] = []

    async def chat() -> Any:
        loop.append(threading.get_ident())
        (home / "settings.toml").write_text('[reasoning]\neffort = "medium"\n')
        settled(home / "settings.toml")
        return await session.aio.chat(QUESTION, tools=[get_weather])

    with opens(home) as opened:
        reply = run(chat())
    assert "completed" == reply.state
    read = [(name, thread) for name, thread in opened if thread == loop[0]]
    # The two that the test itself writes from the loop, and nothing else.
    assert ["settings.toml"] == [name for name, _ in read]
    assert {"settings.toml", "keys.toml"} <= {name for name, thread in opened if thread != loop[0]}


def test_a_faulty_settings_file_in_a_tool_loop_ends_the_turn(home: Path, store: SessionStore, referee: Referee) -> None:
    """With either driver: the result of the tool is stored, the error is the file's."""

    session, other = open_session(store, referee), open_session(store, referee, name="other")
    for one in (session, other):
        one.on("post_tool", lambda _: (home / "settings.toml").write_text("reasoning = ["))
    with pytest.raises(RuleFileError):
        session.chat(QUESTION, tools=[get_weather])
    (home / "settings.toml").write_text("")
    with pytest.raises(RuleFileError):
        run(other.aio.chat(QUESTION, tools=[get_weather]))
    (home / "settings.toml").write_text("")
    for one in (session, other):
        assert ["tool_result", "turn_ended"] == [commit.kind for commit in one.log()][-2:]


def test_a_configuration_is_a_value(home: Path, store: SessionStore, referee: Referee) -> None:
    """It stays as it was taken, whatever becomes of the files; an app that is gone is said where it is asked for."""
    session = open_session(store, referee, app="helper")
    taken = session.conversation.configure()
    (home / "apps" / "helper.toml").unlink()
    (home / "settings.toml").write_text('[reasoning]\neffort = "high"\n')
    assert "low" == taken.settings().effort
    assert taken.app is not None
    assert taken.target is taken.target
    later = session.conversation.configure()
    assert "read_only" == later.settings().permissions_mode
    with pytest.raises(NotFoundError, match="there is no app 'helper'"):
        later.app  # noqa: B018


def test_settings_that_the_program_gave_leave_the_file_alone(home: Path, referee: Referee) -> None:
    """It is not opened at all."""
    with thinkback.open(":memory:", settings={}) as store, opens(home) as opened:
        open_session(store, referee).chat("Hello")
    assert "settings.toml" not in files(opened)
