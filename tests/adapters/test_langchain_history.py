"""Message histories of LangChain in the log: what is added comes back, and nothing that is cleared is lost."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.adapters.hosts import need
from thinkback.errors import StoreError, ThinkbackError

need("langchain")

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage  # noqa: E402

from thinkback.adapters.langchain import ChatMessageHistory  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SIGNATURE = "EooCCkbVyq1GwxqCiiK6Xp8i9125lIplX16CbkhFeEHX4HohdJTPvRgYhBjd3BB8mCwx"
CALL = {"name": "weather", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}
MESSAGES = [
    SystemMessage("Be terse."),
    HumanMessage(
        [{"type": "text", "text": "Which?"}, {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}]
    ),
    AIMessage(
        [
            {"type": "thinking", "thinking": "I look it up.", "signature": SIGNATURE},
            {"type": "text", "text": "One moment."},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
        ],
        tool_calls=[CALL],
        id="a1",
        response_metadata={"model_provider": "anthropic", "model_name": "claude-opus-5-5"},
    ),
    ToolMessage("rain", tool_call_id="c1", name="weather", status="error"),
    AIMessage(
        [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA-opaque-0123456789abcdef"},
            {"type": "text", "text": "Rain.", "annotations": []},
        ],
        id="a2",
        response_metadata={"model_provider": "openai", "model_name": "gpt-5.6"},
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    ),
]


def test_messages_come_back_as_they_were_added(log: Path) -> None:
    """With signatures, encrypted items and calls; opaque values stand once, and search finds the thoughts."""
    history = ChatMessageHistory("ada", log)
    history.add_messages(MESSAGES[:2])
    asyncio.run(history.aadd_messages(MESSAGES[2:]))

    assert MESSAGES == history.messages == asyncio.run(ChatMessageHistory("ada", log).aget_messages())
    history.close()
    with pytest.raises(StoreError, match="closed"):
        _ = history.messages
    with thinkback.open(log) as store:
        commits = store.commits("ada")
        assert ["I look it up."] == [
            getattr(hit.commit.value, "thought", "") for hit in store.find_reasoning("look it up")
        ]
        assert 1 == sum(commit.payload.count(SIGNATURE.encode()) for commit in commits)
        kinds = [commit.kind for commit in commits if commit.kind != "annotation"]
    assert ["system", "user", "response", "reasoning", "assistant", "tool_call", "tool_result"] == kinds[:7]


def test_what_has_an_id_is_stored_once(log: Path) -> None:
    """Whoever adds it again; what has none is added as often as it is said."""
    history = ChatMessageHistory("ada", log)
    for _ in range(2):
        history.add_messages([HumanMessage("Hi"), AIMessage("Ho.", id="a")])

    assert ["Hi", "Ho.", "Hi"] == [message.text for message in history.messages]


def test_what_is_cleared_stays_on_a_branch(log: Path) -> None:
    """The history begins anew; clearing an empty one changes nothing."""
    history = ChatMessageHistory("ada", log)
    history.clear()
    history.add_messages(MESSAGES)
    asyncio.run(history.aclear())
    history.add_user_message("Again")

    assert ["Again"] == [message.text for message in history.messages]
    with thinkback.open(log) as store:
        info = store.find("ada")
        kept = next(branch for branch in store.log.refs.list(info.id) if branch.name != info.branch)
        assert any(b"Rain." in commit.payload for commit in store.log.read(info.id, branch=kept.name))


def test_a_conversation_of_thinkback_goes_on_here(log: Path) -> None:
    """Its texts, calls and readable thoughts are messages; what was added here is in the next request there."""
    with thinkback.open(log, rules={}, settings={}) as store:
        session = store.session("ada", endpoint="deepseek", model="deepseek-v4-pro", api_key="k")
        session.wire.adopt(
            [
                {"role": "user", "content": "2+2?"},
                {"role": "assistant", "content": "4", "reasoning_content": "Basic."},
            ]
        )
        history = ChatMessageHistory("ada", store)
        first, answer = history.messages
        assert ("2+2?", "4") == (first.text, answer.text)
        assert ["reasoning", "text"] == [block["type"] for block in answer.content_blocks]
        history.add_messages([HumanMessage("And 3+3?"), AIMessage("6")])
        plan: Any = session.wire.plan("So?")
        assert [b"2+2?", b"And 3+3?", b"So?"] == [
            word for word in (b"2+2?", b"And 3+3?", b"So?") if word in bytes(plan)
        ]


def test_several_add_at_once_and_none_is_lost(log: Path) -> None:
    """From threads, each with an object of its own."""
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: ChatMessageHistory("ada", log).add_messages([HumanMessage(str(n))]), range(12)))

    assert sorted(map(str, range(12))) == sorted(message.text for message in ChatMessageHistory("ada", log).messages)


def test_wrong_use_is_said(log: Path) -> None:
    """Before anything is stored."""
    with pytest.raises(TypeError, match="dict is no message of LangChain"):
        ChatMessageHistory("ada", log).add_messages([{"role": "user", "content": "Hi"}])
    with pytest.raises(ThinkbackError, match="has no id"):
        ChatMessageHistory("", log)
    assert [] == ChatMessageHistory("ada", log).messages
    with thinkback.open(log) as store:
        session = store.session("ada", endpoint="deepseek", model="deepseek-v4-pro", api_key="k")
        session.conversation.take()
        with pytest.raises(ThinkbackError, match="has a turn under way"):
            ChatMessageHistory("ada", store).add_messages([HumanMessage("Hi")])
