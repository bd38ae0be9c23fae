"""Histories of other programs into a log: finds their files, reads them, stores what is not there yet.

Promises: a source is only read. A commit comes out the same each time, so that what is there is found by its hash,
also where it was erased since, and only the rest is appended: one transaction for each session, with the mark that it
was imported; nothing that a file names becomes an id or a file here; nothing opaque in it is ever sent, unless a person
vouched for it, and then to the address that our data has for the endpoint.
Memory: the largest file, and the session that it is of.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from thinkback.drive.clock import now
from thinkback.errors import HeadMovedError, IdTakenError, NotFoundError, SettingError, StoreError
from thinkback.formats.history import Entry, Format, History, Left, Notes, by_content, key_of, placed
from thinkback.formats.registry import program
from thinkback.log.agents import project_of
from thinkback.log.leases import is_due
from thinkback.log.protocol import MAIN, TASK_PURPOSE, About, Arrival, BranchInfo, Origin, SessionInfo, Store
from thinkback.log.seal import seal
from thinkback.model import blocks
from thinkback.model.commits import (
    Commit,
    Compaction,
    Content,
    Draft,
    Erased,
    Head,
    Message,
    Payload,
    Priority,
    Response,
    Step,
    TurnEnded,
    Usage,
)
from thinkback.model.commits import source_of as source_key
from thinkback.model.rule import Endpoint
from thinkback.rules.urls import host_matches, normalise_url, split_address
from thinkback.session.exchange.arriving_lines import Lines, Tombs
from thinkback.session.exchange.history_files import below, head_of, source_of
from thinkback.session.exchange.imported_sightings import with_sightings
from thinkback.session.exchange.importing import STAYS_ERASED, with_id
from thinkback.session.exchange.program_detection import likely, seen
from thinkback.session.history.erased_sources import FILE, Memory, recall
from thinkback.session.usage import lines_of
from thinkback.settings.registry import IMPORTED

if TYPE_CHECKING:
    from thinkback.session.store import SessionStore

MAX_BRANCHES = 500
"""Branches of a session that are taken in, the newest ones."""
MOVED = "somebody else wrote to it: import it again"
"""Why a session was skipped that another program wrote to at the same time."""
_LOOKED_AT = 20
"""Files of a folder that are looked at for which program they are of."""
_TEXT = 1_000
_SPOKEN = frozenset({"user", "response", "branch_summary"})


class Wanted(msgspec.Struct, frozen=True):
    """Which histories: of a program, below ``directory`` or in that file instead of where the program has them, told
    ``since`` (microseconds), of a ``project`` (the name of its folder, or a path above). ``vouched`` is the place that
    a person vouched for.
    """

    program: str
    directory: str = ""
    since: int = 0
    project: str = ""
    dry_run: bool = False
    vouched: blocks.Origin | None = None


class Took(msgspec.Struct, frozen=True):
    """What became of one session. ``commits`` were added, or would be; ``made``: it was not there before. ``erased``
    commits are in the source and were erased here; ``cut`` branches are older than those that were taken in;
    ``skipped`` says why nothing was done.
    """

    source: str
    name: str
    title: str = ""
    project: str = ""
    commits: int = 0
    messages: int = 0
    made: bool = False
    branches: int = 0
    erased: int = 0
    cut: int = 0
    skipped: str = ""


class Gap(msgspec.Struct, frozen=True):
    """What of a file was not taken in."""

    file: str
    left: Left


def vouched(store: SessionStore, endpoint: str, base_url: str = "") -> blocks.Origin:
    """The place and account that a person vouches for: those that our data and this machine have for ``endpoint``.

    ``base_url`` says which of the hosts that our data has for it, where it has no fixed address. Raises
    ``NotFoundError`` for an endpoint that is not known, or whose address nobody says, and ``SettingError`` for a
    ``base_url`` that is none of its hosts.
    """
    from thinkback.session.endpoint_config import EndpointConfig

    if base_url:
        _refuse_other_hosts(store.rulebook.endpoint(endpoint), normalise_url(base_url))
    target = EndpointConfig("*", endpoint, base_url).target(store.rulebook)
    return blocks.Origin(target.endpoint.dialect, target.base_url, "", "", target.account, target.account_known)


def _refuse_other_hosts(endpoint: Endpoint, url: str) -> None:
    """Raise ``SettingError`` for an address that our data does not have for ``endpoint``."""
    if endpoint.base_url:
        why, action = f"{endpoint.id} has an address of its own", "leave it out"
    elif url.startswith("https://") and any(host_matches(each, *split_address(url)) for each in endpoint.hosts):
        return
    else:
        known = ", ".join(f"https://{pattern}" for pattern in endpoint.hosts)
        why = f"{url} is no host of {endpoint.id}"
        action = f"give one of {known}" if known else "describe the endpoint with its address in a rule file"
    raise SettingError(f"base URL: {why}", details={"endpoint": endpoint.id, "value": url}, next_actions=(action,))


class Histories:
    """An import under way. ``take`` may be called again for files that have grown."""

    def __init__(self, log: Store, wanted: Wanted) -> None:
        self._log = log
        self._wanted = wanted
        self._format = program(wanted.program)
        self._memory = Memory()
        self._abouts: dict[str, About] = {}
        self.gaps: list[Gap] = []
        self.empty: set[Path] = set()
        """Files that held no session."""
        self.foreign: set[Path] = set()
        """Files of other programs."""
        self.unread: set[Path] = set()
        """Files that could not be read when that was tried last."""

    def recall(self) -> None:
        """What was erased until now, and what is said of sessions: to be called before ``take``."""
        self._memory = recall(self._log, entries=True)
        self._abouts = {id: summary.about for id, summary in self._log.summaries().items()}

    def files(self) -> list[Path]:
        """The files of the program, those that others hang at first. Raises ``NotFoundError`` for a missing folder."""
        place = Path(self._wanted.directory).expanduser() if self._wanted.directory else _home(self._format)
        if not place.exists():
            raise NotFoundError(
                f"there are no histories of {self._format.name} at {place}",
                details={"path": str(place)},
                next_actions=("name the folder with --dir",),
            )
        if place.is_file():
            return [place]
        if not place.is_dir():
            raise NotFoundError(f"{place} is no file, and no folder", next_actions=("name a file, or a folder",))
        folders = [place / folder for folder in self._format.folders if (place / folder).is_dir()] or [place]
        found = [path for folder in folders for path in below(folder, self._format, self._unreadable)]
        return sorted(found, key=lambda path: (len(path.parts), str(path)))

    def refuse_others(self, path: Path, *, is_read: bool = False) -> None:
        """Raise ``NotFoundError`` for a file that is another program's, as far as its beginning tells; where it
        ``is_read`` and held nothing, also for one that is of none.
        """
        try:
            head = head_of(path)
        except OSError:
            return  # it is named among what was left out
        others = likely(path, head)
        if not head.strip() or self._format.name in others or not (others or is_read):
            return
        if others:
            action = f"it looks like {' or '.join(others)}: name that with --program"
        else:
            action = f"check the file: it is {seen(path, head)}"
        raise NotFoundError(
            f"{path} is no history of {self._format.name}", details={"path": str(path)}, next_actions=(action,)
        )

    def refuse_foreign(self, paths: Sequence[Path]) -> None:
        """Raise ``NotFoundError`` for a folder that a person named and that has only files of other programs."""
        if not (paths and self._wanted.directory and self.foreign.issuperset(paths)):
            return
        found = sorted({name for path in paths[:_LOOKED_AT] for name in likely(path, head_of(path))})
        action = f"name the program with --program: {' or '.join(found)}" if found else "name another folder with --dir"
        raise NotFoundError(
            f"nothing was imported: no file in {self._wanted.directory} is a history of {self._format.name}",
            details={"path": self._wanted.directory},
            next_actions=(action,),
        )

    def _unreadable(self, error: OSError) -> None:
        gap = Gap(str(error.filename), Left(f"it cannot be read ({error.strerror})", 1))
        self.gaps = [each for each in self.gaps if each != gap] + [gap]

    def again(self, path: Path, *, whole: bool) -> Iterator[Took]:
        """What a file holds that may have been read before; what was left out of it then is forgotten."""
        self.gaps = [gap for gap in self.gaps if gap.file != str(path)]
        return self.take(path, whole=whole)

    def take(self, path: Path, *, whole: bool = True) -> Iterator[Took]:
        """What a file holds. What ends with a response that may go on is, without ``whole``, taken up to there."""
        self.unread.discard(path)
        try:
            named = bool(self._wanted.directory) and Path(self._wanted.directory).expanduser() == path
            if not named and (os.stat(path).st_mtime_ns // 1000 < self._wanted.since or not self._is_own(path)):
                return
            notes = Notes()
            read = self._format.read(source_of(path, self._format, notes))
        except (OSError, StoreError) as error:
            why = error.strerror if isinstance(error, OSError) else error.message
            self.gaps.append(Gap(str(path), Left(f"it cannot be read ({why})", 1)))
            self.unread.add(path)
            return
        self.gaps += [Gap(str(path), left) for left in (*notes.left(), *read.left)]
        file = _clean(f"{FILE}{path.absolute()}")
        sessions = [history for history in read.sessions if _is_spoken(history)]
        if len(sessions) < len(read.sessions):
            what = "a session in which nobody says anything"
            self.gaps.append(Gap(str(path), Left(what, len(read.sessions) - len(sessions))))
        if not sessions:
            self.gaps.append(Gap(str(path), Left("it holds no session", 1)))
            self.empty.add(path)
        seen: set[str] = set()
        for history in sessions if whole else filter(None, map(_settled, sessions)):
            if history.id in seen:
                self.gaps.append(Gap(str(path), Left("a session that is there twice", 1)))
            elif self._is_wanted(history):
                took = _Arriving(self._log, self._wanted, history, self._memory, file).store()
                self._note_file(key_of("session", self._wanted.program, history.id), file)
                yield took
            seen.add(history.id)

    def _note_file(self, id: str, file: str) -> None:
        """Remember a file that a session was found in elsewhere than before."""
        about = self._abouts.get(id)
        if about is not None and about.sources and file not in about.sources and not self._wanted.dry_run:
            self._abouts[id] = msgspec.structs.replace(about, sources=(*about.sources, file))
            self._log.describe(id, self._abouts[id])

    def _is_own(self, path: Path) -> bool:
        is_own = self._format.is_own(head_of(path))
        if not is_own:
            self.foreign.add(path)
            self.gaps.append(Gap(str(path), Left(f"it is no history of {self._format.name}", 1)))
        return is_own

    def _is_wanted(self, history: History) -> bool:
        project, directory = self._wanted.project.rstrip("/"), history.directory
        last = max((entry.time for entry in history.entries), default=0)
        is_there = not project or project_of(directory) == project or f"{directory}/".startswith(f"{project}/")
        return is_there and (not self._wanted.since or last >= self._wanted.since)


def _is_spoken(history: History) -> bool:
    """True if anybody says anything in it: a file that was read as another program's has the frame alone."""
    return any(_says(draft.value) for entry in history.entries for draft in entry.drafts)


def _says(value: Payload) -> bool:
    match value:
        case Message():
            return value.text != "" or value.parts != ()
        case Content():
            return value.priority is not Priority.SKIP
        case Response():
            return value.error is not None
        case Usage() | TurnEnded():
            return False
        case _:
            return True


def _settled(history: History) -> History | None:
    """``history`` without a response that nothing follows; ``None`` where nothing is left of it."""
    entries = history.entries
    if not entries or not any(draft.response for draft in entries[-1].drafts):
        return history
    tip = entries[-1].parent if history.tip == entries[-1].id else history.tip
    return msgspec.structs.replace(history, entries=entries[:-1], tip=tip) if len(entries) > 1 else None


class _Sealed(msgspec.Struct):
    """An entry with its commits: ``head`` is the last of its line there, ``root`` the first that was spoken;
    ``is_open``: calls wait for their results, or these for an answer.
    """

    parent: str
    commits: list[Commit]
    head: Head
    root: str
    is_open: bool = False


class _Arriving:
    """One session on its way into the log."""

    def __init__(self, log: Store, wanted: Wanted, history: History, memory: Memory, file: str) -> None:
        self._log = log
        self._wanted = wanted
        self._has_ids = program(wanted.program).has_ids
        self._history = history
        self._is_named = self._has_ids
        self._memory = memory
        self._file = file
        self._cut = 0
        self._id = key_of("session", wanted.program, history.id)
        self._sealed: dict[str, _Sealed] = {}
        self._own: set[str] = set()
        self._known: dict[str, Commit] = {}
        self._imported: list[Payload] = []
        self._tombs = Tombs((), ())

    def store(self) -> Took:
        """Store what is not there yet."""
        history, dry = self._history, self._wanted.dry_run
        known = with_id(self._log, self._id)
        took = Took(history.id, self._name(), _clean(history.title), project_of(_clean(history.directory)))
        if known is None and self._memory.holds(self._source()):
            return msgspec.structs.replace(took, skipped=STAYS_ERASED)
        created = history.created or (known.created if known is not None else now())
        here = [*lines_of(self._log, known)] if known is not None else []
        self._recognise(here, created)
        vouched, stored = self._wanted.vouched, self._origin()
        if stored is not None and vouched is not None and not stored.endpoint:
            why = "it is here without --same-account: import it into another log (--db)"
            return msgspec.structs.replace(took, name=known.name if known is not None else "", skipped=why)
        # What was said of it when it was first stored goes on.
        self._seal(created, vouched if stored is None else stored if stored.endpoint else None, counts=self._counts())
        if known is None and self._is_gone():
            return msgspec.structs.replace(took, skipped=STAYS_ERASED)
        lines = self._merged(known, here)
        info = known
        if (lines.tails or known is None) and not dry:
            try:
                info = self._log.arrive(with_sightings(self._log, self._arrival(known, created, lines)))
            except IdTakenError:
                return msgspec.structs.replace(took, skipped=STAYS_ERASED)
            except HeadMovedError:
                return msgspec.structs.replace(took, name=known.name if known is not None else "", skipped=MOVED)
        commits = [commit for each in self._sealed.values() for commit in each.commits]
        return msgspec.structs.replace(
            took,
            name=info.name if info is not None else took.name,
            made=known is None,
            commits=sum(len(tail.commits) for tail in lines.tails),
            branches=len(self._leaves()),
            cut=self._cut,
            messages=sum(len({*map(_message, each.commits)} - {""}) for each in self._sealed.values()),
            erased=sum(isinstance(commit.value, Erased) for commit in commits),
        )

    def _recognise(self, here: Sequence[Sequence[Commit]], created: int) -> None:
        """Remember what is here: all commits, what readers of histories made of them, and what was erased."""
        self._known = {commit.hash: commit for line in here for commit in line}
        asked = {commit.response for commit in self._known.values() if commit.kind == "request"}
        own = [each for each in self._known.values() if each.response and each.response not in asked]
        self._imported = [each.value for each in own]
        keys = {draft.response for entry in self._history.entries for draft in entry.drafts if draft.response}
        if not self._has_ids and keys.isdisjoint(each.response for each in own):
            self._history = by_content(self._history, self._wanted.program)
        # What an earlier version stored has no ids of messages, and goes on without.
        spoken = [commit.value for commit in self._known.values() if commit.kind in ("user", "content", "compaction")]
        self._is_named = self._has_ids and (not spoken or any(map(source_key, spoken)))
        arriving = (
            (placed(draft, self._wanted.program, source=self._key(entry)), entry.time or created)
            for entry in self._history.entries
            for draft in entry.drafts
        )
        self._tombs = Tombs(self._known.values(), arriving, self._memory, has_ids=self._has_ids)

    def _is_gone(self) -> bool:
        """Tell if all that is said in the history was erased here, in whatever session it stood."""
        commits = [commit for each in self._sealed.values() for commit in each.commits]
        return any(isinstance(each.value, Erased) for each in commits) and not any(
            _says(each.value) for each in commits if not isinstance(each.value, Erased)
        )

    def _name(self) -> str:
        """A name of our letters: what a source calls itself is in it only as far as it is made of them."""
        words = re.sub(r"[^a-z0-9]+", "-", self._history.title.lower())[:40].strip("-")
        return f"{words or self._wanted.program}-{self._id[:8]}"

    def _source(self) -> str:
        """The session as its program calls it."""
        return _clean(f"{self._wanted.program}:{self._history.id}")

    def _arrival(self, known: SessionInfo | None, created: int, lines: Lines) -> Arrival:
        """What is stored, all of it at once; of a session that is there what is new."""
        changes: dict[str, Any] = {"moves": lines.moves, "absorbed": lines.absorbed}
        if known is not None:
            return Arrival(self._id, known.name, created, lines.tails, lines.opened, **changes)
        history = self._history
        parent = with_id(self._log, key_of("session", self._wanted.program, history.parent)) if history.parent else None
        task = " ".join(_clean(history.purpose).split())[:80]
        origin = Origin(parent.id, purpose=f"{TASK_PURPOSE}{task}") if parent is not None else None
        directory = _clean(history.directory)
        about = About(
            self._wanted.program, project_of(directory), directory, (self._source(), self._file), history.cost
        )
        settings = {IMPORTED: "true"}
        return Arrival(
            self._id, self._name(), created, lines.tails, lines.opened, True, origin, settings, about, **changes
        )

    def _key(self, entry: Entry) -> str:
        """A digest of the id that the source has for an entry."""
        return key_of(self._wanted.program, self._history.id, entry.id) if self._is_named else ""

    def _origin(self) -> blocks.Origin | None:
        """The origin that the responses of this source have here, if any is here."""
        origins = [value.origin for value in self._imported if isinstance(value, Response)]
        # One that nobody could vouch for says nothing of the others.
        return next((origin for origin in origins if origin.endpoint), origins[0] if origins else None)

    def _counts(self) -> bool:
        """Whether its usage names the program: where it was stored by an earlier version, it does not."""
        return next((value.program != "" for value in self._imported if isinstance(value, Usage)), True)

    def _seal(self, created: int, vouched: blocks.Origin | None, *, counts: bool) -> None:
        """Give each entry its commits on top of those before it."""
        sealed = self._sealed
        for entry in self._history.entries:
            above, source = sealed.get(entry.parent, _Sealed("", [], Head(), "")), self._key(entry)
            drafts = [
                placed(each, self._wanted.program, vouched, counts=counts, source=source) for each in entry.drafts
            ]
            drafts = [_within(_compacted(draft, above, sealed), above) for draft in drafts]
            time, head = entry.time or created, above.head
            commits: list[Commit] = []
            for draft in drafts:
                (made,) = seal(Step("", (draft,), time), head)
                commits.append(self._tombs.in_place(made))
                head = Head(commits[-1].hash, commits[-1].seq)
            root = above.root or next((commit.hash for commit in commits if commit.kind in _SPOKEN), "")
            sealed[entry.id] = _Sealed(entry.parent, commits, head, root, _is_open(commits, above))
            self._own.update(commit.hash for commit in commits)

    def _leaves(self) -> list[str]:
        """The entries that nothing follows, the one where the source stands first."""
        parents = {entry.parent for entry in self._history.entries}
        found = [entry.id for entry in reversed(self._history.entries) if entry.id not in parents]
        self._cut = max(len(found) - MAX_BRANCHES, 0)
        return sorted(found, key=lambda id: id != self._history.tip)[:MAX_BRANCHES]

    def _merged(self, info: SessionInfo | None, here: Sequence[Sequence[Commit]]) -> Lines:
        """The branches as they are with what the source has more."""
        branches = self._log.refs.list(info.id) if info is not None else [BranchInfo(MAIN, Head(), 0)]
        leased = {branch.name for branch in branches if info is not None and self._is_leased(info, branch)}
        lines = Lines(info.branch if info is not None else MAIN, leased, has_ids=self._has_ids)
        heads = {branch.head.hash for branch in branches}
        held = {c.hash: line[: at + 1] for line in here for at, c in enumerate(line) if c.hash in heads}
        for branch in branches:
            lines.add(branch.name, held.get(branch.head.hash, ()))
        for leaf in self._leaves():
            path = self._path(leaf)
            if path and path[-1].hash not in self._known:
                lines.merge(path, is_tip=leaf == self._history.tip)
        lines.settle(self._own)
        return lines

    def _path(self, leaf: str) -> list[Commit]:
        """The commits of the line that ends with an entry."""
        found: list[list[Commit]] = []
        at: str = leaf
        while at in self._sealed:
            found.append(self._sealed[at].commits)
            at = self._sealed[at].parent
        return [commit for commits in reversed(found) for commit in commits]

    def _is_leased(self, info: SessionInfo, branch: BranchInfo) -> bool:
        lease = self._log.leases.find(info.id, branch.name, now())
        return lease is not None and not is_due(lease.deadline, lease.now)


def _message(commit: Commit) -> str:
    """What makes a message of a commit, once for each."""
    return commit.response or (commit.hash if commit.kind in ("user", "tool_result") else "")


def _compacted(draft: Draft, above: _Sealed, sealed: Mapping[str, _Sealed]) -> Draft:
    """A checkpoint that stands for what was spoken before it, up to the entry that it names."""
    value = draft.value
    if not isinstance(value, Compaction):
        return draft
    last = sealed.get(value.last, above)
    first, end = (last.root, last.head.hash) if last.root else ("", "")
    return msgspec.structs.replace(draft, value=msgspec.structs.replace(value, first=first, last=end))


def _within(draft: Draft, above: _Sealed) -> Draft:
    """What a program put beside an open turn: it does not begin another one, as what a person says does."""
    value = draft.value
    if not (above.is_open and isinstance(value, Content) and value.priority is Priority.SKIP):
        return draft
    return msgspec.structs.replace(draft, value=msgspec.structs.replace(value, role="system"))


def _is_open(commits: Sequence[Commit], above: _Sealed) -> bool:
    """Whether the turn goes on behind an entry."""
    is_open = above.is_open
    for commit in commits:
        if commit.kind in ("user", "turn_ended"):
            is_open = False
        elif commit.kind == "response":
            is_open = True
    return is_open


def _home(format: Format) -> Path:
    """Where the program has its files."""
    named = os.environ.get(format.variable, "") if format.variable else ""
    if not (named or format.home):
        raise NotFoundError(
            f"{format.name} has no folder of its own", next_actions=("name the file, or the folder with --dir",)
        )
    return Path(named) if named else Path.home() / format.home


def _clean(text: str) -> str:
    """A text that a column can hold."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:_TEXT]


def run(log: Store, wanted: Wanted, tell: Callable[[Took], None] = lambda _: None) -> tuple[list[Took], list[Gap]]:
    """Import all that is wanted; ``tell`` hears of each session as it is done."""
    histories = Histories(log, wanted)
    done: list[Took] = []
    paths = histories.files()
    histories.recall()
    is_named = wanted.directory != "" and paths == [Path(wanted.directory).expanduser()]
    for path in paths:
        if is_named:
            histories.refuse_others(path)
        for took in histories.take(path):
            done.append(took)
            tell(took)
        if is_named and path in histories.empty:
            histories.refuse_others(path, is_read=True)
        if is_named and path in histories.unread:
            why = next(gap.left.what for gap in histories.gaps if gap.file == str(path))
            raise NotFoundError(f"{path}: {why}", details={"path": str(path)}, next_actions=("check the file",))
    histories.refuse_foreign(paths)
    return done, histories.gaps
