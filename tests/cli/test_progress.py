"""The line that shows how far long work has come."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

import thinkback
from tests.cli.command import Command
from tests.cli.conftest import Inside
from thinkback.cli.progress import Line


def test_work_is_told_with_rate_and_rest() -> None:
    """Not before half a second, and at most ten times in one; a new unit begins anew; at the end it goes."""
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
    import sys
    from contextlib import nullcontext

    from thinkback.cli import progress

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
