"""One host for each dialect, how to talk to it, and what a request body gives back of earlier reasoning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.conformance.moves import KEY, PLACES, TOOLS, Place
from thinkback.model.blocks import Block, ThinkingBlock, ToolCall
from thinkback.model.commits import Commit
from thinkback.session.reply import Reply
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step
from thinkback_referee.bedrock import API_KEY

every_dialect = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.dialect)
LOOK = Call("weather", {"city": "Oslo"})
OF = {place.dialect: place for place in PLACES}


def talk(store: SessionStore, referee: Referee, place: Place, name: str = "talk", **more: Any) -> Session:
    """A session with the host of ``place``, told to think hard where it can be told."""
    key = API_KEY if place.dialect == "bedrock" else KEY
    given = {"model": place.model, "api_key": key, **more}
    session = store.session(name, endpoint=place.endpoint, base_url=referee.base_url(place.host), **given)
    if place.takes_effort:
        session.set("reasoning.effort", "high")
    return session


def at(store: SessionStore, referee: Referee, endpoint: str, model: str, host: str = "", **more: Any) -> Session:
    """A session with any endpoint that the referee plays, under ``host`` where that is another name; no setting."""
    given = {"api_key": KEY, "name": "talk", **more}
    return store.session(
        given.pop("name"), endpoint=endpoint, model=model, base_url=referee.base_url(host or endpoint), **given
    )


def ask_and_call(session: Session, referee: Referee, thought: str = "I-must-look.", **step: Any) -> Reply:
    """A question that the model answers by thinking and calling; the call waits for its result."""
    referee.push(Step(reasoning=thought, **{"tool_calls": [LOOK], **step}))
    return session.chat("How is the weather?", tools=TOOLS)


def readable(place: Place, thought: str) -> str:
    """What of a thought can be read where tools are offered: the Interactions API is asked for no summaries there."""
    return "" if place.dialect == "gemini-interactions" else thought


def answer(session: Session, reply: Reply) -> Reply:
    """Go on with a result for each call of ``reply``."""
    return session.generate({call.id: "sunny" for call in reply.tool_calls})


def blocks(session: Session) -> list[Block]:
    """Every block that a response brought, in order of the log."""
    return [commit.value for commit in of_response(session)]  # type: ignore[misc]


def of_response(session: Session) -> list[Commit]:
    """The commits of blocks."""
    return [commit for commit in session.log() if commit.index >= 0]


def thoughts(session: Session) -> list[ThinkingBlock]:
    """Every piece of reasoning in the log."""
    return [commit.value for commit in session.log() if isinstance(commit.value, ThinkingBlock)]


def calls(session: Session) -> list[ToolCall]:
    """Every call in the log."""
    return [commit.value for commit in session.log() if isinstance(commit.value, ToolCall)]


def statuses(referee: Referee) -> list[int]:
    """What the referee answered."""
    return [exchange.status for exchange in referee.requests]


def body(referee: Referee) -> dict[str, Any]:
    """The body of the last request."""
    return dict(referee.requests[-1].body)


def next_body(session: Session) -> dict[str, Any]:
    """The body of the next request, which is not sent."""
    import json

    found: dict[str, Any] = json.loads(bytes(session.explain(next=True)))
    return found


def returned(place: Place, sent: Mapping[str, Any]) -> list[Any]:
    """What a request body gives back of earlier reasoning, in the words of the dialect; placeholders are none."""
    return list(_RETURNED[place.dialect](sent))


def _field(name: str) -> Callable[[Mapping[str, Any]], Iterator[Any]]:
    def found(sent: Mapping[str, Any]) -> Iterator[Any]:
        yield from (message[name] for message in sent["messages"] if str(message.get(name, "")).strip())

    return found


def _parts(kinds: set[str], key: str = "type") -> Callable[[Mapping[str, Any]], Iterator[Any]]:
    def found(sent: Mapping[str, Any]) -> Iterator[Any]:
        for message in sent["messages"]:
            parts = message.get("content")
            yield from (part for part in parts or () if isinstance(part, dict) and part.get(key) in kinds)

    return found


def _items(kind: str) -> Callable[[Mapping[str, Any]], Iterator[Any]]:
    def found(sent: Mapping[str, Any]) -> Iterator[Any]:
        yield from (item for item in sent["input"] if item.get("type") == kind)

    return found


def _signed(sent: Mapping[str, Any]) -> Iterator[Any]:
    for content in sent["contents"]:
        yield from (part for part in content["parts"] if part.get("thought") or "thoughtSignature" in part)


def _converse(sent: Mapping[str, Any]) -> Iterator[Any]:
    for message in sent["messages"]:
        yield from (part for part in message["content"] if "reasoningContent" in part)


_RETURNED: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Any]]] = {
    "openai-chat": _field("reasoning_content"),
    "openai-responses": _items("reasoning"),
    "anthropic": _parts({"thinking", "redacted_thinking"}),
    "gemini": _signed,
    "gemini-interactions": _items("thought"),
    "bedrock": _converse,
    "mistral": _parts({"thinking"}),
    "ollama": _field("thinking"),
    "cohere": _parts({"thinking"}),
}
