"""Asks the person whether a call may run: shows what it would do, then takes yes, no, always, and a note for the model.

What is not a clear yes runs nothing: an empty line is a no, any other word is asked about again.
"""

from __future__ import annotations

import difflib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from thinkback.cli import terminal
from thinkback.model import canonical
from thinkback.turn.permissions import PermissionAnswer

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat
    from thinkback.cli.terminal import Style
    from thinkback.turn.permissions import PermissionRequest

QUESTION = "[y]es, [n]o, [a]lways; then a note for the model if you like: "
_WORDS = {"y": True, "yes": True, "a": True, "always": True, "n": False, "no": False}
_ALWAYS = ("a", "always")
_MOST_LINES = 40
_MOST_VALUE = 400
_LARGEST_FILE = 1_000_000


def asker(chat: Chat) -> Callable[[PermissionRequest], PermissionAnswer]:
    """What ``approve=`` takes."""

    def approve(request: PermissionRequest) -> PermissionAnswer:
        with chat.screen.aside():
            show(request)
            while True:
                try:
                    answered = read(chat.reader.ask(QUESTION))
                except EOFError:
                    return PermissionAnswer(False)
                except KeyboardInterrupt:
                    if threading.current_thread() is threading.main_thread():
                        raise
                    # a sub-agent asks in a thread of its own: the turn that it works for is to end
                    signal.raise_signal(signal.SIGINT)
                    return PermissionAnswer(False)
                if answered is not None:
                    return answered

    return approve


def read(line: str) -> PermissionAnswer | None:
    """What a person's line says; ``None`` where it is neither yes nor no."""
    first, _, note = line.strip().partition(" ")
    word = first.lower().rstrip(",.;:")
    if not first:
        return PermissionAnswer(False)
    if word not in _WORDS:
        return None
    return PermissionAnswer(_WORDS[word], always=word in _ALWAYS, note=note.strip())


def show(request: PermissionRequest) -> None:
    """The call, why it is asked about, what it would do, and what "always" would mean."""
    pen = terminal.pen(sys.stdout)
    terminal.out(pen(f"{terminal.one_line(request.call.name, 40)} {request.effect}", "bold"))
    for line, style in _cut(lines(request.call.name, request.call.arguments)):
        terminal.out(pen(terminal.clean(line), *((style,) if style else ())))
    terminal.out(pen(terminal.wrap(f"{request.reason}; always: {request.always}", 2), "dim"))


def lines(name: str, arguments: str) -> Iterator[tuple[str, Style | None]]:
    """A call as people read it: a command, a change as a diff, else argument by argument."""
    try:
        given: Any = canonical.decode(arguments or "{}")
    except msgspec.DecodeError:
        given = None
    match given:
        case {"command": str(command)}:
            yield from ((f"  {line}", None) for line in command.split("\n"))
        case {"path": str(path), "old_string": str(old), "new_string": str(new)}:
            yield from _diff(path, old, new)
        case {"path": str(path), "content": str(content)} if name == "write":
            yield from _diff(path, _there(path), content)
        case dict():
            for key, value in given.items():
                text = value if isinstance(value, str) else canonical.encode(value).decode()
                yield f"  {key}: {terminal.one_line(text, _MOST_VALUE)}", None
        case _:
            yield f"  {terminal.one_line(arguments, _MOST_VALUE)}", None


def _diff(path: str, old: str, new: str) -> Iterator[tuple[str, Style | None]]:
    yield f"  {path}", None
    changed = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    for line in [*changed][2:]:
        styles: Mapping[str, Style] = {"+": "green", "-": "red", "@": "cyan"}
        yield f"  {line}", styles.get(line[:1])


def _there(path: str) -> str:
    """What a file says now; nothing where it is not there, or is no text."""
    file = Path(path)
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_FILE:
            return ""
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _cut(found: Iterator[tuple[str, Style | None]]) -> Iterator[tuple[str, Style | None]]:
    every = list(found)
    yield from every[:_MOST_LINES]
    if len(every) > _MOST_LINES:
        yield f"  ... {len(every) - _MOST_LINES} more lines", "dim"
