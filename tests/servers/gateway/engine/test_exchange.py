"""Conversations of clients that forget reasoning: given back, passed on, recorded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.servers.gateway.harness.engines import (
    ASKED,
    BOUND,
    CLAUDE,
    DEEPSEEK,
    GRANT,
    JSON,
    PLACES,
    TOOL,
    Fresh,
    Kept,
    Plays,
    ask,
    chat,
    commits,
    engine,
    forgetful_chat,
    question,
)
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Head, Request
from thinkback.proxy.retention import Recording
from thinkback.servers.gateway.config.schema import Config, Records
from thinkback.servers.gateway.engine.driver import respond
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.grant import Grant
from thinkback_referee import Referee


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


def test_of_conversations_that_look_the_same_the_newest_goes_on(referee: Referee) -> None:
    """Of one key and end user; another's is nobody's. The record says that there were several."""
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

    assert ("complete", "unknown; brought=1") == tuple(k.headers["thinkback-reattach"] for k in (same, other))
    assert first[-1][-1].headers["thinkback-session"] == same.headers["thinkback-session"]
    chosen = "2 conversations have these words; the newest with equal system and tools was chosen"
    assert chosen == records[-1].target["chosen"]


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


def test_what_is_not_recorded_is_not_known() -> None:
    """With recording off nothing is stored, and the client is told that nothing can be given back."""
    made = engine(Plays(lambda body: (200, JSON, [chat("Hi.")])), PLACES)
    kept = ask(made, "openai-chat", question(), grant=Grant("k1", recording="off"))

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


def test_what_a_client_brought_does_not_run_out(referee: Referee) -> None:
    """It was never kept, so that nothing of it can be missing later."""
    made, grant = engine(Fresh(), referee), Grant("k1", recording="metadata")
    messages = [{"role": who, "content": said} for who, said in (("user", "Cold?"), ("assistant", "Brr."))]
    told = []
    for words in ("Hot?", "Warm?"):
        messages.append({"role": "user", "content": words})
        kept = ask(made, "openai-chat", {"model": DEEPSEEK, "messages": messages}, grant=grant)
        told.append(kept.headers["thinkback-reattach"])
        messages.append({"role": "assistant", "content": kept.json["choices"][0]["message"]["content"]})

    assert ["unknown; brought=1", "complete; brought=1"] == told


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


def test_a_conversation_that_is_not_recorded_cannot_be_named(referee: Referee) -> None:
    """Its questions are nowhere: the client learns it, and the model is not asked without them."""
    made, grant = engine(Fresh(), referee), Grant("k1", recording="metadata")
    first = ask(made, "openai-responses", {"model": DEEPSEEK, "input": ASKED[0]}, grant=grant)
    body = {"model": DEEPSEEK, "input": ASKED[1], "previous_response_id": first.json["id"]}
    second = ask(made, "openai-responses", body, grant=grant)

    assert (400, "none; missing=1") == (second.status, second.notes.report.reattach)
    assert first.json["id"] in second.json["error"]["message"]
    assert 1 == len(referee.requests)


def test_reasoning_is_given_back_where_it_stood() -> None:
    """The message that goes upstream has the reasoning that its response had."""
    answers = iter([chat("Hi.", "Greet first."), chat("Fine.")])
    transport = Plays(lambda body: (200, JSON, [next(answers)]))
    made = engine(transport, PLACES)
    headers = {"thinkback-set": "reasoning.includeInContext=true"}
    ask(made, "openai-chat", question())
    messages = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": " Hi. "},
        {"role": "user", "content": "And?"},
    ]
    ask(made, "openai-chat", question(messages=messages), headers=headers)
    sent = json.loads(transport.sent[-1])["messages"]

    assert ["Why?", "And?"] == [sent[0]["content"], sent[2]["content"]]
    thoughts = [c.value.thought for c in commits(made) if isinstance(c.value, ThinkingBlock)]
    assert ["Greet first."] == thoughts


def test_a_conversation_whose_branch_was_deleted_gets_a_new_one() -> None:
    """What was seen is still in the log, on no branch; the conversation goes on from there."""
    transport = Plays(lambda body: (200, JSON, [chat(f"{len(body)}.")]))
    made = engine(transport, PLACES)
    kept = ask(made, "openai-chat", question())
    log, session = made.logs.of("default"), kept.headers["thinkback-session"]
    head = commits(made)[-1]
    log.refs.create(session, "other", Head(), via="main")
    log.refs.switch(session, "other")
    log.refs.delete(session, "main", Head(head.hash, head.seq))
    said = kept.json["choices"][0]["message"]["content"]
    begun = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": said}]
    following = ask(made, "openai-chat", question(messages=[*begun, {"role": "user", "content": "And?"}]))

    assert (200, session, "complete") == (
        following.status,
        following.headers["thinkback-session"],
        following.headers["thinkback-reattach"],
    )
    assert 2 == len(log.refs.list(session))


def test_two_requests_at_once_lose_nothing() -> None:
    """Both go on from one place: the log has both, on two branches."""
    transport = Plays(lambda body: (200, JSON, [chat(f"{len(body)}.")]))
    made = engine(transport, PLACES)
    first = ask(made, "openai-chat", question())
    said = first.json["choices"][0]["message"]["content"]
    begun = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": said}]

    async def both() -> list[Kept]:
        from thinkback.servers.gateway.incoming import Incoming

        sinks = [Kept(), Kept()]
        bodies = [json.dumps(question(messages=[*begun, {"role": "user", "content": word}])) for word in ("a", "bb")]
        await asyncio.gather(
            *(
                respond(made, Incoming.of("openai-chat", body.encode(), {}, GRANT, "r"), sink)
                for body, sink in zip(bodies, sinks, strict=True)
            )
        )
        return sinks

    found = asyncio.run(both())
    session = first.headers["thinkback-session"]

    assert [session] * 2 == [kept.headers["thinkback-session"] for kept in found]
    assert 2 == len(made.logs.of("default").refs.list(session))


def test_calls_of_one_response_that_a_client_tells_one_by_one_are_told_once() -> None:
    """Each with its result behind it: the response stands whole, then all results."""
    calls = [{**TOOL_CALL, "id": f"call_{city}", "function": look(city)} for city in ("Oslo", "Rome", "Bern")]
    message = {"role": "assistant", "content": "All.", "reasoning_content": "Hm.", "tool_calls": calls}
    answers = iter([_with(message, "tool_calls"), chat("Warm.", "Well."), chat("Bye.")])
    transport = Plays(lambda body: (200, JSON, [next(answers)]))
    made = engine(transport, PLACES)
    asked_first: list[Any] = [{"role": "user", "content": "Why?"}]
    ask(made, "openai-chat", question(messages=asked_first))
    told = list(asked_first)
    for call in calls:
        told.append({"role": "assistant", "content": "All." if call is calls[0] else "", "tool_calls": [call]})
        told.append({"role": "tool", "tool_call_id": call["id"], "content": f"in {call['id']}"})
    kept = ask(made, "openai-chat", question(messages=told))
    sent = json.loads(transport.sent[-1])["messages"]
    told += [{"role": "assistant", "content": "Warm."}, {"role": "user", "content": "Thanks."}]
    later = ask(made, "openai-chat", question(messages=told))
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


def test_tools_that_stay_behind_are_named_in_a_stable_order(referee: Referee) -> None:
    """However the client orders what it asks for, the header is one."""
    mine = [{"type": "web_search"}, {"type": "image_generation"}]
    asked = {"truncation": "auto", "max_tool_calls": 3}
    left = [
        ask(
            engine(Fresh(), referee),
            "openai-responses",
            {"model": DEEPSEEK, "input": "Hi.", "tools": tools, **dict(params)},
        ).headers["thinkback-left-out"]
        for tools, params in ((mine, [*asked.items()]), (mine[::-1], [*asked.items()][::-1]))
    ]

    assert left[0] == left[1]
    assert ["max_tool_calls", "tool image_generation", "tool web_search"] == [
        each.partition(":")[0] for each in left[0].split("; ") if not each.startswith("truncation")
    ]
