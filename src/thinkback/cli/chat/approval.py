"""Asks the person whether a call may run: shows what it would do, then takes yes, no, always, and a note for the model.

What is not a clear yes runs nothing: an empty line is a no, any other word is asked about again, and what was typed
before the question was there answers nothing. What is left out of a long call is said to be, and can be shown.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from thinkback.cli import terminal
from thinkback.cli.chat import ahead, midturn
from thinkback.session.transcripts.call_text import lines, plain
from thinkback.turn.permissions import PermissionAnswer

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat
    from thinkback.turn.permissions import PermissionRequest

QUESTION = "[y]es, [n]o, [a]lways; then a note for the model if you like: "
CUT_QUESTION = QUESTION.replace("[a]lways", "[a]lways, [s]how all")
_WORDS = {"y": True, "yes": True, "a": True, "always": True, "n": False, "no": False}
_ALWAYS = ("a", "always")
_SHOW = ("s", "show", "show all")
_MOST_LINES = 40
_MOST_COLUMNS = 1_000
_MOST_ALWAYS = 120


def asker(chat: Chat) -> Callable[[PermissionRequest], PermissionAnswer]:
    """What ``approve=`` takes."""

    def approve(request: PermissionRequest) -> PermissionAnswer:
        with chat.screen.aside():
            if threading.current_thread() is threading.main_thread():  # the session is this thread's
                midturn.obey(chat)
            is_cut = show(request)
            while True:
                # whoever typed before the question was there did not answer it
                chat.screen.keep_typed(ahead.take())
                try:
                    line = chat.reader.ask(CUT_QUESTION if is_cut else QUESTION)
                except EOFError:
                    return PermissionAnswer(False)
                except KeyboardInterrupt:
                    if threading.current_thread() is threading.main_thread():
                        raise
                    # a sub-agent asks in a thread of its own: the turn that it works for is to end
                    signal.raise_signal(signal.SIGINT)
                    return PermissionAnswer(False)
                answered = read(line)
                if answered is not None:
                    return answered
                if is_cut and line.strip().lower() in _SHOW:
                    is_cut = show(request, whole=True)

    return approve


def read(line: str) -> PermissionAnswer | None:
    """What a person's line says; ``None`` where it is neither yes nor no.

    A note behind "always" needs a sign in between: "a note" may be the beginning of a message.
    """
    first, _, note = line.strip().partition(" ")
    word = first.lower().rstrip(",.;:")
    if not first:
        return PermissionAnswer(False)
    if word not in _WORDS or (word in _ALWAYS and note and len(word) == len(first)):
        return None
    note = note.strip()
    return PermissionAnswer(_WORDS[word], word in _ALWAYS, note, goes_on=note != "" and not _WORDS[word])


def show(request: PermissionRequest, *, whole: bool = False) -> bool:
    """The call, why it is asked about, what it would do, and what "always" would mean. Returns whether a part of it was
    left out; nothing is, where the ``whole`` is wanted.
    """
    pen = terminal.pen(sys.stdout)
    found = [(plain(line), style) for line, style in lines(request.call.name, request.call.arguments)]
    kept = found if whole else [(line[:_MOST_COLUMNS], style) for line, style in found[:_MOST_LINES]]
    terminal.out(pen(f"{plain(request.call.name)} {request.effect}", "bold"))
    for line, style in kept:
        terminal.out(pen(line, *((style,) if style else ())))
    if kept != found:
        missing = sum(len(line) for line, _ in found) - sum(len(line) for line, _ in kept)
        terminal.out(pen(f"  ... {len(found) - len(kept)} more lines, {missing:,} characters not shown", "yellow"))
    always = plain(request.always) if whole else terminal.one_line(plain(request.always), _MOST_ALWAYS)
    terminal.out(pen(terminal.wrap(f"{request.reason}; always: {always}", 2), "dim"))
    return kept != found
