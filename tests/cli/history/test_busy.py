"""Commands that write to a session in which another process has a turn under way."""

from __future__ import annotations

import pytest

from tests.cli.command import PLACE, Command
from tests.session.test_leases import other
from thinkback_referee import Referee

WRITES = (
    ("reasoning", "by hand", "-s", "chat"),
    ("reset", "main^1", "-s", "chat"),
    ("doctor", "chat"),
    ("delete", "chat", "--yes"),
    ("purge", "--before", "2100-01-01", "--yes"),
    ("purge", "--tenant", "default", "--yes"),
)


@pytest.fixture
def begun(command: Command, referee: Referee) -> str:
    """A log with a finished turn in the session ``chat``."""
    with other(str(command.db)) as process:
        assert "completed main 1" == process.answer("first")
    return str(command.db)


def test_they_are_refused_by_name(command: Command, referee: Referee, begun: str) -> None:
    """With a code of their own, and leave that turn as it is."""
    with other(begun) as process:
        asks = ("run", "me too", "--session", "chat", *PLACE, referee.base_url("deepseek"))
        for wanted in (asks, *WRITES):
            refused = command(*wanted)
            assert 8 == refused.code, wanted
            assert f"busy: process {process.process.pid} on " in refused.err
        assert "completed main 2" == process.answer("mine")


def test_they_take_over_or_go_beside(command: Command, referee: Referee, begun: str) -> None:
    """As they are told."""
    with other(begun) as process:
        place = (*PLACE, referee.base_url("deepseek"))
        beside = command("run", "me too", "--session", "chat", "--beside", *place)
        assert 0 == beside.code, beside.err
        assert "on branch main-" in beside.err
        assert 0 == command("switch", "main", "-s", "chat").code
        assert 0 == command("reasoning", "by hand", "-s", "chat", "--take-over").code
        state, branch, _ = process.answer("too late").split()
        assert ("completed", True) == (state, branch.startswith("main-"))
    with other(begun) as process:
        assert 0 == command("delete", "chat", "--yes", "--take-over").code
        assert "not-found" in process.answer("too late")


def test_they_wait(command: Command, begun: str) -> None:
    """Until that turn has ended."""
    with other(begun) as process:
        waiting = command.start("reasoning", "by hand", "-s", "chat", "--wait")
        assert waiting.stderr is not None
        while b"waiting" not in waiting.stderr.readline():
            pass
        assert "completed main 2" == process.answer("mine")
        waiting.communicate(timeout=30)
        assert 0 == waiting.returncode
