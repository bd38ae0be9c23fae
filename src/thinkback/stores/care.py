"""Erasing, deleting, collecting and copying a log.

Promises: what was erased or deleted is gone for every reader when the call returns, and from the files as far as the
database can say; what others stand on stays; a crash leaves each call done or not done (``gc``: partly, and the log
whole). Must not: know what a payload means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from thinkback.log.progress import Meter, Progress
from thinkback.log.protocol import Removed
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


class LogCare:
    """The care of the log in ``database``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def erase(self, session: str, payloads: Mapping[str, bytes], *, sweeps: bool = True) -> int:
        """Put tombstones in place of payloads, wherever in the session's family the commits stand.

        Without ``sweeps`` the caller does that in the end, once for many.
        """
        check_tombstones(payloads)
        self._database.write(_erase, session, payloads, sweeps)
        if sweeps:
            self._database.sweep()
        return len(payloads)

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
        return _sum(removed)

    def backup(self, path: str, progress: Progress | None = None) -> None:
        """A whole copy of the log as of now in a SQLite file, while others go on writing."""
        self._database.backup(path, progress)


def _scrub(rows: Rows) -> None:
    rows.scrub()


def _erase(rows: Rows, session: str, payloads: Mapping[str, bytes], scrubs: bool) -> None:
    _replace(rows, session, {hash: pack(payload, erased=True) for hash, payload in payloads.items()}, True)
    if scrubs:
        rows.scrub()


def _replace(rows: Rows, session: str, stored: Mapping[str, tuple[int, bytes]], unsees: bool) -> None:
    """Let commits have other payloads, as they are stored; it ``unsees`` by what their responses were found."""
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
