"""Sessions with servers of one's own: no key, a private CA, a proxy, an address nobody knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.drive.servers import Asked, Authority, Server, forward, head, says
from tests.session.chats import KEY
from thinkback.session.reply import Reply
from thinkback.session.session import Session
from thinkback.session.store import SessionStore

Ask = Callable[[Session], Reply]
EVENTS = [
    {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}}]},
    {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]},
]
ANSWER = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in EVENTS) + b"data: [DONE]\n\n"


@pytest.fixture(params=["sync", "asyncio"])
def chat(request: pytest.FixtureRequest) -> Ask:
    """Both faces."""
    if request.param == "sync":
        return lambda session: session.chat("Hello?")
    return lambda session: asyncio.run(session.aio.chat("Hello?"))


def test_local_server_needs_no_key(store: SessionStore, chat: Ask) -> None:
    """An address is enough; reasoning is kept and not sent back where nothing is known of it."""
    with Server(says(ANSWER)) as server:
        session = store.session("local", base_url=f"{server.url}/v1/", model="some-model")
        reply = chat(session)
        chat(session)
    assert ("Hello.", "Hm.", "completed") == (reply.text, reply.reasoning, reply.state)
    assert ("POST /v1/chat/completions HTTP/1.1", False) == (
        server.asked[0].line,
        "authorization" in server.asked[0].headers,
    )
    assert "some-model" == json.loads(server.asked[0].body)["model"]
    assert b"Hm." not in server.asked[1].body
    assert "unknown" == session.target.endpoint.id


def test_local_server_of_a_known_kind(store: SessionStore, chat: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named, at an address of its own; a key that is set is sent, for somebody set it."""
    with Server(says(ANSWER)) as server:
        session = store.session("lm", endpoint="lmstudio", base_url=f"{server.url}/v1", model="some-model")
        session.set("context.limit", 100_000)  # nobody asks the server for it then
        chat(session)
        monkeypatch.setenv("LMSTUDIO_API_KEY", KEY)
        chat(session)
    assert [None, f"Bearer {KEY}"] == [asked.headers.get("authorization") for asked in server.asked]


def test_private_authority(
    store: SessionStore, chat: Ask, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By path, and by the environment."""
    with Server(says(ANSWER), authority.server) as server:
        given: dict[str, Any] = {"base_url": f"{server.url}/v1", "model": "m", "api_key": KEY}
        assert "Hello." == chat(store.session("a", verify=authority.certificate, **given)).text
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
        assert "Hello." == chat(store.session("b", **given)).text


def test_proxy(store: SessionStore, chat: Ask, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given, and by the environment, for both schemes; the one for TLS never sees the key."""
    with Server(says(ANSWER)) as plain, Server(says(ANSWER), authority.server) as tls, Server(forward) as proxy:
        given: dict[str, Any] = {"model": "m", "api_key": KEY, "verify": authority.certificate}
        assert "Hello." == chat(store.session("a", base_url=plain.url, proxy=proxy.url, **given)).text
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        assert "Hello." == chat(store.session("b", base_url=plain.url, **given)).text
        assert "Hello." == chat(store.session("c", base_url=tls.url, **given)).text
    assert 3 == len(proxy.asked)
    assert f"CONNECT {tls.address} HTTP/1.1" == proxy.asked[-1].line
    assert KEY not in str(proxy.asked[-1])


def test_connections_are_shared_by_the_sessions_of_a_store(store: SessionStore) -> None:
    """The same options, the same client; other options, another one."""
    one = store.transport(None, True)
    assert one is store.transport(None, True)
    assert one is not store.transport(None, False)


def test_server_that_answers_whole_although_a_stream_was_asked_for(store: SessionStore, chat: Ask) -> None:
    """The body says what it is."""
    whole = {"choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}]}
    with Server(says(json.dumps(whole).encode(), kind="application/json")) as server:
        assert "Hello." == chat(store.session("local", base_url=server.url, model="m")).text


def test_path_and_query_of_the_address(store: SessionStore, chat: Ask) -> None:
    """A query stays behind the path."""
    seen: list[str] = []

    def answer(server: Server, asked: Asked) -> list[bytes]:
        seen.append(asked.line)
        return [head(length=len(ANSWER)), ANSWER]

    with Server(answer) as server:
        chat(store.session("azure-like", base_url=f"{server.url}/openai?api-version=7", model="m"))
    assert ["POST /openai/chat/completions?api-version=7 HTTP/1.1"] == seen
