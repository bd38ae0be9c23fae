"""Tools of MCP servers: real servers, in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from thinkback.drive import mcp as module
from thinkback.drive.hooks import NO_HOOKS
from thinkback.drive.mcp import McpServers
from thinkback.drive.stopping import NEVER, Stop
from thinkback.drive.tools import offered, run_tool
from thinkback.errors import MissingPackageError, ToolServerError
from thinkback.model.blocks import ToolCall
from thinkback.settings.apps import Server

SERVER = str(Path(__file__).with_name("mcp_server.py"))
HOSTILE = str(Path(__file__).with_name("hostile_server.py"))
LOCAL = Server(command=sys.executable, args=(SERVER,))


@pytest.fixture(scope="module")
def servers() -> Iterator[McpServers]:
    """A server on its streams."""
    with McpServers({"test": LOCAL}, 1000) as opened:
        yield opened


def told(servers: McpServers, name: str, arguments: str = "{}", stop: Stop = NEVER) -> tuple[str, bool]:
    """What the model is told of one call."""
    _, tools = offered(servers.tools)
    return run_tool(tools, ToolCall("c1", name, arguments), NO_HOOKS, stop)[:2]


def test_tools_come_with_their_schemas_and_effects(servers: McpServers) -> None:
    """Names carry the server's; a tool that only reads says so."""
    tools = {tool.tool.name: tool for tool in servers.tools}
    add = tools["mcp__test__add"]
    assert ("Add two numbers.", "reads") == (add.tool.description, add.effect)
    assert '"required":["a","b"]' in add.tool.parameters
    assert "runs" == tools["mcp__test__echo"].effect
    assert ["mcp__test__odd_name_with_spaces"] == [name for name in tools if "odd" in name]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("mcp__test__add", '{"a":2,"b":3}', ("5", False)),
        ("mcp__test__echo", '{"text":"grün"}', ("grün", False)),
        ("mcp__test__odd_name_with_spaces", "", ("odd", False)),
        ("mcp__test__picture", "{}", ("[image: image/png, 10 bytes, not shown]", False)),
        ("mcp__test__echo", "[]", ("The arguments do not fit the tool: they must be an object", True)),
    ],
)
def test_a_call_is_answered(servers: McpServers, name: str, arguments: str, expected: tuple[str, bool]) -> None:
    """Text as it is, pictures as a note."""
    assert expected == told(servers, name, arguments)


@pytest.mark.parametrize(("name", "why"), [("mcp__test__fail", "Error executing tool fail"), ("mcp__test__add", "a")])
def test_a_call_that_fails_is_told(servers: McpServers, name: str, why: str) -> None:
    """Whether the tool or the server refuses it."""
    text, is_error = told(servers, name)
    assert is_error
    assert why in text


def test_what_a_server_says_is_bounded(servers: McpServers) -> None:
    """As every tool's output is."""
    text, _ = told(servers, "mcp__test__echo", '{"text":"' + "x" * 100_000 + '"}')
    assert len(text) < 4 * 1000 + 100
    assert "characters left out" in text


def test_calls_run_at_the_same_time(servers: McpServers) -> None:
    """From any number of threads."""
    found: list[str] = []
    threads = [
        threading.Thread(
            target=lambda number=number: found.append(told(servers, "mcp__test__add", f'{{"a":{number},"b":0}}')[0])
        )
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(map(str, range(8))) == sorted(found)


def test_a_server_gets_no_variable_that_is_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What its table names, and what the package deems safe; it runs where it is told to."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-hidden")
    server = Server(command=sys.executable, args=(SERVER,), env={"OURS": "1"})
    with McpServers({"test": server}, 1000, str(tmp_path)) as servers:
        names = told(servers, "mcp__test__environment")[0].split()
        assert str(tmp_path.resolve()) == told(servers, "mcp__test__place")[0].split()[1]
    assert {"OURS", "PATH"} <= set(names)
    assert "DEEPSEEK_API_KEY" not in names


def test_a_server_that_dies_is_told_and_started_again() -> None:
    """With its last words; the next call finds a new one."""
    with McpServers({"test": LOCAL}, 1000) as servers:
        first = told(servers, "mcp__test__place")[0]
        text, is_error = told(servers, "mcp__test__die")
        assert is_error
        assert text.startswith("the MCP server test has gone away: ")
        assert text.endswith("last words\nThe next call starts it again.")
        second, is_error = told(servers, "mcp__test__place")
        assert not is_error
        assert first.split()[0] != second.split()[0]


def resting(notes: Path, timeout: int) -> Server:
    return Server(command=sys.executable, args=(SERVER,), env={"NOTES": str(notes)}, timeout=timeout)


def test_a_call_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """The server is told, and goes on."""
    notes = tmp_path / "notes"
    with McpServers({"test": resting(notes, 1)}, 1000) as servers:
        text, is_error = told(servers, "mcp__test__rest")
        assert ("5", False) == told(servers, "mcp__test__add", '{"a":2,"b":3}')
    assert (True, True) == (is_error, text.startswith("the MCP server test did not answer within 1 seconds"))
    assert "begun\ncancelled\n" == notes.read_text()


def test_a_call_ends_with_its_turn(tmp_path: Path) -> None:
    """The server is told, and goes on."""
    notes, stop = tmp_path / "notes", Stop()
    found: list[tuple[str, bool]] = []
    with McpServers({"test": resting(notes, 60)}, 1000) as servers:
        thread = threading.Thread(target=lambda: found.append(told(servers, "mcp__test__rest", "{}", stop)))
        thread.start()
        while not notes.exists():
            threading.Event().wait(0.01)
        stop.set()
        thread.join(10)
        assert ("5", False) == told(servers, "mcp__test__add", '{"a":2,"b":3}')
    assert [("the turn was interrupted", True)] == found
    assert "begun\ncancelled\n" == notes.read_text()


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (Server(command="/no/such/program"), "No such file"),
        (Server(command=sys.executable, args=(SERVER, "broken")), "no such module"),
        (Server(command=sys.executable, args=(SERVER, "silent")), "no answer within 1 seconds"),
        (Server(url="http://127.0.0.1:9/mcp"), ""),
    ],
    ids=["no program", "ends", "silent", "no address"],
)
def test_a_server_that_cannot_be_used_is_named(server: Server, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason; the others are ended."""
    monkeypatch.setattr(module, "CONNECT_SECONDS", 1 if "silent" in server.args else 30)
    with pytest.raises(ToolServerError, match="the MCP server bad ") as caught, McpServers({"bad": server}, 1000):
        pass
    assert why in caught.value.message
    assert {"server": "bad"} == caught.value.details


def test_a_closed_server_is_told() -> None:
    """A tool that is kept too long."""
    with McpServers({"test": LOCAL}, 1000) as servers:
        pid = int(told(servers, "mcp__test__place")[0].split()[0])
    assert ("the tool's server was closed", True) == told(servers, "mcp__test__place")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what installs it."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingPackageError, match=r"'\.\[mcp\]'"), McpServers({"test": LOCAL}, 1000):
        pass


@pytest.fixture
def address() -> Iterator[str]:
    """The URL of a server that speaks HTTP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([sys.executable, SERVER, str(port)], stderr=subprocess.DEVNULL) as process:
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            threading.Event().wait(0.02)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


def test_a_server_may_speak_http(address: str) -> None:
    """Calls, failures, and its end."""
    with McpServers({"far": Server(url=address, headers={"x-who": "me"})}, 1000) as servers:
        assert ("5", False) == told(servers, "mcp__far__add", '{"a":2,"b":3}')
        assert told(servers, "mcp__far__fail")[1]
        text, is_error = told(servers, "mcp__far__die")
        assert is_error
        assert "far" in text


def test_servers_work_in_an_event_loop(servers: McpServers) -> None:
    """The async driver calls them from a thread."""

    async def call() -> tuple[str, bool]:
        return await asyncio.to_thread(told, servers, "mcp__test__add", '{"a":1,"b":1}')

    assert ("2", False) == asyncio.run(call())


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("large", "describes its arguments in 5,000,"),
        ("many", "they are more than 500"),
        ("endless", "they are more than 500"),
    ],
)
def test_a_server_whose_tools_are_too_much_is_refused(how: str, why: str) -> None:
    """Every request would carry them, and nobody waits for ever."""
    hostile = Server(command=sys.executable, args=(HOSTILE, how))
    with pytest.raises(ToolServerError, match=why), McpServers({"test": hostile}, 1000):
        pass


def test_what_a_server_was_given_is_not_in_its_last_words() -> None:
    """They are told to the model, and stored."""
    says = "import os, sys; sys.exit('wrong: ' + os.environ['T'].split()[1] + ' of ' + os.environ['U'])"
    given = {"T": "Bearer hidden-123456", "U": "hidden-789012"}
    with (
        pytest.raises(ToolServerError, match="wrong: <T> of <U>") as told_of,
        McpServers({"test": Server(command=sys.executable, args=("-c", says), env=given)}, 1000),
    ):
        pass
    assert "hidden" not in str(told_of.value)
