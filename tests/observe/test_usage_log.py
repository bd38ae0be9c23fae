"""The file of the usage log: who may read it, and what becomes of lines that many processes write."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from thinkback.observe.usage_log import UsageLog

LINES = 200


def rows(path: Path) -> list[dict[str, object]]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It is made so with its directory, and one that others could read is closed to them."""
    path = tmp_path / "state" / "usage.jsonl"
    UsageLog(path).write({"a": 1})
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    path.chmod(0o644)
    UsageLog(path).write({"a": 2})
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [{"a": 1}, {"a": 2}] == rows(path)


def _write(path: Path, name: int, largest: int) -> None:
    log = UsageLog(path, largest=largest)
    for at in range(LINES):
        log.write({"process": name, "line": at, "filler": "x" * (at % 50)})


def test_lines_of_many_processes_stay_whole(tmp_path: Path) -> None:
    """Each line is one write: none is lost, and none stands inside another."""
    path = tmp_path / "usage.jsonl"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(path, name, 10**9)) for name in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    found = [(row["process"], row["line"]) for row in rows(path)]
    assert {(name, at) for name in range(3) for at in range(LINES)} == set(found)
    assert 3 * LINES == len(found)


def test_a_full_file_is_put_aside(tmp_path: Path) -> None:
    """Of two files the older one is overwritten; what is in them is whole."""
    path, aside = tmp_path / "usage.jsonl", tmp_path / "usage.jsonl.1"
    _write(path, 1, 1000)
    assert path.stat().st_size < 1000 <= aside.stat().st_size < 1200
    found = [row["line"] for row in (*rows(aside), *rows(path))]
    assert list(range(LINES - len(found), LINES)) == found


def test_a_file_that_another_process_put_aside_is_not_put_aside_again(tmp_path: Path) -> None:
    """The line goes to the file that was open; the newer one stays where it is."""
    path = tmp_path / "usage.jsonl"
    log = UsageLog(path, largest=1)
    path.write_text("old\n")
    descriptor = os.open(path, os.O_RDWR)
    path.rename(tmp_path / "usage.jsonl.1")
    path.write_text("new\n")
    log._put_aside(descriptor)
    os.close(descriptor)
    assert ("new\n", "old\n") == (path.read_text(), (tmp_path / "usage.jsonl.1").read_text())


def test_a_log_that_cannot_be_written_is_said_once_and_stops_nothing(tmp_path: Path) -> None:
    """What has happened has happened."""
    (tmp_path / "taken").write_text("a file, no directory")
    log = UsageLog(tmp_path / "taken" / "usage.jsonl")
    with pytest.warns(UserWarning, match="cannot be written"):
        log.write({"a": 1})
    log.write({"a": 2})
