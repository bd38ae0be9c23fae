"""``store.care``: forgetting sessions, people, times and words; each can be asked first what it would take.

Promises: what is erased is gone wherever the family holds it, on a branch or not, and the chain of hashes verifies as
before. Whoever has read it before, in whatever process, reads it again before anything of it is sent or shown.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from thinkback.drive.clock import now
from thinkback.drive.hooks import Hooks
from thinkback.drive.leases import Holder
from thinkback.errors import BusyError, NotFoundError, StoreError, ThinkbackError
from thinkback.log import erasing
from thinkback.log.agents import directory_of
from thinkback.log.erasing import Order, Rests, SessionHistory
from thinkback.log.progress import Meter, Progress
from thinkback.log.protocol import ERASED_MEMORY, TASK_PURPOSE, About, SessionInfo, Store
from thinkback.log.redacting import Pattern, cut_text, redacted
from thinkback.log.tally import left_of
from thinkback.model import canonical
from thinkback.model.commits import Commit, source_of
from thinkback.session.history import erased_sources
from thinkback.session.history.matching import matching
from thinkback.session.places import owners_of
from thinkback.session.times import Time, microseconds
from thinkback.settings.registry import TITLE
from thinkback.stores.gateway_state import state_beside
from thinkback.stores.gateway_state.state import GatewayState

if TYPE_CHECKING:
    from thinkback.observe.usage_log import UsageLog

EXPIRED = "expired"
"""The reason in place of what a retention erased."""
_STEPS_WAIT = 90 * 86_400_000_000
"""Microseconds for which a step may wait in a spool that is erased here."""


class Gone(msgspec.Struct, frozen=True):
    """A commit that loses its payload or goes itself. ``whole``: nothing of what it said is left."""

    session: str
    hash: str
    kind: str
    seq: int
    time: int
    whole: bool


class Erasure(msgspec.Struct, frozen=True):
    """What was erased, or would be. ``sessions`` are the names of all that lose something: forks share what they stand
    on, so that it is gone for them too. A commit is listed with the first of them. ``files`` are those of other
    programs that the sessions were imported from: they still hold it. ``busy`` are sessions that a retention left as
    they are, since a turn was under way.
    """

    commits: tuple[Gone, ...]
    sessions: tuple[str, ...]
    dry_run: bool
    files: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()


class _Labels(NamedTuple):
    """How a session is called, and what it was made for; ``title`` is what somebody called it, empty for nothing.
    ``about``: what programs say of it, where that changes.
    """

    session: str
    name: str
    purpose: str
    title: str
    about: About | None = None


class _Loss(NamedTuple):
    """The sessions of a family, their histories, what is left of what is to go, and how sessions are called then."""

    family: Sequence[SessionInfo]
    told: Sequence[SessionHistory]
    rests: Rests
    labels: Sequence[_Labels]


class StoreCare:
    """Erasing in one log."""

    def __init__(self, log: Store, tenant: str, place: str = "", usage: UsageLog | None = None) -> None:
        self._log = log
        self._tenant = tenant
        self._place = place
        self._usage = usage
        self._held_office: GatewayState | None = None
        self._holds_office = False

    def delete_session(self, name: str, *, dry_run: bool = False, wait: float = 0, take_over: bool = False) -> Erasure:
        """Forget a session with its branches, and every commit that no other session stands on.

        Raises ``NotFoundError``, and ``BusyError`` where a turn is under way in it for more than ``wait`` seconds; with
        ``take_over`` that turn ends with the session.
        """
        info = self._log.find_session(name)
        if info is None:
            raise NotFoundError(f"there is no session {name!r}", next_actions=("`thinkback sessions` lists them",))
        others = [each for each in self._log.care.family_infos([info.family]) if each.id != info.id]
        held = {commit.hash for told in _histories(self._log, others) for commit in told.history}
        own = _by_hash(_histories(self._log, [info]))
        gone = tuple(_gone(info, commit, True) for hash, commit in own.items() if hash not in held)
        files = erased_sources.files_of(self._log, [info]).get(info.id, [])
        if not dry_run:
            if not take_over:
                self._refuse_leased([info], wait)
            self._order(Order(now(), "deleted", session=info.id))
            self._log.care.begin_erasure()
            erased_sources.remember(self._log, erased_sources.sources_of(self._log, [info]))
            erased = [own[each.hash] for each in gone]
            if info.id != ERASED_MEMORY:
                erased_sources.remember_entries(self._log, erased, [info])
            self._void(erased)
            self._log.care.delete_session(info.id)
            self._forget(erased)
            self._forget_usage(commit.response for commit in erased)
        return Erasure(gone, (info.name,), dry_run, _there(files))

    def purge(
        self,
        *,
        end_user: str = "",
        before: Time | None = None,
        model: str = "",
        program: str = "",
        project: str = "",
        tenant: str = "",
        reason: str = "",
        dry_run: bool = False,
        wait: float = 0,
        progress: Progress | None = None,
    ) -> Erasure:
        """Erase what was said to, by and for ``end_user``, before a time (a date, or microseconds UTC), or in turns
        that ``model`` answered (served or requested); of several, the turns of which all hold. ``program`` and
        ``project``, as a search has them, bound that to sessions; where nothing else is given, those are deleted.
        ``tenant`` alone deletes every session of the tenant that this log was opened for.

        Of such a turn everything goes that was said in it, with what was said about that later.
        Raises ``ThinkbackError`` for another tenant, or where nothing is named; ``BusyError`` where a turn is under way
        for more than ``wait`` seconds in a session that would lose something: nothing of its family is erased then.
        ``progress`` is called with how many commits were looked at, of how many.
        """
        if tenant and tenant != self._tenant:
            raise ThinkbackError(
                f"this log was opened for the tenant {self._tenant!r}, not {tenant!r}",
                details={"tenant": tenant},
                next_actions=(f"open it with tenant={tenant!r}",),
            )
        selection = erasing.Selection(end_user, microseconds(before), model)
        owners = owners_of(self._log, program, project)
        if selection == erasing.Selection():
            if owners is not None:
                return self._delete_owned(owners, program, project, dry_run, wait, progress)
            if not tenant:
                raise ThinkbackError(
                    "nothing to purge was named",
                    next_actions=("give end_user=, before=, model=, program=, project= or tenant=",),
                )
            return self._delete_all(dry_run, wait, progress)
        if not dry_run:
            order = erasing.order_for(selection, now(), reason or "purged", program, project, owners or ())
            self._order(order)
            self._log.care.begin_erasure()
        sizes = self._log.care.family_sizes(selection.before, owners)
        return self._purge_families(
            _families(self._log, sizes),
            selection,
            reason or "purged",
            owners=None if owners is None else frozenset(owners),
            dry_run=dry_run,
            wait=wait,
            meter=_meter(sizes, progress),
        )

    def expire(self, before: int, families: Iterable[Sequence[SessionInfo]], *, dry_run: bool = False) -> Erasure:
        """Erase of whole ``families`` what was said before a time (microseconds UTC), as a retention does it.

        Sessions in which a turn is under way lose nothing; ``busy`` names them, for the next time. A ``sweep`` of the
        log is to follow, once for many calls.
        """
        selection = erasing.Selection(before=before)
        return self._purge_families(families, selection, EXPIRED, dry_run=dry_run, skips_busy=True, sweeps=False)

    def expiring(self, before: int, since: int = 0) -> list[list[SessionInfo]]:
        """The families that may have something to ``expire``: begun before a time, and used ``since`` then."""
        return [
            family
            for family in _families(self._log, self._log.care.family_sizes())
            if min(info.created for info in family) < before and max(info.updated for info in family) >= since
        ]

    def order_expiry(self, before: int) -> None:
        """Have a gateway that stores steps later store nothing of what expires."""
        self._order(erasing.order_for(erasing.Selection(before=before), now(), EXPIRED))
        self._log.care.begin_erasure()

    def _purge_families(
        self,
        families: Iterable[Sequence[SessionInfo]],
        selection: erasing.Selection,
        reason: str,
        *,
        owners: Set[str] | None = None,
        dry_run: bool = False,
        wait: float = 0,
        skips_busy: bool = False,
        sweeps: bool = True,
        meter: Meter | None = None,
    ) -> Erasure:
        """Erase the selected turns of families; with ``owners`` what these sessions hold of them."""
        erasures: list[Erasure] = []
        waiting: list[_Loss] = []
        with self._one_office(), self._swept(dry_run or not sweeps):
            for family in families:
                told = list(_histories(self._log, family))
                mine = told if owners is None else [each for each in told if each.session in owners]
                rests = erasing.bare(_by_hash(told).values(), selection.pick(mine))
                if rests:
                    waiting.append(_Loss(family, told, rests, _without_labels(family, told, rests)))
                if sum(len(loss.rests) for loss in waiting) >= _TOGETHER:
                    erasures += self._erase_together(waiting, reason, dry_run, wait, skips_busy)
                    waiting = []
                if meter is not None:
                    meter.add(_size(family))
            erasures += self._erase_together(waiting, reason, dry_run, wait, skips_busy)
        if meter is not None:
            meter.end()
        return _joined(erasures, dry_run)

    def _erase_together(
        self, losses: Sequence[_Loss], reason: str, dry_run: bool, wait: float, skips_busy: bool
    ) -> Iterator[Erasure]:
        """Erase what families lose, all in one transaction; the log is swept later."""
        free: list[_Loss] = []
        for loss in losses:
            try:
                if not dry_run:
                    self._refuse_leased(loss.family, wait)
            except BusyError:
                if not skips_busy:
                    self._erase(free, reason, dry_run, sweeps=False)
                    raise
                yield Erasure((), (), dry_run, busy=tuple(info.name for info in loss.family))
            else:
                free.append(loss)
        yield self._erase(free, reason, dry_run, sweeps=False)

    def redact(
        self,
        hash: str,
        pattern: str | re.Pattern[str],
        *,
        session: str = "",
        reason: str = "",
        dry_run: bool = False,
        seconds: float = 5,
    ) -> Erasure:
        """Take what ``pattern`` matches out of a commit (a prefix of its hash), of its copies and edits, and of what
        was said about it; the carriers of a response that loses something go.

        Raises ``NotFoundError``, ``ThinkbackError`` for a pattern that is none, and ``PatternTimeout`` after
        ``seconds`` of matching, with nothing erased.
        """
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise ThinkbackError(
                f"{pattern!r} is not a regular expression: {error}", next_actions=("escape it with re.escape",)
            ) from None
        within = self._log.find_session(session) if session else None
        if session and within is None:
            raise NotFoundError(f"there is no session {session!r}", next_actions=("`thinkback sessions` lists them",))
        if not dry_run:
            self._log.care.begin_erasure()
        owner, commit = self._log.find_commit(hash, within.id if within else "")
        family = self._log.care.family_infos([root for root, _ in self._log.care.family_sizes(ids=[owner])])
        if not family:
            raise NotFoundError(
                f"commit {commit.hash[:16]} is of the log's memory of what was erased, which has no words",
                next_actions=(f"`thinkback delete {owner}` forgets it whole",),
            )
        told = [*_histories(self._log, family), SessionHistory(owner, self._log.read_to(owner, commit.hash))]
        with matching(wanted, seconds) as found:
            rests = redacted(told, commit, found)
            summaries = self._log.summaries([info.id for info in family])
            labels = [_cut_labels(info, summaries[info.id].about, found) for info in family]
        if rests and not dry_run:
            self._order(Order(now(), reason or "redacted", messages=erasing.echoed(told, rests.keys())))
        return self._erase([_Loss(family, told, rests, labels)], reason or "redacted", dry_run)

    def _erase(self, losses: Sequence[_Loss], reason: str, dry_run: bool, sweeps: bool = True) -> Erasure:
        """Put tombstones in place of what is to go."""
        losses = [loss for loss in losses if loss.rests]
        if losses and not dry_run:
            time = now()
            erased: list[Commit] = []
            payloads: dict[str, dict[str, bytes]] = {}
            for family, told, rests, labels in losses:
                held = _by_hash(told)
                self._relabel(family, labels)
                self._forget_places(family, held, rests)
                erased += [commit for hash, commit in held.items() if hash in rests]
                payloads[family[0].id] = {
                    hash: canonical.encode(erasing.tombstone(reason, time, rest, source_of(held[hash].value)))
                    for hash, rest in rests.items()
                }
            erased_sources.remember_entries(self._log, erased)
            self._void(erased)
            self._log.care.erase_all(payloads, sweeps=sweeps)
            self._forget(erased)
            self._forget_usage(chain.from_iterable(_answers_of(loss.told, loss.rests.keys()) for loss in losses))
        files = erased_sources.files_of(self._log, chain.from_iterable(loss.family for loss in losses))
        return _joined([_erasure(loss, files, dry_run) for loss in losses], dry_run)

    @contextmanager
    def _swept(self, dry_run: bool) -> Iterator[None]:
        """Around many erasures without ``sweeps``: files and index are overwritten once, also where one fails."""
        epoch = self._log.epoch()
        try:
            yield
        finally:
            if not dry_run and self._log.epoch() != epoch:
                self._log.care.sweep()

    def _relabel(self, family: Sequence[SessionInfo], labels: Iterable[_Labels]) -> None:
        """Call sessions as they are called once words are gone: before, so that nothing outlives them."""
        infos = {info.id: info for info in family}
        for session, name, purpose, title, about in labels:
            info = infos[session]
            if about is not None:
                self._log.describe(session, about)
            settings = {key: value for key, value in info.settings.items() if key != TITLE}
            if title:
                settings[TITLE] = title
            if settings != info.settings:
                self._log.write_settings(session, settings)
            if (name, purpose) == (info.name, info.purpose):
                continue
            there = self._log.find_session(name)
            is_free = there is None or there.name != name or there.id == session
            self._log.relabel(session, name if is_free else f"{name}-{session[:12]}", purpose)

    def _forget_places(self, family: Sequence[SessionInfo], commits: Mapping[str, Commit], rests: Rests) -> None:
        """What a list shows of a session goes with the message that named it: before, so that nothing outlives it."""
        named = set[str]()
        for hash in rests.keys() & commits.keys():
            kind, rest = commits[hash].kind, rests[hash]
            left = directory_of(kind, rest) if rest is not None else ""
            named |= {directory_of(kind, left_of(commits[hash].value))} - {left, ""}
        abouts = self._log.summaries([info.id for info in family]) if named else {}
        for info in family:
            if info.id in abouts and (about := abouts[info.id].about).directory in named:
                sources = tuple(each for each in about.sources if not each.startswith(erased_sources.FILE))
                self._log.describe(info.id, msgspec.structs.replace(about, project="", directory="", sources=sources))

    def _void(self, commits: Iterable[Commit]) -> None:
        """Have a gateway open no sealed value of these commits' responses, which clients may hold, any more."""
        with self._office() as office:
            if office is not None:
                office.erasures.note(self._tenant_there, {commit.response for commit in commits if commit.response})

    def _forget(self, commits: Iterable[Commit]) -> None:
        """Have a gateway give back nothing of what was erased: its kept answers and sealed responses go, too."""
        with self._office() as office:
            if office is not None:
                office.forget(self._tenant_there, {commit.response for commit in commits if commit.response})

    def _forget_usage(self, requests: Iterable[str]) -> None:
        """Take what was asked and answered out of the usage log that this log is used with, where it has texts."""
        if self._usage is None:
            return
        try:
            self._usage.erase({request for request in requests if request})
        except OSError as error:
            raise StoreError(
                f"the usage log {self._usage.path} keeps what was said: it cannot be written ({error.strerror})",
                details={"path": str(self._usage.path)},
                next_actions=("delete it: in the log everything is erased",),
            ) from error

    @contextmanager
    def _office(self) -> Iterator[GatewayState | None]:
        """The state of the gateway that keeps its logs here, if one does."""
        if self._holds_office:
            yield self._held_office
            return
        office = state_beside(self._place) if self._place else None
        with closing(office) if office is not None else nullcontext():
            yield office

    @contextmanager
    def _one_office(self) -> Iterator[None]:
        """Around many erasures: the gateway's state stays open."""
        with self._office() as office:
            self._held_office, self._holds_office = office, True
            try:
                yield
            finally:
                self._held_office, self._holds_office = None, False

    @property
    def _tenant_there(self) -> str:
        """The tenant as a gateway calls it."""
        return self._tenant if "://" in self._place else Path(self._place).stem

    def _order(self, order: Order) -> None:
        """Have a gateway that stores steps later, from its spool, store nothing of what is erased.

        Before the log is erased: a step that is stored in between is erased there.
        """
        with self._office() as office:
            if office is not None:
                office.erasures.add(self._tenant_there, canonical.encode(order), order.time + _STEPS_WAIT)

    def _refuse_leased(self, sessions: Iterable[SessionInfo], wait: float) -> None:
        """Wait while somebody has a turn under way in any of them. Raises ``BusyError`` where it lasts longer."""
        hooks = Hooks()
        hooks.on("notice", warnings.warn)
        for info in sessions:
            holder = Holder(self._log, info.id, hooks)
            holder.wait = wait
            for branch in self._log.refs.list(info.id):
                holder.refuse_leased(branch.name)

    def purge_key(
        self, key: str, *, dry_run: bool = False, wait: float = 0, progress: Progress | None = None
    ) -> Erasure:
        """Delete every session that a gateway recorded for its ``key`` (an id). Raises ``BusyError`` as ``purge``, and
        ``NotFoundError`` where there is none.
        """
        owners = {info.id for info in self._log.list_sessions() if key and info.name.startswith(f"{key}/")}
        if not owners:
            raise NotFoundError(
                f"no session of the key {key!r} is in this log",
                details={"key": key},
                next_actions=("`thinkback gateway keys list --all` lists keys by their ids, with their tenants",),
            )
        return self._delete_owned(owners, "", "", dry_run, wait, progress)

    def _delete_owned(
        self,
        owners: Collection[str],
        program: str,
        project: str,
        dry_run: bool,
        wait: float,
        progress: Progress | None,
    ) -> Erasure:
        """Every session with one of these ids; ``program`` and ``project`` say which more a gateway is to drop that are
        not stored yet.
        """
        ids = frozenset(owners)
        sizes = self._log.care.family_sizes(ids=ids)
        found = [(family, [info for info in family if info.id in ids]) for family in _families(self._log, sizes)]
        whole = [family for family, own in found if len(own) == len(family)]
        rest = [info for family, own in found if 0 < len(own) < len(family) for info in own]
        orders = [Order(now(), "deleted", session=info.id) for family in whole for info in family]
        if program or project:
            order = erasing.order_for(erasing.Selection(), now(), "deleted", program, project)
            orders = [msgspec.structs.replace(order, sessions=True, within=tuple(sorted(ids)))]
        erasures = [self._delete_families(whole, orders, dry_run, wait, progress)]
        erasures += [self.delete_session(info.id, dry_run=dry_run, wait=wait) for info in rest]
        return _joined(erasures, dry_run)

    def _delete_all(self, dry_run: bool, wait: float, progress: Progress | None) -> Erasure:
        """Every session."""
        order = Order(now(), "deleted", sessions=True)
        families = [*_families(self._log, self._log.care.family_sizes())]
        return self._delete_families(families, [order], dry_run, wait, progress)

    def _delete_families(
        self,
        families: Sequence[Sequence[SessionInfo]],
        orders: Iterable[Order],
        dry_run: bool,
        wait: float,
        progress: Progress | None,
    ) -> Erasure:
        """Every session of families; what forks share goes with the last of them."""
        sources = erased_sources.sources_of(self._log, chain.from_iterable(families))
        if not dry_run:
            self._refuse_leased(chain.from_iterable(families), wait)
            for order in orders:
                self._order(order)
            self._log.care.begin_erasure()
        erasures = []
        meter = _meter([("", _size(family)) for family in families], progress)
        with self._one_office(), self._swept(dry_run):
            for family in families:
                files = erased_sources.files_of(self._log, family)
                commits = _by_hash(_histories(self._log, family))
                if not dry_run:
                    erased_sources.remember_entries(self._log, commits.values(), family)
                    self._void(commits.values())
                    for info in family:
                        self._log.care.delete_session(info.id, sweeps=False)
                    self._forget(commits.values())
                    self._forget_usage(commit.response for commit in commits.values())
                gone = tuple(_gone(family[0], commit, True) for commit in commits.values())
                held = _there(file for info in family for file in files.get(info.id, ()))
                erasures.append(Erasure(gone, tuple(info.name for info in family), dry_run, held))
                meter.add(_size(family))
        meter.end()
        if not dry_run:
            erased_sources.remember(self._log, sources)
        return _joined(erasures, dry_run)


def _without_labels(family: Sequence[SessionInfo], told: Sequence[SessionHistory], rests: Rests) -> list[_Labels]:
    """Without purposes and titles of sessions that lose something, and of those that were made from them: both repeat
    what was said. Names are a person's, or a program's own.
    """
    lost = {session for session, history in told if any(commit.hash in rests for commit in history)}
    return [_Labels(info.id, info.name, "", "") for info in family if not lost.isdisjoint((info.id, info.parent))]


def _cut_labels(info: SessionInfo, about: About, pattern: Pattern) -> _Labels:
    """How a session is called without what a pattern matches."""
    name, purpose, title = (cut_text(text, pattern) for text in (info.name, info.purpose, info.settings.get(TITLE, "")))
    is_task = info.purpose.startswith(TASK_PURPOSE)
    purpose = purpose if not is_task or purpose.startswith(TASK_PURPOSE) else ""
    said = (about.program, about.project, about.directory)
    program, project, directory = (text if cut_text(text, pattern) == text else "" for text in said)
    project = project if directory == about.directory else ""  # it is a part of that
    sources = tuple(
        source
        for source in about.sources
        if not source.startswith(erased_sources.FILE) or cut_text(source, pattern) == source
    )
    left = msgspec.structs.replace(about, program=program, project=project, directory=directory, sources=sources)
    return _Labels(info.id, name, purpose, title, left if left != about else None)


def _erasure(loss: _Loss, files: Mapping[str, Sequence[str]], dry_run: bool) -> Erasure:
    """What a family loses, as it is told."""
    names = {info.id: info for info in loss.family}
    losing: dict[str, str] = {}
    gone: dict[str, Gone] = {}
    for session, history in loss.told:
        for commit in history:
            if commit.hash in loss.rests:
                info = names[session]
                losing[session] = info.name
                if commit.hash not in gone:
                    gone[commit.hash] = _gone(info, commit, loss.rests[commit.hash] is None)
    found = _there(file for session in losing for file in files.get(session, ()))
    return Erasure(tuple(gone.values()), tuple(losing.values()), dry_run, found)


_TOGETHER = 200
"""Commits that are erased in one transaction, or those of one family: what waits for it does not wait for long."""
_AT_ONCE = 200
"""Families whose sessions are read together."""


def _families(log: Store, sizes: Sequence[tuple[str, int]]) -> Iterator[list[SessionInfo]]:
    """The sessions of families, as ``family_sizes`` has those, the oldest first."""
    for first in range(0, len(sizes), _AT_ONCE):
        roots = [root for root, _ in sizes[first : first + _AT_ONCE]]
        families: dict[str, list[SessionInfo]] = {root: [] for root in roots}
        for info in log.care.family_infos(roots):
            families[info.family].append(info)
        yield from filter(None, families.values())


def _size(family: Sequence[SessionInfo]) -> int:
    """How many commits there are to look at, about."""
    return sum(info.commits for info in family)


def _meter(sizes: Sequence[tuple[str, int]], progress: Progress | None) -> Meter:
    return Meter(progress, sum(commits for _, commits in sizes), "commits")


def _histories(log: Store, sessions: Sequence[SessionInfo]) -> Iterator[SessionHistory]:
    """Every history of ``sessions``: of their branches, of what no branch reaches, of what was merged from elsewhere.

    One that another of the same session begins with is part of that.
    """
    for info in sessions:
        heads = {branch.head for branch in log.refs.list(info.id)} | set(log.care.ends(info.id))
        waiting = [head.hash for head in sorted(heads, key=lambda head: head.seq) if head.hash]
        seen: set[str] = set()
        while waiting:
            hash = waiting.pop()
            if hash in seen:
                continue
            try:
                history = log.read_to(info.id, hash)
            except NotFoundError:  # the other side of a merge may be gone
                continue
            seen.update(commit.hash for commit in history)
            waiting += [parent for commit in history for parent in commit.parents[1:]]
            yield SessionHistory(info.id, history)


def _answers_of(told: Sequence[SessionHistory], erased: Set[str]) -> Iterator[str]:
    """The requests of each turn that loses something: what was asked in them is what the turn began with."""
    for _, history in told:
        requests: set[str] = set()
        loses = False
        for commit in history:
            if commit.kind == "user" and not commit.edit:
                requests, loses = set(), False
            requests.add(commit.response)
            if loses:
                yield commit.response
            elif commit.hash in erased:
                loses = True
                yield from requests


def _by_hash(told: Iterator[SessionHistory] | Sequence[SessionHistory]) -> dict[str, Commit]:
    return {commit.hash: commit for _, history in told for commit in history}


def _gone(info: SessionInfo, commit: Commit, whole: bool) -> Gone:
    return Gone(info.name, commit.hash, commit.kind, commit.seq, commit.time, whole)


def _there(files: Iterable[str]) -> tuple[str, ...]:
    """Those that are still there."""
    return tuple(file for file in dict.fromkeys(files) if os.path.exists(file))


def _joined(erasures: Sequence[Erasure], dry_run: bool) -> Erasure:
    commits = tuple(commit for erasure in erasures for commit in erasure.commits)
    files = dict.fromkeys(file for erasure in erasures for file in erasure.files)
    names = tuple(name for erasure in erasures for name in erasure.sessions)
    return Erasure(commits, names, dry_run, tuple(files), tuple(name for erasure in erasures for name in erasure.busy))
