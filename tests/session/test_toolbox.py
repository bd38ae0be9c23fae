"""The tools that a person names: which there are, and how a turn uses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.session.chats import open_session
from thinkback.errors import SettingError
from thinkback.model.blocks import ToolResult
from thinkback.referee import Call, Referee, Step
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.session.toolbox import toolbox

EFFECTS = {"read": "reads", "list": "reads", "search": "reads", "write": "writes", "edit": "writes", "shell": "runs"}


def results(session: Session) -> list[str]:
    """The results of the session's calls."""
    values = [commit.value for commit in session.log(kinds=["tool_result"])]
    return [value.content for value in values if isinstance(value, ToolResult)]


def test_the_tools_that_are_named_are_there(store: SessionStore, tmp_path: Path) -> None:
    """In their order, each once, with what it does."""
    names = ["shell", "read", "edit", "read", "list", "search", "write"]
    with toolbox(store.session("chat"), names, workspace=tmp_path) as tools:
        found = [(tool.tool.name, tool.effect) for tool in tools]
    assert [(name, EFFECTS[name]) for name in dict.fromkeys(names)] == found


@pytest.mark.parametrize(("name", "hint"), [("shel", "did you mean shell?"), ("zebra", "tools are read, list, search")])
def test_a_tool_that_does_not_exist_is_refused(store: SessionStore, name: str, hint: str) -> None:
    """With those that do."""
    chat = store.session("chat")
    with pytest.raises(SettingError, match=f"there is no tool '{name}'") as caught, toolbox(chat, [name]):
        pass
    assert hint in str(caught.value)


def test_a_turn_works_on_files(store: SessionStore, referee: Referee, tmp_path: Path) -> None:
    """Each call's result, and each failure, goes back to the model."""
    referee.push(
        Step(tool_calls=[Call("write", {"path": "a.txt", "content": "x = 1\n"})]),
        Step(tool_calls=[Call("edit", {"path": "a.txt", "old_string": "y", "new_string": "z"})]),
        Step(tool_calls=[Call("edit", {"path": "a.txt", "old_string": "1", "new_string": "2"})]),
        Step(tool_calls=[Call("shell", {"command": "cat a.txt"})]),
        Step(text="done"),
    )
    chat = open_session(store, referee)
    with toolbox(chat, ["read", "write", "edit", "shell"], workspace=tmp_path) as tools:
        assert "done" == chat.chat("Go", tools=tools).text
    absent = "old_string does not stand in a.txt\nRead the file again and give the text exactly as it is there, "
    expected = [
        "Created a.txt: 1 lines, 6 bytes.",
        f"{absent}without line numbers.",
        "Changed a.txt at line 1.",
        "x = 2",
    ]
    assert expected == results(chat)
