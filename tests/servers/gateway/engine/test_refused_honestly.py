"""State that only a provider holds is refused before anything is sent, in words on which clients fall back; an answer
that is understood is no status that SDKs retry.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.servers.gateway.harness.engines import KEY, Kept, Plays, ask, engine
from thinkback.servers.gateway.engine.engine import Engine

PLACES = {
    "openai": "http://openai.test/v1",
    "anthropic": "http://claude.test",
    "deepseek": "http://deepseek.test",
    "gemini": "http://gemini.test",
    "gemini-interactions": "http://interactions.test",
}
FRONTS: dict[str, dict[str, Any]] = {
    "openai-chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "openai-responses": {"input": "Hi"},
    "anthropic": {"max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]},
}
RETRIED = {408, 409, 429}
CHAT = {"id": "c", "choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}
CLAUDE = {
    **{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "end_turn"},
    **{"content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 1, "output_tokens": 1}},
}


def made(answer: object) -> tuple[Engine, Plays]:
    """An engine whose upstreams all give this document."""
    upstream = Plays(lambda body: (200, "application/json", [json.dumps(answer).encode()]))
    return engine(upstream, PLACES), upstream


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)


def asks(made: Engine, front: str, model: str, **more: Any) -> Kept:
    """One question in the dialect ``front``."""
    return ask(made, front, {"model": model, **FRONTS[front], **more})


@pytest.mark.parametrize("model", ["anthropic/claude-opus-5-5", "deepseek/deepseek-v4-pro"])
def test_a_thread_is_begun_and_not_continued(model: str) -> None:
    """``create`` is served whole without the field; ``continue`` is refused in words that clients know."""
    own, upstream = made(CLAUDE if model.startswith("anthropic") else CHAT)
    begun = asks(own, "anthropic", model, thread={"type": "create"})
    assert (200, "thinkback-left-out" in begun.headers) == (begun.status, False)
    assert "thread" not in json.loads(upstream.sent[0])

    continued = asks(own, "anthropic", model, thread={"type": "continue", "previous_message_id": "msg_1"})
    error = continued.json["error"]
    assert (400, 1) == (continued.status, len(upstream.sent))
    assert "capability_rejected: beta_header:message-threads-2026-08-12" in error["message"]
    assert {"error_code": "thread_not_found"} == error["details"]


@pytest.mark.parametrize("model", ["openai/gpt-5.5", "deepseek/deepseek-v4-pro"])
def test_what_a_response_would_go_on_from_or_leave_behind_is_refused(model: str) -> None:
    """An id that nobody knows, by the code on which clients send everything; a background run, before it is begun."""
    own, upstream = made(CHAT)
    unknown = asks(own, "openai-responses", model, previous_response_id="resp_of_another").json["error"]
    assert ("previous_response_not_found", "previous_response_id") == (unknown["code"], unknown["param"])
    behind = asks(own, "openai-responses", model, background=True)
    assert (400, "background") == (behind.status, behind.json["error"]["param"])
    assert [] == upstream.sent
    assert 200 == asks(own, "openai-responses", "deepseek/deepseek-v4-pro", background=False).status


def response(status: str, **more: object) -> dict[str, object]:
    """A document of the Responses API."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5.5",
        "output": [],
        "status": status,
        **more,
    }


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize(
    ("model", "answer"),
    [
        ("openai/gpt-5.5", response("queued")),
        ("openai/gpt-5.5", response("in_progress")),
        ("openai/gpt-5.5", response("incomplete", incomplete_details={"reason": "max_output_tokens"})),
        ("anthropic/claude-opus-5-5", {**CLAUDE, "stop_reason": "refusal", "content": []}),
        ("gemini/gemini-3-pro-preview", {"promptFeedback": {"blockReason": "SAFETY"}}),
        ("gemini-interactions/gemini-3-pro-preview", {"id": "i", "status": "in_progress", "outputs": []}),
        ("deepseek/deepseek-v4-pro", {"id": "c", "choices": [{"message": {"refusal": "no"}, "finish_reason": "stop"}]}),
    ],
)
def test_an_answer_that_is_understood_is_not_asked_for_again(front: str, model: str, answer: object) -> None:
    """Whatever the client speaks: one call is one run at the provider, and no status makes an SDK repeat it."""
    own, upstream = made(answer)
    kept = asks(own, front, model)
    assert 1 == len(upstream.sent)
    assert kept.status < 500
    assert kept.status not in RETRIED


@pytest.mark.parametrize("status", ["queued", "in_progress", "failed", "cancelled"])
def test_a_client_of_the_dialect_reads_what_its_provider_said(status: str) -> None:
    """The document goes to it as it came, as it would without us."""
    answer = response(status, error={"code": "server_error", "message": "boom"} if status == "failed" else None)
    own, _ = made(answer)
    kept = asks(own, "openai-responses", "openai/gpt-5.5")
    assert (200, answer) == (kept.status, kept.json)


def test_a_refused_key_of_the_gateway_is_not_the_clients_to_read() -> None:
    """Also where the refusal comes as a document of status 200."""
    own, _ = made({"error": {"message": "Incorrect API key provided: sk-1", "type": "invalid_api_key", "code": 401}})
    kept = asks(own, "openai-chat", "deepseek/deepseek-v4-pro")
    assert b"sk-1" not in kept.body


def test_a_summary_goes_to_a_dialect_without_compaction() -> None:
    """One that is readable goes as text; one that only its maker can read is named, and ``why`` says so."""
    own, upstream = made(CHAT)
    block = {"type": "compaction", "content": "So far: the build fails.", "signature": "c2ln"}
    said = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "Go on."}]
    readable = ask(own, "anthropic", {"model": "deepseek/deepseek-v4-pro", "max_tokens": 9, "messages": said})
    assert (200, "thinkback-left-out" in readable.headers) == (readable.status, False)
    assert "So far: the build fails." in [message["content"] for message in json.loads(upstream.sent[0])["messages"]]

    items = [
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VhbGVk"},
        {"role": "user", "content": "Go on."},
    ]
    sealed = ask(own, "openai-responses", {"model": "deepseek/deepseek-v4-pro", "input": items})
    assert "compaction: only its maker can read it" == sealed.headers["thinkback-left-out"]
    assert b"c2VhbGVk" not in upstream.sent[1]


@pytest.mark.parametrize("model", ["deepseek/deepseek-v4-pro", "anthropic/claude-opus-5-5"])
def test_results_that_do_not_fit_their_calls_are_named_in_another_dialect(model: str) -> None:
    """A result whose call was cut off goes as text, and words stand in for a result that is not there: the header says
    both. In the client's own dialect they go as they were sent.
    """
    is_native = not model.startswith("anthropic")
    own, upstream = made(CHAT if is_native else CLAUDE)
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    cut = [{"role": "tool", "tool_call_id": "call_0", "content": "RESULT"}, {"role": "user", "content": "So?"}]
    kept = ask(own, "openai-chat", {"model": model, "messages": cut})
    told = "result of call_0: its call is not in the request" in kept.headers.get("thinkback-left-out", "")
    assert told != is_native
    assert b"RESULT" in upstream.sent[-1]

    asked = {"role": "user", "content": "Look."}
    open_call = [
        asked,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "So?"},
    ]
    kept = ask(own, "openai-chat", {"model": model, "messages": open_call})
    told = "result of call_1: the request has none" in kept.headers.get("thinkback-left-out", "")
    assert told != is_native
    assert (b"interrupted" in upstream.sent[-1]) != is_native

    result = {"role": "tool", "tool_call_id": "call_1", "content": "RESULT"}
    kept = ask(own, "openai-chat", {"model": model, "messages": [*open_call[:2], result]})
    assert "result of" not in kept.headers.get("thinkback-left-out", "")
