"""The seed's edge cases in every dialect, through a session and the strict stand-in."""

from __future__ import annotations

import json
from typing import Any

import pytest

import thinkback
from tests.acceptance.hosts import (
    answer,
    ask_and_call,
    blocks,
    body,
    every_dialect,
    next_body,
    of_response,
    readable,
    returned,
    statuses,
    talk,
    thoughts,
)
from tests.conformance.moves import PLACES, Place
from thinkback.model.blocks import ThinkingBlock, ToolCall, carriers_of
from thinkback.model.deltas import ReasoningDelta, TextDelta
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee, Step

# Whole responses whose reasoning is the empty string and that hold nothing opaque.
EMPTY: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "model": "deepseek-v4-pro",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi.", "reasoning_content": ""},
                "finish_reason": "stop",
            }
        ],
    },
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "gpt-5.4",
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": []},
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
            },
        ],
    },
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [{"type": "thinking", "thinking": "", "signature": ""}, {"type": "text", "text": "Hi."}],
        "stop_reason": "end_turn",
    },
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "", "thought": True}, {"text": "Hi."}]},
                "finishReason": "STOP",
            }
        ]
    },
    "gemini-interactions": {
        "id": "v1_1",
        "object": "interaction",
        "status": "completed",
        "model": "gemini-3-pro",
        "steps": [
            {"type": "thought", "summary": [{"type": "text", "text": ""}]},
            {"type": "model_output", "content": [{"type": "text", "text": "Hi."}]},
        ],
    },
    "bedrock": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [{"reasoningContent": {"reasoningText": {"text": ""}}}, {"text": "Hi."}],
            }
        },
        "stopReason": "end_turn",
    },
    "mistral": {
        "model": "magistral-medium-latest",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": [{"type": "text", "text": ""}]},
                        {"type": "text", "text": "Hi."},
                    ],
                },
                "finish_reason": "stop",
            }
        ],
    },
    "ollama": {
        "model": "gpt-oss:20b",
        "message": {"role": "assistant", "content": "Hi.", "thinking": ""},
        "done": True,
        "done_reason": "stop",
    },
    "cohere": {
        "id": "1",
        "message": {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": ""}, {"type": "text", "text": "Hi."}],
        },
        "finish_reason": "COMPLETE",
    },
}


def plain(session: Session) -> list[ThinkingBlock]:
    """Reasoning blocks that neither say nor carry anything."""
    return [block for block in thoughts(session) if not block.thought.strip() and not carriers_of(block)]


def two_turns(store: SessionStore, referee: Referee, place: Place) -> Session:
    """A session whose two finished turns had a thought each."""
    referee.push(Step(reasoning="first-thought", text="One."), Step(reasoning="second-thought", text="Two."))
    session = talk(store, referee, place)
    session.chat("How are you?")
    session.chat("And now?")
    session.set("reasoning.includeInContext", value=True)
    return session


@every_dialect
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_ec_001_a_model_that_does_not_reason(store: SessionStore, referee: Referee, place: Place, stream: bool) -> None:
    """Absent reasoning makes no block and no error, and the next request is accepted."""
    referee.push(Step(text="Hi."))
    session = talk(store, referee, place)
    reply = session.chat("Hello?", stream=stream)
    assert ("completed", "Hi.", None) == (reply.state, reply.text, reply.reasoning)
    assert [] == plain(session)
    assert "completed" == session.chat("And now?", stream=stream).state
    assert [200, 200] == statuses(referee)


@every_dialect
def test_ec_002_reasoning_that_is_an_empty_string(store: SessionStore, referee: Referee, place: Place) -> None:
    """It counts as none: nothing readable, nothing empty sent back, and the host takes the next request."""
    session = talk(store, referee, place)
    session.set("reasoning.includeInContext", value=True)
    session.wire.plan("Hello?", stream=False)
    reply = session.wire.ingest(json.dumps(EMPTY[place.dialect]), headers={"content-type": "application/json"})
    assert ("completed", "Hi.", None) == (reply.state, reply.text, reply.reasoning)
    assert [] == returned(place, next_body(session))
    assert "completed" == session.chat("And now?").state
    assert ([200], []) == (statuses(referee), returned(place, body(referee)))


@every_dialect
def test_ec_003_reasoning_first_and_then_content(store: SessionStore, referee: Referee, place: Place) -> None:
    """Deltas of both kinds arrive in their order, and each kind becomes its block."""
    referee.push(Step(reasoning="Let me weigh this.", text="It is sunny today."))
    session = talk(store, referee, place)
    stream = session.stream("How is the weather?")
    kinds = [type(delta) for delta in stream if isinstance(delta, ReasoningDelta | TextDelta)]
    assert kinds == sorted(kinds, key=[ReasoningDelta, TextDelta].index)
    assert (4, 4) == (kinds.count(ReasoningDelta), kinds.count(TextDelta))
    assert "It is sunny today." == stream.reply.text
    assert ["Let", "me", "weigh", "this."] == str(stream.reply.reasoning).split()
    order = [commit.kind for commit in of_response(session)]
    assert order.index("reasoning") < order.index("assistant")


@every_dialect
def test_ec_004_settings_changed_in_the_middle(store: SessionStore, referee: Referee, place: Place) -> None:
    """They act on the next request, on all that is stored; what is stored stays as it was."""
    session = two_turns(store, referee, place)
    stored = [commit.payload for commit in of_response(session)]
    both = returned(place, next_body(session))
    session.set("reasoning.stripFromContext", "all")
    assert "completed" == session.chat("Third?").state
    assert (both if session.target.rule.later == "must" else []) == returned(place, body(referee))
    session.set("reasoning.stripFromContext", "none")
    # Reasoning that is bound to what stood before it stays valid only without what was stripped then.
    kept = [] if session.target.rule.prefix_bound else both
    assert kept == returned(place, next_body(session))[: len(kept)]
    assert session.target.rule.prefix_bound or returned(place, next_body(session))
    assert "completed" == session.chat("Fourth?").state
    assert stored == [commit.payload for commit in of_response(session)][: len(stored)]


@every_dialect
def test_ec_005_another_set_of_settings_is_loaded(referee: Referee, place: Place) -> None:
    """Swapped as a whole, it acts on the next request without touching the log."""
    loaded: dict[str, object] = {"reasoning.includeInContext": True}
    with thinkback.open(":memory:", settings=loaded) as store:
        session = two_turns(store, referee, place)
        session.unset("reasoning.includeInContext")
        hashes = [commit.hash for commit in session.log()]
        before = returned(place, next_body(session))
        loaded.clear()
        loaded.update({"reasoning.keepLast": 0, "reasoning.includeInResponse": False})
        after = returned(place, next_body(session))
        assert (True, before if session.target.rule.later == "must" else []) == (bool(before), after)
        assert not session.settings.include_in_response
        assert hashes == [commit.hash for commit in session.log()]


@every_dialect
def test_ec_006_a_call_with_reasoning_and_no_text(store: SessionStore, referee: Referee, place: Place) -> None:
    """Reasoning is stored before the call, in the same response, and goes back with it."""
    session = talk(store, referee, place)
    reply = ask_and_call(session, referee)
    assert ("", readable(place, "I-must-look.") or None) == (reply.text, reply.reasoning)
    kinds = [type(block) for block in blocks(session)]
    assert [ThinkingBlock, ToolCall] == kinds
    assert 1 == len({commit.response for commit in of_response(session)})
    assert "completed" == answer(session, reply).state
    sent = body(referee)
    assert 1 == len(returned(place, sent))
    assert json.dumps(sent).index("weather") < json.dumps(sent).index("sunny")
    assert [200, 200] == statuses(referee)


@every_dialect
def test_ec_007_nothing_is_left_after_stripping(store: SessionStore, referee: Referee, place: Place) -> None:
    """Fields and parts of reasoning are left out, not sent empty, and the host accepts it."""
    session = two_turns(store, referee, place)
    session.set("reasoning.stripFromContext", "all")
    assert "completed" == session.chat("Third?").state
    assert 200 == statuses(referee)[-1]
    sent = body(referee)
    if session.target.rule.later != "must":
        assert [] == returned(place, sent)
        for empty in ('"reasoning_content"', '"thinking": ""', '"thinking": []', '"reasoningContent"', "rs_"):
            assert empty not in json.dumps({key: sent[key] for key in ("messages", "input", "contents") if key in sent})


@every_dialect
def test_err_003_reasoning_of_any_length(store: SessionStore, referee: Referee, place: Place) -> None:
    """Nothing is cut: it is stored whole, counted, and goes back where text goes back."""
    long = "thought-" * 40_000
    session = talk(store, referee, place)
    reply = ask_and_call(session, referee, long)
    stored = readable(place, long)
    assert (stored or None) == reply.reasoning
    assert [stored] == [block.thought for block in thoughts(session)]
    counts = session.explain(next=True).counts
    assert counts.raw >= len(stored) / 8
    assert "completed" == answer(session, reply).state
    assert [200, 200] == statuses(referee)
    sent = returned(place, body(referee))
    assert place.dialect == "gemini" or stored in json.dumps(sent)


def test_the_edge_cases_cover_every_dialect() -> None:
    """One host for each dialect there is, and an empty response of each."""
    from thinkback.wire.registry import PACKAGES

    assert set(PACKAGES) == set(EMPTY) == {place.dialect for place in PLACES}
