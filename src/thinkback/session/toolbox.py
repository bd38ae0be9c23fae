"""The tools that a person names, for ``tools=``: those that come with thinkback, and those of MCP servers.

What a tool may do is said by the settings ``permissions.mode`` and ``permissions.rules``, not here.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from thinkback.drive.bounds import OUTPUT_TOKENS
from thinkback.drive.tools import PythonTool, python_tool
from thinkback.drive.workspace.files import Files
from thinkback.drive.workspace.paths import Workspace, workspace_at
from thinkback.drive.workspace.shell import Commands, environment
from thinkback.errors import SettingError
from thinkback.session import config
from thinkback.settings.apps import BUILTIN_TOOLS, MCP
from thinkback.turn.permissions import Effect

if TYPE_CHECKING:
    from thinkback.session.session import Session

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
    tokens: int = OUTPUT_TOKENS,
) -> Iterator[list[PythonTool]]:
    """The tools ``names`` of a session, while in it; functions of one's own may be added to the list.

    ``workspace`` is the directory that files are confined to and commands start in. One call gives at most ``tokens``
    (estimated). Raises ``SettingError`` for a name that does not exist, ``NotFoundError`` for a missing directory.
    """
    wanted = list(dict.fromkeys(names))
    _check(wanted)
    yield _workspace_tools(session, wanted, workspace_at(workspace, [config.config_dir()]), tokens)


def _check(names: Sequence[str]) -> None:
    for name in names:
        if name not in BUILTIN_TOOLS:
            close = difflib.get_close_matches(name, BUILTIN_TOOLS, 1)
            hint = f"did you mean {close[0]}?" if close else f"tools are {', '.join(BUILTIN_TOOLS)} and {MCP}NAME"
            raise SettingError(
                f"there is no tool {name!r}", details={"tool": name, "allowed": BUILTIN_TOOLS}, next_actions=(hint,)
            )


def _workspace_tools(session: Session, names: Sequence[str], workspace: Workspace, tokens: int) -> list[PythonTool]:
    files = Files(workspace, tokens)
    commands = Commands(workspace, tokens, environment(os.environ, _keys(session)))
    return [
        python_tool(_WORKSPACE[name][0](files, commands), name=name, effect=_WORKSPACE[name][1])
        for name in names
        if name in _WORKSPACE
    ]


def _keys(session: Session) -> set[str]:
    """The variables that endpoints read their keys from, whatever they are called."""
    return {name for endpoint in session._store.rulebook.endpoints() for name in endpoint.auth.env}
