"""The end of a turn, as its tools see it."""

from __future__ import annotations

import threading

from thinkback.drive.stopping import Stop


def test_whoever_waits_is_told_once_and_waited_for() -> None:
    """``set`` returns when the one that was told has left."""
    stop, told = Stop(), threading.Event()
    left: list[str] = []

    def tool() -> None:
        with stop.calls(told.set):
            inside.set()
            told.wait(10)
        left.append("left")

    inside = threading.Event()
    thread = threading.Thread(target=tool)
    thread.start()
    inside.wait(10)
    assert stop.is_awaited
    stop.set()
    stop.set()
    thread.join(10)
    assert (["left"], True, False) == (left, stop.is_set, stop.is_awaited)


def test_whoever_comes_late_is_told_at_once() -> None:
    """A call that begins when its turn is over ends before it does anything."""
    stop = Stop()
    told: list[str] = []
    stop.set()
    with stop.calls(lambda: told.append("told")):
        assert ["told"] == told


def test_whoever_does_not_leave_is_not_waited_for_longer_than_said() -> None:
    """A tool that hangs does not hang the program."""
    stop = Stop()
    with stop.calls(lambda: None):
        stop.set(0)
        assert stop.is_awaited
