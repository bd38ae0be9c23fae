"""The spool: what was kept is stored later, once, in order, whatever ended in between; nothing is ever lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers.gateway.harness.steps import SECRET, Recorder, entries
from thinkback.errors import CorruptLogError, StoreError
from thinkback.log.protocol import About, AppendRequest, Store
from thinkback.log.seal import seal
from thinkback.model.commits import Commit, Draft, Message, Step
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.servers.gateway.storing import spool as spooling
from thinkback.servers.gateway.storing import spool_file
from thinkback.servers.gateway.storing.spool import Drained, Spool
from thinkback.stores import open_store

SEALER = Sealer(SECRET)


@pytest.fixture
def store() -> Iterator[Store]:
    """A log."""
    opened = open_store(":memory:")
    yield opened
    opened.close()


@pytest.fixture
def recorder(store: Store) -> Recorder:
    """Stores in that log."""
    return Recorder(store)


def spooled(directory: Path, kept: list[AppendRequest]) -> Spool:
    """A spool with these steps."""
    spool = Spool(directory, SEALER)
    put_all(spool, kept)
    return spool


def put_all(spool: Spool, kept: list[AppendRequest]) -> None:
    """Keep these steps."""
    for entry in kept:
        spool.put("tenant", entry)


def commits_of(kept: list[AppendRequest]) -> list[Commit]:
    """All their commits."""
    return [commit for entry in kept for commit in entry.commits]


def test_what_was_kept_is_stored_as_it_was(tmp_path: Path, store: Store, recorder: Recorder) -> None:
    """Every commit comes back byte for byte, in order, once; the directory is then empty."""
    kept = entries(7)
    spool = spooled(tmp_path, kept)
    assert Drained(7, 0, 0) == spool.drain(recorder)
    assert commits_of(kept) == store.read("s")
    assert Drained(0, 0, 0) == spool.drain(recorder)
    assert [] == list(tmp_path.iterdir())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4), st.text(max_size=20))
@settings(max_examples=30)
def test_any_step_comes_back(tmp_path: Path, texts: list[str], tenant: str) -> None:
    """Whatever is said in it, and to whomever it belongs."""
    step = Step("id", tuple(Draft("user", Message(text)) for text in texts), 5)
    (like,) = entries(1)
    about = About("codex", texts[0], texts[-1])
    entry = AppendRequest(
        "s\n", "näme", -1, "id", seal(step, like.expected), like.expected, "b", "via", like.sightings, about
    )
    found: list[tuple[str, AppendRequest]] = []
    spool = spooled(tmp_path, [])
    spool.put(tenant, entry)
    spool.drain(lambda of, stored: found.append((of, stored)))
    assert [(tenant, entry)] == found


def test_nothing_of_what_was_said_is_readable_on_the_disk(tmp_path: Path) -> None:
    """Files are sealed, private, and in a private directory."""
    directory = tmp_path / "new"
    spooled(directory, entries(3))
    (file,) = directory.iterdir()
    assert b"Rayleigh" not in file.read_bytes()
    assert b"Question" not in file.read_bytes()
    assert (0o700, 0o600) == (directory.stat().st_mode & 0o777, file.stat().st_mode & 0o777)


@pytest.mark.parametrize("allowed", range(7))
def test_a_drain_that_stops_anywhere_goes_on_there(
    tmp_path: Path, store: Store, recorder: Recorder, allowed: int
) -> None:
    """The database goes away after some steps; the same spool, or that of the next process, stores the rest."""
    kept = entries(6)
    spool = spooled(tmp_path, kept)
    recorder.allowed = allowed
    assert Drained(min(allowed, 6), 0, 6 - min(allowed, 6)) == spool.drain(recorder)
    recorder.allowed = 1_000
    if allowed % 2:
        spool.close()
        spool = Spool(tmp_path, SEALER)
    spool.drain(recorder)
    assert commits_of(kept) == store.read("s")
    assert [entry.step for entry in kept] == recorder.stored
    assert [] == list(tmp_path.iterdir())


def test_a_step_that_was_stored_and_not_ticked_off_is_not_stored_twice(
    tmp_path: Path, store: Store, recorder: Recorder
) -> None:
    """As if the process had ended between the two."""

    class Killed(BaseException):
        """The end of the process."""

    def killed(tenant: str, entry: AppendRequest) -> bool:
        recorder(tenant, entry)
        raise Killed

    kept = entries(4)
    for _ in kept:
        spool = spooled(tmp_path, kept if not recorder.stored else [])
        with pytest.raises(Killed):
            spool.drain(killed)
        spool.close()
        if len(recorder.stored) == 1:
            break
    assert Drained(4, 0, 0) == Spool(tmp_path, SEALER).drain(recorder)
    assert [entry.step for entry in kept] == recorder.stored
    assert commits_of(kept) == store.read("s")


def test_a_killed_process_loses_nothing_that_it_had_kept(tmp_path: Path, recorder: Recorder) -> None:
    """kill -9 while it spools: every step that it told of is drained by another process, which could not before."""
    command = [sys.executable, "-m", "tests.servers.gateway.harness.spooler", "put", str(tmp_path), "8000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(20)]
        assert Drained(0, 0, 0) == Spool(tmp_path, SEALER).drain(recorder)
        process.kill()
        told += process.stdout.read().split()
    drained = Spool(tmp_path, SEALER).drain(recorder)
    assert told == recorder.stored[: len(told)]
    assert drained.stored in (len(told), len(told) + 1)
    assert 0 == drained.left


def test_a_process_that_is_killed_while_it_drains_loses_nothing(tmp_path: Path) -> None:
    """The next one goes on; each step is stored once, in order."""
    kept = entries(200)
    spooled(tmp_path / "spool", kept).close()
    stored = tmp_path / "stored"
    spooler = "tests.servers.gateway.harness.spooler"
    command = [sys.executable, "-m", spooler, "drain", str(tmp_path / "spool"), str(stored)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(30):
            process.stdout.readline()
        process.kill()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert [entry.step for entry in kept] == stored.read_text().split()
    assert [] == list((tmp_path / "spool").iterdir())


def test_a_file_that_was_cut_off_gives_all_before_the_cut(tmp_path: Path) -> None:
    """At whatever byte: what was whole is stored, what was not is put aside, and nothing fails."""
    spooled(tmp_path / "made", entries(3)).close()
    (made,) = (tmp_path / "made").iterdir()
    data = made.read_bytes()
    ends = [*[at for at in range(len(data)) if data.startswith(spool_file.WAITS, at)][1:], len(data)]
    for cut in sorted({*range(0, len(data), 7), *ends}):
        directory = tmp_path / str(cut)
        directory.mkdir()
        (directory / made.name).write_bytes(data[:cut])
        got: list[str] = []
        spool = Spool(directory, SEALER)
        drained = spool.drain(partial(_note, got))
        whole = sum(end <= cut for end in ends)
        assert [f"step-{number}" for number in range(whole)] == got
        assert Drained(whole, int(cut not in (0, *ends)), 0) == drained
        assert Drained(0, 0, 0) == spool.drain(partial(_note, got))
        assert [] == list(directory.glob("*.spool"))


@given(st.data())
def test_a_damaged_record_hinders_no_other(tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject) -> None:
    """One byte changed anywhere, often in a head: at most the step that it is of is lost, and put aside."""
    directory = tmp_path_factory.mktemp("spool")
    spooled(directory, [entry for name in "abcd" for entry in entries(1, session=name, name=name)]).close()
    (file,) = directory.iterdir()
    data = bytearray(file.read_bytes())
    length = len(data) // 4
    hit, within = draw.draw(st.integers(0, 3)), draw.draw(st.integers(0, 40) | st.integers(0, length - 1))
    data[hit * length + within] ^= draw.draw(st.integers(1, 255))
    file.write_bytes(data)
    got: list[str] = []
    drained = Spool(directory, SEALER).drain(partial(_note, got))
    expected = ["a-0", "b-0", "c-0", "d-0"]
    assert expected[:hit] + expected[hit + 1 :] == [step for step in got if step != expected[hit]]
    assert (4 - drained.aside, 0) == (drained.stored, drained.left)
    assert [] == list(directory.glob("*.spool"))


def test_a_step_sealed_with_a_secret_that_is_gone_is_put_aside(tmp_path: Path) -> None:
    """It is told, kept for people, and not told again."""
    spooled(tmp_path, entries(2)).close()
    spool = Spool(tmp_path, Sealer(b"another secret that is long enough, too"))
    assert Drained(0, 2, 0) == spool.drain(lambda tenant, entry: None)
    assert Drained(0, 0, 0) == spool.drain(lambda tenant, entry: None)
    assert 2 == len(list((tmp_path / "aside").iterdir()))
    assert [] == list(tmp_path.glob("*.spool"))


def test_a_full_disk_is_told_and_leaves_what_was_kept(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a write or at its end; when there is room again, the spool goes on."""
    first, second, third = entries(3)
    spool = spooled(tmp_path, [first])
    real = os.pwrite

    def half(descriptor: int, data: memoryview, at: int) -> int:
        if len(data) > 10:
            return real(descriptor, data[: len(data) // 2], at)
        raise OSError(errno.ENOSPC, "No space left on device")

    def unsynced(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        with pytest.raises(StoreError, match="does not fit on its disk"):
            spool.put("tenant", second)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", unsynced)
        with pytest.raises(StoreError, match=r"cannot be written \(Input/output error\)"):
            spool.put("tenant", second)
    spool.put("tenant", second)
    spool.put("tenant", third)
    assert Drained(3, 0, 0) == spool.drain(recorder)


def test_a_spool_has_a_largest_size(tmp_path: Path) -> None:
    """All processes share it; what does not fit is refused with what to do, and the rest stays."""
    spooled(tmp_path, entries(2))
    small = Spool(tmp_path, SEALER, largest=3_000)
    with pytest.raises(StoreError, match="is full"):
        put_all(small, entries(20, session="t"))
    assert 2_000 < small.bytes() <= 3_100
    assert small.holds("tenant", "t")
    assert not small.holds("tenant", "s")


def test_what_follows_a_waiting_step_waits_behind_it(tmp_path: Path, recorder: Recorder) -> None:
    """A session is told to wait as long as one of its steps does, and no longer; others are free."""
    kept = entries(2)
    spool = spooled(tmp_path, kept)
    recorder.allowed = 1
    spool.drain(recorder)
    assert spool.holds("tenant", "s")
    assert not spool.holds("another", "s")
    recorder.allowed = 9
    spool.drain(recorder)
    assert not spool.holds("tenant", "s")


def test_what_waits_is_known_by_its_digests_until_it_is_stored(tmp_path: Path, recorder: Recorder) -> None:
    """To the process that kept it, and once it was read to one that took it over; in its tenant and scope alone."""
    kept = entries(3)
    spool = spooled(tmp_path, kept)
    scope = kept[0].sightings[0].scope
    every = frozenset(sighting.digest for entry in kept for sighting in entry.sightings)
    assert (every, frozenset()) == (spool.digests("tenant", scope), spool.digests("another", scope))
    spool.close()

    after = Spool(tmp_path, SEALER)
    assert frozenset() == after.digests("tenant", scope)
    recorder.allowed = 1
    assert Drained(1, 0, 2) == after.drain(recorder)
    left = frozenset(sighting.digest for entry in kept[1:] for sighting in entry.sightings)
    assert (left, frozenset()) == (after.digests("tenant", scope), after.digests("tenant", b"another scope..."))
    recorder.allowed = 2
    assert Drained(2, 0, 0) == after.drain(recorder)
    assert frozenset() == after.digests("tenant", scope)


def test_what_was_damaged_while_it_waited_is_no_longer_known(tmp_path: Path) -> None:
    """The process that kept it does not wait for it any more."""
    kept = entries(1)
    spool = spooled(tmp_path, kept)
    (file,) = tmp_path.glob("*.spool")
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))

    assert Drained(0, 1, 0) == spool.drain(lambda tenant, entry: None)
    assert frozenset() == spool.digests("tenant", kept[0].sightings[0].scope)


def test_steps_of_several_files_are_stored_in_the_order_of_their_times(tmp_path: Path, recorder: Recorder) -> None:
    """A conversation whose requests went to three processes, all of which have ended."""
    kept = entries(6)
    spools = [Spool(tmp_path, SEALER, now=lambda: 1000.0 + len(list(tmp_path.iterdir()))) for _ in range(3)]
    clock = iter(range(100))
    for spool in spools:
        spool._now = lambda: float(next(clock))
    for number, entry in enumerate(kept):
        spools[number % 3].put("tenant", entry)
    for spool in spools:
        spool.close()
    assert Drained(6, 0, 0) == Spool(tmp_path, SEALER).drain(recorder)
    assert [entry.step for entry in kept] == recorder.stored


def test_another_process_that_went_on_meanwhile_gets_a_branch_beside_it(
    tmp_path: Path, store: Store, recorder: Recorder
) -> None:
    """What was spooled stands on a branch, whole, where the conversation parted."""
    kept = entries(4)
    recorder("tenant", kept[0])
    other = seal(Step("other", (Draft("user", Message("Meanwhile.")),), 9), kept[1].expected)
    spool = spooled(tmp_path, kept[1:])
    recorder("tenant", AppendRequest("s", "", 0, "other", other, kept[1].expected))
    assert Drained(3, 0, 0) == spool.drain(recorder)
    assert [*kept[0].commits, *other] == store.read("s")
    (branch,) = [branch.name for branch in store.refs.list("s") if branch.name != "main"]
    assert commits_of(kept) == store.read("s", branch=branch)


def test_a_step_whose_beginning_is_not_there_yet_waits_for_it(tmp_path: Path, store: Store, recorder: Recorder) -> None:
    """Its beginning is in the spool of a process that lives; other sessions are stored meanwhile."""
    first, second = entries(2)
    living = spooled(tmp_path, [first])
    other = entries(1, session="t", name="other")
    spool = spooled(tmp_path, [second, *other])
    assert Drained(1, 0, 1) == spool.drain(recorder)
    assert Drained(1, 0, 0) == living.drain(recorder)
    assert Drained(1, 0, 0) == spool.drain(recorder)
    assert commits_of([first, second]) == store.read("s")


def test_what_was_stored_is_in_no_file_that_stays_for_another(tmp_path: Path, store: Store, recorder: Recorder) -> None:
    """Its bytes are overwritten: who erases it from the log need not look for it here."""
    first, second = entries(2)
    other = entries(1, session="t", name="other")
    living = spooled(tmp_path / "living", [first])
    spool = spooled(tmp_path / "spool", [*other, second])
    (file,) = (tmp_path / "spool").iterdir()
    data = file.read_bytes()
    assert Drained(1, 0, 1) == spool.drain(recorder)
    left = file.read_bytes()
    at = data.rindex(spool_file.WAITS)
    assert (len(data), data[at:]) == (len(left), left[at:])
    assert not left[24:at].strip(b"\0")
    assert [Drained(1, 0, 0)] * 2 == [living.drain(recorder), spool.drain(recorder)]
    assert commits_of([first, second]) == store.read("s")


def test_what_will_never_be_stored_is_put_aside_when_others_are(tmp_path: Path, recorder: Recorder) -> None:
    """After an hour, and only if the database works."""
    time = [1000.0]
    spool = Spool(tmp_path, SEALER, now=lambda: time[0])
    spool.put("tenant", entries(2)[1])
    assert Drained(0, 0, 1) == spool.drain(recorder)
    time[0] += spooling.PATIENCE + 1
    recorder.trouble = CorruptLogError("the log is damaged")
    assert Drained(0, 0, 1) == spool.drain(recorder)
    recorder.trouble = None
    spool.put("tenant", entries(1, session="t")[0])
    assert Drained(1, 1, 0) == spool.drain(recorder)
    assert not spool.holds("tenant", "s")
    assert frozenset() == spool.digests("tenant", entries(1)[0].sightings[0].scope)
    assert [] == list(tmp_path.glob("*.spool"))


def test_a_database_in_trouble_is_asked_three_times_and_no_more(tmp_path: Path) -> None:
    """However much waits."""
    spool = spooled(tmp_path, [entry for number in range(50) for entry in entries(1, session=str(number))])
    asked: list[str] = []

    def failing(tenant: str, entry: AppendRequest) -> None:
        asked.append(entry.session)
        raise StoreError("the database is in trouble")

    assert Drained(0, 0, 50) == spool.drain(failing)
    assert ["0", "1", "2"] == asked


def test_steps_are_kept_while_others_are_drained(tmp_path: Path, recorder: Recorder) -> None:
    """Eight threads put, one drains all the while: every step is stored once."""
    spool = Spool(tmp_path, SEALER)
    over = threading.Event()

    def put(name: str) -> None:
        for entry in entries(12, session=name, name=name):
            spool.put("tenant", entry)

    def drain() -> None:
        while not over.is_set():
            spool.drain(recorder)

    drainer = threading.Thread(target=drain)
    putters = [threading.Thread(target=put, args=(name,)) for name in "abcdefgh"]
    for thread in (drainer, *putters):
        thread.start()
    for thread in putters:
        thread.join()
    over.set()
    drainer.join()
    spool.drain(recorder)
    assert sorted(f"{name}-{number}" for name in "abcdefgh" for number in range(12)) == sorted(recorder.stored)
    assert [] == list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The error says where."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        Spool(tmp_path / "file" / "spool", SEALER).put("tenant", entries(1)[0])


def _note(got: list[str], tenant: str, entry: AppendRequest) -> None:
    got.append(entry.step)
