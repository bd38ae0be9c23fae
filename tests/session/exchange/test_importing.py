"""What a file brings into a log that is not empty, or that is of another kind."""

from __future__ import annotations

import io
import secrets
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

import thinkback
from tests.session.exchange.test_exchange import exported, imported
from tests.session.histories import shape
from tests.stores.conftest import OPENERS
from tests.stores.postgres_server import Server
from tests.stores.samples import put, response_step, user_step
from thinkback.errors import ExportFileError, NotFoundError
from thinkback.log.exchange import Header, Tip, commit_line, header_line
from thinkback.log.protocol import Origin, Store
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.commits import Erased, Head
from thinkback.session.exchange.importing import BATCH, import_lines
from thinkback.stores import open_store


@pytest.fixture(params=[*OPENERS, "postgres"])
def any_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty log of each kind."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        opened = open_store(server.url(), tenant=secrets.token_hex(8))
    else:
        opened = OPENERS[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def source() -> Iterator[Store]:
    """A log with a session ``name``, whose id is ``s``: two turns, a branch at the first, a fork of that."""
    log = open_store(":memory:")
    log.create_session("s", "name", 1)
    put(log, "s", user_step("1"))
    first = put(log, "s", response_step("2"))
    log.refs.create("s", "early", head_of(first))
    log.create_session("f", "fork", 2, Origin("s", "early", head_of(first), "try"))
    put(log, "f", user_step("f1", "other"))
    put(log, "s", user_step("3"))
    put(log, "s", response_step("4"))
    log.write_settings("s", {"reasoning.effort": "high"})
    log.refs.switch("s", "early")
    yield log
    log.close()


def info(log: Store, name: str) -> tuple[str, str, int]:
    """Id, name, and how many commits there are on the current branch."""
    found = log.find_session(name)
    assert found is not None
    return found.id, found.name, found.commits


def test_any_log_takes_any_file(source: Store, any_log: Store) -> None:
    """Memory, SQLite and PostgreSQL: the same sessions, family, branches and hashes; twice adds nothing."""
    file = exported(source)
    first, second = imported(any_log, file), imported(any_log, file)
    assert ([10, 1], [0, 0]) == ([s.commits for s in first.sessions], [s.commits for s in second.sessions])
    assert ([True] * 2, [False] * 2) == ([s.made for s in first.sessions], [s.made for s in second.sessions])
    assert shape(source) == shape(any_log)
    assert file == exported(any_log)
    assert [] == list(any_log.fsck())


def test_what_is_shared_is_stored_once(source: Store) -> None:
    """A fork stands on the rows of its parent in the copy too."""
    copy = open_store(":memory:")
    imported(copy, exported(source))
    for log in (source, copy):
        assert 11 == sum(len(log.read_to(session, end.hash)) - base for session, base, end in _segments(log))


def _segments(log: Store) -> Iterator[tuple[str, int, Head]]:
    """(session, where it begins, its end) of each segment of the two sessions."""
    for session, base in (("s", 0), ("f", 5)):
        ends = [end for end in log.care.ends(session) if end.seq >= 0]
        assert 1 == len(ends)
        yield session, base, ends[0]


def test_a_name_that_is_taken_gets_a_number(source: Store) -> None:
    """The session that has it is left alone; the next import knows its own again."""
    copy = open_store(":memory:")
    for id, name in (("x", "name"), ("y", "name-2"), ("name", "z")):
        copy.create_session(id, name, 1)
    for _ in range(2):
        done = imported(copy, exported(source))
        assert ["name-3", "fork"] == [session.name for session in done.sessions]
    assert ("x", "name", 0) == info(copy, "name")
    assert 5 == len(copy.list_sessions())


def test_a_session_is_known_by_its_id(source: Store) -> None:
    """Also where another one is named like that."""
    copy = open_store(":memory:")
    imported(copy, exported(source))
    copy.create_session("q", "s", 3)
    assert [("s", 0), ("f", 0)] == [
        (session.id, session.commits) for session in imported(copy, exported(source)).sessions
    ]


def test_an_id_of_a_deleted_session_is_not_taken_again(any_log: Store, source: Store) -> None:
    """A fork still stands on it: the session comes back under an id of its own, once."""
    imported(any_log, exported(source))
    any_log.care.delete_session("s")
    for made in (True, False):
        back = imported(any_log, exported(source)).sessions[0]
        assert ("name", made, "s-2") == (back.name, made and back.made, back.id)
    assert [] == list(any_log.fsck())


def test_what_went_on_elsewhere_is_added(source: Store) -> None:
    """An old copy is brought up to date: branches move on, new ones are made, settings stay as they are."""
    copy = open_store(":memory:")
    imported(copy, exported(source))
    copy.write_settings("s", {"reasoning.effort": "low"})
    put(source, "f", response_step("f2"))
    found = source.find_session("s")
    assert found is not None
    source.refs.move("s", "early", found.head, source.refs.list("s")[1].head)
    source.refs.create("s", "new", found.head)
    done = imported(copy, exported(source))
    assert [(0, ()), (4, ())] == [(session.commits, session.elsewhere) for session in done.sessions]
    assert source.refs.list("s") == copy.refs.list("s")
    assert ("low", "early") == _settings(copy)
    assert 0 == imported(copy, exported(source)).commits


def _settings(log: Store) -> tuple[str, str]:
    found = log.find_session("s")
    assert found is not None
    return found.settings["reasoning.effort"], found.branch


def test_what_went_on_here_stays(source: Store) -> None:
    """An old file adds nothing to a log that is ahead of it, and says which branches are."""
    copy = open_store(":memory:")
    file = exported(source)
    imported(copy, file)
    put(copy, "f", user_step("f2"))
    before = shape(copy)
    done = imported(copy, file)
    assert (0, ("main",)) == (done.commits, done.sessions[1].elsewhere)
    assert before == shape(copy)


def test_what_went_two_ways_is_kept_twice(source: Store) -> None:
    """The other way gets a branch of its own; nothing is lost, and nothing comes twice."""
    copy = open_store(":memory:")
    imported(copy, exported(source))
    here, there = put(copy, "f", user_step("h", "here")), put(source, "f", user_step("t", "there"))
    for expected in (1, 0):
        done = imported(copy, exported(source))
        assert (expected, ("main",)) == (done.commits, done.sessions[1].elsewhere)
    heads = {branch.name: branch.head for branch in copy.refs.list("f")}
    assert {"main": head_of(here), "main-2": head_of(there)} == heads
    more = put(source, "f", user_step("u", "there again"))
    imported(copy, exported(source))
    assert head_of(more) == {branch.name: branch.head for branch in copy.refs.list("f")}["main-2"]


def test_what_was_erased_here_does_not_come_back(source: Store) -> None:
    """A file from before has it; the log keeps its tombstone."""
    copy = open_store(":memory:")
    file = exported(source)
    imported(copy, file)
    thought = next(commit for commit in copy.read("s") if commit.kind == "reasoning")
    copy.care.erase("s", {thought.hash: canonical.encode(Erased("asked", 1))})
    assert 0 == imported(copy, file).commits
    assert Erased("asked", 1) == copy.find_commit(thought.hash)[1].value


def test_a_file_that_is_refused_leaves_no_empty_session(any_log: Store, source: Store) -> None:
    """Where no commit of a session came before the damage there is nothing of it, and the whole file is taken then."""
    file = exported(source)
    header, first, *rest = file.splitlines(keepends=True)
    for damaged in (b"{}\n", first.replace(b'"kind"', b'"kin"'), first[:40]):
        with pytest.raises(ExportFileError):
            imported(any_log, b"".join([header, damaged, *rest]))
        assert [] == any_log.list_sessions()
    imported(any_log, file)
    assert file == exported(any_log)


@pytest.mark.parametrize("lines", range(1, 13))
def test_a_file_that_was_cut_is_taken_as_far_as_it_goes(source: Store, lines: int) -> None:
    """With an error; what is stored is whole, and the whole file brings the rest."""
    file = exported(source)
    copy = open_store(":memory:")
    cut = b"".join(file.splitlines(keepends=True)[:lines])
    if cut != file:
        with pytest.raises(ExportFileError, match=r"line \d+: "):
            imported(copy, cut)
    assert [] == list(copy.fsck())
    imported(copy, file)
    assert source.refs.list("s") == copy.refs.list("s")
    assert [commit.hash for commit in source.read("f")] == [commit.hash for commit in copy.read("f")]


def test_no_response_is_torn_where_a_batch_ends(tmp_path: Path) -> None:
    """A file that breaks off after any line leaves whole responses, however many commits were stored by then."""
    steps = [response_step(str(number)) for number in range(BATCH)]
    source = open_store(":memory:")
    source.create_session("s", "s", 1)
    for step in steps:
        put(source, "s", step)
    lines = exported(source).splitlines(keepends=True)
    for broken in range(BATCH, BATCH + 8):
        copy = open_store(":memory:")
        with pytest.raises(ExportFileError):
            imported(copy, b"".join(lines[:broken]))
        assert [] == list(copy.fsck())
        stored = sum(len(copy.read(info.id)) for info in copy.list_sessions())
        assert stored in (0, BATCH - BATCH % 4, BATCH)


def test_a_history_is_never_held_as_a_whole(tmp_path: Path) -> None:
    """Five times as many commits take as much memory."""
    peaks = [_peak(tmp_path / f"{count}.db", count) for count in (1_500, 7_500)]
    assert peaks[1] < 1.5 * peaks[0]


def _peak(place: Path, count: int) -> int:
    """The most memory that an import of so many commits has at a time, in bytes."""
    log = open_store(place, "normal")
    head, heads = Head(), []
    for number in range(count):
        head = head_of(seal(user_step("1", "hello " * 50, number), head))
        heads.append(head)
    tip = Tip("main", head.hash, head.seq)
    opening = header_line(Header(id="s", name="s", created=1, family="s", branches=(tip,)))
    above = [Head(), *heads]

    def lines() -> Iterator[bytes]:
        yield opening
        for number in range(count):
            (commit,) = seal(user_step("1", "hello " * 50, number), above[number])
            yield commit_line(commit, "" if number else "main")

    tracemalloc.start()
    try:
        assert count == import_lines(log, lines()).commits
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        log.close()


def test_sessions_must_follow_what_they_were_made_from() -> None:
    """A file without the parent, or without a branch's commits, is no export of ours."""
    child = Header(id="c", name="c", created=1, family="p", parent="p", branches=())
    lost = Header(id="l", name="l", created=1, family="l", branches=(Tip("main", "0" * 64, 3),))
    (apart,) = seal(user_step("1"), Head("0" * 64, 4))
    torn = Header(id="t", name="t", created=1, family="t", branches=(Tip("main", apart.hash, 5),))
    for file, what in (
        ([header_line(child)], "line 1: the session it was forked from"),
        ([header_line(lost)], "line 1: the commits of branch 'main'"),
        ([header_line(torn), commit_line(apart, "main")], "line 2: the parent commit does not"),
    ):
        with pytest.raises(ExportFileError, match=what):
            imported(open_store(":memory:"), b"".join(file))


def test_a_session_without_main_comes_without_it(source: Store) -> None:
    """As it left."""
    head = next(branch.head for branch in source.refs.list("s") if branch.name == "main")
    source.refs.delete("s", "main", head)
    copy = open_store(":memory:")
    imported(copy, exported(source))
    assert ["early"] == [branch.name for branch in copy.refs.list("s")]
    assert source.refs.list("s") == copy.refs.list("s")


def test_files_and_lines_are_taken(source: Store, tmp_path: Path) -> None:
    """By name, as a stream, as a list; a name that is nobody's is told."""
    place = tmp_path / "all.jsonl"
    place.write_bytes(exported(source))
    for given in (place, str(place), io.BytesIO(place.read_bytes()), place.read_bytes().splitlines(keepends=True)):
        with thinkback.open(":memory:") as store:
            assert 11 == store.import_(given).commits
    with thinkback.open(":memory:") as store, pytest.raises(NotFoundError, match="no file"):
        store.import_(tmp_path / "none.jsonl")
