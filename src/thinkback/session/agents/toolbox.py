"""The tools that a person names, for ``tools=``: those that come with thinkback, and those of MCP servers.

What a tool may do is said by the settings ``permissions.mode`` and ``permissions.rules``, not here.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from thinkback.drive.bounds import OUTPUT_TOKENS
from thinkback.drive.tools import PythonTool, failure_text, python_tool
from thinkback.drive.workspace.files import Buffers, Files
from thinkback.drive.workspace.paths import Workspace, resolve, workspace_at
from thinkback.drive.workspace.shell import Commands, environment
from thinkback.errors import SettingError, ToolFailed
from thinkback.session import config
from thinkback.session.agents.noting import COMMIT_REASONING, commit_reasoning
from thinkback.session.agents.subagents import TASK, task_tool
from thinkback.session.apps import app_of
from thinkback.settings.apps import BUILTIN_TOOLS, MCP, Server
from thinkback.turn.permissions import Effect

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation
    from thinkback.session.session import Session

_VARIABLE = re.compile(r"\$\{(\w+)\}")
Make = tuple[Callable[[Files, Commands], Callable[..., Any]], Effect]

# Tools of the workspace: where each is, and what it does.
_WORKSPACE: dict[str, Make] = {
    "read": (lambda files, _: files.read, "reads"),
    "list": (lambda files, _: files.list, "reads"),
    "search": (lambda _, commands: commands.search, "reads"),
    "write": (lambda files, _: files.write, "writes"),
    "edit": (lambda files, _: files.edit, "writes"),
    "shell": (lambda _, commands: commands.shell, "runs"),
}


@contextmanager
def toolbox(
    session: Session,
    names: Sequence[str],
    *,
    workspace: str | os.PathLike[str] = ".",
    servers: Mapping[str, Server | Mapping[str, Any]] | None = None,
    tokens: int = OUTPUT_TOKENS,
    buffers: Buffers | None = None,
) -> Iterator[list[PythonTool]]:
    """The tools ``names`` of a session, while in it; functions of one's own may be added to the list.

    ``workspace`` is the directory that files are confined to and commands start in; those that are open in ``buffers``
    are read and changed there. ``servers`` are the MCP servers that ``mcp:NAME`` means, beside those of the session's
    app and of the person's ``mcp.toml``. One call gives at most ``tokens`` (estimated). Raises ``SettingError`` for a
    name that does not exist, ``NotFoundError`` for a missing directory, ``MissingPackageError`` and ``ToolServerError``
    where a server cannot be used.
    """
    if isinstance(names, str):
        raise TypeError(f"names must be a list of tools, like [{names!r}]")
    wanted = list(dict.fromkeys(names))
    conversation = session.conversation
    app, settings = app_of(conversation.layers), conversation.current().settings()
    named = {**(app.servers if app is not None else {}), **(servers or {})}
    chosen = _servers([name for name in wanted if name.startswith(MCP)], named)
    _check([name for name in wanted if not name.startswith(MCP)])
    place = workspace_at(workspace, _closed(conversation.store.file))
    passed = environment(os.environ, (settings.shell_environment or "").split(","))
    tools = _workspace_tools(
        wanted, place, Files(place, tokens, buffers), Commands(place, tokens, passed, os.environ.keys() - passed.keys())
    )
    tools += _own_tools(conversation, wanted, tokens)
    if not chosen:
        yield tools
        return
    from thinkback.drive.mcp import McpServers

    with McpServers(chosen, tokens, place.root) as opened:
        yield [*tools, *opened.tools]


def _check(names: Sequence[str]) -> None:
    for name in names:
        if name not in BUILTIN_TOOLS:
            close = difflib.get_close_matches(name, BUILTIN_TOOLS, 1)
            hint = f"did you mean {close[0]}?" if close else f"tools are {', '.join(BUILTIN_TOOLS)} and {MCP}NAME"
            raise SettingError(
                f"there is no tool {name!r}", details={"tool": name, "allowed": BUILTIN_TOOLS}, next_actions=(hint,)
            )


def _servers(names: Sequence[str], given: Mapping[str, Server | Mapping[str, Any]]) -> dict[str, Server]:
    """The servers that ``names`` mean, with what their tables take from the environment."""
    if not names:
        return {}
    known = {**config.user_servers(), **given}
    chosen: dict[str, Server] = {}
    for word in names:
        name = word.removeprefix(MCP)
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            raise SettingError(
                f"there is no MCP server {name!r}",
                details={"tool": word, "allowed": [f"{MCP}{server}" for server in known]},
                next_actions=(
                    *([f"did you mean {MCP}{close[0]}?"] if close else []),
                    f"name it in {config.config_dir() / 'mcp.toml'}, as [{name}] with command or url",
                ),
            )
        chosen[name] = _filled(name, _server(name, known[name]))
    return chosen


def _server(name: str, given: Server | Mapping[str, Any]) -> Server:
    try:
        server = given if isinstance(given, Server) else msgspec.convert(given, Server)
    except msgspec.ValidationError as error:
        raise SettingError(f"the MCP server {name!r}: {error}", details={"server": name}) from None
    if bool(server.command) == bool(server.url):
        raise SettingError(f"the MCP server {name!r} needs either a command or a url", details={"server": name})
    return server


def _filled(name: str, server: Server) -> Server:
    """``server`` with the values of the variables that it names."""

    def value(found: re.Match[str]) -> str:
        variable = found[1]
        if variable not in os.environ:
            raise SettingError(
                f"the MCP server {name!r} wants the variable {variable}, which is not set",
                details={"server": name, "variable": variable},
                next_actions=(f"set {variable} in the environment",),
            )
        return os.environ[variable]

    env, headers = (
        {key: _VARIABLE.sub(value, text) for key, text in table.items()} for table in (server.env, server.headers)
    )
    return msgspec.structs.replace(server, env=env, headers=headers)


def _workspace_tools(names: Sequence[str], place: Workspace, files: Files, commands: Commands) -> list[PythonTool]:
    return [
        msgspec.structs.replace(
            python_tool(_WORKSPACE[name][0](files, commands), name=name, effect=_WORKSPACE[name][1]),
            check=partial(_outside, place),
        )
        for name in names
        if name in _WORKSPACE
    ]


def _outside(place: Workspace, arguments: Mapping[str, Any]) -> str:
    """Why no tool of the workspace can use the ``path`` among ``arguments``; empty where it can."""
    try:
        if isinstance(path := arguments.get("path"), str):
            resolve(place, path)
    except ToolFailed as error:
        return failure_text(error)
    return ""


def _own_tools(conversation: Conversation, names: Sequence[str], tokens: int) -> list[PythonTool]:
    """The tools that are about the conversation itself."""
    noting = [python_tool(commit_reasoning, effect="reads")] if COMMIT_REASONING in names else []
    return [*([task_tool(conversation, tokens)] if TASK in names else []), *noting]


def _closed(log: str) -> list[str]:
    """What file tools leave alone: the person's configuration, the ``log``, and what SQLite has beside it."""
    logs = {log, os.path.realpath(log)} if log else set()
    beside = [f"{name}{end}" for name in sorted(logs) for end in ("", "-journal", "-wal", "-shm")]
    return [str(config.config_dir()), *beside]
