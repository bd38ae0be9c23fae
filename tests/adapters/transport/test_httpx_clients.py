"""The transport under clients of httpx, which SDKs stood on before httpx2; skipped where httpx is not installed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest

import thinkback
from tests.adapters.transport.provider import HEADERS, URL, WHOLE, Provider, question, says, streams
from tests.proxy.playbook import ANSWER

KINDS = ["user", "request", "response", "reasoning", "assistant"]


def kinds(log: Path) -> list[list[str]]:
    """The kinds of commits of each session."""
    with thinkback.open(log) as store:
        return [[str(commit.kind) for commit in store.commits(info.id)][:5] for info in store.sessions()]


def test_a_request_of_another_library_is_told_the_least_versions_and_the_remedy(tmp_path: Path) -> None:
    """The transport cannot answer it; the error names what can."""
    foreign = SimpleNamespace(url=URL)
    with pytest.raises(TypeError, match=r"openai 3\.0 and anthropic 1\.0.*httpx_client\(log\).*httpx_clients"):
        thinkback.Transport(tmp_path / "chats.db", Provider(streams())).handle_request(cast(httpx2.Request, foreign))


def test_a_client_of_httpx_is_served(tmp_path: Path) -> None:
    """Whole and streamed, it reads the provider's bytes, and both exchanges are recorded."""
    pytest.importorskip("httpx")
    from thinkback.adapters.transport.httpx_clients import httpx_client

    log, provider = tmp_path / "chats.db", Provider(says(200, WHOLE), streams())
    with httpx_client(log, transport=provider, headers={"x-own": "1"}) as client:
        answer = client.post(URL, content=question("One?", stream=False), headers=HEADERS)
        assert (200, WHOLE) == (answer.status_code, answer.content)
        with client.stream("POST", URL, content=question("Two?"), headers=HEADERS) as streamed:
            assert b"".join(ANSWER) == b"".join(streamed.iter_bytes())
    assert [KINDS] * 2 == kinds(log)
    assert ["1", "1"] == [request.headers["x-own"] for request in provider.asked]


def test_an_async_client_of_httpx_is_served(tmp_path: Path) -> None:
    """As the other."""
    pytest.importorskip("httpx")
    from thinkback.adapters.transport.httpx_clients import async_httpx_client

    async def ask() -> bytes:
        async with async_httpx_client(tmp_path / "chats.db", transport=Provider(streams())) as client:
            answer: Any = await client.post(URL, content=question("One?"), headers=HEADERS)
            return bytes(answer.content)

    assert b"".join(ANSWER) == asyncio.run(ask())
    assert [KINDS] == kinds(tmp_path / "chats.db")


@pytest.mark.parametrize("name", ["ConnectError", "ReadTimeout", "RemoteProtocolError"])
def test_a_failure_is_one_of_httpx(tmp_path: Path, name: str) -> None:
    """SDKs repeat by its class."""
    httpx = pytest.importorskip("httpx")
    from thinkback.adapters.transport.httpx_clients import httpx_client

    provider = Provider(getattr(httpx2, name)("no such luck"))
    client = httpx_client(tmp_path / "chats.db", transport=provider)
    with client, pytest.raises(getattr(httpx, name), match="no such luck"):
        client.post(URL, content=question("One?"), headers=HEADERS)


def test_an_sdk_on_httpx_is_served(tmp_path: Path) -> None:
    """openai below 3 takes the client; its next request carries the reasoning that it dropped."""
    httpx, openai = pytest.importorskip("httpx"), pytest.importorskip("openai")
    from thinkback.adapters.transport.httpx_clients import httpx_client

    if int(openai.__version__.split(".")[0]) >= 3:
        pytest.skip("this openai stands on httpx2")
    provider = Provider(says(200, WHOLE))
    client = openai.OpenAI(
        base_url=URL.removesuffix("/chat/completions"),
        api_key="sk-any",
        http_client=httpx_client(tmp_path / "chats.db", transport=provider),
    )
    assert isinstance(client._client, httpx.Client)
    said: list[dict[str, str]] = [{"role": "user", "content": "What?"}]
    for _ in range(2):
        answer = client.chat.completions.create(model="kimi-k2-thinking", messages=said).choices[0].message.content
        said += [{"role": "assistant", "content": answer}, {"role": "user", "content": "And?"}]
    assert "Hm." in str(provider.bodies[1]["messages"][1])
