"""thinkback without its HTTP: plan, send by anything, ingest; adopt a history."""

from __future__ import annotations

import hashlib
import http.client
import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.session.chats import (
    DEFINITION,
    KEY,
    PERSONAS,
    get_weather,
    kinds,
    messages,
    open_session,
    refusals,
    roles,
    statuses,
)
from tests.session.test_aio import _bare_log
from thinkback.errors import CorruptLogError, CredentialError, NetworkError, ProviderError, ThinkbackError, WireError
from thinkback.model.commits import Repair, Request, Response, TurnEnded
from thinkback.session import requests
from thinkback.session.reply import Reply
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.turn.plan import Plan
from thinkback_referee import ErrorInStream, HttpError, Referee, Step


def post(plan: Plan) -> tuple[int, dict[str, str], bytes]:
    """What the standard library gets for ``plan``."""
    parts = urlsplit(plan.url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        connection.request("POST", parts.path, bytes(plan), plan.headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def cut(body: bytes, size: int) -> Iterator[bytes]:
    """``body`` in pieces of ``size`` bytes."""
    return (body[at : at + size] for at in range(0, len(body), size))


def answers(reply: Reply) -> dict[str, str]:
    """The results of the calls of ``reply``."""
    return {call.id: get_weather(json.loads(call.arguments)["city"]) for call in reply.tool_calls}


def converse(session: Session, prompt: str, size: int, headers: Mapping[str, str] | None = None) -> str:
    """One turn by hand, to its end; its text."""
    plan = session.wire.plan(prompt, tools=[DEFINITION])
    while True:
        status, given, body = post(plan)
        reply = session.wire.ingest(cut(body, size), status, given if headers is None else headers)
        if reply.state is not None:
            return reply.text
        plan = session.wire.plan(tool_results=answers(reply))


@pytest.mark.parametrize("host", PERSONAS)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_ingested_turn_equals_a_chat(store: SessionStore, host: str, size: int) -> None:
    """However the body is cut, and whoever sent it, log and reply are those of ``chat``."""
    prompts = ("Weather in Oslo?", "Thank you.")
    with Referee() as one, Referee() as other:
        session = open_session(store, one, host, "chat")
        texts = []
        for prompt in prompts:
            reply = session.chat(prompt, tools=[DEFINITION])
            texts.append(session.generate(answers(reply)).text)
        by_hand = open_session(store, other, host, "by hand")
        assert texts == [converse(by_hand, prompt, size) for prompt in prompts]
        assert [e.raw for e in one.requests] == [e.raw for e in other.requests]
    assert _bare_log(session.log()) == _bare_log(by_hand.log())


def test_response_without_headers_is_read(store: SessionStore, referee: Referee) -> None:
    """The body tells what it is, byte by byte."""
    session = open_session(store, referee)
    assert "Oslo: 7 degrees" in converse(session, "Weather in Oslo?", 1, headers={})


@pytest.mark.parametrize(
    "kind",
    [
        bytes,
        bytearray,
        memoryview,
        bytes.decode,
        lambda body: body.decode().replace("{", '{"x":"\ud83d",', 1),
        lambda body: [body],
        lambda body: iter([body]),
    ],
)
def test_body_may_be_anything_that_holds_bytes(store: SessionStore, referee: Referee, kind: Any) -> None:
    """Whole or in pieces, text (half a character in it) or bytes; a single response as well as a stream."""
    session = open_session(store, referee)
    plan = session.wire.plan("Hello?", stream=False)
    assert "application/json" == plan.headers["Accept"]
    reply = session.wire.ingest(kind(post(plan)[2]))
    assert ("completed", "Hello?") == (reply.state, reply.prompt)


def test_plan_is_complete_and_hides_its_key(store: SessionStore, referee: Referee) -> None:
    """URL, headers with the key, body; the key shows nowhere else."""
    session = open_session(store, referee, headers={"X-Team": "tests"})
    plan = session.wire.plan("Hello?", system="Be brief.", params={"seed": 1})
    assert f"{referee.base_url('deepseek')}/chat/completions" == plan.url
    assert (f"Bearer {KEY}", "tests") == (plan.headers["Authorization"], plan.headers["X-Team"])
    assert KEY not in repr(plan) + repr(session)
    assert 1 == json.loads(bytes(plan))["seed"]
    assert ["system", "user"] == kinds(session)


def test_plan_without_a_prompt_is_the_same_request(store: SessionStore, referee: Referee) -> None:
    """Asked again it changes nothing; an earlier plan may still be ingested for."""
    session = open_session(store, referee)
    first = session.wire.plan("Hello?")
    second = session.wire.plan()
    assert (bytes(first), ["user"]) == (bytes(second), kinds(session))
    status, headers, body = post(first)
    assert "completed" == session.wire.ingest(body, status, headers, plan=first).state


def test_plan_without_a_key_stores_nothing(store: SessionStore, referee: Referee) -> None:
    """The credential is checked first."""
    session = open_session(store, referee, api_key=None)
    with pytest.raises(CredentialError):
        session.wire.plan("Hello?")
    assert [] == session.log()


def test_plan_refuses_to_leave_calls_open(store: SessionStore, referee: Referee) -> None:
    """Without a prompt every call needs its result; a prompt closes them."""
    session = open_session(store, referee)
    reply = session.wire.ingest(post(session.wire.plan("Weather in Oslo?", tools=[DEFINITION]))[2])
    assert reply.state is None
    with pytest.raises(ThinkbackError, match="has no result yet"):
        session.wire.plan()
    plan = session.wire.plan("Never mind.", tools=[])
    assert "completed" == session.wire.ingest(post(plan)[2]).state
    assert ["user", "assistant", "tool", "user"] == roles(referee)


def test_prompt_after_a_plan_that_was_never_sent_ends_that_turn(store: SessionStore, referee: Referee) -> None:
    """The log tells that the first question was never answered."""
    session = open_session(store, referee)
    session.wire.plan("Hello?")
    session.wire.plan("Again?")
    assert ["user", "interrupted", "user"] == kinds(session)


def test_nothing_to_ingest_for_is_told(store: SessionStore, referee: Referee) -> None:
    """Before a plan, and a second time for the same one."""
    session = open_session(store, referee)
    with pytest.raises(ThinkbackError, match="no plan to ingest"):
        session.wire.ingest(b"")
    body = post(session.wire.plan("Hello?"))[2]
    session.wire.ingest(body)
    with pytest.raises(ThinkbackError, match="no plan to ingest"):
        session.wire.ingest(body)


def test_busy_server_leaves_the_plan_good(store: SessionStore, referee: Referee) -> None:
    """429 and 5xx: the provider's words, nothing stored, and the same plan again."""
    referee.push(Step(fault=HttpError(429, {"error": {"message": "slow down"}}, {"retry-after": "7"})))
    session = open_session(store, referee)
    plan = session.wire.plan("Hello?")
    status, headers, body = post(plan)
    with pytest.raises(ProviderError, match="slow down") as caught:
        session.wire.ingest(body, status, headers)
    details = caught.value.details
    assert (429, False, True, 7.0) == (
        details["status"],
        details["repaired"],
        details["retryable"],
        details["retry_after"],
    )
    assert ["user"] == kinds(session)
    assert "completed" == session.wire.ingest(post(plan)[2]).state


def test_refusal_ends_the_turn(store: SessionStore, referee: Referee) -> None:
    """An error that no repair mends: the provider's words, and a failed turn."""
    referee.push(Step(fault=HttpError(404, {"error": {"message": "no such model"}})))
    session = open_session(store, referee)
    status, headers, body = post(session.wire.plan("Hello?"))
    with pytest.raises(ProviderError, match="no such model") as caught:
        session.wire.ingest(body, status, headers)
    assert (False, False) == (caught.value.details["repaired"], caught.value.details["retryable"])
    assert ["user", "request", "failed"] == kinds(session)


def test_error_in_the_stream_is_raised(store: SessionStore, referee: Referee) -> None:
    """With what came before it in the log."""
    referee.push(Step(reasoning="one two", fault=ErrorInStream("fell over")))
    session = open_session(store, referee)
    status, headers, body = post(session.wire.plan("Hello?"))
    with pytest.raises(ProviderError, match="fell over"):
        session.wire.ingest(body, status, headers)
    assert "partial_failed" == kinds(session)[-1]


def test_refused_reasoning_is_repaired_step_by_step(store: SessionStore, referee: Referee) -> None:
    """Each ingest of a refusal goes one stage further down; in the end the provider's words are told."""
    session = open_session(store, referee)
    session.chat("Weather in Oslo?", tools=[get_weather])
    refusal = json.dumps({"error": {"message": "The `reasoning_content` in the thinking mode must be passed back"}})
    plan = session.wire.plan("And?")
    stages = []
    for _ in range(3):
        try:
            session.wire.ingest(refusal, 400)
        except ProviderError as error:
            if not error.details["repaired"]:
                break
            stages.append([c.value.stage for c in session.log() if isinstance(c.value, Repair)][-1])
            before, plan = plan, session.wire.plan()
            assert len(stages) == 1 or bytes(before) != bytes(plan)
    assert ["restore", "older_turns", "flatten"] == stages
    with pytest.raises(ProviderError) as caught:
        session.wire.ingest(refusal, 400)
    assert (False, "failed") == (caught.value.details["repaired"], kinds(session)[-1])


@pytest.mark.parametrize("arrived", [True, False])
def test_body_that_breaks_off_is_kept_as_far_as_it_came(store: SessionStore, referee: Referee, arrived: bool) -> None:
    """The caller's own client raises while it is read: what arrived is stored, the cause is told."""
    session = open_session(store, referee)
    body = post(session.wire.plan("Hello?"))[2]

    def broken() -> Iterator[bytes]:
        if arrived:
            yield body[:900]
        raise OSError(f"connection reset, key {KEY}")

    with pytest.raises(NetworkError, match="OSError: connection reset") as caught:
        session.wire.ingest(broken())
    assert isinstance(caught.value.__cause__, OSError)
    assert KEY not in str(caught.value)
    assert ("partial_failed" if arrived else "failed") == kinds(session)[-1]
    assert arrived == ("reasoning" in kinds(session))


def test_ctrl_c_while_ingesting_is_an_interrupt(store: SessionStore, referee: Referee) -> None:
    """What arrived is stored before it goes on."""
    session = open_session(store, referee)
    body = post(session.wire.plan("Hello?"))[2]

    def interrupted() -> Iterator[bytes]:
        yield body[:900]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.wire.ingest(interrupted())
    assert "interrupted" == kinds(session)[-1]


HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": "Weather in Oslo?"},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I look.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "assistant", "content": "Rain.", "reasoning_content": "It rains."},
]


def test_adopted_history_goes_on(store: SessionStore, referee: Referee) -> None:
    """Readable reasoning of unknown origin goes back where the endpoint wants it; nothing is refused."""
    session = open_session(store, referee)
    assert list(session.wire.adopt(HISTORY)) == session.log()
    assert "completed" == session.chat("And Rome?", tools=[get_weather]).state
    assert ["I look.", "It rains."] == [
        m.get("reasoning_content") for m in messages(referee)[:5] if m["role"] == "assistant"
    ]
    assert [] == refusals(referee)
    assert "completed" in kinds(session)[:10]


def test_adopting_again_adds_only_what_is_new(store: SessionStore, referee: Referee) -> None:
    """The prefix is recognised, also where the program wrote arguments and white space anew."""
    session = open_session(store, referee)
    session.wire.adopt(HISTORY)
    before = session.log()
    assert () == session.wire.adopt(HISTORY)
    again = json.loads(json.dumps(HISTORY))
    again[2]["tool_calls"][0]["function"]["arguments"] = " { } "
    again[2].pop("reasoning_content")
    again[4]["content"] = "Rain. "
    new = session.wire.adopt([*again, {"role": "user", "content": "And Rome?"}])
    assert (["user"], [*before, *new]) == ([commit.kind for commit in new], session.log())


def test_history_of_a_chat_is_recognised(store: SessionStore, referee: Referee) -> None:
    """What a program saw of our own turns, parallel results in its order, is what the session holds."""
    session = open_session(store, referee)
    session.chat("Weather in both Bergen and Rome?", tools=[get_weather])
    last = {"role": "assistant", "content": session.chat("Hi.", tools=[]).text}
    held = [*messages(referee), last]
    results = [at for at, message in enumerate(held) if message["role"] == "tool"]
    held[results[0]], held[results[1]] = held[results[1]], held[results[0]]
    assert () == session.wire.adopt(held)


def test_response_that_was_cut_is_no_part_of_the_history(store: SessionStore, referee: Referee) -> None:
    """The program never got to hold it."""
    referee.push(Step(reasoning="one two", text="three", fault=ErrorInStream(after=3)))
    session = open_session(store, referee)
    with pytest.raises(ProviderError):
        session.chat("Hello?")
    assert () == session.wire.adopt([{"role": "user", "content": "Hello?"}])


@pytest.mark.parametrize(
    ("history", "told"),
    [
        ([HISTORY[0], {"role": "user", "content": "Else?"}], r"messages\[1\] differs"),
        (HISTORY[:2], "the history only 2"),
    ],
)
def test_other_history_is_refused(
    store: SessionStore, referee: Referee, history: list[dict[str, Any]], told: str
) -> None:
    """A fork is not taken for the same conversation."""
    session = open_session(store, referee)
    session.wire.adopt(HISTORY)
    before = session.log()
    with pytest.raises(ThinkbackError, match=told):
        session.wire.adopt(history)
    assert before == session.log()


@pytest.mark.parametrize(
    "more",
    [
        [{"role": "user", "content": "And one more thing."}],
        [{"role": "system", "content": "Be quick."}, {"role": "user", "content": "And one more thing."}],
        [{"role": "system", "content": "Be quick."}],
        [{"role": "assistant", "content": "", "reasoning_content": "Hm."}],
        [{"role": "tool", "tool_call_id": "c2", "content": "second"}],
    ],
)
def test_a_history_grows_message_by_message(store: SessionStore, referee: Referee, more: list[dict[str, Any]]) -> None:
    """Also where what is new stands beside what its speaker said before, or nothing of it is visible."""
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ("c1", "c2")]
    history: list[dict[str, Any]] = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Look."}]
    if more[0]["role"] == "tool":
        history += [
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "first"},
        ]
    session = open_session(store, referee)
    session.wire.adopt(history)
    before = session.log()
    new = session.wire.adopt([*history, *more])
    assert [*before, *new] == session.log()
    assert [{"tool": "tool_result", "assistant": "response"}.get(one["role"], one["role"]) for one in more] == [
        commit.kind for commit in new if commit.kind in ("system", "user", "tool_result", "response")
    ]
    assert () == session.wire.adopt([*history, *more])


def test_a_history_that_ends_inside_a_message_differs(store: SessionStore, referee: Referee) -> None:
    """The session holds more of what the user said."""
    session = open_session(store, referee)
    held = [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}]
    session.wire.adopt(held)
    for other in (held[:1], [held[0], {"role": "user", "content": "Three."}]):
        with pytest.raises(ThinkbackError, match=r"messages\[0\] differs"):
            session.wire.adopt(other)


def test_a_moved_system_prompt_is_the_same_history(store: SessionStore, referee: Referee) -> None:
    """What is visible of a conversation does not depend on it."""
    session = open_session(store, referee)
    session.wire.adopt(HISTORY)
    rest = [message for message in HISTORY if message["role"] != "system"]
    assert () == session.wire.adopt(rest)


def test_message_that_is_none_is_refused(store: SessionStore, referee: Referee) -> None:
    """A role that does not exist is named, nothing is stored."""
    session = open_session(store, referee)
    with pytest.raises(WireError, match=r"messages\[1\]"):
        session.wire.adopt([HISTORY[0], {"role": "oracle", "content": "?"}])
    assert [] == session.log()


def test_adopted_question_is_answered_by_going_on(store: SessionStore, referee: Referee) -> None:
    """A history that ends with a question is an open turn."""
    session = open_session(store, referee)
    session.wire.adopt(HISTORY[:2])
    assert "completed" == session.generate().state
    assert ["system", "user"] == roles(referee)


def test_broken_arguments_are_compared_as_they_are(store: SessionStore, referee: Referee) -> None:
    """What is no JSON has no other spelling."""
    broken = json.loads(json.dumps(HISTORY))
    broken[2]["tool_calls"][0]["function"]["arguments"] = '{"city": '
    session = open_session(store, referee)
    session.wire.adopt(broken)
    assert () == session.wire.adopt(broken)
    with pytest.raises(ThinkbackError, match=r"messages\[2\] differs"):
        session.wire.adopt(HISTORY)


OPAQUE: list[dict[str, Any]] = [
    {"role": "user", "content": "2+2?"},
    {
        "role": "assistant",
        "content": "4",
        "reasoning_details": [
            {"type": "reasoning.encrypted", "data": "opaque", "format": "openai-responses-v1", "index": 0}
        ],
    },
]


def test_opaque_values_need_someone_to_vouch_for_them(store: SessionStore) -> None:
    """Of unknown origin they are kept and not sent; ``minted_by`` vouches, for that model only."""
    given: dict[str, Any] = {"endpoint": "openrouter", "model": "openai/gpt-5.2", "api_key": KEY}
    unknown = store.session("unknown", **given)
    unknown.wire.adopt(OPAQUE)
    assert b"opaque" not in bytes(unknown.wire.plan("And?"))
    assert b"opaque" in b"".join(commit.payload for commit in unknown.log())
    vouched = store.session("vouched", **given)
    vouched.wire.adopt(OPAQUE, minted_by=("openrouter", "openai/gpt-5.2"))
    assert b"opaque" in bytes(vouched.wire.plan("And?"))
    vouched.use(model="anthropic/claude-sonnet-4")
    assert b"opaque" not in bytes(vouched.wire.plan("And?"))


def test_statuses_of_the_referee_are_all_good(store: SessionStore, referee: Referee) -> None:
    """A conversation half by hand and half by ``chat`` is one conversation."""
    session = open_session(store, referee)
    converse(session, "Weather in Oslo?", 50)
    session.chat("And in Rome?", tools=[get_weather])
    converse(session, "And in Bergen?", 50)
    assert {200} == set(statuses(referee))
    assert [] == store.fsck()


def test_changed_tools_that_take_bound_reasoning_away_are_told_once(store: SessionStore) -> None:
    """At the first request that it happens to, and again after it was mended; not by a look at the next request."""
    session = store.session("s", endpoint="anthropic", model="claude-opus-5-5", api_key="a key")

    def ask(text: str, *names: str) -> list[str]:
        offered = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            session.wire.plan(text, tools=offered, stream=False)
            session.explain(next=True)
        thought = {"type": "thinking", "thinking": "t", "signature": f"SIG{text}"}
        message = {"type": "message", "role": "assistant", "id": f"m{text}", "stop_reason": "end_turn"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        content = [thought, {"type": "text", "text": "x"}]
        session.wire.ingest(json.dumps({**message, "model": "claude-opus-5-5", "content": content, "usage": usage}))
        return [str(warning.message) for warning in told]

    assert [] == ask("a", "look") == ask("b", "look")
    assert [
        "the tools changed, and earlier reasoning is bound to the old version: 2 blocks are not sent; "
        "the old version brings them back"
    ] == ask("c", "see")
    assert [] == ask("d", "see")


@pytest.mark.parametrize("streams", [True, False])
def test_a_strict_refusal_ends_the_turn(store: SessionStore, *, streams: bool) -> None:
    """Whole or as a stream; what came of the answer is in no request."""
    session = store.session("s", endpoint="lmstudio", model="qwen3")
    session.set("reasoning.strict", True)
    session.wire.plan("a", stream=streams)
    message = {"role": "assistant", "content": "Shown.", "reasoning_content": "Hm."}
    choice = {"index": 0, "delta" if streams else "message": message, "finish_reason": "stop"}
    body = json.dumps({"id": "r", "choices": [choice]})
    with pytest.raises(ProviderError, match=r"reasoning\.strict refuses it"):
        session.wire.ingest(f"data: {body}\n\ndata: [DONE]\n\n" if streams else body)
    ended = session.log()[-1].value
    assert isinstance(ended, TurnEnded)
    assert "partial_failed" == ended.state
    assert "Shown." not in str(session.explain(next=True).messages)


def test_reasoning_of_a_fallback_is_the_served_models(store: SessionStore) -> None:
    """Where another model answered than was asked, its thinking goes back to it, and the origin names it."""
    session = store.session("chat", endpoint="anthropic", model="claude-fable-5-2", api_key="sk-1")
    session.wire.plan("Hello?", stream=False)
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "SIG"}
    boundary = {"type": "fallback", "from": "claude-fable-5-2", "to": "claude-opus-5", "trigger": "overloaded"}
    content = [boundary, thought, {"type": "text", "text": "Yes."}]
    usage = {"input_tokens": 1, "output_tokens": 2}
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": content}
    session.wire.ingest(json.dumps({**body, "stop_reason": "end_turn", "usage": usage}))
    header = next(commit.value for commit in session.log() if isinstance(commit.value, Response))
    assert ("claude-fable-5-2", "claude-opus-5") == (header.origin.requested_model, header.origin.served_model)
    session.use(model="claude-opus-5")
    sent = json.loads(bytes(session.wire.plan("Go on.", stream=False)))["messages"][1]["content"]
    assert [boundary, thought] == sent[:2]


def test_fields_for_one_provider_stay_behind_in_a_session(store: SessionStore, referee: Referee) -> None:
    """A history of Codex that goes on at Azure, which refuses them, and then at OpenAI: the digest is of what went."""
    field = "internal_chat_message_metadata_passthrough"
    said = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}], field: {}}]
    azure = referee.base_url("azure")
    session = store.session("chat", endpoint="azure-openai", model="gpt-5.6", base_url=azure, api_key=KEY)
    session.wire.adopt(said, dialect="openai-responses")
    reply = session.chat("And now?")
    sent = referee.requests[-1]

    assert (200, False) == (sent.status, field in str(sent.body))
    assert hashlib.sha256(sent.raw).hexdigest() == digest_of_last(session)
    assert session.why() == reply.decisions
    session.use(endpoint="openai", model="gpt-5.6", base_url=referee.base_url("openai"), api_key=KEY)
    session.chat("And here?")
    assert (200, True) == (referee.requests[-1].status, field in str(referee.requests[-1].body))


def digest_of_last(session: Session) -> str:
    """Of the bytes that were sent, by the record of the last request."""
    return [commit.value.sent_digest for commit in session.log() if isinstance(commit.value, Request)][-1]


def test_a_record_of_a_version_that_took_them_out_later_verifies(store: SessionStore, referee: Referee) -> None:
    """Its digest is of the bytes with fields for one provider."""
    field = "internal_chat_message_metadata_passthrough"
    azure = referee.base_url("azure")
    session = store.session("chat", endpoint="azure-openai", model="gpt-5.6", base_url=azure, api_key=KEY)
    session.wire.adopt([{"role": "user", "content": "Hello.", field: {}}], dialect="openai-responses")
    session.chat("And now?")
    commits = list(session.conversation.history.commits)
    at = [commit.kind for commit in commits].index("request")
    record = commits[at].value
    assert isinstance(record, Request)
    record = msgspec.structs.replace(record, recipe=1, chain=None)
    earlier = requests.plan_of(record, commits, takes_all=True).record()
    assert record.sent_digest != earlier.sent_digest

    commits[at] = msgspec.structs.replace(
        commits[at], value=msgspec.structs.replace(record, sent_digest=earlier.sent_digest)
    )
    assert field.encode() in bytes(requests.rebuild(commits))
    commits[at] = msgspec.structs.replace(commits[at], value=msgspec.structs.replace(record, sent_digest="0" * 64))
    with pytest.raises(CorruptLogError):
        requests.rebuild(commits)
