"""Keys reach headers and nothing else: no error, no repr, no log, no file."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.session.chats import get_weather, open_session
from thinkback.errors import CredentialError, ProviderError, SettingError
from thinkback.session.store import SessionStore
from thinkback_referee import HttpError, Referee, Step

SECRET = "sk-this-must-show-nowhere"


def test_file_of_the_log_never_holds_a_key(
    tmp_path: Path, referee: Referee, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through chats, failures that repeat it, repairs, ingest and adopt; neither does anything that is printed."""
    echo = HttpError(401, {"error": {"message": f"Incorrect API key provided: {SECRET}"}})
    caplog.set_level(logging.DEBUG)
    with thinkback.open(tmp_path / "chats.db") as store:
        session = open_session(store, referee, api_key=SECRET, headers={"X-Api-Key": SECRET})
        session.chat("Weather in Oslo?", tools=[get_weather])
        referee.push(Step(fault=echo), Step(fault=HttpError(500, f"key {SECRET}")))
        shown = []
        for _ in range(2):
            with pytest.raises(ProviderError) as caught:
                session.chat("Hello?", max_retries=0)
            shown += [repr(caught.value), str(caught.value.details), "".join(traceback.format_exception(caught.value))]
        session.wire.plan("Hello?")
        with pytest.raises(ProviderError) as caught:
            session.wire.ingest(f'{{"error":{{"message":"bad key {SECRET}"}}}}', 401)
        shown += [str(caught.value), repr(session), repr(session.explain()), repr(store), repr(session.target)]
        plain = [entry.getMessage() for entry in caplog.records if not entry.name.startswith(("httpcore2", "h11"))]
    for text in (*shown, *plain, *capsys.readouterr()):
        assert SECRET not in text
    for file in tmp_path.iterdir():
        assert SECRET.encode() not in file.read_bytes()


@pytest.mark.parametrize("name", ["DEEPSEEK_API_KEY"])
def test_key_comes_from_the_environment(
    store: SessionStore, referee: Referee, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The endpoint's own variable, without the white space around it; a given key wins."""
    monkeypatch.setenv(name, f" {SECRET}\n")
    session = open_session(store, referee, api_key=None)
    assert f"Bearer {SECRET}" == session.wire.plan("Hello?").headers["Authorization"]
    session.use(api_key="given")
    assert "Bearer given" == session.wire.plan().headers["Authorization"]


def test_empty_variable_is_none(store: SessionStore, referee: Referee, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is tried; without any the error names them."""
    monkeypatch.setenv("MOONSHOT_API_KEY", "")
    monkeypatch.setenv("KIMI_API_KEY", SECRET)
    session = open_session(store, referee, "kimi", api_key=None)
    assert f"Bearer {SECRET}" == session.wire.plan("Hello?").headers["Authorization"]
    monkeypatch.delenv("KIMI_API_KEY")
    with pytest.raises(CredentialError, match="MOONSHOT_API_KEY or KIMI_API_KEY"):
        session.chat("Hello?")


@pytest.mark.parametrize("key", [f"{SECRET}\nX-Other: 1", f"{SECRET}…", f"{SECRET}\x00"])
def test_key_that_no_header_can_carry_is_not_repeated(store: SessionStore, referee: Referee, key: str) -> None:
    """A copy with something else in it is told without being shown."""
    session = open_session(store, referee, api_key=key)
    with pytest.raises(CredentialError, match="characters that HTTP cannot carry") as caught:
        session.chat("Hello?")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("headers", [{"X-Key": f"{SECRET}\n"}, {"X Key": SECRET}, {"": SECRET}, {"X:Y": SECRET}])
def test_header_that_http_cannot_carry_is_not_repeated(
    store: SessionStore, referee: Referee, headers: dict[str, str]
) -> None:
    """Its name is told."""
    session = open_session(store, referee, headers=headers)
    with pytest.raises(SettingError) as caught:
        session.chat("Hello?")
    assert SECRET not in str(caught.value)


def test_account_is_a_fingerprint(store: SessionStore, referee: Referee) -> None:
    """Two keys are two accounts, not known to be; a principal or a name is known."""
    accounts: list[Any] = []
    for given in (
        {"api_key": "key-one"},
        {"api_key": "key-two"},
        {"api_key": None},
        {"headers": {"OpenAI-Organization": "org-1"}},
        {"account": "mine"},
    ):
        target = open_session(store, referee, **{"api_key": "key", **given}).target  # type: ignore[arg-type]
        accounts.append((target.account, target.account_known))
    first, second, none, principal, named = accounts
    assert first[0] != second[0]
    assert (16, False) == (len(first[0]), first[1])
    assert [("", False), ("org-1", True), ("mine", True)] == [none, principal, named]


def test_account_of_the_endpoints_own_data_is_known() -> None:
    """A person may name it in a rule file."""
    row = 'id = "mine"\nname = "Mine"\nbase_url = "https://mine.example/v1"\naccount = "team"\nsource = "the tests"\n'
    with thinkback.open(":memory:", rules={"mine.toml": f"[[endpoint]]\n{row}"}) as store:
        target = store.session("s", endpoint="mine", model="m", api_key=SECRET).target
    assert ("team", True) == (target.account, target.account_known)


def test_own_authorization_header_is_enough(store: SessionStore, referee: Referee) -> None:
    """Whoever sets the header needs no key; in any case of letters it replaces ours."""
    session = open_session(store, referee, api_key=None, headers={"authorization": f"Bearer {SECRET}"})
    assert "completed" == session.chat("Hello?").state
    session = open_session(store, referee, api_key="other", headers={"AUTHORIZATION": "Bearer mine", "accept": "x/y"})
    headers = session.wire.plan("Hello?").headers
    assert {"AUTHORIZATION": "Bearer mine", "accept": "x/y"}.items() <= headers.items()
    assert [] == [name for name in headers if name in ("Authorization", "Accept")]


def test_custom_headers_reach_the_server(store: SessionStore, referee: Referee) -> None:
    """Beside ours."""
    open_session(store, referee, headers={"X-Team": "tests"}).chat("Hello?")
    headers = referee.requests[-1].headers
    assert ("tests", "thinkback", "text/event-stream", "application/json") == (
        headers["x-team"],
        headers["user-agent"],
        headers["accept"],
        headers["content-type"],
    )


def test_key_goes_into_the_header_the_endpoint_wants(store: SessionStore) -> None:
    """A scheme of its own, or none at all."""
    azure = store.session(
        "azure", endpoint="azure", model="m", base_url="https://x.openai.azure.com/v1", api_key=SECRET
    )
    assert SECRET == azure.wire.plan("Hello?").headers["api-key"]
    row = 'id = "open"\nname = "Open"\nbase_url = "https://open.example/v1"\nsource = "the tests"\n'
    rules = f'[[endpoint]]\n{row}auth = {{ scheme = "none" }}\n'
    with thinkback.open(":memory:", rules={"mine.toml": rules}) as own:
        headers = own.session("s", endpoint="open", model="m", api_key=SECRET).wire.plan("Hello?").headers
    assert SECRET not in str(headers)
