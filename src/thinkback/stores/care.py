"""Erasing, deleting, collecting and copying a log.

Promises: what was erased or deleted is gone for every reader when the call returns, and from the files as far as the
database can say; what others stand on stays; a crash leaves each call done or not done (``gc``: partly, and the log
whole). Must not: know what a payload means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from thinkback.log.progress import Meter, Progress
from thinkback.log.protocol import ERASED_MEMORY, Removed, SessionInfo
from thinkback.model.commits import Commit, Erased, Head
from thinkback.stores.branches import held
from thinkback.stores.database import CommitAddress, Cut, Database, Family, Rows
from thinkback.stores.errors import check_restored, check_tombstones, no_commit, no_session
from thinkback.stores.history import key
from thinkback.stores.reachability import left_over, pieces, unreached
from thinkback.stores.rows import pack
from thinkback.stores.summaries import settle_family

AT_ONCE = 5_000
"""Commits that are taken out in one transaction, so that nobody waits long for it."""


STEPS_KNOWN = 90 * 86_400_000_000
"""Microseconds for which a repeated step is known by its id, longer than what may be collected is old: as long as a
step may wait in a spool."""
_JOINED = 1_000


class LogCare:
    """The care of the log in ``database``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def erase(self, session: str, payloads: Mapping[str, bytes], *, sweeps: bool = True) -> int:
        """Put tombstones in place of payloads, wherever in the session's family the commits stand.

        Without ``sweeps`` the caller does that in the end, once for many.
        """
        self.erase_all({session: payloads}, sweeps=sweeps)
        return len(payloads)

    def erase_all(self, payloads: Mapping[str, Mapping[str, bytes]], *, sweeps: bool = True) -> None:
        """The same in several families at once, by a session of each: all of it or nothing."""
        for each in payloads.values():
            check_tombstones(each)
        self._database.write(_erase, payloads, sweeps)
        if sweeps:
            self._database.sweep()

    def family_sizes(self, before: int | None = None, ids: Collection[str] | None = None) -> list[tuple[str, int]]:
        """The families of the log, or some of them, with how many commits their sessions show."""
        return self._database.read(_family_sizes, before, ids)

    def family_infos(self, roots: Collection[str]) -> list[SessionInfo]:
        """The sessions of the families with these roots, the oldest first."""
        return self._database.read(_family_infos, roots)

    def begin_erasure(self) -> int:
        """Count the epoch up before the log is read for what is to be erased; returns it."""
        return self._database.write(_begin_erasure)

    def restore(self, session: str, commits: Sequence[Commit]) -> None:
        """Put back what an export had left out of payloads, wherever in the session's family the commits stand."""
        check_restored(commits)
        stored = {each.hash: pack(each.payload, erased=isinstance(each.value, Erased)) for each in commits}
        self._database.write(_replace, session, stored, False)

    def sweep(self) -> None:
        """Overwrite what files and index still hold of what was erased or deleted before without that."""
        self._database.write(_scrub)
        self._database.sweep()

    def ends(self, session: str) -> list[Head]:
        """The last commit of each segment of the session."""
        return self._database.read(_ends, session)

    def delete_session(self, session: str, *, sweeps: bool = True) -> int:
        """Forget the session with its branches; returns how many commits went with it. ``sweeps`` as for ``erase``."""
        removed = self._database.write(_delete, session, sweeps)
        if sweeps:
            self._database.sweep()
        return removed

    def gc(self, older_than: int, *, dry_run: bool = False, progress: Progress | None = None) -> Removed:
        """Remove commits that no branch reaches and that are older than that; others may write meanwhile."""
        removed: list[Removed] = []
        families = self._database.read(suspects)
        meter = Meter(progress, len(families), "sessions")
        for within in meter.over(families):
            planned, cuts = self._database.read(_plan, within, older_than)
            if dry_run:
                removed.append(planned)
                continue
            removed += [self._database.write(cut, within, one, older_than) for one in cuts]
            self._database.write(_bury, within)
        if not dry_run:
            before = older_than - STEPS_KNOWN
            for within, segment in self._database.read(_old_steps, before):
                self._database.write(_join_steps, within, segment, before)
        return _sum(removed)

    def backup(self, path: str, progress: Progress | None = None) -> None:
        """A whole copy of the log as of now in a SQLite file, while others go on writing."""
        self._database.backup(path, progress)


def _scrub(rows: Rows) -> None:
    rows.scrub()


def _family_sizes(rows: Rows, before: int | None, ids: Collection[str] | None) -> list[tuple[str, int]]:
    return [found for found in rows.family_sizes(before, ids) if found[0] != ERASED_MEMORY]


def _family_infos(rows: Rows, roots: Collection[str]) -> list[SessionInfo]:
    return [info for info in rows.family_infos(roots) if info.id != ERASED_MEMORY]


def _old_steps(rows: Rows, before: int) -> list[tuple[Family, int]]:
    return rows.segments_of_old_steps(before)


def _join_steps(rows: Rows, within: Family, segment: int, before: int) -> int:
    rows.hold_family(within)
    return rows.join_steps(within, segment, before, _JOINED)


def _begin_erasure(rows: Rows) -> int:
    rows.count_erasure()
    return rows.epoch()


def _erase(rows: Rows, payloads: Mapping[str, Mapping[str, bytes]], scrubs: bool) -> None:
    for session in sorted(payloads):  # all hold families in one order
        _replace(rows, session, {hash: pack(each, erased=True) for hash, each in payloads[session].items()}, True)
    if scrubs:
        rows.scrub()


def _replace(rows: Rows, session: str, stored: Mapping[str, tuple[int, bytes]], unsees: bool) -> None:
    """Let commits have other payloads, as they are stored; it ``unsees`` by what their responses were found."""
    rows.count_erasure()
    of, _, _ = held(rows, session)
    replaced = rows.erase(of, stored, unsees=unsees)
    missing = next((hash for hash in stored if hash not in replaced), None)
    if missing is not None:
        raise no_commit(missing, session)
    settle_family(rows, of[:2])


def _ends(rows: Rows, session: str) -> list[Head]:
    of = key(rows, session)
    within = of[:2]
    own = [found for found in rows.segments(within) if found.session == of.session and found.is_there]
    if not own and not rows.branches(of):
        raise no_session(session)
    places = [CommitAddress(found.segment, found.last) for found in sorted(own) if found.last >= 0]
    return [Head(hash.hex(), seq) for seq, hash, _ in filter(None, (rows.commit_at(within, at) for at in places))]


def _delete(rows: Rows, session: str, scrubs: bool) -> int:
    rows.count_erasure()
    of, _, _ = held(rows, session)
    rows.forget_session(of)
    spares = left_over(rows, of[:2])
    for spare in spares:
        rows.remove(of[:2], spare.cut)
    settle_family(rows, of[:2])
    if scrubs:
        rows.scrub()
    rows.bury(of[:2])
    return sum(spare.removed.commits for spare in spares)


def suspects(rows: Rows) -> list[Family]:
    """Families in which something may be spare."""
    return rows.suspects()


def _plan(rows: Rows, within: Family, older_than: int) -> tuple[Removed, list[Cut]]:
    """What can go of a family, and the cuts that take it out."""
    spares = unreached(rows, within, older_than)
    cuts = [one for spare in spares for one in pieces(rows, within, spare, AT_ONCE)]
    return _sum(spare.removed for spare in spares), cuts


def cut(rows: Rows, within: Family, where: Cut, older_than: int | None = None) -> Removed:
    """Take that out, if it is still spare; what was taken out."""
    rows.hold_family(within)
    tail = rows.tail(within, where, older_than)
    if tail.young is not None or rows.is_needed(within, where):
        return Removed(0, 0)
    rows.remove(within, where)
    return Removed(tail.commits, tail.bytes)


def _bury(rows: Rows, within: Family) -> None:
    rows.hold_family(within)
    settle_family(rows, within)
    rows.bury(within)


def _sum(removed: Iterable[Removed]) -> Removed:
    found = list(removed)
    return Removed(sum(one.commits for one in found), sum(one.bytes for one in found))
