"""What says that something takes a while."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.cli.chat.terminal import Terminal
from tests.cli.command import Command
from thinkback.cli.chat.progress import working

_PROGRAM = """
import signal
from thinkback.cli.chat.progress import working
signal.signal(signal.SIGUSR1, lambda *_: None)
with working("summarising"):
    signal.pause()
print("done")
"""


def test_a_terminal_sees_what_takes_how_long(command: Command) -> None:
    """The line is gone when the work is done."""
    with Terminal([sys.executable, "-c", _PROGRAM], command.environment) as terminal:
        terminal.wait_for("summarising ... 0 s")
        terminal.wait_for("summarising ... 1 s")
        terminal.process.send_signal(signal.SIGUSR1)
        terminal.wait_for("done")

        assert "summarising" not in terminal.text
        assert 0 == terminal.wait_for_end()


def test_a_pipe_is_told_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody watches."""
    with working("summarising"):
        pass

    assert ("", "") == capsys.readouterr()
