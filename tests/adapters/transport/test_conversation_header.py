"""A host that demands one id a conversation, in a header, gets one with each request; a program's own id stays."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2

import thinkback
from tests.adapters.transport.provider import WHOLE, Provider, says

URL = "https://opencode.ai/zen/v1/chat/completions"
HEADER = "x-opencode-session"


def asks(client: httpx2.Client, question: str, **headers: str) -> None:
    """One conversation's first request."""
    body = {"model": "kimi-k3", "messages": [{"role": "user", "content": question}]}
    client.post(URL, content=json.dumps(body), headers={"authorization": "Bearer k", **headers})


def test_each_conversation_has_an_id_of_its_own(tmp_path: Path) -> None:
    """Requests of a conversation repeat it, another conversation has another, and what a program sends goes out."""
    provider = Provider(says(200, WHOLE))
    with thinkback.http_client(tmp_path / "log.db", transport=provider) as client:
        with thinkback.conversation("one"):
            asks(client, "Why?")
            asks(client, "Why?")
        with thinkback.conversation("two"):
            asks(client, "How?")
        asks(client, "When?", **{HEADER: "mine"})
    ids = [request.headers[HEADER] for request in provider.asked]

    assert "mine" == ids[3]
    assert 2 == len(set(ids[1:3]))
    assert all(ids)
