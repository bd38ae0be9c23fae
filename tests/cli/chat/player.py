"""Draws what it is told, one command a line: the other end of ``playing``.

``python -m tests.cli.chat.player PIPE LOOK``: both in JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from thinkback.cli.chat.drawing.look import Look
from thinkback.cli.chat.drawing.screen import Screen
from thinkback.errors import ThinkbackError
from thinkback.model.deltas import Delta


def main(pipe: str, look: str) -> None:
    """Play the commands of ``pipe`` until one says ``end``."""
    clock = [0.0]
    looks: dict[str, Any] = json.loads(look)
    screen = Screen(sys.stdout, lambda: Look(**looks), lambda: clock[0])
    with open(pipe, encoding="utf-8") as lines:
        for line in lines:
            do, *given = json.loads(line)
            match do:
                case "show":
                    screen.show(msgspec.convert(given[0], Delta))
                case "clock":
                    clock[0] = given[0]
                    screen.tick()
                case "look":
                    looks |= given[0]
                case "finish":
                    screen.finish(None, ThinkbackError(given[0]) if given[0] else None)
                case "typed":
                    screen.note(f"typed: {screen.take_typed()}")
                case "aside":
                    with screen.aside():
                        screen.tick()
                        print(given[0], flush=True)
                case "end":
                    return
                case _:
                    getattr(screen, do)(*given)


if __name__ == "__main__":
    main(*sys.argv[1:])
