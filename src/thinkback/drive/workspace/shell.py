"""Commands in the workspace: each in a process group of its own, bounded in time and output, ended with its children.

A command gets no input, and of the program's variables those that programs need and those that the person named. It is
not confined to the workspace.
"""

from __future__ import annotations

import os
import re
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from glob import glob
from typing import Annotated, NamedTuple

from msgspec import Meta

from thinkback.drive.bounds import bounded, characters, left_out
from thinkback.drive.stopping import STOP
from thinkback.drive.tools import ToolOutput
from thinkback.drive.workspace.paths import Workspace, holds_closed, resolve
from thinkback.errors import ToolFailed

LONGEST_SECONDS = 600
_SEARCH_SECONDS = 10
# How long a command may take to end by itself once it was told to, and what is read of it after its end.
_GRACE_SECONDS = 1.0
_TICK_SECONDS = 0.05
_PIECE = 65_536
# What is about to be ended may start others.
_ROUNDS = 3
# What programs need to run at all. Anything else may hold a secret, whatever it is called.
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|HOSTNAME|PWD|OLDPWD|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TMP|TEMP|XDG_(CACHE|CONFIG|DATA|STATE)_HOME"
    r"|NO_COLOR|CI|EDITOR|VISUAL"
)
# What the failure of a command says where it lacked one of these variables.
_LACKS = tuple(
    (re.compile(said, re.IGNORECASE), names.split())
    for said, names in (
        (r"no module named|externally-managed|(python|pip)[\d.]*: .*not found", "VIRTUAL_ENV"),
        (r"(java|javac|mvn|gradle): .*not found|java runtime", "JAVA_HOME"),
        (r"permission denied \(publickey|connection to your authentication agent", "SSH_AUTH_SOCK"),
        (
            r"could not resolve|name resolution|connection (timed out|refused)|network is unreachable|proxy",
            "HTTPS_PROXY HTTP_PROXY ALL_PROXY NO_PROXY https_proxy http_proxy all_proxy no_proxy",
        ),
    )
)
_NAME = re.compile(r"[A-Za-z_]\w{2,}")
_MARK = "THINKBACK_COMMAND"
_PLAIN = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
# What a repository may not have git do: start a program to watch files, be one without a .git.
_GIT = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "safe.bareRepository",
    "GIT_CONFIG_VALUE_1": "explicit",
}


class Ran(NamedTuple):
    """What a command said, how it exited (negative: the signal), and why it was ended, if it was."""

    output: str
    code: int
    ended: str


class Commands:
    """The tools of one workspace that start processes. ``environment`` is what commands get of the program's own,
    ``withheld`` the names of those variables of it that they do not get.
    """

    def __init__(
        self, workspace: Workspace, tokens: int, environment: Mapping[str, str], withheld: Collection[str] = ()
    ) -> None:
        self._workspace = workspace
        self._tokens = tokens
        self._environment = environment
        self._withheld = withheld

    def shell(self, command: str, timeout: Annotated[int, Meta(ge=1, le=LONGEST_SECONDS)] = 120) -> ToolOutput:
        """Run a command with bash and give its output. Every command begins in the workspace anew and gets no input, so
        it must not ask for any; after timeout seconds it is ended, and what it leaves in the background ends with it.
        """
        if "\0" in command:
            raise ToolFailed("the command holds a NUL character, which no command can")
        ran = self._run((_shell(), "-c", command), timeout)
        output, is_failed = ran.output.rstrip("\n"), ran.code != 0 or bool(ran.ended)
        lacks = lacking(f"{command}\n{output}", self._withheld) if is_failed else []
        told = (output, _note(ran, timeout), _hint(lacks))
        return ToolOutput("\n".join(filter(None, told)) or "[no output]", is_failed)

    def search(self, pattern: str, path: str = ".", glob: str = "") -> str:
        """Search the workspace's text files for an extended regular expression, line by line; glob narrows the names
        of files (*.py). Gives path, line number and line.
        """
        place = resolve(self._workspace, path)
        if not os.path.lexists(os.path.join(self._workspace.root, place.shown)):
            raise ToolFailed(f"{place.shown} does not exist", next_actions=("list shows what a directory holds.",))
        if holds_closed(self._workspace, place):
            raise ToolFailed(
                f"{place.shown} holds thinkback's own files, which tools do not touch",
                next_actions=("Search a directory beside them.",),
            )
        only = [f"--include={glob}"] if glob else []
        argv = ["grep", "-rsInE", "-D", "skip", "--exclude-dir=.git", *only, "-e", pattern, "--", place.shown]
        ran = self._run(argv, _SEARCH_SECONDS)
        if ran.ended:
            raise ToolFailed(f"the search was ended: {ran.ended}", next_actions=("Search a smaller directory.",))
        if ran.code > 1 and ran.output.startswith("grep"):
            raise ToolFailed(f"the search failed: {ran.output.strip()}")
        found = [bounded(line, 100).replace("\n", " ").removeprefix("./") for line in ran.output.splitlines()]
        return bounded("\n".join(found), self._tokens) or f"[nothing matches {pattern!r}]"

    def _run(self, argv: Sequence[str], seconds: float) -> Ran:
        try:
            return run(argv, self._workspace.root, self._environment, seconds, characters(self._tokens))
        except (OSError, ValueError) as error:
            raise ToolFailed(f"{argv[0]} could not be started: {error}") from None


def environment(given: Mapping[str, str], added: Collection[str] = ()) -> dict[str, str]:
    """What commands get of ``given``: what programs need to run at all, and the variables ``added``.

    Programs are found where ``PATH`` names them whole: a workspace's ``ls`` is not taken for the system's.
    """
    kept = {name: value for name, value in given.items() if name in added or _PASSED.fullmatch(name)}
    if "PATH" in kept:
        kept["PATH"] = os.pathsep.join(filter(os.path.isabs, kept["PATH"].split(os.pathsep)))
    return kept | _PLAIN | _GIT


def lacking(said: str, withheld: Collection[str]) -> list[str]:
    """Those of the variables ``withheld`` that a command named, or that what it ``said`` when it failed points to."""
    named = {*_NAME.findall(said)}
    named.update(name for pattern, names in _LACKS if pattern.search(said) for name in names)
    return sorted(named.intersection(withheld))


def run(argv: Sequence[str], cwd: str, environment: Mapping[str, str], seconds: float, limit: int) -> Ran:
    """Run ``argv`` until it exits, ``seconds`` are over or the turn ends; output beyond ``limit`` characters is left
    out in the middle. Raises ``OSError`` where it cannot be started.
    """
    stop, mark = STOP.get(), secrets.token_hex(8)
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env={**environment, _MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        output, ended = _Output(limit), "nothing more was heard of it"
        # The loop looks for itself whether the turn has ended; being counted makes the turn wait for the end.
        with stop.calls(lambda: None):
            try:
                ended = _follow(process, output, seconds, lambda: stop.is_set)
            finally:
                _end(process, mark)
        _drain(process, output)
    return Ran(output.text(), process.returncode, ended)


class _Output:
    """The beginning and the end of what was said."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head, self._tail = bytearray(), bytearray()
        self._missing = 0

    def add(self, piece: bytes) -> None:
        room = self._half - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        if len(self._tail) > 2 * self._half + _PIECE:
            self._cut()

    def text(self) -> str:
        self._cut()
        head, tail = (bytes(half).decode("utf-8", "replace") for half in (self._head, self._tail))
        if not self._missing:
            return (self._head + self._tail).decode("utf-8", "replace")
        return f"{head}\n{left_out(self._missing)}\n{tail}"

    def _cut(self) -> None:
        excess = max(0, len(self._tail) - self._half)
        del self._tail[:excess]
        self._missing += excess


def _follow(process: subprocess.Popen[bytes], output: _Output, seconds: float, is_over: Callable[[], bool]) -> str:
    """Read what ``process`` says until it exits; why it is to be ended, where it did not."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        is_open = True
        while True:
            if is_over():
                return "the turn was interrupted"
            if time.monotonic() > deadline:
                return f"it took longer than {seconds:g} seconds"
            if is_open and selector.select(_TICK_SECONDS):
                piece = os.read(process.stdout.fileno(), _PIECE)
                output.add(piece)
                is_open = bool(piece)
            # also while there is output: it may come from what the command left behind
            if _exits(process, 0 if is_open else _TICK_SECONDS):
                return ""


def _exits(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """End ``process``, its group, and those of its children that left the group, which have ``mark``."""
    if process.poll() is None:
        _kill(process.pid, signal.SIGTERM)
        _exits(process, _GRACE_SECONDS)
    _kill(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(_ROUNDS):
        found = _marked(mark)
        for child in found:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
        if not found:
            return


def _kill(group: int, how: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, how)


def _marked(mark: str) -> list[int]:
    """The processes whose environment says that they come from the command ``mark``, where the system tells."""
    wanted = f"{_MARK}={mark}".encode()
    found: list[int] = []
    for name in glob("/proc/[0-9]*/environ"):
        with suppress(OSError), open(name, "rb") as file:
            if wanted in file.read().split(b"\0"):
                found.append(int(name.split("/")[2]))
    return found


def _drain(process: subprocess.Popen[bytes], output: _Output) -> None:
    """What was said and not read yet; whoever still holds the pipe is not waited for."""
    assert process.stdout is not None
    deadline = time.monotonic() + _GRACE_SECONDS
    with suppress(BlockingIOError):
        while time.monotonic() < deadline and (piece := os.read(process.stdout.fileno(), _PIECE)):
            output.add(piece)


def _shell() -> str:
    return next((path for path in ("/bin/bash", "/usr/bin/bash") if os.path.exists(path)), "/bin/sh")


def _note(ran: Ran, timeout: int) -> str:
    if ran.ended.startswith("it took"):
        return f"[ended: {ran.ended}; give a longer timeout (at most {LONGEST_SECONDS}), or do less at once]"
    if ran.ended:
        return f"[ended: {ran.ended}]"
    if ran.code < 0:
        return f"[ended by signal {-ran.code}]"
    return f"[exit code {ran.code}]" if ran.code else ""


def _hint(lacks: Sequence[str]) -> str:
    if not lacks:
        return ""
    are = "is set, but not for commands" if len(lacks) == 1 else "are set, but not for commands"
    return f"[{', '.join(lacks)} {are}: a person can add to shell.environment what they need]"
