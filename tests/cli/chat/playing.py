"""A ``Screen`` in a real terminal, told delta by delta what to draw."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, ClassVar

import msgspec

import thinkback
from tests.cli.chat.terminal import DARK, Rgb, Terminal
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta

_ROOT = Path(__file__).parents[3]
_SOURCES = Path(thinkback.__file__).parent.parent


class Play(Terminal):
    """The terminal that the screen is drawn on. ``look`` are fields of ``Look``; its clock stands still."""

    runs: ClassVar[tuple[str, ...]] = (sys.executable, "-m")
    """What a module is started with."""

    def __init__(
        self,
        place: Path,
        *,
        columns: int = 60,
        rows: int = 20,
        background: Rgb | None = DARK,
        environment: dict[str, str] | None = None,
        **look: Any,
    ) -> None:
        pipe = place / "commands"
        os.mkfifo(pipe)
        # open for reading too, so that neither side waits for the other
        self._pipe = os.open(pipe, os.O_RDWR)
        given = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{_SOURCES}{os.pathsep}{_ROOT}",
            "PYTHONUTF8": "1",
            "PYTHONWARNINGS": "error",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
        }
        super().__init__(
            [*self.runs, "tests.cli.chat.player", str(pipe), json.dumps(look)],
            {**given, **(environment or {})},
            columns=columns,
            rows=rows,
            background=background,
        )

    def do(self, what: str, *given: Any) -> None:
        """Have the screen do it."""
        line = json.dumps([what, *given]).encode() + b"\n"
        while line:
            line = line[os.write(self._pipe, line[:2048]) :]
            self._read(0)

    def show(self, *deltas: Delta) -> None:
        """Have these drawn, one after the other."""
        for delta in deltas:
            self.do("show", msgspec.to_builtins(delta))

    def think(self, text: str, size: int = 7, index: int = 0) -> None:
        """Thinking, in pieces of ``size``."""
        self.show(*(ReasoningDelta(text[at : at + size], index) for at in range(0, len(text), size)))

    def say(self, text: str, size: int = 7, index: int = 1) -> None:
        """An answer, in pieces of ``size``."""
        self.show(*(TextDelta(text[at : at + size], index) for at in range(0, len(text), size)))

    def end(self) -> None:
        """Let it come to its end and look at all of it."""
        self.do("end")
        assert 0 == self.wait_for_end(), self.everything

    def close(self) -> None:
        super().close()
        os.close(self._pipe)
