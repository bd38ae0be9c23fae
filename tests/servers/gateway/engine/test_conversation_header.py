"""A host that demands one id a conversation, in a header: the client's own goes upstream, else the session's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.servers.gateway.harness.engines import KEY, Plays, ask, engine
from thinkback.drive.http import HttpResponse, Timeouts

HEADER = "x-opencode-session"
ANSWER = {"id": "c1", "choices": [{"message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}]}


class Heard(Plays):
    """An upstream that keeps the headers of each request."""

    def __init__(self) -> None:
        super().__init__(lambda body: (200, "application/json", [json.dumps(ANSWER).encode()]))
        self.headers: list[dict[str, str]] = []

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[HttpResponse]:
        self.headers.append({name.lower(): value for name, value in headers.items()})
        async with super().post(url, headers, body, timeouts) as response:
            yield response


@pytest.mark.parametrize("given", ["", "ses_of_the_client"])
def test_the_id_of_a_conversation_stays(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """Both requests of a conversation have one id; another conversation has another unless its client says one."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    upstream = Heard()
    made = engine(upstream, {"opencode-zen": "https://opencode.test/zen/v1"})
    own = {HEADER: given} if given else {}

    def asks(*said: dict[str, Any]) -> str:
        body = {"model": "opencode-zen/kimi-k3", "messages": said}
        return ask(made, "openai-chat", body, headers=own).headers["thinkback-session"]

    first = {"role": "user", "content": "Really?"}
    session = asks(first)
    assert session == asks(first, ANSWER["choices"][0]["message"], {"role": "user", "content": "Sure?"})  # type: ignore[index]
    other = asks({"role": "user", "content": "Another thing."})

    assert [given or session, given or session, given or other] == [sent[HEADER] for sent in upstream.headers]
