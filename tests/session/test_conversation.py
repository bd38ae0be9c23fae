"""The parts of a session work on its conversation: none of them needs the face that programs see."""

from __future__ import annotations

import ast
from pathlib import Path

import thinkback.session
from tests.session.chats import PERSONAS
from thinkback.model.commits import Draft, Message
from thinkback.session.agents.subagents import task_tool
from thinkback.session.conversation import Conversation
from thinkback.session.endpoint_config import EndpointConfig
from thinkback.session.history.branches import Branches
from thinkback.session.history.compacting import Compactor
from thinkback.session.profiles.profiles import saved
from thinkback.session.requests import Options
from thinkback.session.store import SessionStore
from thinkback.session.stream import ReplyStream, finished
from thinkback.session.usage import SessionUsage
from thinkback_referee import Referee

# What programs import by name and give a session to, and what these return.
FACE = {
    *(("retry_reasoning_only", name) for name in ("chat", "stream", "chat_async", "stream_async", "__init__")),
    *(("children", "spawn"), ("children", "collapse"), ("toolbox", "toolbox"), ("subagents", "names")),
    ("titling", "set_title"),
}


def test_a_conversation_is_enough(store: SessionStore, referee: Referee) -> None:
    """A turn, branches, a checkpoint's plan, usage, a profile and a tool of sub-agents, without a session."""
    place = EndpointConfig(PERSONAS["deepseek"], "deepseek", referee.base_url("deepseek"), api_key="sk")
    conversation = Conversation(store, store.log.create_session("id", "chat", 0), place)

    reply = finished(ReplyStream(conversation, Message("What is 2+2?"), Options()))
    Branches(conversation).branch("aside", switch=True)
    conversation.append([Draft("user", Message("Why?"))])

    assert "completed" == reply.state
    assert ("aside", ["aside", "main"]) == (
        Branches(conversation).current,
        [each.name for each in Branches(conversation).list()],
    )
    assert "deterministic" == Compactor(conversation).parse_request(None, 0, {}).wish.strategy
    assert [1, 1] == [len(SessionUsage(conversation).steps()), SessionUsage(conversation).total().steps]
    assert ("deepseek", PERSONAS["deepseek"]) == (saved(conversation).endpoint, saved(conversation).model)
    assert "task" == task_tool(conversation, 100).tool.name


def test_only_the_face_takes_a_session() -> None:
    """What is not called by programs takes the conversation, or the part of it that it uses."""
    found = set()
    for file in Path(*thinkback.session.__path__).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = (*node.args.args, *node.args.kwonlyargs)
                if "Session" in [ast.unparse(each.annotation) for each in given if each.annotation is not None]:
                    found.add((file.stem, node.name))
    assert FACE == found
