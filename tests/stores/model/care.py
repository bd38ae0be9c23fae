"""Erasing, deleting and collecting in a log in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from tests.stores.model.log import MemoryLog, Place, Segment
from thinkback.errors import StoreError
from thinkback.log.progress import Progress
from thinkback.log.protocol import Removed, SessionInfo
from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Head, decode_payload
from thinkback.stores.database import Cut
from thinkback.stores.errors import check_restored, check_tombstones, no_commit
from thinkback.stores.reachability import Reach, Run

_Number = tuple[int, int]


class MemoryCare:
    """The care of one log."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def sweep(self) -> None:
        """Nothing: there are no files."""

    def family_sizes(self, before: int | None = None, ids: Collection[str] | None = None) -> list[tuple[str, int]]:
        """The families of the log, or some of them, with how many commits their sessions show."""
        with self._log.lock:
            old = {place.segment.session.family for place in self._log.places() if place.commit.time < (before or 0)}
            infos = [session.info() for session in self._log.sessions.values()]
        families: dict[str, list[SessionInfo]] = {}
        for info in sorted(infos, key=lambda info: (info.created, info.family)):
            families.setdefault(info.family, []).append(info)
        return [
            (root, sum(info.commits for info in family))
            for root, family in families.items()
            if (before is None or root in old) and (ids is None or any(info.id in ids for info in family))
        ]

    def family_infos(self, roots: Collection[str]) -> list[SessionInfo]:
        """The sessions of the families with these roots, the oldest first."""
        with self._log.lock:
            infos = [session.info() for session in self._log.sessions.values()]
        return sorted((info for info in infos if info.family in roots), key=lambda info: (info.created, info.id))

    def begin_erasure(self) -> int:
        """Count the epoch up before the log is read for what is to be erased; returns it."""
        with self._log.lock:
            self._log.epoch += 1
            return self._log.epoch

    def erase(self, session: str, payloads: Mapping[str, bytes], *, sweeps: bool = True) -> int:
        """Put tombstones in place of payloads, wherever in the session's family the commits stand."""
        check_tombstones(payloads)
        self._replace(session, payloads, unsees=True)
        return len(payloads)

    def erase_all(self, payloads: Mapping[str, Mapping[str, bytes]], *, sweeps: bool = True) -> None:
        """The same in several families at once."""
        for session, each in payloads.items():
            self.erase(session, each)

    def _replace(self, session: str, payloads: Mapping[str, bytes], *, unsees: bool) -> None:
        with self._log.lock:
            found = self._log.session(session)
            self._log.epoch += 1
            places = [place for place in self._log.places(found.family) if place.commit.hash in payloads]
            missing = payloads.keys() - {place.commit.hash for place in places}
            if missing:
                raise no_commit(min(missing), session)
            if unsees:  # what is visible of a conversation is not what is stored of it any more
                self._log.unsee(lambda place: place.segment.session.family == found.family)
            for place in places:
                payload = payloads[place.commit.hash]
                place.segment.commits[place.position] = msgspec.structs.replace(
                    place.commit, value=decode_payload(payload), payload=payload
                )

    def restore(self, session: str, commits: Sequence[Commit]) -> None:
        """Put back what an export had left out of payloads."""
        check_restored(commits)
        self._replace(session, {commit.hash: commit.payload for commit in commits}, unsees=False)

    def ends(self, session: str) -> list[Head]:
        """The last commit of each segment of the session."""
        with self._log.lock:
            found = self._log.session(session)
            return [head_of(segment.commits) for segment in self._log.segments if segment.session is found]

    def delete_session(self, session: str, *, sweeps: bool = True) -> int:
        """Forget the session with its branches; returns how many commits went with it."""
        with self._log.lock:
            found = self._log.session(session)
            self._log.epoch += 1
            del self._log.sessions[session], self._log.names[found.name]
            self._log.gone[session] = found
            self._log.unsee(lambda place: place.segment.session is found)
            ends = [
                (at, len(segment.commits) - 1)
                for at, segment in enumerate(self._log.segments)
                if segment.session.id in self._log.sessions or segment.session.family != found.family
            ]
            reach = self._reach()
            reach.add(ends)
            removed = self._remove(self._cuts(reach))
            self._bury()
        return removed.commits

    def gc(self, older_than: int, *, dry_run: bool = False, progress: Progress | None = None) -> Removed:
        """Remove commits that no branch reaches and that are older than that."""
        with self._log.lock:
            self._log.refuse_closed()
            reach = self._reach()
            while young := list(self._younger(reach, older_than)):
                reach.add(young)
            cuts = self._cuts(reach)
            if dry_run:
                return self._removed(cuts)
            removed = self._remove(cuts)
            self._bury()
            return removed

    def let_go(self, end: Place | None) -> None:
        """Remove what nothing stands on of the segment that a branch ended at."""
        if end is not None and end.position == len(end.segment.commits) - 1:
            self._remove([cut for cut in self._cuts(self._reach()) if self._log.segments[cut.segment] is end.segment])

    def backup(self, path: str, progress: Progress | None = None) -> None:
        """There is no file to copy."""
        self._log.refuse_closed()
        raise StoreError(
            "the log is in memory and has no file to copy",
            details={"path": path},
            next_actions=("export what is to be kept, or open a log at a path",),
        )

    def _reach(self) -> Reach:
        """What the branches of all sessions stand on."""
        numbers = {id(segment): at for at, segment in enumerate(self._log.segments)}

        def number(places: Iterable[Place | None]) -> list[_Number]:
            return [(numbers[id(place.segment)], place.position) for place in places if place is not None]

        standing: dict[str, list[Place]] = {}
        for place in self._log.places():
            standing.setdefault(place.commit.hash, []).append(place)
        runs = {
            at: Run(segment.base, next(iter(number([segment.parent])), None), len(segment.commits) - 1)
            for at, segment in enumerate(self._log.segments)
        }
        merges = {
            at: [
                (position, number(_within(segment.session.family, commit.parents[1:], standing)))
                for position, commit in enumerate(segment.commits)
                if commit.parents[1:]
            ]
            for at, segment in enumerate(self._log.segments)
        }
        reach = Reach(runs, merges)
        reach.add(number(tip for session in self._log.sessions.values() for tip in session.branches.values()))
        return reach

    def _younger(self, reach: Reach, older_than: int) -> Iterator[_Number]:
        """Of each end that could go, the last commit that is too young."""
        for at, last in reach.cuts():
            commits = self._log.segments[at].commits
            for position in range(len(commits) - 1, -1 if last is None else last, -1):
                if commits[position].time >= older_than:
                    yield at, position
                    break

    def _cuts(self, reach: Reach) -> list[Cut]:
        """What is not reached; a response that is begun is kept to its last block."""
        return [Cut(at, None if last is None else _whole(self._log.segments[at], last)) for at, last in reach.cuts()]

    def _removed(self, cuts: list[Cut]) -> Removed:
        ends = [self._log.segments[at].commits[0 if last is None else last + 1 :] for at, last in cuts]
        return Removed(sum(map(len, ends)), sum(len(commit.payload) for end in ends for commit in end))

    def _remove(self, cuts: list[Cut]) -> Removed:
        removed = self._removed(cuts)
        emptied = set()
        for at, last in cuts:
            segment = self._log.segments[at]
            keep = 0 if last is None else last + 1
            self._log.unsee(partial(_is_after, segment=segment, keep=keep))
            del segment.commits[keep:], segment.arrivals[keep:]
            if not keep:
                emptied.add(id(segment))
            steps = segment.session.steps
            for step in [id for id, first in steps.items() if _is_after(first, segment, keep)]:
                del steps[step]
        self._log.segments = [segment for segment in self._log.segments if id(segment) not in emptied]
        return removed

    def _bury(self) -> None:
        """Forget deleted sessions that left nothing and that nothing descends from."""
        log = self._log
        while True:
            needed = {segment.session.id for segment in log.segments}
            for session in (*log.sessions.values(), *log.gone.values()):
                needed |= {session.family, session.parent} - {session.id}
            left = {id: session for id, session in log.gone.items() if id in needed}
            if left == log.gone:
                return
            log.gone = left


def _within(family: str, hashes: Iterable[str], standing: Mapping[str, list[Place]]) -> Iterator[Place]:
    """Where commits of these hashes stand in a family."""
    for hash in hashes:
        yield from (place for place in standing.get(hash, ()) if place.segment.session.family == family)


def _whole(segment: Segment, last: int) -> int:
    response = segment.commits[last].response
    blocks = [
        position
        for position, commit in enumerate(segment.commits[last + 1 :], last + 1)
        if response and commit.response == response and commit.index >= 0
    ]
    return max(blocks, default=last)


def _is_after(first: Place | None, segment: Segment, keep: int) -> bool:
    return first is not None and first.segment is segment and first.position >= keep
