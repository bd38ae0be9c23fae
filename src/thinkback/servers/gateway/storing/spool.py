"""The spool: steps that could not be stored because the database was in trouble, kept until they can be.

Promises: a step is on this machine's disk when ``put`` returns, sealed; ``drain`` stores each later, once, those of a
session in their order, whatever process or machine restart came between; a step goes when it was stored and no sooner;
one that is damaged, or that will never be stored, is put aside for people and hinders no other.
Must not: decide when to drain; know a database.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from thinkback.errors import HeadMovedError, IdTakenError, NotFoundError, StoreError, ThinkbackError
from thinkback.log.protocol import About, AppendRequest, Sighting
from thinkback.model.commits import Commit, Head, decode_payload
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.servers.gateway.storing.spool_file import Record, SpoolFile, cannot_write

ENDING = ".spool"
ASIDE = "aside"
_DRAFT = ".draft"
LARGEST = 1 << 30
PATIENCE = 3600.0
"""Seconds after which a step that cannot be stored, although others can, is put aside."""
TRIES = 3
_SCOPE = b"step"
# What a database says that works: the step alone cannot be stored, or not yet.
_DEFINITE = (HeadMovedError, IdTakenError, NotFoundError)

Recorder: TypeAlias = Callable[[str, AppendRequest], object]
"""Stores a step of a tenant, once by its id; raises as ``Recognition.record``."""


class Drained(NamedTuple):
    """How many steps were stored and put aside, and how many wait still."""

    stored: int
    aside: int
    left: int


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A commit as it is kept: its payload byte for byte, its value made from that again."""

    hash: str
    parents: tuple[str, ...]
    seq: int
    kind: str
    payload: bytes
    digest: str
    time: int
    response: str
    index: int
    edit: str


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    tenant: str
    session: str
    name: str
    created: int
    step: str
    expected: tuple[str, int]
    branch: str
    via: str
    sightings: tuple[tuple[bytes, bytes, str], ...]
    commits: tuple[_Row, ...]
    # program, project, directory; steps that were sealed earlier end before them
    about: tuple[str, str, str] = ("", "", "")


class _Item(NamedTuple):
    """A record of a file; items are taken in the order of their times."""

    time: int
    name: str
    record: Record
    file: SpoolFile


class Spool:
    """The spool in ``directory``, which processes share; at most ``largest`` bytes. For any number of threads."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        sealer: Sealer,
        largest: int = LARGEST,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._directory, self._sealer = Path(directory), sealer.of("spool")
        self._largest, self._now = largest, now
        self._lock, self._draining = threading.Lock(), threading.Lock()
        self._current: SpoolFile | None = None
        self._full: dict[str, SpoolFile] = {}
        self._waiting: dict[tuple[str, str], int] = {}
        # By tenant and scope the digests of what waits, each with the step that it was noted for last.
        self._digests: dict[tuple[str, bytes], dict[bytes, str]] = {}
        self._ours: set[str] = set()
        self._last = 0

    def put(self, tenant: str, entry: AppendRequest) -> None:
        """Keep a step. Raises ``StoreError`` where it does not fit, and then nothing of it is kept."""
        data = self._sealer.seal_bytes(_encode(tenant, entry), _SCOPE)
        of = (tenant, entry.session)
        with self._lock:
            used = self.bytes()
            if used + len(data) > self._largest:
                raise _too_full(self._directory, used, self._largest)
            if self._current is None:
                self._current = self._begin()
            self._last = max(self._last + 1, int(self._now() * 1_000_000))
            self._current.append(self._last, data)
            self._waiting[of] = self._waiting.get(of, 0) + 1
            self._note(tenant, entry)

    def holds(self, tenant: str, session: str) -> bool:
        """Whether steps of a session wait here that this process spooled: what follows them must wait too."""
        return (tenant, session) in self._waiting

    def digests(self, tenant: str, scope: bytes) -> frozenset[bytes]:
        """By what the steps that wait here will be found: those of this process, and those that a drain left."""
        with self._lock:
            return frozenset(self._digests.get((tenant, scope), ()))

    def bytes(self) -> int:
        """How much all processes keep here, done or not."""
        try:
            with os.scandir(self._directory) as found:
                return sum(each.stat().st_size for each in found if each.name.endswith(ENDING))
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def drain(self, record: Recorder) -> Drained:
        """Store what waits, the oldest first, also what a process left behind that has ended.

        Stops, with the rest left, when the database is still in trouble. One drain of a process at a time.
        """
        with self._draining:
            files = self._take()
            run = _Drain(self, record)
            try:
                run.store(heapq.merge(*map(_items, files)))
            finally:
                self._leave(files)
            return Drained(run.stored, run.aside, run.left)

    def close(self) -> None:
        """End the locks; what waits is drained by whoever opens the directory next."""
        with self._lock:
            files = [*self._full.values(), *([self._current] if self._current else [])]
            self._current, self._full = None, {}
        for file in files:
            file.close()

    def _begin(self) -> SpoolFile:
        """A new file of this process."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            while True:
                name = f"{int(self._now() * 1_000_000):020}-{os.getpid()}-{secrets.token_hex(4)}{ENDING}"
                file = SpoolFile.open(self._directory / name, new=True)
                if file is not None:  # else another process took it to be left behind
                    self._ours.add(name)
                    return file
        except OSError as error:
            raise cannot_write(self._directory, error) from error

    def _take(self) -> list[SpoolFile]:
        """Our files and those that nobody holds. New steps go to another file from here on."""
        with self._lock:
            if self._current is not None:
                self._full[self._current.path.name] = self._current
                self._current = None
            for path in sorted(self._directory.glob(f"*{ENDING}")):
                if path.name not in self._full:
                    file = _opened(path)
                    if file is not None:
                        self._full[path.name] = file
            return list(self._full.values())

    def _leave(self, files: Iterable[SpoolFile]) -> None:
        """Remove the files in which nothing waits; the others stay ours, with that alone."""
        for file in files:
            if not any(record.whole or not self._aside(file, record).exists() for record in file.records()):
                file.remove()
                with self._lock:
                    self._full.pop(file.path.name, None)
                    self._ours.discard(file.path.name)
                    if not self._ours:
                        self._waiting.clear()
                    if not self._full and self._current is None:
                        self._digests.clear()
            else:
                file.wipe()

    def left(self, tenant: str, entry: AppendRequest) -> None:
        """A step of a drain goes on waiting, whoever kept it."""
        with self._lock:
            self._note(tenant, entry)

    def _note(self, tenant: str, entry: AppendRequest) -> None:
        for sighting in entry.sightings:
            self._digests.setdefault((tenant, sighting.scope), {})[sighting.digest] = entry.step

    def done(self, item: _Item, tenant: str, entry: AppendRequest) -> None:
        """Tick a step off."""
        item.file.tick(item.record)
        with self._lock:
            for sighting in entry.sightings:
                noted = self._digests.get((tenant, sighting.scope), {})
                if noted.get(sighting.digest) == entry.step:
                    del noted[sighting.digest]
                if not noted:
                    self._digests.pop((tenant, sighting.scope), None)
            of = (tenant, entry.session)
            if item.name not in self._ours:
                return
            if self._waiting.get(of, 0) > 1:
                self._waiting[of] -= 1
            else:
                self._waiting.pop(of, None)

    def opened(self, item: _Item) -> tuple[str, AppendRequest] | None:
        """(tenant, step) of a record; ``None`` where it is damaged, or was sealed with a secret that is gone."""
        data = item.file.read(item.record) if item.record.whole else None
        plain = None if data is None else self._sealer.open_bytes(data, _SCOPE)
        return None if plain is None else _decode(plain)

    def put_aside(self, item: _Item) -> bool:
        """Keep the bytes of a record for people; ``False`` if they were before. Raises ``StoreError``."""
        path = self._aside(item.file, item.record)
        if path.exists():
            return False
        _replace_file(path, item.file.raw(item.record))
        return True

    def mend_aside(self, left: Callable[[str, AppendRequest], AppendRequest | None]) -> int:
        """Leave of each step that was put aside what ``left`` gives for it, of ``None`` nothing; how many it changed.

        One that cannot be opened stays as it is. Raises ``StoreError``.
        """
        changed = 0
        for path in sorted((self._directory / ASIDE).glob("*")):
            found = self._opened_aside(path)
            if found is None:
                continue
            tenant, entry = found
            rest = left(tenant, entry)
            if rest is None:
                path.unlink(missing_ok=True)
            elif list(rest.commits) != list(entry.commits):
                _replace_file(path, self._sealer.seal_bytes(_encode(tenant, rest), _SCOPE))
            else:
                continue
            changed += 1
        return changed

    def _opened_aside(self, path: Path) -> tuple[str, AppendRequest] | None:
        try:
            plain = None if path.suffix == _DRAFT else self._sealer.open_bytes(path.read_bytes(), _SCOPE)
        except FileNotFoundError:  # a person took it away
            return None
        except OSError as error:
            raise cannot_write(path.parent, error) from error
        return None if plain is None else _decode(plain)

    def is_old(self, item: _Item) -> bool:
        """Whether a step has waited for longer than it should."""
        return item.time < (self._now() - PATIENCE) * 1_000_000

    def _aside(self, file: SpoolFile, record: Record) -> Path:
        return self._directory / ASIDE / f"{file.path.stem}-{record.offset}"


class _Drain:
    """One drain: what it did, which sessions wait because an earlier step of theirs does."""

    def __init__(self, spool: Spool, record: Recorder) -> None:
        self._spool, self._record = spool, record
        self.stored = self.aside = self.left = 0
        self._held: set[tuple[str, str]] = set()
        self._moved: dict[tuple[str, str, str], str] = {}

    def store(self, items: Iterator[_Item]) -> None:
        """Store ``items``."""
        failures, answers, stuck = 0, False, []
        for item in items:
            found = self._spool.opened(item)
            if found is None:
                self._put_aside(item)
                continue
            tenant, entry = found
            of = (tenant, entry.session)
            if failures >= TRIES or of in self._held:
                self._leave(tenant, entry)
                continue
            try:
                self._store(tenant, entry)
            except ThinkbackError as error:
                self._held.add(of)
                self._leave(tenant, entry)
                stuck.append((item, tenant, msgspec.structs.replace(entry, commits=())))
                if isinstance(error, _DEFINITE):
                    answers = True
                else:
                    failures += 1
            else:
                failures, answers = 0, True
                self.stored += 1
                self._spool.done(item, tenant, entry)
        if answers:
            self._give_up([each for each in stuck if self._spool.is_old(each[0])])

    def _store(self, tenant: str, entry: AppendRequest) -> None:
        """Store one step, on a branch of its own where another process went on from its place meanwhile."""
        of = (tenant, entry.session, entry.branch)
        if of in self._moved:
            entry = msgspec.structs.replace(entry, branch=self._moved[of], via="")
        try:
            self._record(tenant, entry)
        except HeadMovedError:
            branch = f"{entry.branch}-{hashlib.sha256(entry.step.encode()).hexdigest()[:8]}"
            self._record(tenant, msgspec.structs.replace(entry, branch=branch, via=""))
            self._moved[of] = branch

    def _leave(self, tenant: str, entry: AppendRequest) -> None:
        self.left += 1
        self._spool.left(tenant, entry)

    def _give_up(self, stuck: Iterable[tuple[_Item, str, AppendRequest]]) -> None:
        for item, tenant, entry in stuck:
            self._put_aside(item)
            self._spool.done(item, tenant, entry)
            self.left -= 1

    def _put_aside(self, item: _Item) -> None:
        self.aside += self._spool.put_aside(item)
        item.file.tick(item.record)


def _replace_file(path: Path, data: bytes) -> None:
    """Put a file there, whole or not at all. Raises ``StoreError``."""
    draft = path.with_suffix(_DRAFT)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except OSError as error:
        raise cannot_write(path.parent, error) from error


def _opened(path: Path) -> SpoolFile | None:
    try:
        return SpoolFile.open(path)
    except FileNotFoundError:  # drained by another process meanwhile
        return None
    except OSError as error:
        raise cannot_write(path.parent, error) from error


def _items(file: SpoolFile) -> Iterator[_Item]:
    time = 0
    for record in file.records():
        time = record.time or time
        yield _Item(time, file.path.name, record, file)


def _encode(tenant: str, entry: AppendRequest) -> bytes:
    kept = _Kept(
        tenant,
        entry.session,
        entry.name,
        entry.created,
        entry.step,
        (entry.expected.hash, entry.expected.seq),
        entry.branch,
        entry.via,
        tuple((sighting.scope, sighting.digest, sighting.response) for sighting in entry.sightings),
        tuple(
            _Row(
                each.hash,
                each.parents,
                each.seq,
                each.kind,
                each.payload,
                each.digest,
                each.time,
                each.response,
                each.index,
                each.edit,
            )
            for each in entry.commits
        ),
        (entry.about.program, entry.about.project, entry.about.directory),
    )
    try:
        return msgspec.msgpack.encode(kept)
    except UnicodeEncodeError as error:
        raise StoreError("a step cannot be kept: it holds text that is not valid Unicode") from error


def _decode(data: bytes) -> tuple[str, AppendRequest] | None:
    try:
        kept = msgspec.msgpack.decode(data, type=_Kept)
        commits = [_commit(row) for row in kept.commits]
    except msgspec.DecodeError:  # sealed by a program of another version
        return None
    entry = AppendRequest(
        kept.session,
        kept.name,
        kept.created,
        kept.step,
        commits,
        Head(*kept.expected),
        kept.branch,
        kept.via,
        [Sighting(*sighting) for sighting in kept.sightings],
        About(*kept.about),
    )
    return kept.tenant, entry


def _commit(row: _Row) -> Commit:
    return Commit(
        hash=row.hash,
        parents=row.parents,
        seq=row.seq,
        kind=row.kind,  # type: ignore[arg-type]
        value=decode_payload(row.payload),
        payload=row.payload,
        digest=row.digest,
        time=row.time,
        response=row.response,
        index=row.index,
        edit=row.edit,
    )


def _too_full(directory: Path, used: int, largest: int) -> StoreError:
    return StoreError(
        f"the spool {directory} is full: {used} of {largest} bytes are used",
        details={"path": str(directory), "bytes": used, "largest": largest},
        next_actions=("nothing of this step was kept: bring the database back, and the spool empties itself",),
    )
