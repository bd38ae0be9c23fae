"""What a person typed before a question was asked: it is no answer to it, and stands at the next prompt."""

from __future__ import annotations

import os
import re
import select
import sys

from thinkback.cli.chat.drawing import theme

_PIECE = 4096
# Keys that are no letters, as terminals send them, and what a terminal would obey.
_KEYS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])?|[\x00-\x08\x0b-\x1f\x7f]")


def take() -> str:
    """Take everything that was typed so far; nothing where there is no terminal."""
    return readable(_noted() + _waiting())


def readable(typed: bytes) -> str:
    """The letters of what was typed."""
    _, typed = theme.parse(typed)
    return _KEYS.sub("", typed.decode(errors="replace").replace("\r", "\n")).rstrip("\n")


def _noted() -> bytes:
    """What was read along with an earlier line."""
    if "prompt_toolkit" not in sys.modules:
        return b""
    from prompt_toolkit.application import get_app_session
    from prompt_toolkit.input.typeahead import get_typeahead

    return "".join(press.data for press in get_typeahead(get_app_session().input)).encode(errors="replace")


def _waiting() -> bytes:
    """What nobody has read yet, also of a line that is not complete."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        return b""
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    typed = b""
    tty.setcbreak(keyboard, termios.TCSANOW)
    try:
        while select.select([keyboard], [], [], 0)[0] and (piece := os.read(keyboard, _PIECE)):
            typed += piece
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)
    return typed
