"""Conversations moved from one dialect to another and back, each end judged by the referee."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from thinkback.errors import ThinkbackError
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Response
from thinkback.model.deltas import ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee


class Place(NamedTuple):
    """One end of a move: ``host`` is the referee's name for it."""

    dialect: str
    endpoint: str
    host: str
    model: str
    takes_effort: bool = True


PLACES = (
    Place("openai-chat", "deepseek", "deepseek", "deepseek-v4-pro"),
    Place("openai-responses", "openai", "openai", "gpt-5.4"),
    Place("anthropic", "anthropic", "anthropic", "claude-opus-5-5"),
    Place("gemini", "gemini", "gemini", "gemini-3-pro"),
    Place("gemini-interactions", "gemini-interactions", "gemini-interactions", "gemini-3-pro"),
    Place("bedrock", "bedrock", "bedrock", "us.anthropic.claude-sonnet-4-5-v1:0"),
    Place("mistral", "mistral", "mistral", "magistral-medium-latest", False),
    Place("ollama", "ollama-native", "ollama", "gpt-oss:20b"),
    Place("cohere", "cohere", "cohere", "command-a-reasoning-08-2025", False),
)
SITUATIONS = ("finished turn", "open tool loop", "parallel calls", "interrupted turn")
KEY = "sk-conformance-0123456789"

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": about,
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
    for name, about in (("weather", "The weather of a city"), ("clock", "The time in a city"))
]
_PROMPTS = {
    "finished turn": "What is the weather in Oslo?",
    "open tool loop": "What is the weather in Oslo?",
    "parallel calls": "What are both the weather and the time in Oslo?",
    "interrupted turn": "What is the weather in Oslo?",
}


class Move(NamedTuple):
    """What came of a move: ``fault`` is empty where all went well; ``carried`` counts what came back unharmed."""

    source: Place
    goal: Place
    situation: str
    fault: str
    carried: int


def all_moves(referee: Referee, store: SessionStore, places: tuple[Place, ...] = PLACES) -> Iterator[Move]:
    """Every ordered pair in every situation."""
    for source in places:
        for goal in places:
            if source != goal:
                for situation in SITUATIONS:
                    yield move(referee, store, source, goal, situation)


def move(referee: Referee, store: SessionStore, source: Place, goal: Place, situation: str) -> Move:
    """One conversation: begun at ``source``, gone on at ``goal``, and back."""
    referee.reset()  # what others said before must not be taken for this conversation's
    name = f"{source.dialect} to {goal.dialect}, {situation}"
    session = store.session(name, **options(referee, source))
    session.set("reasoning.effort", "high")
    try:
        _begin(session, situation)
        own = _opaque(session, source)
        stayed = _told(session, source)
        session.use(**options(referee, goal))
        _go_on(session, situation)
        leaked = _leaks(referee, session, source, goal)
        session.use(**options(referee, source))
        session.chat("Thank you. What is the time in Bergen?", tools=TOOLS)
        answered(session)
    except ThinkbackError as error:
        return Move(source, goal, situation, f"{type(error).__name__}: {error.message}", 0)
    if leaked:
        return Move(source, goal, situation, f"leaked: {leaked}", 0)
    sent = referee.requests[-1].raw.decode()
    back = [value for value in own if json.dumps(value)[1:-1] in sent]
    kept = _told(session, source)
    if len(back) < len(own) and stayed == kept:
        return Move(source, goal, situation, f"{len(own) - len(back)} carriers did not come back", len(back))
    return Move(source, goal, situation, "", len(back))


def options(referee: Referee, place: Place) -> dict[str, Any]:
    return {
        "endpoint": place.endpoint,
        "model": place.model,
        "base_url": referee.base_url(place.host),
        "api_key": KEY,
    }


def _begin(session: Session, situation: str) -> None:
    prompt = _PROMPTS[situation]
    if situation == "interrupted turn":
        stream = session.stream(prompt, tools=TOOLS)
        for delta in stream:
            if isinstance(delta, ReasoningDelta | TextDelta | ToolCallDelta):
                break
        stream.close()
        return
    session.chat(prompt, tools=TOOLS)
    if situation == "finished turn":
        answered(session)


def _go_on(session: Session, situation: str) -> None:
    if situation in ("open tool loop", "parallel calls"):
        answered(session)
    session.chat("And what is the weather in Rome?", tools=TOOLS)
    answered(session)


def answered(session: Session) -> None:
    """Give results until the model has none to wait for."""
    for _ in range(4):
        waiting = _waiting(session)
        if not waiting:
            return
        session.generate(tool_results={call.id: f"result of {call.name}" for call in waiting}, tools=TOOLS)


def _waiting(session: Session) -> list[ToolCall]:
    from thinkback.session import requests

    return [found.call for found in requests.open_calls(session.log())]


def _opaque(session: Session, place: Place) -> list[str]:
    """The opaque values that the source minted and that its next request carries."""
    target = session.explain(next=True)
    sent = bytes(target).decode()
    values = [
        carrier.value
        for commit in session.log()
        for carrier in (*getattr(commit.value, "carriers", ()), *_signature(commit.value))
        if carrier.kind not in ("item_id", "phase")
    ]
    return [value for value in values if json.dumps(value)[1:-1] in sent]


def _signature(value: object) -> tuple[Any, ...]:
    from thinkback.model.blocks import Carrier

    if isinstance(value, ThinkingBlock) and value.signature:
        return (Carrier("signature", value.signature),)
    return ()


def _told(session: Session, place: Place) -> list[str]:
    """The actions on the source's own blocks, as its next request would take them."""
    mine = {
        commit.response
        for commit in session.log()
        if isinstance(commit.value, Response) and commit.value.origin.dialect == place.dialect
    }
    blocks = {commit.hash for commit in session.log() if commit.response in mine}
    return [decision.action for decision in session.why(next=True) if decision.block in blocks]


def _leaks(referee: Referee, session: Session, source: Place, goal: Place) -> str:
    """What of the source's reasoning stands in what the goal was sent, or in what it answered."""
    thoughts = [
        commit.value.thought
        for commit in session.log()
        if isinstance(commit.value, ThinkingBlock) and len(commit.value.thought) > 20
    ]
    mine = {
        commit.response: commit.value.origin.dialect for commit in session.log() if isinstance(commit.value, Response)
    }
    foreign = [
        commit.value.thought
        for commit in session.log()
        if isinstance(commit.value, ThinkingBlock) and mine.get(commit.response) == source.dialect
    ]
    body = referee.requests[-1].raw.decode()
    for thought in foreign:
        if len(thought) > 20 and json.dumps(thought)[1:-1] in body:
            return thought[:60]
    texts = [commit.value.text for commit in session.log() if isinstance(commit.value, Text)]
    return next((text[:60] for text in texts for thought in thoughts if thought in text), "")
