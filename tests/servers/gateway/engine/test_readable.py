"""Readable reasoning for the log alone: asked for, kept, shown by ``why``, and not seen by the client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.servers.gateway.harness.engines import KEY, PLACES, Kept, Plays, ask, engine
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Request
from thinkback.model.plan import Control
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.grant import Grant
from thinkback.session.requests import rebuild

MODEL = "anthropic/claude-opus-5-5"
GRANT = Grant("k1", settings={"reasoning.readable": True})
EVENTS = (
    {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "model": "c", "usage": {}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "A secret thought."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Yes."}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)
STREAM = b"".join(b"event: %b\ndata: %b\n\n" % (str(e["type"]).encode(), json.dumps(e).encode()) for e in EVENTS)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, Plays]:
    """An engine whose upstream thinks."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    transport = Plays(lambda body: (200, "text/event-stream", [STREAM[:300], STREAM[300:]]))
    return engine(transport, PLACES, config=Config()), transport


def asks(engine: Engine, grant: Grant = GRANT, *more: Any, **thinking: Any) -> Kept:
    """A question of a client that says how it wants the model to think."""
    said = [{"role": "user", "content": "Really?"}, *more]
    body = {"model": MODEL, "max_tokens": 2000, "stream": True, "messages": said}
    return ask(engine, "anthropic", {**body, "thinking": {"type": "adaptive", **thinking}}, grant=grant)


def test_the_log_has_what_the_client_did_not_ask_for(made: tuple[Engine, Plays]) -> None:
    """The client gets the block as the provider gives it unasked, and what it sends back is recognised."""
    engine, transport = made
    kept = asks(engine)
    commits = engine.logs.of("default").read(kept.headers["thinkback-session"])
    blocks = {event["index"]: event for event in kept.events if event["type"] == "content_block_start"}
    signed = next(event["delta"]["signature"] for event in kept.events if "signature" in event.get("delta", {}))

    assert {"type": "adaptive", "display": "summarized"} == json.loads(transport.sent[0])["thinking"]
    assert b"secret" not in kept.body
    assert b"thinking_delta" not in kept.body
    assert EVENTS[1] == blocks[0]
    assert ["A secret thought."] == [c.value.thought for c in commits if isinstance(c.value, ThinkingBlock)]
    told = [(control.key, control.state) for control in rebuild(commits).controls]
    assert ("reasoning.readable", "emitted") in told

    thought = {"type": "thinking", "thinking": "", "signature": signed}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
    again = asks(engine, GRANT, answer, {"role": "user", "content": "Sure?"})

    assert "complete" == again.headers["thinkback-reattach"]
    assert kept.headers["thinkback-session"] == again.headers["thinkback-session"]
    (sent, *_) = json.loads(transport.sent[1])["messages"][1]["content"]
    assert ("A secret thought.", "c2ln") == (sent["thinking"], sent["signature"])


def test_who_asks_for_it_gets_it(made: tuple[Engine, Plays]) -> None:
    """And who says that it is not wanted gets none, while the log has it."""
    engine, transport = made
    assert b"secret" in asks(engine, GRANT, display="summarized").body
    assert b"secret" not in asks(engine, GRANT, display="omitted").body
    assert ["summarized"] * 2 == [json.loads(body)["thinking"]["display"] for body in transport.sent]


@pytest.mark.parametrize("grant", [Grant("k1"), Grant("k1", recording="metadata", settings=GRANT.settings)])
def test_without_the_setting_or_a_log_nothing_is_asked_for(made: tuple[Engine, Plays], grant: Grant) -> None:
    """What nobody keeps need not be paid for."""
    engine, transport = made
    asks(engine, grant)
    assert {"type": "adaptive"} == json.loads(transport.sent[0])["thinking"]


NATIVE: list[tuple[str, str, dict[str, Any]]] = [
    ("openai-responses", "openai/gpt-5.5", {"input": "Really?", "reasoning": {"effort": "low"}}),
    ("anthropic", MODEL, {"max_tokens": 2000, "messages": [{"role": "user", "content": "Really?"}]}),
    ("gemini", "gemini/gemini-3-pro-preview", {"contents": [{"role": "user", "parts": [{"text": "Really?"}]}]}),
]
WORDS = (b"summar", b"includeThoughts", b"display")


@pytest.mark.parametrize(("dialect", "model", "body"), NATIVE)
def test_a_client_of_the_dialect_sees_what_it_asked_for_without_the_setting(
    monkeypatch: pytest.MonkeyPatch, dialect: str, model: str, body: dict[str, Any]
) -> None:
    """Nothing readable is asked for in its name: it may be charged for, and refused to an organisation. A person who
    sets what is displayed is followed, and so is what the request is known by afterwards.
    """
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    transport = Plays(lambda body: (400, "application/json", [b"{}"]))
    made = engine(transport, {"openai": "http://o.test", "gemini": "http://g.test", **PLACES}, config=Config())
    kept = ask(made, dialect, {"model": model, **body}, model=model)
    ask(made, dialect, {"model": model, **body}, grant=Grant("k1", settings={"reasoning.readable": False}), model=model)
    assert not any(word in sent for sent in transport.sent for word in WORDS)
    commits = made.logs.of("default").read(kept.headers["thinkback-session"])
    record = [c.value for c in commits if isinstance(c.value, Request)][-1]
    assert record.sent_digest == rebuild(commits).record().sent_digest

    ask(
        made,
        dialect,
        {"model": model, **body},
        grant=Grant("k1", settings={"reasoning.display": "summarized"}),
        model=model,
    )
    assert any(word in transport.sent[-1] for word in WORDS)


def test_a_client_of_another_dialect_has_no_words_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets what the upstream shows, with and without the setting, which is about clients that could have asked."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    transport = Plays(lambda body: (400, "application/json", [b"{}"]))
    made = engine(transport, {"openai": "http://o.test"}, config=Config())
    for readable in (None, False, True):
        grant = Grant("k1", settings={} if readable is None else {"reasoning.readable": readable})
        ask(
            made,
            "openai-chat",
            {"model": "openai/gpt-5.5", "messages": [{"role": "user", "content": "?"}]},
            grant=grant,
        )
    assert ["auto"] * 3 == [json.loads(sent)["reasoning"]["summary"] for sent in transport.sent]


def test_who_counts_thinking_gets_its_counts(made: tuple[Engine, Plays]) -> None:
    """They come with what would be taken out, so that nothing is asked for beside them."""
    engine, transport = made
    said = [{"role": "user", "content": "Really?"}]
    body = {"model": MODEL, "max_tokens": 2000, "stream": True, "messages": said, "thinking": {"type": "adaptive"}}
    betas = {"anthropic-beta": "context-1m-2025-08-07, thinking-token-count-2026-05-13"}
    kept = ask(engine, "anthropic", body, grant=GRANT, headers=betas)
    assert {"type": "adaptive"} == json.loads(transport.sent[0])["thinking"]
    (told,) = _readable(engine, kept)
    assert "suppressed" == told.state
    assert "anthropic-beta: thinking-token-count-2026-05-13" in told.reason


def _readable(engine: Engine, kept: Kept) -> list[Control]:
    """What ``why`` says of the setting for the last request."""
    commits = engine.logs.of("default").read(kept.headers["thinkback-session"])
    plan = rebuild(commits)
    assert plan.record().sent_digest == [c.value for c in commits if isinstance(c.value, Request)][-1].sent_digest
    return [control for control in plan.controls if control.key == "reasoning.readable"]


def test_who_may_have_no_summaries_is_answered_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that refuses what the setting asks for is asked again as the client wrote it, in that request and in
    no later one for a while; ``why`` says in which words it refused, to nobody but whose request it was.
    """
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "summaries: not for you"}}

    def answer(body: bytes) -> tuple[int, str, list[bytes]]:
        if "display" in json.loads(body)["thinking"]:
            return 400, "application/json", [json.dumps(refusal).encode()]
        return 200, "text/event-stream", [STREAM]

    transport = Plays(answer)
    made = engine(transport, PLACES, config=Config())
    first, second = asks(made), asks(made, Grant("k2", settings=GRANT.settings))
    assert [200, 200] == [first.status, second.status]
    assert ["summarized", None, None] == [json.loads(body)["thinking"].get("display") for body in transport.sent]
    told = [control for kept in (first, second) for control in _readable(made, kept)]
    assert ["suppressed"] * 2 == [control.state for control in told]
    assert ["the provider refused it: summaries: not for you", "the provider refused it in the last hour"] == [
        control.reason for control in told
    ]


def test_what_a_provider_refuses_all_the_same_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own words, after one more try; nothing is learned of the place."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    said = {"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: too many"}}
    transport = Plays(lambda body: (400, "application/json", [json.dumps(said).encode()]))
    made = engine(transport, PLACES, config=Config())
    for _ in range(2):
        kept = asks(made)
        assert (400, True) == (kept.status, b"max_tokens: too many" in kept.body)
    assert ["summarized", None] * 2 == [json.loads(body)["thinking"].get("display") for body in transport.sent]
