"""Imported histories whose programs go on with them through a gateway that asks for no key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.formats.samples import SAMPLES
from tests.servers.gateway.harness.engines import GRANT, Plays, ask, engine
from thinkback.servers.gateway.grant import OPEN, Grant
from thinkback.session.exchange.histories import Wanted, run, vouched
from thinkback.stores import open_store

URL = "https://api.anthropic.com/v1"
SIGNATURE = "c2lnbmF0dXJl"
ANSWER = {
    "type": "message",
    "id": "m9",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [{"type": "text", "text": "Done."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def said() -> list[dict[str, Any]]:
    """What the program sends of the history once it resumed it, and lost its thoughts."""
    calls = [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}} for id in ("t1", "t2")]
    results = [{"type": "tool_result", "tool_use_id": id, "content": f"of {id}"} for id in ("t1", "t2")]
    return [
        {"role": "user", "content": "Which file?"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]


@pytest.mark.parametrize(("grant", "kept"), [(OPEN, True), (GRANT, False)])
def test_a_program_that_goes_on_with_what_was_imported_gets_its_reasoning_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grant: Grant, kept: bool
) -> None:
    """Whatever end user it names; the imported session stays as it was. A key of the gateway has no imports."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", "sk-any")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-any")
    (tmp_path / "history.jsonl").write_bytes(SAMPLES["claude-code"])
    with thinkback.open(tmp_path / "log.db", rules={}, settings={}) as store:
        wanted = Wanted("claude-code", str(tmp_path / "history.jsonl"), vouched=vouched(store, "anthropic"))
        (took,), _ = run(store.log, wanted)
        before = len(store.commits(took.name))
    upstream = Plays(lambda body: (200, "application/json", [json.dumps(ANSWER).encode()]))
    house = engine(upstream, {"anthropic": URL}, log=open_store(str(tmp_path / "log.db")))
    messages = said()
    asked = {"model": "anthropic/claude-opus-5-5", "max_tokens": 2000, "metadata": {"user_id": "session_2"}}
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    first = ask(house, "anthropic", {**asked, **thinking, "messages": messages}, grant=grant)
    messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}]
    second = ask(house, "anthropic", {**asked, **thinking, "messages": messages}, grant=grant)
    house.logs.close()

    assert kept == (SIGNATURE.encode() in upstream.sent[0])
    assert kept == (first.headers["thinkback-reattach"] == second.headers["thinkback-reattach"] == "complete")
    with thinkback.open(tmp_path / "log.db") as store:
        assert before == len(store.commits(took.name))
        assert 2 == len(store.sessions())
