"""The tools that a person names: which there are, and how a turn uses them."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from pathlib import Path

import pytest

import thinkback
from tests.drive.workspace.test_shell import ended
from tests.session.chats import kinds, open_session, refusals, run
from thinkback.drive.tools import PythonTool
from thinkback.errors import SettingError
from thinkback.model.blocks import ToolResult
from thinkback.session.agents.toolbox import toolbox
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.settings.apps import Server
from thinkback_referee import Call, Referee, Step

SERVER = str(Path(__file__).parents[2] / "drive" / "mcp_server.py")

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


def test_one_name_is_no_list_of_names(store: SessionStore) -> None:
    """It would be taken letter by letter."""
    with pytest.raises(TypeError, match=r"like \['read'\]"), toolbox(store.session("chat"), "read"):
        pass


def test_tools_of_a_server_are_named_by_it(
    store: SessionStore, referee: Referee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the person's file or given; variables are taken from the environment where the table names them."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("A_TOKEN", "hidden")
    (tmp_path / "mcp.toml").write_text(
        f"""
        [mine]
        command = '{sys.executable}'
        args = ['{SERVER}']
        env = {{ ANOTHER_NAME = "${{A_TOKEN}}" }}
        """
    )
    referee.push(Step(tool_calls=[Call("mcp__mine__environment")]), Step(text="done"))
    chat = open_session(store, referee)
    given = {"theirs": Server(command=sys.executable, args=(SERVER,))}
    with toolbox(chat, ["mcp:mine", "read", "mcp:theirs"], workspace=tmp_path, servers=given) as tools:
        assert {"read", "mcp__mine__add", "mcp__theirs__add"} <= {tool.tool.name for tool in tools}
        assert "done" == chat.chat("Go", tools=tools).text
    [names] = results(chat)
    assert "ANOTHER_NAME" in names.split()
    assert "A_TOKEN" not in names.split()


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (None, "there is no MCP server 'mine'"),
        ({}, "needs either a command or a url"),
        ({"command": "x", "url": "y"}, "needs either a command or a url"),
        ({"command": 7}, "Expected `str`, got `int`"),
        ({"command": "x", "env": {"A": "${NOT_SET_AT_ALL}"}}, "wants the variable NOT_SET_AT_ALL"),
    ],
)
def test_a_server_that_is_not_said_right_is_refused(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: dict[str, object] | None, why: str
) -> None:
    """Before anything is started."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    chat, given = store.session("chat"), {} if server is None else {"mine": server}
    with pytest.raises(SettingError, match=why), toolbox(chat, ["mcp:mine"], servers=given):
        pass


def test_an_app_names_servers_of_the_person(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``mcp.toml`` serves every app; a name that is nearly one of its is recognised."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "sums.toml").write_text('tools = ["mcp:mine", "mcp:mien"]\n')
    (tmp_path / "mcp.toml").write_text(f"[mine]\ncommand = '{sys.executable}'\nargs = ['{SERVER}']\n")
    app = store.session("chat", app="sums").app
    assert app is not None
    with toolbox(store.session("chat"), app.tools[:1], workspace=tmp_path) as tools:
        assert "mcp__mine__add" in {tool.tool.name for tool in tools}
    with pytest.raises(SettingError, match="did you mean mcp:mine"), toolbox(store.session("chat"), app.tools):
        pass


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_command_ends_with_its_turn(store: SessionStore, referee: Referee, tmp_path: Path, way: str) -> None:
    """Ctrl-C, or a cancelled task; the next turn is valid."""
    command = "echo $$ > pid.tmp; mv pid.tmp pid; sleep 300 & wait"
    referee.push(Step(tool_calls=[Call("shell", {"command": command})]), Step(text="again"))
    chat = open_session(store, referee)
    with toolbox(chat, ["shell"], workspace=tmp_path) as tools:
        if way == "sync":
            waiting = threading.Thread(target=interrupt_with, args=(tmp_path / "pid",))
            waiting.start()
            with pytest.raises(KeyboardInterrupt):
                chat.chat("Go", tools=tools)
            waiting.join(10)
        else:
            run(cancelled(chat, tools, tmp_path / "pid"))
        assert ended(int((tmp_path / "pid").read_text()))
        assert "interrupted" == kinds(chat)[-1]
        assert "again" == chat.chat("And now?", tools=tools).text
    assert [] == refusals(referee)


def interrupt_with(file: Path) -> None:
    while not file.exists():
        threading.Event().wait(0.01)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


async def cancelled(chat: Session, tools: list[PythonTool], file: Path) -> None:
    asking = asyncio.create_task(chat.aio.chat("Go", tools=tools))
    while not file.exists():
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize("end", ["", "-journal", "-wal", "-shm"])
@pytest.mark.parametrize("opened", ["chats.db", "link.db"])
def test_the_log_is_closed_to_its_own_tools(referee: Referee, tmp_path: Path, opened: str, end: str) -> None:
    """A model that writes over the log, or puts a journal beside it, would take the conversation away."""
    (tmp_path / "link.db").symlink_to("chats.db")
    referee.push(Step(tool_calls=[Call("write", {"path": f"chats.db{end}", "content": "x"})]), Step(text="done"))
    with thinkback.open(tmp_path / opened) as store:
        chat = open_session(store, referee)
        with toolbox(chat, ["write"], workspace=tmp_path) as tools:
            chat.chat("Go", tools=tools)
        assert [f"chats.db{end} belongs to thinkback itself: tools do not touch it"] == results(chat)


def test_commands_get_the_variables_that_the_setting_names(
    store: SessionStore, referee: Referee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No others: not those that an endpoint reads its key from, and not those whose names say nothing."""
    for name in ("OURS", "ALSO_OURS", "SLACK_WEBHOOK", "DEEPSEEK_API_KEY"):
        monkeypatch.setenv(name, f"value of {name}")
    referee.push(Step(tool_calls=[Call("shell", {"command": "env"})]), Step(text="done"))
    chat = open_session(store, referee)
    chat.set("shell.environment", "OURS, ALSO_OURS")
    with toolbox(chat, ["shell"], workspace=tmp_path) as tools:
        chat.chat("Go", tools=tools)
    assert ["ALSO_OURS", "OURS"] == sorted(
        line.partition("=")[0] for line in results(chat)[0].splitlines() if "=value of " in line
    )
