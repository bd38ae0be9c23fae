"""The log as a framework's own history uses it: the framework's objects there and back, and a branch that it goes on.

What a framework stores is a step: drafts of what was said, which make an ordinary conversation, and a note at the end.
The note is an annotation; its metadata holds the framework's object under the framework's name, in which each text that
a draft of the step has too is a pointer to it. So texts, signatures and encrypted values stand once, and what is erased
or left out of an export is so for the framework as well: there it is empty.

Promises: what a framework gave comes back equal. A branch changes by compare-and-set alone; the line that it leaves
keeps a name. A log that was opened for a path is shared in the process, and opened anew in one that is forked.
Must not: know a framework.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec

from thinkback.adapters.open_logs import Log, OpenLogs, named
from thinkback.adapters.threads import Threads
from thinkback.drive.clock import now
from thinkback.drive.leases import Holder
from thinkback.drive.shielded import to_the_end
from thinkback.errors import HeadMovedError, SettingError, StoreError, ThinkbackError
from thinkback.log.protocol import About, AppendRequest, Durability, SessionInfo, Store
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.blocks import Origin
from thinkback.model.commits import Annotation, Commit, Draft, Head, Response, Step, surviving
from thinkback.rules import Rulebook
from thinkback.session import config
from thinkback.session.endpoint_config import EndpointConfig
from thinkback.session.ids import new_id
from thinkback.stores import SERVER, open_store

T = TypeVar("T")
_POINTER = "$"
_PLAIN = "="
_KEPT = "host"
_BETWEEN = "\n\n"
_THREADS = 4
_ATTEMPTS = 50
_WINDOW = 32
_numbers = itertools.count(1)


# -- what a note holds -------------------------------------------------------------------------------------------------


def noted(program: str, value: Any, drafts: Sequence[Draft], words: frozenset[str] = frozenset()) -> list[Draft]:
    """``drafts`` with a note behind them that gives ``value`` back (JSON), which says what they say.

    Members called ``words`` are none that anybody said, and stay where they are. Texts of a response that no block of
    it has are kept with its header, which is erased and exported as what is opaque.
    """
    whole = list(drafts)
    at = next((at for at, draft in enumerate(whole) if isinstance(draft.value, Response)), None)
    if at is not None:
        header = whole[at].value
        assert isinstance(header, Response)
        left: dict[str, None] = {}
        _packed(value, _places(whole), words, left)
        if left:
            header = msgspec.structs.replace(header, envelope=canonical.source({_KEPT: list(left)}))
            whole[at] = msgspec.structs.replace(whole[at], value=header)
    return [*whole, note(program, value, whole, words)]


def note(program: str, value: Any, drafts: Sequence[Draft], words: frozenset[str] = frozenset()) -> Draft:
    """The note alone, to stand behind ``drafts``."""
    packed = _packed(value, _places(drafts), words)
    return Draft("annotation", Annotation(metadata=canonical.source({program: packed})))


def _places(drafts: Sequence[Draft]) -> dict[str, list[int | str]]:
    """Where each text of the drafts stands: how many drafts back from behind them, and the way inside."""
    found: dict[str, list[int | str]] = {}
    for back, draft in enumerate(reversed(drafts), 1):
        for path, text in _leaves(canonical.decode(canonical.encode(draft.value)), ()):
            found.setdefault(text, [back, *path])
    return found


def _leaves(value: Any, path: tuple[int | str, ...]) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Every text in ``value``; also those in a text that is JSON, and the paragraphs of any other."""
    if isinstance(value, str):
        yield path, value
        value = _inside(value)
        if len(value) < 2 and isinstance(value, list):
            return
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, (*path, key))


def _inside(text: str) -> Any:
    """What a text is made of."""
    if text[:1] in ("{", "["):
        with suppress(msgspec.DecodeError, UnicodeError):
            return canonical.decode(text)
    return text.split(_BETWEEN)


def _packed(
    value: Any, places: dict[str, list[int | str]], words: frozenset[str], left: dict[str, None] | None = None
) -> Any:
    """``value`` with pointers; what they cannot point at is noted in ``left``."""
    match value:
        case str() if value in places:
            return {_POINTER: places[value]}
        case str() if value and left is not None:
            left[value] = None
        case dict():
            inner = {
                key: held if key in words and isinstance(held, str) else _packed(held, places, words, left)
                for key, held in value.items()
            }
            return {_POINTER: [_PLAIN, inner]} if _POINTER in value else inner
        case list():
            return [_packed(held, places, words, left) for held in value]
    return value


class Note(NamedTuple):
    """A note in a line: ``value`` is what the framework gave, ``start`` what stands before the step that it closes,
    ``head`` the note itself; ``commits`` are those of the step.
    """

    value: Any
    start: Head
    head: Head
    commits: tuple[Commit, ...]


def notes(program: str, commits: Sequence[Commit], *, unpack: bool = True) -> Iterator[Note | list[Commit]]:
    """The notes of ``program`` in a line, or the end of one, and between them what others said: runs of commits that no
    note closes.
    """
    open: list[Commit] = []
    for at, commit in enumerate(commits):
        open.append(commit)
        packed = _metadata(program, commit)
        if packed is None:
            continue
        own = _own(open)
        if len(own) < len(open):
            yield open[: len(open) - len(own)]
        start = Head(own[0].parents[0], own[0].seq - 1) if own[0].parents else Head()
        value = _unpacked(packed, commits, at, {}) if unpack else packed
        yield Note(value, start, head_of(own), tuple(own))
        open = []
    if open:
        yield open


def whole_steps(commits: Sequence[Commit]) -> list[Commit]:
    """The end of a line without the step that it begins in, which may have begun before."""
    return list(itertools.dropwhile(lambda commit: commit.time == commits[0].time, commits))


def _own(commits: list[Commit]) -> list[Commit]:
    """The step that ends with the last of ``commits``: all that was stored at its time."""
    at = len(commits) - 1
    while at and commits[at - 1].time == commits[-1].time:
        at -= 1
    return commits[at:]


def _metadata(program: str, commit: Commit) -> Any:
    value = commit.value
    if not isinstance(value, Annotation) or not value.metadata.startswith(f'{{"{program}":'):
        return None
    return canonical.decode(value.metadata)[program]


def _unpacked(value: Any, commits: Sequence[Commit], at: int, read: dict[int, Any]) -> Any:
    """``value`` with texts in place of pointers; empty ones where what they point at is gone. ``read`` is what of the
    step was read already.
    """
    match value:
        case {"$": ["=", dict() as inner]}:
            return {key: _unpacked(held, commits, at, read) for key, held in inner.items()}
        case {"$": [int() as back, *path]}:
            return _text_at(commits, at - back, path, read)
        case dict():
            return {key: _unpacked(held, commits, at, read) for key, held in value.items()}
        case list():
            return [_unpacked(held, commits, at, read) for held in value]
    return value


def _text_at(commits: Sequence[Commit], at: int, path: Sequence[int | str], read: dict[int, Any]) -> str:
    if at < 0:
        return ""
    try:
        if at not in read:
            read[at] = canonical.decode(canonical.encode(surviving(commits[at].value)))
        value = read[at]
        for step in path:
            value = (_inside(value) if isinstance(value, str) else value)[step]
    except (LookupError, TypeError, msgspec.DecodeError):
        return ""
    return value if isinstance(value, str) else ""


# -- the log -----------------------------------------------------------------------------------------------------------


class _Open(NamedTuple):
    """An open log that its users share."""

    store: Store
    durability: Durability


_logs: OpenLogs[_Open] = OpenLogs()


class FrameworkLog:
    """A log for the histories of ``program``: a path or address, or a store that is open already."""

    def __init__(
        self,
        program: str,
        log: Log,
        *,
        tenant: str = "default",
        durability: Durability = "full",
    ) -> None:
        self.program = program
        self._given, path = named(log)
        self._tenant, self._durability = tenant, durability
        self._made_in = os.getpid()
        self._is_closed = False
        self._threads = Threads(_THREADS, "thinkback-history")
        self._lock = threading.Lock()
        self._used: _Open | None = None
        in_memory = path == ":memory:"
        self._path = path if in_memory or path.startswith(SERVER) else os.path.realpath(path)
        self._place = (f"{path}#{next(_numbers)}" if in_memory else self._path, tenant)
        if self._given is not None and tenant != "default":
            raise SettingError(
                "an open store has its tenant already",
                details={"key": "tenant", "value": tenant},
                next_actions=("give the tenant to thinkback.open",),
            )

    @property
    def store(self) -> Store:
        """The log, opened where this process does not have it open. Raises ``StoreError``."""
        if self._is_closed:
            raise StoreError(f"the store of {self.program} is closed", next_actions=("make another one",))
        if self._given is not None:
            if self._made_in != os.getpid():
                raise StoreError(
                    "the log was opened before this process was forked from another",
                    next_actions=("open it again in each process: two processes cannot share connections",),
                )
            return self._given.log
        used = self._used
        if used is None or _logs.get(self._place) is not used:
            used = self._used = _logs.use(self._place, self, self._opened, self._durability, self._path)
        return used.store

    def _opened(self) -> _Open:
        return _Open(open_store(self._path, self._durability, self._tenant), self._durability)

    @property
    def rulebook(self) -> Rulebook:
        """Endpoints and rules: those of the store, else the user's."""
        return self._given.rulebook if self._given is not None else config.rulebook()

    def vouched(self, endpoint: str) -> Origin:
        """The place and account that a program vouches for. Raises ``NotFoundError``, ``SettingError``."""
        target = EndpointConfig("*", endpoint).target(self.rulebook)
        return Origin(target.endpoint.dialect, target.base_url, "", "", target.account, target.account_known)

    def close(self) -> None:
        """Let go of the log; who closes it last closes the file. Nothing can be stored through this one any more."""
        if self._is_closed:
            return
        self._is_closed = True
        with self._lock:
            made = self._threads.taken()
        if made is not None:
            made.shutdown(wait=True)
        used = _logs.get(self._place)
        if used is not None and _logs.leave(self._place, self):
            used.store.close()

    async def read(self, work: Callable[[], T]) -> T:
        """What ``work`` gives, which reads the log, in a thread."""
        with self._lock:
            _ = self.store
            done = self._threads.run(work)
        return await done

    async def write(self, work: Callable[[], T]) -> T:
        """The same for what writes: it is waited for to its end, also where the caller is cancelled."""
        return await to_the_end(self.read(work))

    # -- a session of it -----------------------------------------------------------------------------------------------

    def find(self, name: str) -> SessionInfo | None:
        """The session of that name; an id of ours is no name that a framework gave."""
        info = self.store.find_session(name)
        return info if info is not None and info.name == name else None

    def begun(self, name: str) -> SessionInfo:
        """The session of that name, made where there is none."""
        return self.find(name) or self.store.create_session(new_id(), name, now(), about=About(program=self.program))

    def retried(self, change: Callable[[], T]) -> T:
        """What ``change`` gives, which stores something where a session stands; again, where another was quicker."""
        for _ in range(_ATTEMPTS - 1):
            with suppress(HeadMovedError):
                return change()
        return change()

    def tail(self, info: SessionInfo, enough: Callable[[list[Commit]], bool]) -> list[Commit]:
        """The end of the current branch, in whole steps: as much of it as is ``enough``, or all."""
        window = _WINDOW
        while True:
            since = max(info.head.seq - window, -1)
            commits = self.store.read(info.id, since, info.branch)
            if since < 0:
                return commits
            whole = whole_steps(commits)
            if enough(whole):
                return whole
            window *= 4

    def append(self, info: SessionInfo, drafts: Sequence[Draft], head: Head) -> Sequence[Commit]:
        """Store a step behind ``head``. Raises ``HeadMovedError``, and ``BusyError`` where a turn is under way."""
        entry = self._entry(info, drafts, head, info.branch)
        try:
            self.store.recognition.record(entry)
        except HeadMovedError:
            self.refuse_leased(info)
            raise
        return entry.commits

    def replace(self, info: SessionInfo, head: Head, base: Head, drafts: Sequence[Draft]) -> Sequence[Commit]:
        """Let the current branch, which is at ``head``, go back to ``base`` and on with ``drafts``.

        What it leaves keeps a branch of its own. Raises as ``append``; nothing has changed then.
        """
        refs, branch = self.store.refs, info.branch
        self.refuse_leased(info)
        made: list[tuple[str, Head]] = []
        number = new_id()[:8]
        try:
            if not self._is_held(info, head):
                refs.create(info.id, f"{branch}-{number}", head, branch)
                made.append((f"{branch}-{number}", head))
            entry = self._entry(info, drafts, base, f"{branch}-{number}-new", via=branch)
            end = head_of(entry.commits) if drafts else base
            if drafts:
                self.store.recognition.record(entry)
                made.append((entry.branch, end))
            refs.move(info.id, branch, head, end, entry.branch if drafts else "")
        except ThinkbackError:
            for name, at in made:
                with suppress(ThinkbackError):
                    refs.delete(info.id, name, at)
            raise
        if drafts:
            refs.delete(info.id, entry.branch, end)
        return entry.commits

    def _is_held(self, info: SessionInfo, head: Head) -> bool:
        """Whether another branch has all of this one already."""
        if head.seq < 0:
            return True
        for other in self.store.refs.list(info.id):
            if other.name != info.branch and other.head.seq >= head.seq:
                first = self.store.read(info.id, head.seq - 1, other.name)
                if first and first[0].hash == head.hash:
                    return True
        return False

    def refuse_leased(self, info: SessionInfo) -> None:
        """Raise ``BusyError`` where somebody has a turn under way on the branch."""
        Holder(self.store, info.id).refuse_leased(info.branch)

    def _entry(
        self, info: SessionInfo, drafts: Sequence[Draft], head: Head, branch: str, via: str = ""
    ) -> AppendRequest:
        step = Step(new_id(), tuple(drafts), now())
        return AppendRequest(
            session=info.id,
            name=info.name,
            created=info.created,
            step=step.id,
            commits=seal(step, head),
            expected=head,
            branch=branch,
            via=via,
            about=About(program=self.program),
        )
