"""Apps in sessions: where they are found, what they add to a request, what they keep and what they never share."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

from tests.session.chats import KEY, get_weather, messages, open_session, refusals, roles
from thinkback.errors import NotFoundError, RuleFileError, SettingError
from thinkback.session import apps
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee, Step

PROMPT = "You answer in one word."


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a person's own apps, with one in it."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    place = tmp_path / "apps"
    place.mkdir()
    (place / "short.toml").write_text(f'system_prompt = "{PROMPT}"\nreasoning_effort = "high"\ncontext_size = 9\n')
    return place


def thoughts(referee: Referee) -> list[str | None]:
    """The reasoning that each assistant message of the last request carried."""
    told = (message.get("reasoning_content") for message in messages(referee) if message["role"] == "assistant")
    return [text if text and text.strip() else None for text in told]


def ask(session: Session, referee: Referee, *reasonings: str) -> None:
    """One turn for each reasoning; an empty one is a turn without."""
    for at, reasoning in enumerate(reasonings):
        referee.push(Step(reasoning=reasoning, text=f"answer {at}"))
        session.chat(f"question {at}")


def kimi(store: SessionStore, referee: Referee, **more: Any) -> Session:
    """A session with a place that takes earlier reasoning and demands none of finished turns without tools."""
    return open_session(store, referee, "kimi", **more)


# -- where they are ------------------------------------------------------------------------------------------------


def test_the_apps_that_ship_are_whole() -> None:
    """Each has a name, a description and a prompt, and none asks for an endpoint that a person may not have."""
    found = {row.id: row for row in apps.listed()}
    assert ["coding", "research", "translator", "trial", "tutor"] == list(found)
    for row in found.values():
        assert row.app is not None
        assert row.app.description
        assert row.app.system_prompt
        assert ("", (), "") == (row.app.endpoint, row.app.models, row.file)


def test_a_persons_own_app_wins_and_a_broken_one_says_why(own: Path) -> None:
    """One bad file does not take the others away."""
    (own / "tutor.toml").write_text('description = "Mine."')
    (own / "broken.toml").write_text("nmae = 3")
    found = {row.id: row for row in apps.listed()}
    assert found["tutor"].app == apps.find("tutor")
    assert "Mine." == apps.find("tutor").description
    assert str(own / "tutor.toml") == found["tutor"].file
    assert None is found["broken"].app
    assert "nmae: there is no such key; did you mean name?" in found["broken"].fault
    with pytest.raises(RuleFileError):
        apps.find("broken")


def test_a_file_that_cannot_be_read_hides_no_other(own: Path) -> None:
    """Bytes that are no text, and a link that leads nowhere, are told as what they are."""
    (own / "bytes.toml").write_bytes(b'name = "\xff"')
    (own / "gone.toml").symlink_to(own / "nowhere")
    found = {row.id: row.fault for row in apps.listed()}
    assert found["bytes"] == f"{own / 'bytes.toml'}: not UTF-8: invalid start byte"
    assert ("", False) == (found["short"], "gone" in found)
    if os.geteuid():
        (own / "short.toml").chmod(0)
        with pytest.raises(RuleFileError, match="cannot be read: Permission denied"):
            apps.find("short")


@pytest.mark.parametrize("name", ["tutr", "../secrets", ""])
def test_an_app_that_does_not_exist_is_said_with_those_that_do(own: Path, name: str) -> None:
    """A close name is suggested; no name leads out of the directory."""
    with pytest.raises(NotFoundError) as caught:
        apps.find(name)
    assert ("did you mean tutor?" if name == "tutr" else "apps are ") in str(caught.value)


# -- what they add -------------------------------------------------------------------------------------------------


def test_the_prompt_opens_the_conversation_and_is_said_once(store: SessionStore, referee: Referee, own: Path) -> None:
    """The app's prompt is the system message of the first request, and later requests begin with the same bytes."""
    session = open_session(store, referee, app="short")
    session.chat("One?")
    session.chat("Two?")
    assert ["system", "user", "assistant", "user"] == roles(referee)
    assert PROMPT == messages(referee)[0]["content"]
    assert ("high", "app") == session.layers.origin("reasoning.effort")


def test_what_the_caller_says_beats_the_app(store: SessionStore, referee: Referee, own: Path) -> None:
    """A system prompt of the call, and settings of the session, are stronger."""
    session = open_session(store, referee, app="short")
    session.set("reasoning.effort", "low")
    session.chat("One?", system="Mine.")
    session.chat("Two?")
    assert "Mine." == messages(referee)[0]["content"]
    assert "low" == session.settings.effort


def test_a_changed_file_counts_at_once_but_for_the_prompt(store: SessionStore, referee: Referee, own: Path) -> None:
    """Settings are read live; what the conversation rests on stays as it began."""
    session = open_session(store, referee, app="short")
    session.chat("One?")
    (own / "short.toml").write_text('system_prompt = "Another."\nreasoning_effort = "low"')
    session.chat("Two?")
    assert ["system", "user", "assistant", "user"] == roles(referee)
    assert PROMPT == messages(referee)[0]["content"]
    assert "low" == session.settings.effort


def test_endpoint_and_model_come_from_the_app(store: SessionStore, own: Path) -> None:
    """They fill what nobody said; a model that the app does not list falls back with a warning that says so."""
    (own / "fixed.toml").write_text('endpoint = "deepseek"\nmodel = ["deepseek-v4-pro", "deepseek-v4-flash"]')
    session = store.session("a", app="fixed", api_key=KEY)
    assert ("deepseek", "deepseek-v4-pro") == (session.target.endpoint.id, session.target.model)
    with pytest.warns(UserWarning, match="the app fixed does not know the model other: deepseek-v4-pro is used"):
        other = store.session("b", app="fixed", model="other")
    assert "deepseek-v4-pro" == other.target.model
    session.use(model="deepseek-v4-flash")
    assert "deepseek-v4-flash" == session.target.model
    with pytest.warns(UserWarning, match="does not know the model gpt-5"):
        session.use(model="gpt-5")


def test_a_structured_answer_is_asked_for_with_the_apps_schema(
    store: SessionStore, referee: Referee, own: Path
) -> None:
    """The schema goes in the words of the dialect; a form that the caller gives is stronger."""
    schema = '[output_schema]\ntype = "object"\nadditionalProperties = false\n'
    (own / "form.toml").write_text(f"[features]\nstructured_output = true\n{schema}")
    session = kimi(store, referee, app="form")
    session.chat("One?")
    sent = cast(Any, referee.requests[-1].body["response_format"])
    assert ("form", "object") == (sent["json_schema"]["name"], sent["json_schema"]["schema"]["type"])
    session.chat("Two?", response_format={"type": "text"})
    assert {"type": "text"} == referee.requests[-1].body["response_format"]


@pytest.mark.filterwarnings("ignore:tools = web_search is not sent:UserWarning")
def test_a_search_of_the_providers_own_is_offered_in_its_words(store: SessionStore, own: Path) -> None:
    """It stands beside the tools of the caller, once, and changes with the dialect."""
    (own / "look.toml").write_text("[features]\nweb_search = true\n")
    session = store.session("a", app="look", endpoint="openai", model="gpt-5.6", api_key=KEY)
    body = json.loads(bytes(session.wire.plan("One?", tools=[get_weather])))
    assert ["function", "web_search"] == [tool["type"] for tool in body["tools"]]
    body = json.loads(bytes(session.wire.plan("Two?")))
    assert ["function", "web_search"] == [tool["type"] for tool in body["tools"]]
    session.use(endpoint="anthropic", model="claude-opus-4-6", api_key=KEY)
    body = json.loads(bytes(session.wire.plan("Three?")))
    assert "web_search_20250305" in [tool.get("type") for tool in body["tools"]]


def test_what_the_model_refuses_is_said_before_the_network(store: SessionStore, referee: Referee, own: Path) -> None:
    """A constraint that only the chosen model decides, and a feature that a dialect has no words for."""
    (own / "look.toml").write_text('reasoning_effort = "minimal"\n[features]\nweb_search = true\n')
    session = store.session("a", app="look", endpoint="openai", model="gpt-5", api_key=KEY)
    with pytest.raises(SettingError, match="asks gpt-5 for web_search: these models refuse"):
        session.chat("One?")
    with pytest.raises(SettingError, match="no way is known to say it to deepseek"):
        open_session(store, referee, name="b", app="look").chat("One?")
    assert ([], []) == (session.log(), referee.requests)


def test_the_endpoint_of_an_app_holds_at_an_address_of_ones_own(store: SessionStore, own: Path) -> None:
    """A base URL alone is another address of the app's endpoint, unless the catalogue knows the host as another one."""
    (own / "deep.toml").write_text('endpoint = "deepseek"\nmodel = ["deepseek-v4-pro", "gpt-5"]\n')
    here = store.session("here", app="deep", base_url="http://127.0.0.1:9/v1")
    there = store.session("there", app="deep", base_url="https://api.openai.com/v1", model="gpt-5")
    assert ("deepseek", "deepseek-v4") == (here.target.endpoint.id, here.target.rule.id)
    assert "http://127.0.0.1:9/v1" == here.target.base_url
    assert "openai" in there.target.endpoint.id


# -- one conversation ----------------------------------------------------------------------------------------------


def test_the_app_is_kept_with_the_session(store: SessionStore, referee: Referee, own: Path) -> None:
    """Whoever opens the session again has its app, without naming it."""
    open_session(store, referee, app="short").chat("One?")
    again = open_session(store, referee)
    assert again.app == apps.find("short")
    again.chat("Two?")
    assert "high" == again.settings.effort


def test_apps_do_not_share_a_conversation(store: SessionStore, referee: Referee, own: Path) -> None:
    """Before the first question the app may change; afterwards another one begins another session."""
    session = open_session(store, referee, app="tutor")
    session.set("session.app", "short")
    session.chat("One?")
    session.set("session.app", "short")
    with pytest.raises(SettingError, match="began with the app short, and apps do not share one"):
        session.set("session.app", "tutor")
    with pytest.raises(SettingError, match="began with the app short"):
        open_session(store, referee, app="tutor")
    assert "short" == session.settings.app
    plain = open_session(store, referee, name="plain")
    plain.chat("One?")
    with pytest.raises(SettingError, match="began with no app"):
        plain.set("session.app", "short")


def test_an_app_can_be_left(store: SessionStore, referee: Referee, own: Path) -> None:
    """Also one whose file is gone: the conversation goes on without its settings."""
    session = open_session(store, referee, app="short")
    session.chat("One?")
    (own / "short.toml").unlink()
    with pytest.raises(NotFoundError, match="there is no app 'short'"):
        session.chat("Two?")
    assert "read_only" == session.settings.permissions_mode  # of a turn that is under way
    session.unset("session.app")
    session.chat("Two?")
    assert (None, None) == (session.app, session.settings.effort)


def test_an_unknown_app_makes_no_difference(store: SessionStore, referee: Referee) -> None:
    """The error names the apps, and the session stays as it was."""
    with pytest.raises(NotFoundError, match="did you mean tutor"):
        open_session(store, referee, app="tutr")
    assert [] == store.sessions()
    with pytest.raises(SettingError, match="layers that may set it are session"):
        store.session("a", endpoint="kimi", model="m").chat("x", settings={"session.app": "tutor"})


# -- the carry -----------------------------------------------------------------------------------------------------


def test_an_app_carries_the_reasoning_of_the_last_three_responses(store: SessionStore, referee: Referee) -> None:
    """REASONING_CONTEXT_MAX: earlier reasoning goes along without being asked for, and no more than three of it."""
    session = kimi(store, referee, app="tutor")
    ask(session, referee, "one", "two", "three", "four", "five")
    assert [None, "two", "three", "four"] == thoughts(referee)
    assert [] == refusals(referee)


def test_a_turn_without_reasoning_empties_the_carry(store: SessionStore, referee: Referee) -> None:
    """What went along before does not come back; the record of each request says what it carried."""
    session = kimi(store, referee, app="tutor")
    ask(session, referee, "one", "two", "", "four", "five")
    assert [None, None, None, "four"] == thoughts(referee)
    assert len(session.why()) > 0
    assert [] == refusals(referee)


def test_a_new_session_carries_nothing(store: SessionStore, referee: Referee) -> None:
    """The carry is the session's own."""
    ask(kimi(store, referee, app="tutor"), referee, "one", "two")
    second = kimi(store, referee, name="second", app="tutor")
    ask(second, referee, "three")
    assert [] == thoughts(referee)
    ask(second, referee, "four")
    assert ["three"] == thoughts(referee)


def test_a_session_whose_app_is_gone_can_be_read_and_left(store: SessionStore, referee: Referee, own: Path) -> None:
    """The file was deleted: what was said is there, a turn names what is missing, and the app can be unset."""
    session = kimi(store, referee, app="short")
    ask(session, referee, "a thought")
    (own / "short.toml").unlink()

    again = store.session("chat")
    assert session.log() == again.log() != []
    with pytest.raises(NotFoundError, match="short"):
        session.chat("And now?")
    session.unset("session.app")
    assert "completed" == session.chat("And now?").state
