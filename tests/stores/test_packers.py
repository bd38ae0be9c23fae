"""Payloads packed by further processes."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from thinkback.log.protocol import MAIN, Arrival, Tail
from thinkback.log.seal import seal
from thinkback.model.commits import Draft, Head, Message, Step
from thinkback.stores import open_store, packers
from thinkback.stores.packers import Packers
from thinkback.stores.packing import packed
from thinkback.stores.rows import to_rows


def _payloads(size: int = 3_000_000) -> list[bytes]:
    """Of all lengths, some as short as those that are packed once for all."""
    chance = Random(3)
    found: list[bytes] = []
    while sum(map(len, found)) < size:
        found.append(chance.randbytes(chance.choice((1, 30, 500, 7_000))).hex().encode() * 10)
    return found


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


def _children() -> set[int]:
    """The processes that this one has started and not waited for."""
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


@pytest.fixture
def before() -> set[int]:
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("this system does not list children")
    return _children()


def test_they_give_the_bytes_that_are_packed_here() -> None:
    """In order, also list after list."""
    every = Packers()
    for size in (3_000_000, 1_500_000, 40_000_000):
        payloads = _payloads(size)
        assert list(map(packed, payloads)) == every.pack(payloads)


def test_few_payloads_start_no_process(before: set[int]) -> None:
    """An append is as it was."""
    every = Packers()
    assert [packed(b"few")] == every.pack([b"few"])
    assert [] == every.pack([])
    assert set() == _children() - before


def test_what_an_ended_process_does_not_give_back_is_packed_here(before: set[int]) -> None:
    """However often, nothing is missing."""
    every, payloads = Packers(), _payloads()
    every.pack(payloads)
    (other,) = _children() - before
    os.kill(other, signal.SIGKILL)
    for _ in range(2):
        assert list(map(packed, payloads)) == every.pack(payloads)


def test_a_python_that_cannot_be_started_packs_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a program that has Python built in."""
    payloads = _payloads()
    failing = tmp_path / "python3"
    failing.symlink_to("/bin/false")
    another = tmp_path / "app"
    another.symlink_to(sys.executable)
    for name in ("", str(tmp_path / "python"), str(failing), str(another)):
        monkeypatch.setattr(sys, "executable", name)
        assert list(map(packed, payloads)) == Packers().pack(payloads)


def test_a_process_ends_with_what_holds_it(before: set[int]) -> None:
    """And is waited for."""
    every = Packers()
    every.pack(_payloads())
    assert 1 == len(_children() - before)
    del every
    gc.collect()
    assert set() == _children() - before


def test_a_fork_has_processes_of_its_own(before: set[int]) -> None:
    """Two that ask one process would get each other's answers, and the first to end would end it for both."""
    every, payloads = Packers(), _payloads()
    wanted = every.pack(payloads)
    (other,) = _children() - before
    child = os.fork()
    if not child:
        is_fine = every.pack(payloads) == wanted and _children() and other not in _children()
        del every
        gc.collect()
        os._exit(0 if is_fine and not _children() else 1)

    assert 0 == os.waitpid(child, 0)[1]
    assert wanted == every.pack(payloads)
    assert {other} == _children() - before


def test_an_answer_to_something_else_is_not_taken(before: set[int]) -> None:
    """Nothing is stored that is not what was to be stored."""
    every, payloads = Packers(), _payloads()
    every.pack(payloads)
    asked = every._others
    assert asked
    packers._ask(asked[0], [b"of another"])
    assert list(map(packed, payloads)) == every.pack(payloads)


def test_a_failure_ends_the_process(before: set[int]) -> None:
    """What it would have answered is not taken for the answer to what follows."""
    every, payloads = Packers(), _payloads()
    every.pack(payloads)
    with pytest.raises(TypeError):
        every.pack(["no bytes" * 20, *payloads])  # type: ignore[list-item]
    assert set() == _children() - before
    assert list(map(packed, payloads)) == every.pack(payloads)


def test_a_long_session_arrives_as_one_commit_would(tmp_path: Path) -> None:
    """Its rows are those that are made without further processes."""
    drafts = [Draft("user", Message(payload.decode())) for payload in _payloads()]
    commits = seal(Step("", tuple(drafts), 1), Head())
    assert to_rows(commits) == to_rows(commits, Packers())
    with closing(open_store(tmp_path / "log.db")) as log:
        log.arrive(Arrival("s", "name", 1, [Tail("step", commits, Head(), MAIN, None)], MAIN, True))
        assert commits == log.read("s")
