"""Capture as the four seed systems test it: order, stamps, opaque items, and what a stream brings live."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

import thinkback
from tests.acceptance.hosts import (
    LOOK,
    OF,
    answer,
    ask_and_call,
    at,
    blocks,
    body,
    calls,
    every_dialect,
    next_body,
    of_response,
    returned,
    statuses,
    talk,
    thoughts,
)
from tests.conformance.moves import TOOLS, Place
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, carriers_of, wire_object
from thinkback.model.commits import Request, Response
from thinkback.model.deltas import ReasoningDelta
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step

# Formats in which a response may hold several thoughts, each before what it led to.
INTERLEAVING = pytest.mark.parametrize("dialect", ["openai-responses", "anthropic"])
REDACTED = "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING"


def headers(session: Session) -> list[Response]:
    """The head of each response in the log."""
    return [commit.value for commit in session.log() if isinstance(commit.value, Response)]


@every_dialect
def test_reasoning_is_recorded_before_its_call_and_stamped_with_its_origin(
    store: SessionStore, referee: Referee, place: Place
) -> None:
    """The response says which dialect, endpoint and model minted it, and who asked."""
    session = talk(store, referee, place)
    ask_and_call(session, referee)
    origin = headers(session)[0].origin
    assert (place.dialect, referee.base_url(place.host), place.model) == (
        origin.dialect,
        origin.endpoint,
        origin.requested_model,
    )
    # What a bearer token of Bedrock says about the account is nothing: it may be short-lived.
    assert origin.account or place.dialect == "bedrock"
    assert [ThinkingBlock, ToolCall] == [type(block) for block in blocks(session)]


@INTERLEAVING
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_interleaved_reasoning_and_calls_keep_the_order_of_the_provider(
    store: SessionStore, referee: Referee, dialect: str, stream: bool
) -> None:
    """Thought, call, thought, call: so they are stored, and so they go back."""
    second = Call("clock", {"city": "Oslo"})
    referee.push(Step(earlier=[Step(reasoning="one", tool_calls=[LOOK])], reasoning="two", tool_calls=[second]))
    session = talk(store, referee, OF[dialect])
    reply = session.chat("Weather and time?", tools=TOOLS, stream=stream)
    assert [ThinkingBlock, ToolCall, ThinkingBlock, ToolCall] == [type(block) for block in blocks(session)]
    assert ["one", "two"] == [block.thought for block in thoughts(session)]
    assert "completed" == answer(session, reply).state
    sent = json.dumps(body(referee))
    places = [sent.index(json.dumps(value)) for value in ("one", "weather", "two", "clock")]
    assert places == sorted(places)
    assert [200, 200] == statuses(referee)


@INTERLEAVING
def test_a_call_before_a_thought_stays_before_it(store: SessionStore, referee: Referee, dialect: str) -> None:
    """Call, thought, call: nothing is moved to the front."""
    text = "First I look." if dialect == "openai-responses" else ""
    first = Step(text=text, tool_calls=[LOOK])
    referee.push(Step(earlier=[first], reasoning="then", tool_calls=[Call("clock", {"city": "Oslo"})]))
    session = talk(store, referee, OF[dialect])
    session.chat("Weather and time?", tools=TOOLS)
    order = [type(block) for block in blocks(session) if not isinstance(block, Text)]
    assert [ToolCall, ThinkingBlock, ToolCall] == order


@pytest.mark.parametrize("dialect", ["openai-chat", "ollama"])
def test_where_the_wire_has_no_order_reasoning_comes_before_the_calls(
    store: SessionStore, referee: Referee, dialect: str
) -> None:
    """A whole message with fields for text, reasoning and calls is read in that order of cause."""
    session = talk(store, referee, OF[dialect])
    ask_and_call(session, referee, text="One moment.")
    referee.push(Step(reasoning="first", text="words", tool_calls=[LOOK]))
    session.chat("Again, whole.", stream=False)
    kinds = [commit.kind for commit in of_response(session)]
    assert [["reasoning", "assistant", "tool_call"]] * 2 == [kinds[:3], kinds[3:]]


@every_dialect
def test_reasoning_of_a_final_answer_is_stored_too(store: SessionStore, referee: Referee, place: Place) -> None:
    """Without any call, with its text readable, and only deltas are not in the log."""
    referee.push(Step(reasoning="so-it-is", text="Yes."))
    session = talk(store, referee, place)
    reply = session.chat("Is it?")
    assert (["so-it-is"], "so-it-is") == ([block.thought for block in thoughts(session)], reply.reasoning)
    assert reply.reasoning_commit in session.log()
    kinds = {commit.kind for commit in session.log()}
    assert {"user", "request", "response", "reasoning", "assistant", "provider_usage", "turn_ended"} == kinds


@every_dialect
def test_many_small_deltas_are_one_block(store: SessionStore, referee: Referee, place: Place) -> None:
    """Each piece is shown as it comes, and one commit holds the thought."""
    referee.push(Step(reasoning=" ".join(["on"] * 500), text="Done."))
    session = talk(store, referee, place)
    shown = [delta for delta in session.stream("Count.") if isinstance(delta, ReasoningDelta)]
    assert (500, 1) == (len(shown), len(thoughts(session)))
    assert ["on"] * 500 == thoughts(session)[0].thought.split()


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock"])
def test_redacted_reasoning_is_kept_unread_and_goes_back(store: SessionStore, referee: Referee, dialect: str) -> None:
    """There is nothing to read, and what there is returns byte for byte."""
    place = OF[dialect]
    session = talk(store, referee, place)
    reply = ask_and_call(session, referee, REDACTED)
    assert ([""], None) == ([block.thought for block in thoughts(session)], reply.reasoning)
    assert ["redacted"] == [carrier.kind for carrier in carriers_of(thoughts(session)[0])]
    assert "completed" == answer(session, reply).state
    assert carriers_of(thoughts(session)[0])[0].value in json.dumps(returned(place, body(referee)))


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic", "gemini", "gemini-interactions"])
def test_an_opaque_value_without_readable_text_is_a_complete_block(
    store: SessionStore, referee: Referee, dialect: str
) -> None:
    """With the display omitted nothing can be read, and everything goes back."""
    place = OF[dialect]
    session = talk(store, referee, place)
    session.set("reasoning.display", "omitted")
    reply = ask_and_call(session, referee)
    assert reply.reasoning is None
    assert "completed" == answer(session, reply).state
    assert 1 == len(returned(place, body(referee)))
    assert [200, 200] == statuses(referee)


def test_an_item_is_captured_opaquely_in_the_order_of_its_calls(store: SessionStore, referee: Referee) -> None:
    """Responses: id, summary and encrypted content as they came, beside the text that people read."""
    session = talk(store, referee, OF["openai-responses"])
    ask_and_call(session, referee)
    item = json.loads(wire_object(thoughts(session)[0]))
    assert ("reasoning", [{"type": "summary_text", "text": "I-must-look."}]) == (item["type"], item["summary"])
    assert {"item_id": item["id"], "encrypted": item["encrypted_content"]} == {
        carrier.kind: carrier.value for carrier in carriers_of(thoughts(session)[0])
    }
    assert ["reasoning", "tool_call"] == [commit.kind for commit in of_response(session)]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "tags"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_reasoning_is_found_wherever_chat_completions_put_it(
    store: SessionStore, referee: Referee, field: str, stream: bool
) -> None:
    """Two names of the field and tags in the content give the same block; the answer is clean."""
    referee.push(Step(reasoning="hidden thought", text="Visible.", field=field))
    session = at(store, referee, "deepseek", "deepseek-v4-pro")
    reply = session.chat("Hello?", stream=stream)
    assert ("hidden thought", "Visible.") == (str(reply.reasoning).strip(), reply.text)
    assert {"tags": "content"}.get(field, field) == thoughts(session)[0].source_field


def test_a_field_named_by_a_rule_is_the_only_one_read(referee: Referee) -> None:
    """A user's rule row names the field; another that the host fills is kept and is no reasoning."""
    row = '[[rule]]\nid = "mine"\nlike = "deepseek-v4"\nendpoint = "deepseek"\nmodel = ["deepseek-v4-pro"]\n'
    row += 'since = "2026-01-01"\nsource = "my own"\nreasoning_field = "reasoning"\n'
    with thinkback.open(":memory:", rules={"mine.toml": row}) as store:
        session = at(store, referee, "deepseek", "deepseek-v4-pro")
        referee.push(Step(reasoning="seen", text="a", field="reasoning"))
        assert "seen" == session.chat("Hello?").reasoning
        referee.push(Step(reasoning="unseen", text="b", field="reasoning_content"))
        assert None is session.chat("Hello again?").reasoning


def test_calls_inside_the_reasoning_are_run_as_calls(store: SessionStore, referee: Referee) -> None:
    """Where it is known to leak, Kimi's section leaves the thought and becomes a call, with a person's word."""
    section = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
        '{"city":"Oslo"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    referee.push(Step(reasoning=f"I look it up. {section}"))
    session = at(store, referee, "sglang", "kimi-k2.6", "kimi")
    reply = session.chat("Weather?", tools=TOOLS, approve=lambda request: True)
    assert [("weather", '{"city":"Oslo"}')] == [(call.name, call.arguments) for call in reply.tool_calls]
    assert "I look it up." == str(reply.reasoning).strip()


def test_texts_of_two_streams_at_once_do_not_mix(store: SessionStore, referee: Referee) -> None:
    """Each delta names its response, and each log has its own words."""
    referee.push(Step(reasoning="alpha " * 20, text="a"), Step(reasoning="beta " * 20, text="b"))
    sessions = [talk(store, referee, OF["openai-chat"], name) for name in ("first", "second")]
    streams = [iter(session.stream("Hello?")) for session in sessions]
    shown: list[list[ReasoningDelta]] = [[], []]
    for pair in itertools.zip_longest(*streams):
        for delta, of_stream in zip(pair, shown, strict=True):
            if isinstance(delta, ReasoningDelta):
                of_stream.append(delta)
    assert [["alpha"] * 20, ["beta"] * 20] == [thoughts(session)[0].thought.split() for session in sessions]
    assert ["alpha " * 20, "beta " * 20] == ["".join(delta.text for delta in found) for found in shown]
    assert [1, 1] == [len({delta.response for delta in found}) for found in shown]
    assert shown[0][0].response != shown[1][0].response


def test_what_a_response_did_not_ask_for_is_kept_too(store: SessionStore, referee: Referee) -> None:
    """With reasoning switched off, spontaneous reasoning is stored and shown, and not sent back."""
    referee.push(Step(reasoning="unasked", text="Yes."))
    session = at(store, referee, "deepseek", "deepseek-v4-pro")
    session.set("reasoning.enabled", value=False)
    reply = session.chat("Hello?")
    assert ("unasked", ["unasked"]) == (reply.reasoning, [block.thought for block in thoughts(session)])
    assert [] == returned(OF["openai-chat"], next_body(session))


@pytest.mark.parametrize("store_keeps", [True, False])
def test_readable_reasoning_may_be_kept_out_of_the_log(referee: Referee, store_keeps: bool) -> None:
    """``commit_reasoning=False`` for all, ``reasoning=False`` for one call; the reply has it all the same."""
    with thinkback.open(":memory:", commit_reasoning=store_keeps) as store:
        referee.push(Step(reasoning="private-thought", text="Yes."))
        session = at(store, referee, "groq", "openai/gpt-oss-120b")
        reply = session.chat("Hello?", reasoning=not store_keeps)
        assert "private-thought" == reply.reasoning
        assert b"private-thought" not in b"".join(commit.payload for commit in session.log())


def test_the_request_is_recorded_with_what_was_in_force(store: SessionStore, referee: Referee) -> None:
    """Target, settings and rule rows, so that a decision can be explained later."""
    session = talk(store, referee, OF["anthropic"])
    session.chat("Hello?")
    records = [commit.value for commit in session.log() if isinstance(commit.value, Request)]
    assert ("anthropic", "claude-opus-5-5") == (records[0].target["endpoint"], records[0].target["model"])
    assert "high" == records[0].settings["reasoning.effort"]
    assert (session.target.rule.id,) == records[0].rules


def test_arguments_are_source_text(store: SessionStore, referee: Referee) -> None:
    """What a model wrote is not encoded anew."""
    source: Any = '{"city": "Oslo",  "number": 1.50}'
    session = talk(store, referee, OF["openai-chat"])
    ask_and_call(session, referee, tool_calls=[Call("weather", source)])
    assert [source] == [call.arguments for call in calls(session)]
