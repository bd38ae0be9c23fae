"""Replay and its guards as the four seed systems test them, each end judged by the strict stand-in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.hosts import (
    LOOK,
    OF,
    answer,
    ask_and_call,
    at,
    body,
    calls,
    every_dialect,
    next_body,
    of_response,
    readable,
    returned,
    statuses,
    talk,
    thoughts,
)
from tests.conformance.moves import KEY, Place
from thinkback.errors import ProviderError, ThinkbackError
from thinkback.model.blocks import ThinkingBlock, carriers_of
from thinkback.model.commits import Repair
from thinkback.model.deltas import ReasoningDelta, TextDelta
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import CutAfterBytes, ErrorInStream, Referee, RejectCarrier, Step

# Dialects whose reasoning carries an opaque value.
CARRYING = ("openai-responses", "anthropic", "gemini", "gemini-interactions", "bedrock")
carrying = pytest.mark.parametrize("dialect", CARRYING)
BETA = "context-management-2025-06-27"
KEEP_ONE = {"type": "thinking_turns", "value": 1}


def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: sunny"


def opaque(session: Session) -> list[str]:
    """The opaque values in the log that must go back, ids aside."""
    found = (carrier for commit in of_response(session) for carrier in carriers_of(commit.value))  # type: ignore[arg-type]
    return [carrier.value for carrier in found if carrier.kind not in ("item_id", "phase")]


def one_turn(session: Session, referee: Referee, thought: str = "one-thought") -> None:
    """A finished turn with a thought, which the next request may carry."""
    referee.push(Step(reasoning=thought, text="One."))
    session.chat("How are you?")
    session.set("reasoning.includeInContext", value=True)


@carrying
def test_opaque_values_go_back_byte_for_byte(store: SessionStore, referee: Referee, dialect: str) -> None:
    """Every value of the turn under way is in the request that continues it."""
    session = talk(store, referee, OF[dialect])
    reply = ask_and_call(session, referee)
    minted = opaque(session)
    assert "completed" == answer(session, reply).state
    assert [True] == list({json.dumps(value)[1:-1] in referee.requests[-1].raw.decode() for value in minted})


@every_dialect
def test_three_turns_with_tools_are_accepted(store: SessionStore, referee: Referee, place: Place) -> None:
    """Reasoning goes back inside each loop and over the turns as the host wants it; not one request is refused."""
    session = talk(store, referee, place)
    for prompt in ("Weather in Oslo?", "And in Rome?", "And in Bergen?"):
        assert "completed" == session.chat(prompt, tools=[weather]).state
    assert {200} == set(statuses(referee))


@pytest.mark.parametrize(
    ("dialect", "model"),
    [("openai-responses", "gpt-5.5"), ("gemini", "gemini-3-flash-preview"), ("anthropic", "claude-sonnet-4-5")],
)
def test_another_model_of_the_host_gets_none_of_it(
    store: SessionStore, referee: Referee, dialect: str, model: str
) -> None:
    """The text of the answer stays, the reasoning and what ties it do not, and the host accepts it."""
    session = talk(store, referee, OF[dialect])
    one_turn(session, referee)
    session.use(model=model)
    plan = session.explain(next=True)
    dropped = [decision.reason for decision in plan.decisions if decision.action == "drop"]
    assert any("minted by model" in reason for reason in dropped)
    assert ([], True) == (returned(OF[dialect], next_body(session)), b"One." in bytes(plan))
    assert "completed" == session.chat("And now?").state
    assert [200, 200] == statuses(referee)


def test_another_dialect_of_the_same_model_gets_none_of_it(store: SessionStore, referee: Referee) -> None:
    """The model's name is the same; what was minted in another format is not replayed in this one."""
    session = at(store, referee, "deepseek", "deepseek-v4-pro")
    one_turn(session, referee)
    session.use(endpoint="deepseek-anthropic", base_url=referee.base_url("deepseek-anthropic"), api_key=KEY)
    assert b"one-thought" not in bytes(session.explain(next=True))
    reasons = [decision.reason for decision in session.why(next=True)]
    assert all("minted in the openai-chat dialect" in reason for reason in reasons)
    assert "completed" == session.chat("And now?").state


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic"])
def test_another_account_gets_none_of_it(store: SessionStore, referee: Referee, dialect: str) -> None:
    """Blocks of one account are not sent under another, and the host has nothing to refuse."""
    session = talk(store, referee, OF[dialect], account="ours")
    one_turn(session, referee)
    session.use(api_key="sk-of-somebody-else", account="theirs")
    assert "completed" == session.chat("And now?").state
    assert ([], [200, 200]) == (returned(OF[dialect], body(referee)), statuses(referee))
    assert any("another account" in decision.reason for decision in session.why())


@every_dialect
def test_another_endpoint_gets_none_of_it(store: SessionStore, referee: Referee, place: Place) -> None:
    """The same model at another address is another issuer."""
    session = talk(store, referee, place)
    one_turn(session, referee)
    session.use(base_url="https://elsewhere.example/v1", api_key=KEY)
    assert [] == returned(place, next_body(session))
    assert any("minted by http" in decision.reason for decision in session.why(next=True))


def test_spellings_of_one_address_are_one_endpoint(store: SessionStore, referee: Referee) -> None:
    """A trailing slash and the case of the host make no difference."""
    session = talk(store, referee, OF["openai-responses"])
    one_turn(session, referee)
    base = referee.base_url("openai")
    session.use(base_url=f"{base.replace('http', 'HTTP', 1)}/", api_key=KEY)
    assert 1 == len(returned(OF["openai-responses"], next_body(session)))


@every_dialect
def test_reasoning_of_a_capped_response_is_stored_and_not_replayed(
    store: SessionStore, referee: Referee, place: Place
) -> None:
    """Its calls were never run, so the response stays away as a whole; the log has all of it."""
    referee.push(Step(reasoning="capped-thought", tool_calls=[LOOK]))
    session = talk(store, referee, place)
    assert "capped" == session.chat("Weather?", tools=[weather], max_steps=1).state
    assert [readable(place, "capped-thought")] == [block.thought for block in thoughts(session)]
    minted = opaque(session)
    assert "completed" == session.chat("Again?", tools=[]).state
    sent = referee.requests[-1].raw.decode()
    assert all(json.dumps(value)[1:-1] not in sent for value in ("capped-thought", *minted))
    assert [200, 200] == statuses(referee)
    assert any("its calls were never run" in decision.reason for decision in session.why())


@every_dialect
@pytest.mark.parametrize("fault", [ErrorInStream(after=5), CutAfterBytes(6000)], ids=["error", "cut"])
def test_reasoning_of_a_failed_response_is_stored_and_not_replayed(
    store: SessionStore, referee: Referee, place: Place, fault: ErrorInStream | CutAfterBytes
) -> None:
    """What arrived is in the log, marked incomplete; the next request is as if it had never begun."""
    words = " ".join(["broken"] * 60)
    referee.push(Step(reasoning=words, text=words, fault=fault))
    session = talk(store, referee, place)
    with pytest.raises(ThinkbackError):
        session.chat("Hello?", max_retries=0)
    assert [] != of_response(session)
    assert "completed" == session.chat("Again?").state
    assert "broken" not in referee.requests[-1].raw.decode()
    assert [200, 200] == statuses(referee)


@every_dialect
def test_a_partial_answer_is_stored_and_not_replayed(store: SessionStore, referee: Referee, place: Place) -> None:
    """Stopped in the middle of its words, a response leaves nothing in the next request."""
    referee.push(Step(reasoning="partial-thought", text="partial words that go on for long"))
    session = talk(store, referee, place)
    with session.stream("Hello?") as stream:
        next(delta for delta in stream if isinstance(delta, TextDelta))
    assert "interrupted" == stream.reply.state
    assert "partial-thought" in {block.thought for block in thoughts(session)}
    assert "completed" == session.chat("Again?").state
    assert "partial" not in referee.requests[-1].raw.decode()


@every_dialect
def test_a_tool_that_ends_the_turn_keeps_the_rest_of_its_response(
    store: SessionStore, referee: Referee, place: Place
) -> None:
    """What follows a call that ended the turn is stored in its order, and the call gets a recorded result."""

    def weather(city: str) -> str:
        raise KeyboardInterrupt

    session = talk(store, referee, place)
    referee.push(Step(reasoning="before-the-end", tool_calls=[LOOK]))
    with pytest.raises(KeyboardInterrupt):
        session.chat("Weather?", tools=[weather])
    assert [readable(place, "before-the-end")] == [block.thought for block in thoughts(session)]
    referee.push(Step(text="All right."))
    assert "completed" == session.chat("Never mind.").state
    assert [200, 200] == statuses(referee)
    assert 1 == sum(commit.kind == "tool_result" for commit in session.log())


@every_dialect
def test_a_call_without_a_result_gets_one_recorded(store: SessionStore, referee: Referee, place: Place) -> None:
    """A new question closes what is open, so that no call is sent without its result."""
    session = talk(store, referee, place)
    ask_and_call(session, referee)
    referee.push(Step(text="All right."))
    assert "completed" == session.chat("Never mind.").state
    results = [commit for commit in session.log() if commit.kind == "tool_result"]
    assert ("interrupted", 1) == (getattr(results[0].value, "status", ""), len(results))
    assert "This call was interrupted" in referee.requests[-1].raw.decode()
    assert [200, 200] == statuses(referee)
    assert 1 == len(calls(session))


@every_dialect
def test_reasoning_that_nothing_follows_does_no_harm(store: SessionStore, referee: Referee, place: Place) -> None:
    """A response of reasoning alone is stored; it goes back only where the host takes it, and a decision says so."""
    referee.push(Step(reasoning="nothing-but-a-thought"))
    session = talk(store, referee, place)
    assert session.chat("Hello?").is_reasoning_only
    session.set("reasoning.includeInContext", value=True)
    reply = session.chat("And?")
    assert [200, 200] == statuses(referee)
    # Gemini's signature stands on a part of its own; the text of a thought never goes back there.
    unread = place.dialect == "gemini"
    said = {decision.action for decision in reply.decisions if not (unread and decision.what == "reasoning")}
    went = bool(returned(place, body(referee)))
    assert said == ({"drop"} if not went else {"field"} if place.dialect == "openai-chat" else {"native"})


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.parametrize("goal", ["openai-chat", "gemini", "mistral", "cohere", "ollama"])
def test_a_foreign_turn_of_reasoning_alone_is_left_out_whole(store: SessionStore, referee: Referee, goal: str) -> None:
    """Nothing of it can be said to another model, so no empty message stands for it."""
    referee.push(Step(reasoning="nothing-but-a-thought"))
    session = talk(store, referee, OF["anthropic"])
    session.chat("Hello?")
    place = OF[goal]
    session.use(endpoint=place.endpoint, model=place.model, base_url=referee.base_url(place.host), api_key=KEY)
    assert "completed" == session.chat("And?").state
    sent: Any = body(referee).get("messages") or body(referee)["contents"]
    assert {"user"} == {message["role"] for message in sent}


@pytest.mark.parametrize(
    "dialect",
    [
        "openai-chat",
        "openai-responses",
        "anthropic",
        "gemini",
        "bedrock",
    ],
)
def test_refused_reasoning_is_taken_out_and_the_turn_goes_on(
    store: SessionStore, referee: Referee, dialect: str
) -> None:
    """One refusal in the host's words, one repair on record, and the request is accepted the second time.

    Interactions take no response back without all of its thoughts, so nothing could be left out there; the other
    dialects have nothing opaque to refuse.
    """
    session = talk(store, referee, OF[dialect])
    one_turn(session, referee)
    referee.push(Step(fault=RejectCarrier()))
    assert "completed" == session.chat("And now?").state
    assert [200, 400, 200] == statuses(referee)
    assert 1 == sum(isinstance(commit.value, Repair) for commit in session.log())


def test_a_refusal_that_stays_is_told_in_the_words_of_the_host(store: SessionStore, referee: Referee) -> None:
    """When nothing helps, the caller gets the provider's own text, and the log is as it was."""
    session = talk(store, referee, OF["openai-responses"])
    one_turn(session, referee)
    stored = len(thoughts(session))
    referee.push(*[Step(fault=RejectCarrier())] * 5)
    with pytest.raises(ProviderError):
        session.chat("And now?")
    assert stored == len(thoughts(session))
    assert statuses(referee).count(400) <= 4


def test_output_only_fields_stay_away_and_empty_summaries_go(store: SessionStore, referee: Referee) -> None:
    """Responses: an item goes back without its status, with ``summary: []`` where that is what came."""
    session = talk(store, referee, OF["openai-responses"])
    session.set("reasoning.display", "omitted")
    reply = ask_and_call(session, referee)
    answer(session, reply)
    item = returned(OF["openai-responses"], body(referee))[0]
    assert ([], False, True) == (item["summary"], "status" in item, bool(item["encrypted_content"]))
    assert (False, ["reasoning.encrypted_content"]) == (body(referee)["store"], body(referee)["include"])


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_goes_back_under_the_name_it_came_in(store: SessionStore, referee: Referee, field: str) -> None:
    """Where the host's name for the field is not known, the one it used is taken."""
    referee.push(Step(reasoning="named-thought", text="One.", field=field))
    session = store.session("talk", model="some-model", base_url=f"{referee.base_url('deepseek')}", api_key=KEY)
    session.use(endpoint="unknown", model="deepseek-v4-pro", base_url=referee.base_url("deepseek"), api_key=KEY)
    session.chat("Hello?")
    session.set("reasoning.includeInContext", value=True)
    assert "named-thought" == next_body(session)["messages"][1][field]


def test_server_side_state_sends_only_what_is_new(store: SessionStore, referee: Referee) -> None:
    """The provider keeps the conversation, the log keeps all of it, and switching it off goes on seamlessly."""
    session = talk(store, referee, OF["openai-responses"])
    session.set("session.serverState", value=True)
    one_turn(session, referee)
    session.chat("And now?")
    assert (1, True) == (len(body(referee)["input"]), body(referee)["previous_response_id"].startswith("resp_"))
    session.set("session.serverState", value=False)
    assert "completed" == session.chat("And then?").state
    assert ("previous_response_id" in body(referee), {200}) == (False, set(statuses(referee)))
    assert 5 <= len(body(referee)["input"])


def test_clearing_on_the_server_is_passed_on_and_its_effect_reported(store: SessionStore, referee: Referee) -> None:
    """Anthropic's editing of the context is asked for natively; the log keeps what the server did not look at."""
    session = at(store, referee, "anthropic", "claude-sonnet-4-5", headers={"anthropic-beta": BETA})
    session.set("reasoning.effort", "high")
    edits = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": KEEP_ONE}]}}
    session.chat("Weather in Oslo?", tools=[weather], params=edits)
    reply = session.chat("And in Rome?", tools=[weather], params=edits)
    assert edits["context_management"] == body(referee)["context_management"]
    assert BETA in referee.requests[-1].headers["anthropic-beta"]
    assert reply.plan is not None
    assert [True] == ["thinking turns" in edit for edit in reply.plan.report.edits]
    assert {200} == set(statuses(referee))


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock"])
def test_no_cache_mark_ever_stands_on_reasoning(store: SessionStore, referee: Referee, dialect: str) -> None:
    """Marks are the caller's to place, and the blocks of reasoning are sent as they came."""
    session = talk(store, referee, OF[dialect])
    answer(session, ask_and_call(session, referee))
    sent = json.dumps(body(referee)["messages"])
    assert ("cache_control" in sent, "cachePoint" in sent) == (False, False)


def test_the_reason_for_every_drop_is_told(store: SessionStore, referee: Referee) -> None:
    """Each piece of stored reasoning has a decision, with rule and reason, before and after the request."""
    session = talk(store, referee, OF["openai-responses"])
    one_turn(session, referee)
    session.set("reasoning.stripFromContext", "all")
    before = session.why(next=True)
    assert {"drop"} == {decision.action for decision in before if decision.what != "phase"}
    assert all(decision.reason and decision.rule for decision in before)
    session.chat("And?")
    assert before == session.why()


@every_dialect
def test_only_the_last_n_responses_keep_their_reasoning(store: SessionStore, referee: Referee, place: Place) -> None:
    """``keepLast`` counts finished responses with reasoning; the newest stay."""
    session = talk(store, referee, place)
    for number in range(4):
        one_turn(session, referee, f"thought-{number}")
    session.set("reasoning.keepLast", 2)
    kept = 4 if session.target.rule.later == "must" else 2
    assert kept == len(returned(place, next_body(session)))
    session.set("reasoning.stripFromContext", "all")
    assert kept == len(returned(place, next_body(session)))


@every_dialect
def test_the_turn_under_way_is_never_stripped(store: SessionStore, referee: Referee, place: Place) -> None:
    """Strip policies are about finished turns: inside a tool loop the reasoning goes back."""
    session = talk(store, referee, place)
    session.set("reasoning.stripFromContext", "all")
    session.set("reasoning.includeInContext", value=True)
    assert "completed" == answer(session, ask_and_call(session, referee)).state
    assert 1 == len(returned(place, body(referee)))


def test_deltas_of_reasoning_are_shown_and_not_stored(store: SessionStore, referee: Referee) -> None:
    """They are values of another kind, which no commit can hold."""
    referee.push(Step(reasoning="a b c", text="d"))
    session = talk(store, referee, OF["anthropic"])
    shown = [delta for delta in session.stream("Hello?") if isinstance(delta, ReasoningDelta)]
    assert ["a", " b", " c"] == [delta.text for delta in shown]
    assert 1 == sum(isinstance(commit.value, ThinkingBlock) for commit in session.log())
