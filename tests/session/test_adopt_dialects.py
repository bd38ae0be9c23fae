"""Histories in the form of other dialects, taken over and gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from thinkback.errors import NotFoundError
from thinkback.session.store import open
from thinkback_referee import Referee

HISTORIES: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"role": "user", "content": "2+2?"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Sum.", "signature": "s"}, {"type": "text", "text": "4"}],
        },
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "2+2?"}]},
        {"role": "model", "parts": [{"text": "4", "thoughtSignature": "s"}]},
    ],
    "openai-responses": [
        {"role": "user", "content": "2+2?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "s"},
        {"role": "assistant", "content": "4"},
    ],
}


@pytest.mark.parametrize("dialect", HISTORIES)
def test_a_history_in_another_form_goes_on(dialect: str, referee: Referee, tmp_path: Path) -> None:
    """It is read as it is; what is opaque and vouched for by nobody stays away; a second time adds nothing."""
    with open(tmp_path / "log.db") as store:
        session = store.session(
            "old",
            endpoint="deepseek",
            model="deepseek-v4-pro",
            base_url=referee.base_url("deepseek"),
            api_key="sk-test-1",
        )
        assert session.wire.adopt(HISTORIES[dialect], dialect=dialect)
        assert () == session.wire.adopt(HISTORIES[dialect], dialect=dialect)
        assert session.chat("And 3+3?").text
        sent = referee.requests[-1]
    assert ["user", "assistant", "user"] == [message["role"] for message in sent.body["messages"]]  # type: ignore[attr-defined]
    assert "4" in sent.raw.decode()
    assert '"s"' not in sent.raw.decode()


def test_a_form_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    """With those that do."""
    with open(tmp_path / "log.db") as store, pytest.raises(NotFoundError, match="morse"):
        store.session("x", endpoint="deepseek", model="m").wire.adopt([], dialect="morse")
