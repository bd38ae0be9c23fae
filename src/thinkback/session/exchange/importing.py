"""Import: sessions from JSON Lines into any log.

Promises: what is there already is not stored again; a response is stored whole or not at all; nothing of what is there
is overwritten: what went another way here gets a branch of its own, and a name that is taken gets a number behind it.
A session that a file made or added to is marked as somebody else's before its first commit is there, and what a file
sets can neither permit anything nor keep the session from being used. A few hundred commits are held at a time.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

import msgspec

from thinkback.drive.clock import now
from thinkback.errors import ExportFileError, IdTakenError, NotFoundError, SettingError
from thinkback.log import exchange
from thinkback.log.exchange import Header, Line
from thinkback.log.leases import is_due
from thinkback.log.lines import holds
from thinkback.log.progress import Meter, Progress
from thinkback.log.protocol import EXPORT_SOURCE, MAIN, Origin, SessionInfo, Store
from thinkback.model import canonical
from thinkback.model.commits import LEFT_OUT, NOT_RECORDED, Commit, Erased, Head, Payload, surviving
from thinkback.session.history.erased_sources import Memory, recall
from thinkback.session.ids import new_id
from thinkback.session.profiles.files import SETTING, listed
from thinkback.session.usage import lines_of
from thinkback.settings import Layers
from thinkback.settings.profiles import names_in
from thinkback.settings.registry import DEFAULT, IMPORTED

BATCH = 500
BATCH_BYTES = 4_000_000
EMPTY = Head()
STAYS_ERASED = "it was erased here, and stays so"
"""Why a session was skipped that was deleted here."""
_PERMITTING = ("permissions.", "shell.")


class ImportedSession(msgspec.Struct, frozen=True):
    """What became of one session of the file. ``commits`` were added; ``made``: it was not there before.

    ``elsewhere`` are branches that stand at another commit here: they went on, or another way. ``left_out`` are
    settings of the file that mean nothing here: keys or values that this version does not know, profiles that are not
    here. ``restored`` commits were there without what an export had left out, and have it now. ``erased`` commits of
    the file were erased here and stay so; ``skipped`` says why nothing of a session was taken in.
    """

    id: str
    name: str
    commits: int
    made: bool
    elsewhere: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    restored: int = 0
    erased: int = 0
    skipped: str = ""


class Imported(msgspec.Struct, frozen=True):
    """What an import did, session by session."""

    sessions: tuple[ImportedSession, ...]

    @property
    def commits(self) -> int:
        """How many commits were added."""
        return sum(session.commits for session in self.sessions)


def import_file(
    log: Store, source: str | os.PathLike[str] | Iterable[bytes], progress: Progress | None = None
) -> Imported:
    """Store what a file holds, or lines; as ``import_lines``. Raises ``NotFoundError`` for a file that is not there."""
    if not isinstance(source, str | os.PathLike):
        return _measured(log, source, Meter(progress, 0, "lines"), lambda _: 1)
    if not os.path.isfile(source):
        name = os.fspath(source)
        raise NotFoundError(f"there is no file {name}", details={"path": name}, next_actions=("check its name",))
    with open(source, "rb") as file:
        return _measured(log, file, Meter(progress, os.fstat(file.fileno()).st_size, "bytes"), len)


def _measured(log: Store, lines: Iterable[bytes], meter: Meter, size: Callable[[bytes], int]) -> Imported:
    done = import_lines(log, meter.over(lines, size))
    meter.end()
    return done


def import_lines(log: Store, lines: Iterable[bytes]) -> Imported:
    """Store what ``lines`` hold. Raises ``ExportFileError``, also where they hold no session, and
    ``FormatVersionError``; what came before stays stored.
    """
    done: list[ImportedSession] = []
    ids: dict[str, str] = {}
    memory = recall(log, entries=True)
    arriving: _Arriving | None = None
    number = 0
    try:
        for at, item in exchange.read(lines):
            number = at
            if isinstance(item, Line):
                if arriving is not None:  # else its session stays erased: the reader wants a header first
                    arriving.take(item)
                continue
            if arriving is not None:
                done.append(arriving.end())
            arriving = None
            if _stays_erased(log, item, ids, memory):
                done.append(ImportedSession(item.id, item.name, 0, False, skipped=STAYS_ERASED))
                ids[item.id] = ""
            else:
                arriving = _open(log, item, ids, memory)
        if arriving is not None:
            done.append(arriving.end())
    except BaseException as error:
        if arriving is not None:
            arriving.withdraw()
        if isinstance(error, ValueError):
            raise exchange.broken(number, str(error)) from None
        raise
    if not done:
        raise ExportFileError(
            "nothing was imported: there is no session in it",
            next_actions=("`thinkback export FILE.jsonl` writes what can be imported",),
        )
    return Imported(tuple(done))


class _Arriving:
    """A session whose commits are coming in, one branch after the other."""

    def __init__(
        self, log: Store, info: SessionInfo, header: Header, made: bool, left_out: tuple[str, ...], memory: Memory
    ) -> None:
        self._log = log
        self._memory = memory
        self._erased = 0
        self._info = info
        self._header = header
        self._made = made
        self._unknown = left_out
        self._left_out = LeftOut(() if made else lines_of(log, info))
        self._fuller: list[Commit] = []
        self._fuller_size = self._restored = 0
        self._heads = {tip.name: Head(tip.head, tip.seq) for tip in header.branches}
        self._added = 0
        self._batch: list[Commit] = []
        self._size = 0
        # The branch of the file, the one that takes it here (empty while all of it is known), and nothing more to do.
        self._wanted, self._branch, self._is_known = "", "", False

    def take(self, line: Line) -> None:
        """The next commit."""
        commit = self._memory.tombstone(line.commit)
        self._erased += commit is not line.commit
        if fuller := self._left_out.fuller(commit):
            self._fuller.append(fuller)
            self._fuller_size += len(fuller.payload)
            if len(self._fuller) >= BATCH or self._fuller_size >= BATCH_BYTES:
                self._restore()
        if line.branch:
            self._flush()
            self._begin(line)
        elif commit.index < 0 and (len(self._batch) >= BATCH or self._size >= BATCH_BYTES):
            self._flush()
        self._batch.append(commit)
        self._size += len(commit.payload)

    def end(self) -> ImportedSession:
        """All commits are there: let the branches point where they do in the file."""
        self._flush()
        self._restore()
        elsewhere = tuple(name for name in self._heads if not self._point(name))
        if self._made:
            self._log.refs.switch(self._info.id, self._header.branch)
            if MAIN not in self._heads:
                self._log.refs.delete(self._info.id, MAIN, self._branches()[MAIN])
        counts = self._added, self._made, elsewhere, self._unknown, self._restored, self._erased
        return ImportedSession(self._info.id, self._info.name, *counts)

    def withdraw(self) -> None:
        """Nothing more comes of a file that is refused: forget the session if it was made and has nothing."""
        if self._made and not self._added:
            self._log.care.delete_session(self._info.id, sweeps=False)

    def _restore(self) -> None:
        """Put back what an earlier export was without."""
        fuller, self._fuller, self._fuller_size = self._fuller, [], 0
        if fuller:
            self._log.care.restore(self._info.id, fuller)
            self._restored += len(fuller)

    def _begin(self, line: Line) -> None:
        commit = line.commit
        above = self._find(_above(commit).hash)
        if commit.parents and (above is None or above.seq + 1 != commit.seq):
            raise ValueError("the parent commit does not appear earlier in the file")
        self._wanted, self._branch = line.branch, ""
        self._is_known = self._find(self._heads[line.branch].hash) is not None

    def _flush(self) -> None:
        batch, self._batch, self._size = self._batch, [], 0
        if self._is_known:
            return
        if not self._branch:
            batch = batch[bisect_left(batch, True, key=lambda commit: self._find(commit.hash) is None) :]
            if not batch:
                return
            self._branch = self._branch_at(_above(batch[0]))
        if not (self._made or self._added):
            self._log.write_settings(self._info.id, {**self._info.settings, IMPORTED: "true"})
            self._note_source()
        self._log.append(self._info.id, new_id(), batch, _above(batch[0]), self._branch)
        self._added += len(batch)

    def _note_source(self) -> None:
        """Remember that not all of a session is from the program whose history it was."""
        about = self._log.summaries([self._info.id])[self._info.id].about
        if about.sources and EXPORT_SOURCE not in about.sources:
            changed = msgspec.structs.replace(about, sources=(*about.sources, EXPORT_SOURCE))
            self._log.describe(self._info.id, changed)

    def _branch_at(self, at: Head) -> str:
        """The branch that goes on at a commit: the one of the file's name, or that name with a number behind it."""
        there = self._branches()
        for name in numbered(self._wanted):
            if self._is_leased(name):
                continue
            if name not in there:
                self._log.refs.create(self._info.id, name, at)
                return name
            if there[name] == EMPTY != at:
                self._log.refs.move(self._info.id, name, EMPTY, at)
                return name
            if there[name] == at:
                return name
        raise AssertionError("numbers do not end")

    def _is_leased(self, name: str) -> bool:
        """Whether somebody has a turn under way on a branch: then what the file has is put beside it."""
        lease = None if self._made else self._log.leases.find(self._info.id, name, now())
        return lease is not None and not is_due(lease.deadline, lease.now)

    def _point(self, name: str) -> bool:
        """Let a branch point where it does in the file, unless it went on or another way here."""
        head, refs, id = self._heads[name], self._log.refs, self._info.id
        found = self._find(head.hash)
        if head != EMPTY and (found is None or found.seq != head.seq):
            raise ValueError(f"the commits of branch {name!r} are not in the file")
        here = self._branches().get(name)
        if here is None:
            refs.create(id, name, head)
        elif here.seq < head.seq and not self._is_leased(name) and holds(self._log.read_to(id, head.hash), here):
            refs.move(id, name, here, head)
        else:
            return here == head
        return True

    def _branches(self) -> dict[str, Head]:
        return {branch.name: branch.head for branch in self._log.refs.list(self._info.id)}

    def _find(self, hash: str) -> Commit | None:
        """The commit of that hash in the session's family."""
        try:
            return self._log.find_commit(hash, self._info.id)[1]
        except NotFoundError:
            return None


class LeftOut:
    """The commits of a session that came by exports which left something out of them. Of a response of which something
    was erased here nothing comes back.
    """

    def __init__(self, lines: Iterable[Iterable[Commit]]) -> None:
        self._parts: dict[str, tuple[Erased, str]] = {}
        torn: set[str] = set()
        for stone, commit in ((each.value, each) for line in lines for each in line if isinstance(each.value, Erased)):
            if stone.reason == LEFT_OUT:
                self._parts[commit.hash] = stone, commit.response
            elif stone.reason != NOT_RECORDED and commit.response:
                torn.add(commit.response)
        self._parts = {hash: part for hash, part in self._parts.items() if part[1] not in torn}

    def fuller(self, commit: Commit) -> Commit | None:
        """The commit with all that it has here and in the file; ``None`` where that is no more than is here."""
        part = self._parts.get(commit.hash)
        if part is None:
            return None
        stone, given = part[0], commit.value
        if isinstance(given, Erased):
            left, more = surviving(stone), surviving(given)
            joined = more if isinstance(left, Erased) else left if isinstance(more, Erased) else _filled(left, more)
            if given.reason != LEFT_OUT or joined == left or isinstance(joined, Erased):
                return None
            given = msgspec.structs.replace(stone, remainder=canonical.encode(joined).decode())
            commit = msgspec.structs.replace(commit, value=given, payload=canonical.encode(given))
            self._parts[commit.hash] = given, part[1]
        else:
            del self._parts[commit.hash]
        return commit


def _filled(value: Payload, other: Payload) -> Payload:
    """A payload with the members of another part of it in place of those that are empty."""
    if type(value) is not type(other):
        return value
    empty = {name: getattr(other, name) for name in value.__struct_fields__ if not getattr(value, name)}
    return msgspec.structs.replace(value, **empty)


def _stays_erased(log: Store, header: Header, ids: Mapping[str, str], memory: Memory) -> bool:
    """Tell if a session was deleted here, or the one that it stands on (which ``ids`` calls by no name)."""
    is_gone = memory.holds_session(header.id) or ids.get(header.parent) == ""
    return is_gone and with_id(log, header.id) is None


def _open(log: Store, header: Header, ids: dict[str, str], memory: Memory) -> _Arriving:
    """The session of ``header``, made if it is not there. ``ids`` says what those before it in the file are called."""
    if header.parent and header.parent not in ids:
        raise ValueError("the session it was forked from does not appear earlier in the file")
    origin = Origin(ids[header.parent], purpose=header.purpose) if ids.get(header.parent) else None
    for id in numbered(header.id):
        info = with_id(log, id)
        made = info is None
        own = _holding(header.settings) if made else {}
        if info is None:
            info = _make(log, id, header, origin, {**own, IMPORTED: "true"})
        if info is not None:
            ids[header.id] = info.id
            unknown = (key for key in header.settings if made and key not in own and not key.startswith(_PERMITTING))
            return _Arriving(log, info, header, made, tuple(unknown), memory)
    raise AssertionError("numbers do not end")


def _holding(settings: Mapping[str, str]) -> dict[str, str]:
    """What of a file's ``settings`` holds here: it permits nothing, and names no profile that is not here."""
    own: dict[str, str] = {}
    for key, value in settings.items():
        is_gone = key == SETTING and value != DEFAULT and not {*names_in(value)} <= {*listed()}
        if is_gone or key.startswith(_PERMITTING):
            continue
        try:
            Layers().set("session", key, value)
        except SettingError:
            continue
        own[key] = value
    return own


def with_id(log: Store, id: str) -> SessionInfo | None:
    """The session of that id, also where another one is called so."""
    found = log.find_session(id)
    if found is None or found.id == id:
        return found
    return next((info for info in log.list_sessions() if info.id == id), None)


def _make(
    log: Store, id: str, header: Header, origin: Origin | None, settings: Mapping[str, str]
) -> SessionInfo | None:
    """The new session; ``None`` where the id is remembered for one that was deleted."""
    for name in numbered(header.name):
        taken = log.find_session(name)
        if taken is not None and taken.name == name:
            continue
        try:
            info = log.create_session(id, name, header.created, origin, settings)
        except IdTakenError:
            return None
        if info.id == id:
            return info
    raise AssertionError("numbers do not end")


def _above(commit: Commit) -> Head:
    return Head(commit.parents[0], commit.seq - 1) if commit.parents else EMPTY


def numbered(name: str) -> Iterator[str]:
    """A name, and that name with numbers behind it."""
    yield name
    yield from (f"{name}-{number}" for number in count(2))
