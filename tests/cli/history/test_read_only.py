"""A log on media that can only be read: every command that looks works, and nothing is made there."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import thinkback
from tests.privileges import unprivileged
from thinkback.cli.app import run
from thinkback.errors import StoreError
from thinkback_referee import Referee

LOOKS = (["log"], ["search", "Oslo"], ["show"], ["why"], ["export", "--complete", "-"], ["fsck"], ["sessions"])


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A log in a directory that other users reach, and a configuration that they may look for."""
    place = Path(tempfile.mkdtemp(prefix="thinkback-read-only-"))
    place.chmod(0o755)
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(place))
    with Referee() as referee, thinkback.open(place / "log.db") as store:
        session = store.session(
            "talk", endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek"), api_key="sk-1"
        )
        session.chat("What is the weather in Oslo?")
    yield place / "log.db"
    place.chmod(0o755)
    shutil.rmtree(place)


@contextmanager
def read_only(log: Path) -> Iterator[None]:
    """The log and its directory can only be read, by root neither."""
    log.chmod(0o444)
    log.parent.chmod(0o555)
    with unprivileged():
        yield


Looked = Callable[[Path, list[str]], tuple[int, str]]


@pytest.fixture
def looked(capsys: pytest.CaptureFixture[str]) -> Looked:
    """What a command says, run in this process."""

    def look(log: Path, arguments: list[str]) -> tuple[int, str]:
        code = run([*arguments, "--db", str(log)])
        said = capsys.readouterr()
        return code, said.out + said.err

    return look


def commands(log: Path) -> list[list[str]]:
    """Those that look."""
    with thinkback.open(log) as store:
        said = store.commits("talk")[-1].hash
    return [[*command, said] if command == ["show"] else command for command in LOOKS]


def contents(log: Path) -> dict[str, bytes]:
    """Every file there, and what is in it."""
    return {path.name: path.read_bytes() for path in log.parent.iterdir()}


def make_old(log: Path) -> None:
    """As format 3 was."""
    with thinkback.open(log) as store:
        payloads = [(commit.payload, bytes.fromhex(commit.hash)) for commit in store.commits("talk")]
    with closing(sqlite3.connect(log)) as db:
        db.executemany("UPDATE commits SET codec = 0, payload = ? WHERE hash = ?", payloads)
        db.commit()
        db.executescript(
            "DROP TABLE summaries; DROP TABLE leases; DROP TABLE bases; DROP TRIGGER older_programs;"
            "ALTER TABLE steps DROP COLUMN format;"
            "DROP TABLE sightings; DELETE FROM migrations WHERE version > 3; PRAGMA user_version = 3"
        )


@pytest.mark.parametrize("state", ["new", "searched", "old"])
def test_every_look_is_as_where_it_may_be_written(log: Path, looked: Looked, state: str) -> None:
    """Whatever its format, and whether or not it was searched before."""
    asked = commands(log)
    copy = log.parent / "copy.db"
    shutil.copyfile(log, copy)
    wanted = [looked(copy, command) for command in asked]
    for path in log.parent.glob("copy.db*"):
        path.unlink()
    if state == "searched":
        looked(log, ["search", "Oslo"])
    if state == "old":
        make_old(log)
    before = contents(log)
    with read_only(log):
        found = [looked(log, command) for command in asked]
    assert [0] * len(asked) == [code for code, _ in found]
    assert [text.replace("copy.db", "log.db") for _, text in wanted] == [text for _, text in found]
    assert before == contents(log)


def test_what_another_left_in_the_write_ahead_log_is_read(log: Path) -> None:
    """A copy that was made while a program had it open."""
    with closing(sqlite3.connect(log)) as db:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("UPDATE sessions SET name = 'renamed'")
        db.commit()
        shutil.copyfile(f"{log}-wal", log.parent / "kept-wal")
        shutil.copyfile(log, log.parent / "kept")
    (log.parent / "kept").replace(log)
    (log.parent / "kept-wal").replace(f"{log}-wal")
    with read_only(log), thinkback.open(log) as store:
        assert ["renamed"] == [info.name for info in store.sessions()]


@pytest.mark.parametrize("state", ["new", "searched", "old"])
def test_a_backup_of_it_is_whole(log: Path, looked: Looked, state: str) -> None:
    """Where the copy goes may be written, and it says what the log says."""
    with thinkback.open(log) as store:
        wanted = [commit.hash for commit in store.commits("talk")]
    if state == "searched":
        looked(log, ["search", "Oslo"])
    if state == "old":
        make_old(log)
    before = contents(log)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        copy = Path(folder, "copy.db")
        with read_only(log):
            assert 0 == looked(log, ["backup", str(copy)])[0]
        with thinkback.open(copy) as store:
            assert wanted == [commit.hash for commit in store.commits("talk")]
            assert [] == store.fsck()
    assert before == contents(log)


def test_nothing_is_written_to_it(log: Path) -> None:
    """A change is refused, also where a copy is read."""
    make_old(log)
    with read_only(log), thinkback.open(log) as store, pytest.raises(StoreError, match="may only be read"):
        store.care.delete_session("talk")
