"""What a client reads of its response: the bytes of the upstream, the last event, errors of its own dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.servers.gateway.harness.engines import (
    DEEPSEEK,
    GRANT,
    JSON,
    KEY,
    PLACES,
    SSE,
    Kept,
    Plays,
    ask,
    chat,
    chunks,
    commits,
    engine,
    question,
)
from thinkback.errors import NetworkError
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Response, TurnEnded
from thinkback.servers.gateway.grant import OPEN


def test_nothing_to_change_leaves_the_bytes_of_the_client() -> None:
    """In one dialect a request goes on as it came, whatever its spacing, numbers and unknown fields."""
    transport = Plays(lambda body: (200, JSON, [chat("Hi.")]))
    body = (
        b'{"model" : "deepseek-v4-pro",\n "messages": [ {"role":"user","content":"caf\\u00e9"} ],'
        b' "temperature": 1.0e0, "x": {"y": 12345678901234567890123}}'
    )
    made = engine(transport, PLACES)
    kept = [ask(made, "openai-chat", data) for data in (body, body.replace(b"deepseek-v4-pro", DEEPSEEK.encode()))]

    assert [(200, chat("Hi."))] * 2 == [(one.status, one.body) for one in kept]
    assert body == transport.sent[0]
    assert all(part in transport.sent[1] for part in (b'"caf\\u00e9"', b"1.0e0", b"12345678901234567890123"))


def test_an_upstream_that_breaks_off_anywhere_ends_in_an_error_of_the_dialect() -> None:
    """Cut at every byte of its stream: whole events, then an error; what arrived is stored as incomplete."""
    stream = chunks("Hm.", "Forty-two.")
    for at in range(len(stream)):
        pieces: list[bytes | Exception] = [stream[:at], NetworkError("gone", details={"phase": "network"})]
        made = engine(Plays(lambda body, pieces=pieces: (200, SSE, pieces)), PLACES)  # type: ignore[misc]
        kept = ask(made, "openai-chat", question(stream=True))
        history = commits(made)
        headers = [commit.value for commit in history if isinstance(commit.value, Response)]

        assert kept.ended
        if b"[DONE]" in stream[:at] or b'"stop"' in stream[:at]:
            continue
        if kept.status == 200:
            assert "error" in next(event for event in kept.events[::-1] if event != "[DONE]")
        else:
            assert (502, True) == (kept.status, "error" in kept.json)
        assert all(not header.complete for header in headers)
        assert isinstance(history[-1].value, TurnEnded)


def test_a_client_that_leaves_ends_the_upstream_and_what_came_is_stored() -> None:
    """The response counts as interrupted and is never given back."""
    transport = Plays(lambda body: (200, SSE, [piece + b"\n\n" for piece in chunks("Hm.", "4").split(b"\n\n")]))
    made = engine(transport, PLACES)
    kept = ask(made, "openai-chat", question(stream=True), sink=Kept(leaves_after=1))
    headers = [commit.value for commit in commits(made) if isinstance(commit.value, Response)]

    assert ("client_gone", 1, [False]) == (kept.notes.report.failure, transport.closed, [h.complete for h in headers])
    # and its tokens are guessed, so that nobody gets round a budget by leaving early
    assert kept.notes.guessed is not None
    assert 0 < kept.notes.guessed.input


def test_the_last_event_follows_the_record() -> None:
    """Whoever has read the end of a response finds it in the log."""
    made = engine(Plays(lambda body: (200, SSE, [chunks("Hm.", "42")])), PLACES)
    seen: list[int] = []

    class Watching(Kept):
        async def end(self, data: bytes = b"") -> None:
            seen.append(len(commits(made)))
            assert b"[DONE]" in data
            assert b"[DONE]" not in self.body
            await super().end(data)

    ask(made, "openai-chat", question(stream=True), sink=Watching())

    assert [len(commits(made))] == seen


def test_counts_are_asked_for_and_shown_only_to_those_who_ask() -> None:
    """Budgets need them; a client that did not ask sees no chunk without a choice."""
    transport = Plays(lambda body: (200, SSE, [chunks("", "42", usage=True)]))
    made = engine(transport, PLACES)
    unasked = ask(made, "openai-chat", question(stream=True))
    asking = ask(made, "openai-chat", question(stream=True, stream_options={"include_usage": True}))

    assert [True, True] == [json.loads(body)["stream_options"]["include_usage"] for body in transport.sent]
    assert (False, True) == (b"usage" in unasked.body, b"usage" in asking.body)
    report = unasked.notes.report
    assert (7, 3, 2) == (report.input_tokens, report.output_tokens, report.reasoning_tokens)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (401, {"error": {"message": f"wrong key {KEY}"}}, 502),
        (400, {"error": {"message": "bad temperature", "type": "invalid_request_error"}}, 400),
        (429, {"error": {"message": f"slow down {KEY}"}}, 429),
        (500, {"error": {"message": "down"}}, 500),
    ],
)
def test_an_upstreams_refusal_is_told_without_its_secrets(status: int, body: Any, told: int) -> None:
    """Its words go to the client where they are about the request, and its key never."""
    made = engine(Plays(lambda _: (status, JSON, [json.dumps(body).encode()])), PLACES)
    kept = ask(made, "openai-chat", question())

    assert told == kept.status
    assert KEY.encode() not in kept.body
    assert kept.json["error"]["message"]


def test_what_an_upstream_repeats_of_its_key_is_blotted_out() -> None:
    """In a document and in a stream."""
    made = engine(Plays(lambda _: (200, JSON, [chat(f"it is {KEY}")])), PLACES)
    streamed = engine(Plays(lambda _: (200, SSE, [chunks("", f"it is {KEY}")])), PLACES)
    found = [ask(made, "openai-chat", question()), ask(streamed, "openai-chat", question(stream=True))]

    assert [200, 200] == [kept.status for kept in found]
    assert [b"it is ***" in kept.body for kept in found] == [True, True]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        (b'{"messages":[]}', "model"),
        (b'{"model":"nowhere/x","messages":[{"role":"user","content":"a"}]}', "does not exist"),
        (b'{"model":"deepseek/deepseek-v4-pro","messages":[{"role":"wizard","content":"a"}]}', "role"),
    ],
)
def test_what_is_no_request_is_told_what_is_wrong(body: bytes, words: str) -> None:
    """A 4xx in the client's dialect, and nothing goes upstream."""
    transport = Plays(lambda _: (200, JSON, [chat("Hi.")]))
    kept = ask(engine(transport, PLACES), "openai-chat", body)

    assert kept.status in (400, 404)
    assert words in kept.json["error"]["message"]
    assert [] == transport.sent


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_of_messages_sees_the_thinking_that_it_asks_for(stream: bool) -> None:
    """One that does not ask reads an answer alone; the log has the reasoning in both cases."""
    transport = Plays(lambda body: (200, SSE if stream else JSON, [_answer(stream)]))
    made = engine(transport, PLACES)
    body = {"model": DEEPSEEK, "max_tokens": 99, "stream": stream, "messages": [{"role": "user", "content": "Why?"}]}
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000}
    plain, asking = ask(made, "anthropic", body), ask(made, "anthropic", {**body, **thinking})

    assert [200, 200] == [plain.status, asking.status]
    assert (False, True) == (b"thinking" in plain.body, b"Hm." in asking.body)
    assert all(b"Forty-two." in kept.body for kept in (plain, asking))
    assert 2 == sum(
        isinstance(commit.value, ThinkingBlock)
        for info in made.logs.of("default").list_sessions()
        for commit in commits(made, info.id)
    )


def _answer(stream: bool) -> bytes:
    return chunks("Hm.", "Forty-two.") if stream else chat("Forty-two.", "Hm.")


def test_who_asks_without_a_key_is_told_which_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """On loopback it is theirs to set; with keys of the gateway it is nobody else's business."""
    monkeypatch.delenv("THINKBACK_TEST_KEY")
    found = [
        ask(engine(Plays(lambda _: (200, JSON, [chat("Hi.")])), PLACES), "openai-chat", question(), grant=grant)
        for grant in (OPEN, GRANT)
    ]

    assert [400, 400] == [kept.status for kept in found]
    assert [True, False] == ["THINKBACK_TEST_KEY" in kept.json["error"]["message"] for kept in found]
