"""Every scheme of authentication at work in a session, and what it says of the account."""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.drive.sign_in import Tokens, azure_identity, forget_clouds, google_account
from tests.session.chats import run, statuses
from thinkback.errors import CredentialError, ProviderError, SettingError
from thinkback.session.reply import Reply
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import HttpError, Referee, Step
from thinkback_referee.bedrock.sigv4 import KEY as AWS_KEY
from thinkback_referee.bedrock.sigv4 import TEMPORARY_KEY, Credential

SECRET = "sk-this-must-show-nowhere"
CLAUDE = "us.anthropic.claude-sonnet-4-5-v1:0"
GEMINI = "gemini-3-pro"
Ask = Callable[[Session], Reply]


@pytest.fixture(params=["sync", "asyncio"])
def chat(request: pytest.FixtureRequest) -> Ask:
    """Both faces."""
    if request.param == "sync":
        return lambda session: session.chat("Hello?")
    return lambda session: run(session.aio.chat("Hello?"))


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without credentials."""
    forget_clouds(monkeypatch, tmp_path)
    return monkeypatch


def use_aws(patch: pytest.MonkeyPatch, credential: Credential, secret: str = "") -> None:
    """Credentials that the referee knows, in the environment."""
    patch.setenv("AWS_ACCESS_KEY_ID", credential.access_key)
    patch.setenv("AWS_SECRET_ACCESS_KEY", secret or credential.secret_key)
    patch.setenv("AWS_REGION", "us-east-1")
    if credential.session_token:
        patch.setenv("AWS_SESSION_TOKEN", credential.session_token)


def bedrock(store: SessionStore, referee: Referee, **more: Any) -> Session:
    """A session with Bedrock."""
    return store.session("aws", endpoint="bedrock", base_url=referee.base_url("bedrock"), model=CLAUDE, **more)


def vertex(store: SessionStore, referee: Referee, **more: Any) -> Session:
    """A session with Vertex."""
    return store.session("google", endpoint="vertex", base_url=referee.base_url("vertex"), model=GEMINI, **more)


@pytest.mark.parametrize("credential", [AWS_KEY, TEMPORARY_KEY])
def test_aws_verifies_the_signature(
    store: SessionStore, referee: Referee, clean: pytest.MonkeyPatch, chat: Ask, credential: Credential
) -> None:
    """Of the first request and of the same sent again, which is signed anew; the account is the credentials'."""
    use_aws(clean, credential)
    clean.setenv("AWS_ACCOUNT_ID", credential.account)
    referee.push(Step(fault=HttpError(500, "oops", {"retry-after": "0"})))
    session = bedrock(store, referee)
    assert "completed" == chat(session).state
    assert [500, 200] == statuses(referee)
    assert (credential.account, True) == (session.target.account, session.target.account_known)


def test_aws_request_that_the_program_sends_is_signed(
    store: SessionStore, referee: Referee, clean: pytest.MonkeyPatch
) -> None:
    """The headers of a plan are complete."""
    use_aws(clean, TEMPORARY_KEY)
    session = bedrock(store, referee)
    plan = session.wire.plan("Hello?", stream=False)
    request = urllib.request.Request(plan.url, bytes(plan), plan.headers)
    with urllib.request.urlopen(request) as response:
        reply = session.wire.ingest(response.read(), response.status, dict(response.headers))
    assert "completed" == reply.state
    assert "***" == plan.without_key(TEMPORARY_KEY.session_token)


def test_aws_refuses_a_wrong_key_and_nothing_shows_it(
    tmp_path: Path, referee: Referee, clean: pytest.MonkeyPatch, chat: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in the error, which repeats the signature, nor in a log, nor in the file."""
    caplog.set_level(logging.DEBUG)
    use_aws(clean, TEMPORARY_KEY, SECRET)
    shown: list[str] = []
    with thinkback.open(tmp_path / "chats.db") as store:
        session = bedrock(store, referee)
        with pytest.raises(ProviderError) as caught:
            chat(session)
        shown += ["".join(traceback.format_exception(caught.value)), str(caught.value.details)]
        plan = session.wire.plan("Again?")
        sent = dict(plan.headers)
        signature = sent["Authorization"].partition("Signature=")[2]
        with pytest.raises(ProviderError) as caught:
            session.wire.ingest(f'{{"message":"{sent} {SECRET}"}}', 403)
        shown += [str(caught.value), repr(plan), repr(session), repr(store), repr(session.target), caplog.text]
    assert [403] == statuses(referee)
    for secret in (SECRET, TEMPORARY_KEY.session_token, signature):
        for text in shown:
            assert secret not in text
        for file in tmp_path.glob("chats.db*"):
            assert secret.encode() not in file.read_bytes()


@pytest.mark.parametrize("given", [{"api_key": "bedrock-long-lived"}, {"headers": {"authorization": "Bearer mine"}}])
def test_aws_takes_a_bearer_key_instead(
    store: SessionStore, referee: Referee, clean: pytest.MonkeyPatch, chat: Ask, given: dict[str, Any]
) -> None:
    """Given as a key, as a header, or in the environment; then nothing is signed."""
    assert "completed" == chat(bedrock(store, referee, **given)).state
    clean.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-of-the-environment")
    session = bedrock(store, referee)
    assert "Bearer bedrock-of-the-environment" == session.wire.plan("Hello?").headers["Authorization"]


def test_google_signs_in(
    store: SessionStore, referee: Referee, clean: pytest.MonkeyPatch, tmp_path: Path, chat: Ask
) -> None:
    """Once for two requests; the account is the project in the address."""
    tokens = Tokens()
    with google_account(clean, tmp_path, tokens):
        session = vertex(store, referee)
        assert ["completed"] * 2 == [chat(session).state, chat(session).state]
    assert (1, [200, 200]) == (tokens.given, statuses(referee))
    assert ("referee", True) == (session.target.account, session.target.account_known)


def test_google_takes_a_token_of_the_environment(
    store: SessionStore, referee: Referee, clean: pytest.MonkeyPatch, chat: Ask
) -> None:
    """Without signing in."""
    clean.setenv("GOOGLE_VERTEX_ACCESS_TOKEN", "ya29.token")
    assert "completed" == chat(vertex(store, referee)).state


@pytest.mark.parametrize("key", [None, "azure-key"])
def test_azure_takes_a_key_or_signs_in(
    store: SessionStore, referee: Referee, clean: pytest.MonkeyPatch, chat: Ask, key: str | None
) -> None:
    """The key in its header, the token as a bearer token."""
    tokens = Tokens()
    base_url = f"{referee.base_url('azure')}?api-version=preview"
    with azure_identity(clean, tokens):
        session = store.session("azure", endpoint="azure", base_url=base_url, model="gpt-5.4", api_key=key)
        assert "completed" == chat(session).state
        headers = session.wire.plan("And?").headers
    assert (key is None) == (headers.get("Authorization") == f"Bearer token-{tokens.given}-of-the-tests")
    assert (key, int(key is None)) == (headers.get("api-key"), tokens.given)


@pytest.fixture
def by_query(referee: Referee, tmp_path: Path) -> Iterator[SessionStore]:
    """A log on disk, and an endpoint that wants its key in the query."""
    rules = f"""
        [[endpoint]]
        id = "by-query"
        name = "By query"
        base_url = "{referee.base_url("gemini")}"
        dialect = "gemini"
        path = "/models/{{model}}:generateContent"
        stream_path = "/models/{{model}}:streamGenerateContent?alt=sse"
        model_in_body = false
        auth = {{ scheme = "query", query = "key", env = ["BY_QUERY_KEY"] }}
        source = "the tests"
    """
    with thinkback.open(tmp_path / "query.db", rules={"mine.toml": rules}) as store:
        yield store


def test_key_in_the_query_shows_nowhere(
    by_query: SessionStore, referee: Referee, tmp_path: Path, chat: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    """It arrives; errors, logs, reprs and the file are without it, whatever the server repeats."""
    caplog.set_level(logging.DEBUG)
    session = by_query.session("s", endpoint="by-query", model=GEMINI, api_key=SECRET)
    assert "completed" == chat(session).state
    referee.push(Step(fault=HttpError(400, {"error": {"message": f"/v1beta?alt=sse&key={SECRET}"}})))
    with pytest.raises(ProviderError, match=r"key=\*\*\*") as caught:
        chat(session)
    shown = ["".join(traceback.format_exception(caught.value)), str(caught.value.details), caplog.text]
    shown += [repr(session), repr(session.explain()), session.explain().url, session.explain(next=True).url]
    for text in shown:
        assert SECRET not in text
    for file in tmp_path.glob("query.db*"):
        assert SECRET.encode() not in file.read_bytes()


def test_plan_has_the_key_in_its_query(by_query: SessionStore) -> None:
    """Behind what the path asks for: whoever sends the plan needs nothing else; its repr is without."""
    plan = by_query.session("s", endpoint="by-query", model=GEMINI, api_key=f"{SECRET}/+").wire.plan("Hello?")
    assert plan.url.endswith(f":streamGenerateContent?alt=sse&key={SECRET}%2F%2B")
    assert SECRET not in plan.without_key(plan.url)
    assert SECRET not in repr(plan)


def test_base_url_may_not_hold_the_key(by_query: SessionStore, referee: Referee) -> None:
    """It would get into the log."""
    base_url = f"{referee.base_url('gemini')}?key={SECRET}"
    session = by_query.session("s", endpoint="by-query", base_url=base_url, model=GEMINI)
    with pytest.raises(SettingError, match="api_key=") as caught:
        session.chat("Hello?")
    assert SECRET not in str(caught.value)
    assert [] == session.log()


@pytest.mark.parametrize("make", [bedrock, vertex])
@pytest.mark.parametrize(
    "begin",
    [
        lambda session: session.chat("Hello?"),
        lambda session: run(session.aio.chat("Hello?")),
        lambda session: session.wire.plan("Hello?"),
    ],
    ids=["sync", "asyncio", "wire"],
)
def test_nothing_is_stored_without_credentials(
    store: SessionStore, referee: Referee, make: Callable[..., Session], begin: Callable[[Session], object]
) -> None:
    """They are looked for before the turn begins."""
    session = make(store, referee)
    with pytest.raises(CredentialError):
        begin(session)
    assert ([], []) == (session.log(), referee.requests)
    assert "" == session.explain(next=True).headers.get("Authorization", "")


def test_sign_in_does_not_hold_the_event_loop_up(
    store: SessionStore, referee: Referee, clean: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While a token is fetched, other tasks run: the token server waits for one of them."""
    tokens, free = Tokens(seconds=60), threading.Event()
    tokens.gate = free

    async def both() -> Reply:
        asking = asyncio.ensure_future(vertex(store, referee).aio.chat("Hello?"))
        while not asking.done():
            free.set()  # opens the gate for one token
            await asyncio.sleep(0)
        return await asking

    with google_account(clean, tmp_path, tokens):
        assert "completed" == run(both()).state
    assert tokens.given > 1


def test_codex_sends_the_account_beside_the_token(store: SessionStore, referee: Referee) -> None:
    """It is the account; the token, which expires, is none."""
    given: dict[str, Any] = {
        "endpoint": "codex",
        "base_url": referee.base_url("codex"),
        "model": "gpt-5.4",
        "api_key": SECRET,
    }
    session = store.session("c", headers={"ChatGPT-Account-ID": "account-7"}, **given)
    assert {"Authorization": f"Bearer {SECRET}", "ChatGPT-Account-ID": "account-7"}.items() <= (
        session.wire.plan("Hello?").headers.items()
    )
    assert ("account-7", True) == (session.target.account, session.target.account_known)
    bare = store.session("d", **given)
    assert ("", False) == (bare.target.account, bare.target.account_known)


RESOURCE = "https://my-resource.openai.azure.com/openai/v1"
PROJECT = "https://aiplatform.googleapis.com/v1/projects/my-project/locations/global"
REGION = "https://bedrock-runtime.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("endpoint", "base_url", "given", "expected"),
    [
        ("azure", RESOURCE, {"api_key": SECRET}, ("my-resource", True)),
        ("azure", RESOURCE, {"headers": {"Authorization": "Bearer token"}}, ("my-resource", True)),
        ("azure", "https://gateway.example/v1", {"headers": {"Authorization": "Bearer token"}}, ("", False)),
        ("azure-openai-chat", RESOURCE, {"account": "mine"}, ("mine", True)),
        ("vertex", PROJECT, {}, ("my-project", True)),
        ("vertex-claude", PROJECT, {"api_key": "ya29.token"}, ("my-project", True)),
        ("vertex", "https://aiplatform.googleapis.com/v1", {"api_key": "ya29.token"}, ("", False)),
        ("bedrock", REGION, {}, ("", False)),
        ("bedrock", REGION, {"api_key": "bedrock-api-key-of-some-hours"}, ("", False)),
        ("bedrock", REGION, {"headers": {"Authorization": "Bearer token"}}, ("", False)),
        ("copilot", "", {"api_key": "tid=1;exp=2"}, ("", False)),
        ("openai", "", {"api_key": SECRET, "headers": {"OpenAI-Organization": "org-1"}}, ("org-1", True)),
    ],
)
def test_account_is_a_stable_principal(
    store: SessionStore, endpoint: str, base_url: str, given: dict[str, Any], expected: tuple[str, bool]
) -> None:
    """Or unknown; a token that expires says nothing."""
    target = store.session("s", endpoint=endpoint, base_url=base_url, model="m", **given).target
    assert expected == (target.account, target.account_known)


@pytest.mark.parametrize(
    ("endpoint", "base_url"), [("bedrock", REGION), ("azure", "https://gateway.example/v1"), ("anthropic", "")]
)
def test_lasting_key_has_a_fingerprint(store: SessionStore, endpoint: str, base_url: str) -> None:
    """The same for the same key, not known to be an account of its own."""
    made = [
        store.session("s", endpoint=endpoint, base_url=base_url, model="m", api_key=key).target
        for key in (SECRET, SECRET, "another-key")
    ]
    first, again, other = (target.account for target in made)
    assert (16, True, True) == (len(first), first == again, first != other)
    assert not any(target.account_known for target in made)
