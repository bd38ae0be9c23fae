"""What a person typed while nobody asked: it answers no question that comes later, and stands at the next prompt."""

from __future__ import annotations

import os
import re
import select
import sys

from thinkback.cli.chat.drawing import theme

_PIECE = 4096
# Keys that are no letters, as terminals send them, and what a terminal would obey.
_KEYS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])?|[\x00-\x08\x0b-\x1f\x7f]")

# Where the cursor is: an answer to the last prompt, which came when that had ended.
_CURSOR = re.compile(r"\x1b\[\d+;\d+R")


def take() -> str:
    """Take everything that was typed so far; nothing where there is no terminal."""
    return readable(_noted() + _waiting())


def take_keys() -> str:
    """The same key by key, as a prompt would read it: to be given back where it is for the prompt."""
    _, typed = theme.parse(_noted() + _waiting())
    return _CURSOR.sub("", typed.decode(errors="replace"))


def is_typed() -> bool:
    """Whether something was typed that nobody has read yet."""
    return sys.platform != "win32" and sys.stdin.isatty() and bool(select.select([sys.stdin], [], [], 0)[0])


def give_back(keys: str) -> None:
    """Have the next prompt read ``keys`` before what is typed from now on."""
    if not keys:
        return
    from prompt_toolkit.application import get_app_session
    from prompt_toolkit.input.typeahead import store_typeahead
    from prompt_toolkit.input.vt100_parser import Vt100Parser
    from prompt_toolkit.key_binding import KeyPress

    presses: list[KeyPress] = []
    parser = Vt100Parser(presses.append)
    parser.feed(keys)
    parser.flush()
    store_typeahead(get_app_session().input, presses)


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
