"""The tool by which a model keeps a note of its reasoning, and what providers make of the conversation then."""

from __future__ import annotations

from typing import Any

import pytest

from tests.log.build import texts
from tests.session.agents.test_toolbox import results
from tests.session.chats import KEY, get_weather, refusals, run
from thinkback.model.blocks import ThinkingBlock
from thinkback.session.agents.toolbox import toolbox
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step

HOSTS = {
    "deepseek": "deepseek-v4-pro",
    "anthropic": "claude-opus-5-5",
    "mistral": "magistral-medium-latest",
    "openai": "gpt-5.5",
    "gemini": "gemini-3.5-flash",
}
NOTE = Call("commit_reasoning", {"text": "I chose b."})


def opened(store: SessionStore, referee: Referee, host: str) -> Session:
    return store.session("chat", endpoint=host, base_url=referee.base_url(host), model=HOSTS[host], api_key=KEY)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_note_parts_no_call_from_its_result(store: SessionStore, referee: Referee, host: str, way: str) -> None:
    """Whatever is called beside it: the note is behind its own result, and every request is accepted."""
    weather = Call("get_weather", {"city": "Oslo"})
    referee.push(
        Step(reasoning="Let me note.", tool_calls=[weather, NOTE, Call("get_weather", {"city": "Moss"}), NOTE]),
        Step(reasoning="Once more.", tool_calls=[NOTE]),
        Step(reasoning="Enough.", text="done"),
        Step(reasoning="Again.", text="again"),
    )
    chat = opened(store, referee, host)
    with toolbox(chat, ["commit_reasoning"]) as tools:
        options: dict[str, Any] = {"tools": [*tools, get_weather]}
        reply = chat.chat("Go", **options) if way == "sync" else run(chat.aio.chat("Go", **options))
        assert "done" == reply.text
        assert "again" == chat.chat("And now?").text
    assert [] == refusals(referee)
    assert ["Kept."] * 3 == [result for result in results(chat) if result == "Kept."]
    notes = [commit for commit in chat.log(kinds=["reasoning"]) if not commit.response]
    assert ["I chose b."] * 3 == texts(notes)
    assert ["commit_reasoning"] * 3 == [
        commit.value.source_field for commit in notes if isinstance(commit.value, ThinkingBlock)
    ]
    line = chat.log()
    assert ["tool_result"] * 3 == [line[line.index(note) - 1].kind for note in notes]
    assert "I chose b." in str(chat.compile(include_reasoning=True).messages)
    decisions = {decision.block: decision.action for decision in chat.why()}
    assert ["drop"] * 3 == [decisions[note.hash] for note in notes]


@pytest.mark.parametrize("host", HOSTS)
def test_a_history_with_notes_is_a_history_like_any(store: SessionStore, referee: Referee, host: str) -> None:
    """It is forked, merged, marked and compacted, and every request is accepted."""
    chat = opened(store, referee, host)

    def ask(session: Session, question: str) -> None:
        calls = [Call("get_weather", {"city": "Oslo"}), NOTE, Call("get_weather", {"city": "Moss"}), NOTE]
        said = f"{question} {session.name}"
        referee.push(Step(reasoning=f"{said} one", tool_calls=calls), Step(reasoning=f"{said} two", text="done"))
        with toolbox(session, ["commit_reasoning"]) as tools:
            assert "done" == session.chat(question, tools=[*tools, get_weather]).text

    ask(chat, "q1")
    for number in range(4):
        ask(chat, f"question {number} " * 20)
    ask(chat.branches.fork("fork"), "forked")
    chat.branches.branch("side", switch=True)
    ask(chat, "side")
    chat.branches.switch("main")
    ask(chat, "main")
    chat.branches.merge("side")
    ask(chat, "merged")
    note = next(commit for commit in chat.log(kinds=["reasoning"]) if not commit.response)
    chat.annotate(note.hash, "pinned")
    ask(chat, "pinned")
    chat.compaction.run("deterministic", tail=1)
    ask(chat, "compacted")
    assert [] == refusals(referee)


def test_the_tool_is_there_only_where_it_is_named(store: SessionStore, referee: Referee) -> None:
    """A model that makes the name up is told so."""
    referee.push(Step(tool_calls=[NOTE]), Step(text="done"))
    chat = opened(store, referee, "deepseek")
    chat.chat("Go", tools=[get_weather])
    assert ["There is no tool named 'commit_reasoning'."] == results(chat)


def test_an_empty_note_is_told(store: SessionStore, referee: Referee) -> None:
    """Nothing is stored for it."""
    referee.push(Step(tool_calls=[Call("commit_reasoning", {"text": " "})]), Step(text="done"))
    chat = opened(store, referee, "deepseek")
    with toolbox(chat, ["commit_reasoning"]) as tools:
        chat.chat("Go", tools=tools)
    assert ["text is empty\nSay what is to be kept."] == results(chat)
    assert [] == [commit for commit in chat.log(kinds=["reasoning"]) if not commit.response]
