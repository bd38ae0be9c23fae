"""The engine: conversations of clients that forget reasoning, given back, passed on, recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.gateway.harness.engines import ASKED, GRANT, KEY, TOOL, Kept, Plays, ask, commits, engine, forgetful_chat
from thinkback.drive.http import AsyncHttpx2Transport, HttpResponse, Timeouts
from thinkback.errors import NetworkError
from thinkback.gateway.config.schema import Config, Records
from thinkback.gateway.engine.engine import Engine
from thinkback.gateway.engine.exchange import respond
from thinkback.gateway.grant import Grant, Recording
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Head, Request, Response, TurnEnded
from thinkback.referee import Referee

DEEPSEEK, CLAUDE = "deepseek/deepseek-v4-pro", "anthropic/claude-opus-5-5"
BOUND = "anthropic/claude-fable-5-2"
JSON, SSE = "application/json", "text/event-stream"
PLACES = {"deepseek": "http://deepseek.test/v1", "anthropic": "http://claude.test"}


@pytest.fixture
def referee(monkeypatch: pytest.MonkeyPatch) -> Iterator[Referee]:
    """A referee, and the key that the gateway has for it."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "*")
    with Referee() as running:
        yield running


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)


class Fresh:
    """httpx2's transport, one for each event loop: each request of a test has its own."""

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[HttpResponse]:
        transport = AsyncHttpx2Transport()
        try:
            async with transport.post(url, headers, body, timeouts) as response:
                yield response
        finally:
            await transport.aclose()

    async def aclose(self) -> None:
        """Each is closed by its own loop."""


def asked(made: Engine, front: Any = "openai-chat", **more: Any) -> Any:
    """How a client of ``front`` asks ``made``."""
    return lambda body: ask(made, front, body, **more)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [DEEPSEEK, CLAUDE, BOUND])
def test_a_client_that_forgets_reasoning_is_never_refused(referee: Referee, model: str, stream: bool) -> None:
    """Two tool loops with providers that demand reasoning, in their own dialect and in another one."""
    answers = forgetful_chat(asked(engine(Fresh(), referee)), model, stream=stream)

    assert [200] * 4 == [kept.status for kept in answers]
    assert ["not-needed", *["complete"] * 3] == [kept.headers["thinkback-reattach"] for kept in answers]
    assert all(kept.ended for kept in answers)
    assert all({"recognise", "first_byte", "stream", "store"} == set(kept.notes.phases) for kept in answers)


def test_the_conversation_is_one_session_of_the_log(referee: Referee) -> None:
    """Each message is stored once, each response with the request that brought it."""
    made = engine(Fresh(), referee)
    answers = forgetful_chat(asked(made), DEEPSEEK)
    kinds = [commit.kind for commit in commits(made)]

    assert 1 == len({kept.headers["thinkback-session"] for kept in answers})
    assert (2, 4, 4, 3) == tuple(kinds.count(kind) for kind in ("user", "response", "request", "tool_result"))
    assert 1 == len(made.logs.of("default").list_sessions())
    assert [] == list(made.logs.of("default").fsck())


def test_without_memory_the_state_that_a_client_keeps_is_enough(referee: Referee) -> None:
    """Another gateway with the same secret and an empty log serves the next request of a client that echoes."""
    messages: list[Any] = [{"role": "user", "content": ASKED[0]}]
    body = {"model": CLAUDE, "max_tokens": 2000, "messages": messages, "tools": [_anthropic_tool()]}
    first = ask(engine(Fresh(), referee), "anthropic", body)
    messages.append({"role": "assistant", "content": first.json["content"]})
    calls = [block for block in first.json["content"] if block["type"] == "tool_use"]
    messages.append(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": c["id"], "content": "7"} for c in calls]}
    )
    elsewhere = ask(engine(Fresh(), referee), "anthropic", body)
    stranger = ask(engine(Fresh(), referee, secret=b"t" * 32), "anthropic", body)
    other_key = ask(engine(Fresh(), referee), "anthropic", body, grant=Grant("k2"))

    assert (200, "complete") == (elsewhere.status, elsewhere.headers["thinkback-reattach"])
    assert ["none; missing=1"] * 2 == [kept.headers["thinkback-reattach"] for kept in (stranger, other_key)]
    assert all("tb1." in block["signature"] for block in first.json["content"] if block["type"] == "thinking")


def _anthropic_tool() -> dict[str, Any]:
    function = TOOL["function"]
    assert isinstance(function, dict)
    return {"name": function["name"], "input_schema": function["parameters"]}


def test_what_cannot_be_told_apart_is_not_found(referee: Referee) -> None:
    """Two conversations of one key that look the same: whose reasoning it was is not guessed."""
    made = engine(Fresh(), referee)
    first = [forgetful_chat(asked(made), DEEPSEEK, ASKED[:1], tools=None) for _ in "ab"]
    said = first[0][-1].json["choices"][0]["message"]["content"]
    messages = [
        {"role": "user", "content": ASKED[0]},
        {"role": "assistant", "content": said},
        {"role": "user", "content": "Thanks."},
    ]
    same = ask(made, "openai-chat", {"model": DEEPSEEK, "messages": messages})
    other = ask(made, "openai-chat", {"model": DEEPSEEK, "messages": messages, "user": "somebody else"})
    records = [c.value for c in commits(made, same.headers["thinkback-session"]) if isinstance(c.value, Request)]

    assert ("none; missing=1", "none; missing=1") == tuple(k.headers["thinkback-reattach"] for k in (same, other))
    assert "1: ambiguous" == records[-1].target["not_found"]


def test_an_edited_history_is_a_branch(referee: Referee) -> None:
    """What stands before the edit is shared; the log has both lines."""
    made = engine(Fresh(), referee)
    answers = forgetful_chat(asked(made), DEEPSEEK)
    session = answers[0].headers["thinkback-session"]
    messages: list[Any] = [{"role": "user", "content": ASKED[0]}]
    first = answers[0].json["choices"][0]["message"]
    messages.append({"role": "assistant", "content": None, "tool_calls": first["tool_calls"]})
    messages.append({"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "another result"})
    edited = ask(made, "openai-chat", {"model": DEEPSEEK, "messages": messages, "tools": [TOOL]})
    branches = made.logs.of("default").refs.list(session)

    assert session == edited.headers["thinkback-session"]
    assert 2 == len(branches)


def test_nothing_to_change_leaves_the_bytes_of_the_client() -> None:
    """In one dialect a request goes on as it came, whatever its spacing, numbers and unknown fields."""
    transport = Plays(lambda body: (200, JSON, [_chat("Hi.")]))
    body = (
        b'{"model" : "deepseek-v4-pro",\n "messages": [ {"role":"user","content":"caf\\u00e9"} ],'
        b' "temperature": 1.0e0, "x": {"y": 12345678901234567890123}}'
    )
    made = engine(transport, PLACES)
    kept = [ask(made, "openai-chat", data) for data in (body, body.replace(b"deepseek-v4-pro", DEEPSEEK.encode()))]

    assert [(200, _chat("Hi."))] * 2 == [(one.status, one.body) for one in kept]
    assert body == transport.sent[0]
    assert all(part in transport.sent[1] for part in (b'"caf\\u00e9"', b"1.0e0", b"12345678901234567890123"))


def test_an_upstream_that_breaks_off_anywhere_ends_in_an_error_of_the_dialect() -> None:
    """Cut at every byte of its stream: whole events, then an error; what arrived is stored as incomplete."""
    stream = _chunks("Hm.", "Forty-two.")
    for at in range(len(stream)):
        pieces: list[bytes | Exception] = [stream[:at], NetworkError("gone", details={"phase": "network"})]
        made = engine(Plays(lambda body, pieces=pieces: (200, SSE, pieces)), PLACES)  # type: ignore[misc]
        kept = ask(made, "openai-chat", _request(stream=True))
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
    transport = Plays(lambda body: (200, SSE, [piece + b"\n\n" for piece in _chunks("Hm.", "4").split(b"\n\n")]))
    made = engine(transport, PLACES)
    kept = ask(made, "openai-chat", _request(stream=True), sink=Kept(leaves_after=1))
    headers = [commit.value for commit in commits(made) if isinstance(commit.value, Response)]

    assert ("client_gone", 1, [False]) == (kept.notes.failure, transport.closed, [h.complete for h in headers])
    # and its tokens are guessed, so that nobody gets round a budget by leaving early
    assert kept.notes.guessed is not None
    assert 0 < kept.notes.guessed.input


def test_the_last_event_follows_the_record() -> None:
    """Whoever has read the end of a response finds it in the log."""
    made = engine(Plays(lambda body: (200, SSE, [_chunks("Hm.", "42")])), PLACES)
    seen: list[int] = []

    class Watching(Kept):
        async def end(self, data: bytes = b"") -> None:
            seen.append(len(commits(made)))
            assert b"[DONE]" in data
            assert b"[DONE]" not in self.body
            await super().end(data)

    ask(made, "openai-chat", _request(stream=True), sink=Watching())

    assert [len(commits(made))] == seen


def test_counts_are_asked_for_and_shown_only_to_those_who_ask() -> None:
    """Budgets need them; a client that did not ask sees no chunk without a choice."""
    transport = Plays(lambda body: (200, SSE, [_chunks("", "42", usage=True)]))
    made = engine(transport, PLACES)
    unasked = ask(made, "openai-chat", _request(stream=True))
    asking = ask(made, "openai-chat", _request(stream=True, stream_options={"include_usage": True}))

    assert [True, True] == [json.loads(body)["stream_options"]["include_usage"] for body in transport.sent]
    assert (False, True) == (b"usage" in unasked.body, b"usage" in asking.body)
    assert (7, 3, 2) == tuple(getattr(unasked.notes, f"{name}_tokens") for name in ("input", "output", "reasoning"))


def test_what_is_not_recorded_is_not_known() -> None:
    """With recording off nothing is stored, and the client is told that nothing can be given back."""
    made = engine(Plays(lambda body: (200, JSON, [_chat("Hi.")])), PLACES)
    kept = ask(made, "openai-chat", _request(), grant=Grant("k1", recording="off"))

    assert (200, "unavailable", []) == (
        kept.status,
        kept.headers["thinkback-reattach"],
        made.logs.of("default").list_sessions(),
    )
    assert "thinkback-session" not in kept.headers


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["metadata", "reasoning"])
@pytest.mark.parametrize("model", [DEEPSEEK, BOUND])
def test_reasoning_comes_back_where_content_is_not_recorded(
    referee: Referee, model: str, mode: Recording, stream: bool
) -> None:
    """The log has who answered and what it cost; whole responses are kept apart, sealed."""
    made = engine(Fresh(), referee)
    answers = forgetful_chat(asked(made, grant=Grant("k1", recording=mode)), model, stream=stream)
    history = commits(made)
    said = b"".join(commit.payload for commit in history if commit.kind != "reasoning")

    assert [(200, "not-needed"), *[(200, "complete")] * 3] == [
        (kept.status, kept.headers["thinkback-reattach"]) for kept in answers
    ]
    assert not any(word.encode() in said for word in ("Oslo", "Bergen", "degrees", "code word"))
    thoughts = [commit.value for commit in history if commit.kind == "reasoning"]
    assert (mode == "reasoning") == all(isinstance(value, ThinkingBlock) for value in thoughts)
    assert (2, 4, 3) == tuple(sum(c.kind == kind for c in history) for kind in ("user", "response", "tool_result"))
    assert [] == list(made.logs.of("default").fsck())


def test_what_is_kept_apart_runs_out(referee: Referee) -> None:
    """Then it is missing, and said to be."""
    made = engine(Fresh(), referee, config=Config(recording=Records(carriers_for=1e-9)))
    answers = forgetful_chat(asked(made, grant=Grant("k1", recording="metadata")), DEEPSEEK, ASKED[:1])

    assert ["not-needed", "none; missing=1"] == [kept.headers["thinkback-reattach"] for kept in answers]


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
    kept = ask(made, "openai-chat", _request())

    assert told == kept.status
    assert KEY.encode() not in kept.body
    assert kept.json["error"]["message"]


def test_what_an_upstream_repeats_of_its_key_is_blotted_out() -> None:
    """In a document and in a stream."""
    made = engine(Plays(lambda _: (200, JSON, [_chat(f"it is {KEY}")])), PLACES)
    streamed = engine(Plays(lambda _: (200, SSE, [_chunks("", f"it is {KEY}")])), PLACES)
    found = [ask(made, "openai-chat", _request()), ask(streamed, "openai-chat", _request(stream=True))]

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
    transport = Plays(lambda _: (200, JSON, [_chat("Hi.")]))
    kept = ask(engine(transport, PLACES), "openai-chat", body)

    assert kept.status in (400, 404)
    assert words in kept.json["error"]["message"]
    assert [] == transport.sent


def test_a_conversation_goes_on_from_the_response_that_a_client_names(referee: Referee) -> None:
    """``previous_response_id`` is found in the log, whatever dialect the upstream speaks."""
    made = engine(Fresh(), referee)
    tool = {"type": "function", **TOOL["function"]}  # type: ignore[dict-item]
    first = ask(made, "openai-responses", {"model": DEEPSEEK, "input": ASKED[0], "tools": [tool]})
    call = next(item for item in first.json["output"] if item["type"] == "function_call")
    result = [{"type": "function_call_output", "call_id": call["call_id"], "output": "7"}]
    body = {"model": DEEPSEEK, "input": result, "tools": [tool], "previous_response_id": first.json["id"]}
    second = ask(made, "openai-responses", body)

    assert (200, 200, "complete") == (first.status, second.status, second.headers["thinkback-reattach"])
    assert first.headers["thinkback-session"] == second.headers["thinkback-session"]


def test_reasoning_is_given_back_where_it_stood() -> None:
    """The message that goes upstream has the reasoning that its response had."""
    answers = iter([_chat("Hi.", "Greet first."), _chat("Fine.")])
    transport = Plays(lambda body: (200, JSON, [next(answers)]))
    made = engine(transport, PLACES)
    headers = {"thinkback-set": "reasoning.includeInContext=true"}
    ask(made, "openai-chat", _request())
    messages = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": " Hi. "},
        {"role": "user", "content": "And?"},
    ]
    ask(made, "openai-chat", _request(messages=messages), headers=headers)
    sent = json.loads(transport.sent[-1])["messages"]

    assert ["Why?", "And?"] == [sent[0]["content"], sent[2]["content"]]
    thoughts = [c.value.thought for c in commits(made) if isinstance(c.value, ThinkingBlock)]
    assert ["Greet first."] == thoughts


def test_a_conversation_whose_branch_was_deleted_gets_a_new_one() -> None:
    """What was seen is still in the log, on no branch; the conversation goes on from there."""
    transport = Plays(lambda body: (200, JSON, [_chat(f"{len(body)}.")]))
    made = engine(transport, PLACES)
    kept = ask(made, "openai-chat", _request())
    log, session = made.logs.of("default"), kept.headers["thinkback-session"]
    head = commits(made)[-1]
    log.refs.create(session, "other", Head(), via="main")
    log.refs.switch(session, "other")
    log.refs.delete(session, "main", Head(head.hash, head.seq))
    said = kept.json["choices"][0]["message"]["content"]
    begun = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": said}]
    following = ask(made, "openai-chat", _request(messages=[*begun, {"role": "user", "content": "And?"}]))

    assert (200, session, "complete") == (
        following.status,
        following.headers["thinkback-session"],
        following.headers["thinkback-reattach"],
    )
    assert 2 == len(log.refs.list(session))


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
    return _chunks("Hm.", "Forty-two.") if stream else _chat("Forty-two.", "Hm.")


def test_two_requests_at_once_lose_nothing() -> None:
    """Both go on from one place: the log has both, on two branches."""
    transport = Plays(lambda body: (200, JSON, [_chat(f"{len(body)}.")]))
    made = engine(transport, PLACES)
    first = ask(made, "openai-chat", _request())
    said = first.json["choices"][0]["message"]["content"]
    begun = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": said}]

    async def both() -> list[Kept]:
        from thinkback.gateway.incoming import Incoming

        sinks = [Kept(), Kept()]
        bodies = [json.dumps(_request(messages=[*begun, {"role": "user", "content": word}])) for word in ("a", "bb")]
        await asyncio.gather(
            *(
                respond(made, Incoming("openai-chat", body.encode(), {}, GRANT, "r"), sink)
                for body, sink in zip(bodies, sinks, strict=True)
            )
        )
        return sinks

    found = asyncio.run(both())
    session = first.headers["thinkback-session"]

    assert [session] * 2 == [kept.headers["thinkback-session"] for kept in found]
    assert 2 == len(made.logs.of("default").refs.list(session))


def _request(**more: Any) -> dict[str, Any]:
    return {"model": DEEPSEEK, "messages": [{"role": "user", "content": "Why?"}], **more}


def _chat(text: str, thought: str = "") -> bytes:
    message = {"role": "assistant", "content": text, **({"reasoning_content": thought} if thought else {})}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return json.dumps({"id": "c1", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def _chunks(thought: str, text: str, usage: bool = False) -> bytes:
    deltas: Sequence[dict[str, Any]] = [{"role": "assistant"}, {"reasoning_content": thought}, {"content": text}]
    chunks: list[dict[str, Any]] = [{"id": "c1", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage:
        details = {"reasoning_tokens": 2}
        counts = {"prompt_tokens": 7, "completion_tokens": 3, "completion_tokens_details": details}
        chunks.append({"id": "c1", "choices": [], "usage": counts})
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def test_calls_of_one_response_that_a_client_tells_one_by_one_are_told_once() -> None:
    """Each with its result behind it: the response stands whole, then all results."""
    calls = [{**TOOL_CALL, "id": f"call_{city}", "function": look(city)} for city in ("Oslo", "Rome", "Bern")]
    message = {"role": "assistant", "content": "All.", "reasoning_content": "Hm.", "tool_calls": calls}
    answers = iter([_with(message, "tool_calls"), _chat("Warm.", "Well."), _chat("Bye.")])
    transport = Plays(lambda body: (200, JSON, [next(answers)]))
    made = engine(transport, PLACES)
    asked_first: list[Any] = [{"role": "user", "content": "Why?"}]
    ask(made, "openai-chat", _request(messages=asked_first))
    told = list(asked_first)
    for call in calls:
        told.append({"role": "assistant", "content": "All." if call is calls[0] else "", "tool_calls": [call]})
        told.append({"role": "tool", "tool_call_id": call["id"], "content": f"in {call['id']}"})
    kept = ask(made, "openai-chat", _request(messages=told))
    sent = json.loads(transport.sent[-1])["messages"]
    told += [{"role": "assistant", "content": "Warm."}, {"role": "user", "content": "Thanks."}]
    later = ask(made, "openai-chat", _request(messages=told))
    sent_later = json.loads(transport.sent[-1])["messages"]

    assert ["complete"] * 2 == [one.headers["thinkback-reattach"] for one in (kept, later)]
    assert [message, *(m for m in told if m["role"] == "tool")] == sent[1:]
    assert sent == sent_later[: len(sent)]
    assert ["Warm.", "Thanks."] == [m["content"] for m in sent_later[len(sent) :]]


TOOL_CALL = {"type": "function"}


def look(city: str) -> dict[str, str]:
    """The function of a call."""
    return {"name": "get_weather", "arguments": json.dumps({"city": city})}


def _with(message: Any, finish: str) -> bytes:
    return json.dumps({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode()
