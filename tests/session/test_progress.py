"""Long work tells how far it has come, and what is told may end it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import thinkback
from thinkback.session.store import SessionStore

Told = list[tuple[int, int, str]]


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    """A log with a few commits."""
    opened = thinkback.open(tmp_path / "log.db", rules={}, settings={})
    session = opened.session("chat")
    for number in range(20):
        session.commit(f"note {number} " + "x" * 500)
    return opened


def test_long_work_tells_how_far_it_is(store: SessionStore, tmp_path: Path) -> None:
    """From nothing to all of it, each in its unit; what is done is the same as without."""
    told: Told = []

    def progress(done: int, of: int, unit: str) -> None:
        told.append((done, of, unit))

    def said() -> tuple[tuple[int, int, str], tuple[int, int, str], bool]:
        first, last, rises = told[0], told[-1], told == sorted(told, key=lambda each: each[0])
        told.clear()
        return first, last, rises

    with store, thinkback.open(":memory:", rules={}, settings={}) as other:
        for name in ("all.jsonl", "all.md", "all.html"):
            store.export(tmp_path / name, complete=True, progress=progress)
            assert ((0, 20, "commits"), (20, 20, "commits"), True) == said()
        size = (tmp_path / "all.jsonl").stat().st_size
        assert 20 == other.import_(tmp_path / "all.jsonl", progress).commits
        assert ((0, size, "bytes"), (size, size, "bytes"), True) == said()
        assert [] == store.fsck(progress)
        assert ((0, 20, "commits"), (20, 20, "commits"), True) == said()
        store.backup(tmp_path / "copy.db", progress)
        done, of, unit = told[-1]
        assert (of, "pages") == (done, unit)
        assert of > 1
        told.clear()
        with thinkback.open(tmp_path / "copy.db", rules={}, settings={}) as copy:
            assert store.commits("chat") == copy.commits("chat")
        assert 20 == len(store.care.purge(before=4_000_000_000_000_000, progress=progress).commits)
        assert ((0, 20, "commits"), (20, 20, "commits"), True) == said()


def test_what_progress_raises_ends_the_work(store: SessionStore, tmp_path: Path) -> None:
    """A file that is half written is not there, and no damage is seen where there is none."""

    def stop(done: int, of: int, unit: str) -> None:
        if done:
            raise ValueError("enough")

    with store:
        with pytest.raises(ValueError, match="enough"):
            store.export(tmp_path / "all.jsonl", progress=stop)
        with pytest.raises(ValueError, match="enough"):
            store.backup(tmp_path / "copy.db", stop)
        with pytest.raises(ValueError, match="enough"):
            store.fsck(stop)
    assert ["log.db"] == sorted(path.name for path in tmp_path.iterdir())


def test_backup_with_progress_is_one_moment(tmp_path: Path) -> None:
    """What somebody writes while it is under way neither begins it again nor gets in."""
    with thinkback.open(tmp_path / "log.db", rules={}, settings={}) as store:
        session = store.session("chat")
        session.commit(random.Random(1).randbytes(3_000_000).hex())
        begins: list[int] = []

        def write(done: int, of: int, unit: str) -> None:
            begins.append(done)
            session.commit(f"at {done}")

        store.backup(tmp_path / "copy.db", write)
        with thinkback.open(tmp_path / "copy.db", rules={}, settings={}) as copy:
            assert 1 == len(copy.commits("chat"))
    assert begins == sorted(set(begins))
    assert len(begins) > 1
