"""The line that shows how far long work has come."""

from __future__ import annotations

import io
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import thinkback
from tests.cli.command import Command
from tests.cli.conftest import Inside
from tests.old_logs import sets
from thinkback.cli import progress
from thinkback.cli.progress import Line, upgrade_line


class Watched(io.StringIO):
    """A terminal that is read; ``drawn`` is set once something is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.drawn.set()
        return super().write(text)


def watch(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Standard error as a terminal where everything is shown at once."""
    stream = Watched()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_FIRST", 0)
    return stream


@pytest.fixture
def old(inside: Inside) -> Path:
    """The log is one of the format before."""
    with tarfile.open(sets.HERE / f"{sets.names()[0]}{sets.ENDING}") as tar:
        tar.extract("library.db", inside.place, filter="data")
    return (inside.place / "library.db").rename(inside.db)


def test_work_is_told_with_rate_and_rest() -> None:
    """Not before half a second, and at most ten times in one; a new unit begins anew; at the end it goes.

    What was told last is drawn anew, with the seconds where less than one is done in each.
    """
    shown, now = io.StringIO(), [0.0]
    line = Line("checking", shown, lambda: now[0])

    def tell(at: float, done: int, total: int, unit: str = "commits") -> str:
        now[0] = at
        shown.truncate(0)
        shown.seek(0)
        line(done, total, unit)
        return shown.getvalue()

    assert "" == tell(0, 0, 40_000) + tell(0.4, 1_000, 40_000)
    assert "\rchecking: 4,000 of 40,000 commits, 4,000/s, 9 s left" == tell(1, 4_000, 40_000)
    assert "" == tell(1.05, 4_200, 40_000)
    assert "\rchecking: 8,000 of 800,000 commits, 4,000/s, 3 min left" == tell(2, 8_000, 800_000)
    assert "\rchecking: 1 pages" == tell(3, 1, 0, unit="pages").rstrip()
    assert "\rchecking: 40 pages, 10/s" == tell(7, 40, 0, unit="pages")
    assert "\rchecking: 0 of 8 steps" == tell(9, 0, 8, unit="steps").rstrip()
    now[0] = 12
    shown.truncate(0)
    line.again()
    assert "\rchecking: 0 of 8 steps, 3 s so far" == shown.getvalue().strip("\0 ")
    shown.truncate(0)
    line.clear()
    assert "" == shown.getvalue().strip("\0\r ")


def test_nobody_is_told_where_nobody_looks(talked: Command, inside: Inside) -> None:
    """Neither in a pipe nor for what is done at once on a terminal."""
    assert "checking" not in inside("fsck").err + talked.on_terminal("fsck").out


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("fsck", ("fsck",)),
        ("gc", ("gc",)),
        ("search", ("search", "Oslo")),
        ("purge", ("purge", "--before", "2101-01-01", "--dry-run")),
        ("backup", ("backup", "copy.db")),
        ("export", ("export", "copy.jsonl")),
        ("import", ("import", "talk.jsonl")),
        ("compact", ("compact", "talk", "--text", "Rain.", "--tail", "0")),
    ],
)
def test_long_work_tells_how_far_it_is(
    talked: Command, inside: Inside, monkeypatch: pytest.MonkeyPatch, name: str, line: tuple[str, ...]
) -> None:
    """Every command that may take long, on a terminal."""
    from contextlib import nullcontext

    told: list[tuple[int, int, str]] = []
    monkeypatch.chdir(talked.place)
    with thinkback.open(talked.db, rules={}, settings={}) as store:
        store.export("talk.jsonl", complete=True)
    assert 0 == inside("--help").code  # which imports every command
    take: Callable[[int, int, str], None] = lambda *each: told.append(each)  # noqa: E731
    for module in list(sys.modules.values()):
        if getattr(module, "progress_line", None) is progress.progress_line and module is not progress:
            monkeypatch.setattr(module, "progress_line", lambda what: nullcontext(take))
    assert 0 == inside(*line).code
    assert told


@pytest.mark.filterwarnings("ignore:the log .* is being brought to format:UserWarning")
def test_an_upgrade_of_an_old_log_tells_how_far_it_is(
    old: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command that writes first, once, and the line is gone afterwards; looking upgrades nothing."""
    watched = watch(monkeypatch)
    assert (0, "") == (inside("log", "--json").code, watched.getvalue())
    with thinkback.open(old, rules={}, settings={}) as store:
        name = store.sessions()[0].name
    assert 0 == inside("title", name, "A new title").code
    shown = watched.getvalue()
    assert shown.startswith("\rupgrading the log: 0 of 8 steps")
    assert ["", ""] == [line.strip() for line in shown.split("\r")[-2:]]
    assert 0 == inside("title", name, "Another title").code
    assert shown == watched.getvalue()


@pytest.mark.filterwarnings("ignore:the log .* is being brought to format:UserWarning")
def test_nobody_is_told_of_an_upgrade_where_nobody_looks(old: Path, inside: Inside) -> None:
    """Standard error that is no terminal has none of it."""
    with thinkback.open(old, rules={}, settings={}) as store:
        name = store.sessions()[0].name
    assert (0, "") == inside("title", name, "A new title")[::2]


def test_the_line_of_an_upgrade_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a step takes long; it goes with the last step and where the upgrade fails; the next upgrade has its own."""
    watched = watch(monkeypatch)
    with upgrade_line() as tell:
        assert tell is not None
        for told in range(2):
            tell(0, 4, "steps")
            watched.drawn.clear()
            assert watched.drawn.wait(10)
            tell(told, told, "steps")
            assert ["", ""] == [line.strip() for line in watched.getvalue().split("\r")[-2:]]
        tell(0, 4, "steps")
    assert ["", ""] == [line.strip() for line in watched.getvalue().split("\r")[-2:]]
