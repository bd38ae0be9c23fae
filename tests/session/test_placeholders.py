"""What a provider shows in place of reasoning: kept, never shown, and sent back where it has to be."""

from __future__ import annotations

import pytest

from tests.session.chats import KEY, statuses
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.deltas import ReasoningDelta
from thinkback.session.store import SessionStore
from thinkback_referee import Referee, Step

PLACES = {"xai": "grok-4.6", "deepseek": "deepseek-v4-pro"}


@pytest.mark.parametrize("host", PLACES)
@pytest.mark.parametrize("thought", ["", "I weigh it."])
def test_a_placeholder_is_neither_shown_nor_told(
    store: SessionStore, referee: Referee, host: str, thought: str
) -> None:
    """Live and in the reply there is only what was thought; the next request, with all of it, is accepted."""
    said = f"Thinking... Thinking... {thought}"
    referee.push(Step(reasoning=said, text="Hi"), Step(text="Bye"))
    session = store.session("chat", endpoint=host, model=PLACES[host], base_url=referee.base_url(host), api_key=KEY)
    session.set("reasoning.includeInContext", "true")
    session.set("reasoning.stripFromContext", "none")
    stream = session.stream("One?")
    live = "".join(delta.text for delta in stream if isinstance(delta, ReasoningDelta))
    (block,) = [commit.value for commit in session.log() if isinstance(commit.value, ThinkingBlock)]

    assert (thought, thought) == (live, stream.reply.reasoning or "")
    assert said.strip() == f"{block.opening}{block.thought}".strip()
    session.chat("Two?")
    assert [200, 200] == statuses(referee)
    assert (said.strip() in str(referee.requests[-1].body)) == (host == "xai" or thought != "")


def test_a_placeholder_between_tags_is_neither_shown_nor_told(store: SessionStore, referee: Referee) -> None:
    """At a host whose reasoning has a place of its own, and came in the text all the same."""
    referee.push(Step(text="<think>\nThinking... </think>Hi"))
    session = store.session(
        "chat", endpoint="mistral", model="magistral-medium-latest", base_url=referee.base_url("mistral"), api_key=KEY
    )
    session.set("reasoning.tags", "start")
    stream = session.stream("One?")

    assert [] == [delta.text for delta in stream if isinstance(delta, ReasoningDelta)]
    assert ("", "Hi") == (stream.reply.reasoning or "", stream.reply.text)
