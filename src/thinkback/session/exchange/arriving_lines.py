"""The branches of an imported session as they are with another copy of its history, and what was erased of it here.

Promises: nothing is lost that a branch had; where a copy says all that ``main`` says, ``main`` is the copy's line; what
somebody went on with here stays where it stands. Must not: store anything.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import msgspec

from thinkback.log.protocol import MAIN, Tail
from thinkback.log.redacting import REDACTED, voided
from thinkback.log.seal import head_of
from thinkback.model import canonical
from thinkback.model.commits import (
    Commit,
    Compaction,
    Content,
    Draft,
    Erased,
    Head,
    Message,
    Payload,
    commit_hash,
    source_of,
)
from thinkback.session.exchange.history_copies import (
    Joined,
    Unit,
    beginning,
    branched,
    is_named,
    join,
    may_move,
    sealed_on,
    units_of,
)
from thinkback.session.exchange.importing import numbered
from thinkback.session.history.erased_sources import NOTHING_ERASED, Memory
from thinkback.session.ids import new_id

_SHORT = 100
"""Bytes of a payload that says the same as another one by chance."""
_IMPORTED_NAME = re.compile(rf"{MAIN}(-\d+)?")


class Lines:
    """The branches of a session while the lines of a copy are merged into them; then ``settle`` is called once.

    ``tails``, ``moves``, ``absorbed`` and ``opened`` are those of an ``Arrival``.
    """

    def __init__(self, branch: str, leased: Collection[str], *, has_ids: bool) -> None:
        self.tails: list[Tail] = []
        self.moves: dict[str, Head] = {}
        self.absorbed: dict[str, Head] = {}
        self.opened = ""
        self._branch = branch
        self._leased = leased
        self._has_ids = has_ids
        self._lines: dict[str, Sequence[Commit]] = {}
        self._units: dict[tuple[str, bool], list[Unit]] = {}
        # Branches that the copy says all of; the one that its tip went to, and those that changed.
        self._outdone: set[str] = set()
        self._tip = ""
        self._grown: set[str] = set()

    def add(self, name: str, line: Sequence[Commit]) -> None:
        """A branch that is there."""
        self._lines[name] = line

    def merge(self, path: Sequence[Commit], *, is_tip: bool) -> None:
        """A line of the copy, the one where it stands first."""
        name = self._growing(path)
        if name:
            self._put(name, path)
            self._outdone.add(name)
        else:
            joined = self._joined(path)
            if joined is None:
                return
            name = joined
        self._grown.add(name)
        if is_tip and name in self._outdone:
            self._tip = name

    def settle(self, own: Collection[str]) -> None:
        """Let ``main`` be the line of a copy that says all that ``main`` said; forget branches that others contain.

        ``own`` are the hashes of the copy.
        """
        main = self._lines[MAIN]
        is_outdone = MAIN in self._outdone or bool(main and main[-1].hash in own)
        if self._tip not in ("", MAIN) and self._is_free(MAIN) and (is_outdone or self._container(MAIN)):
            self.moves = {MAIN: head_of(self._lines[self._tip]), self._tip: head_of(main)}
            self._lines[MAIN], self._lines[self._tip] = self._lines[self._tip], main
            self._grown = {MAIN if name == self._tip else name for name in self._grown}
            self._units.clear()
            if _IMPORTED_NAME.fullmatch(self._branch) and self._branch != MAIN:
                self._branch = self.opened = MAIN
        for name in [*self._lines]:
            if name != MAIN and name not in self._grown and self._is_free(name) and (fuller := self._container(name)):
                self.absorbed[name] = head_of(self._lines[name])
                if name == self._branch:
                    self.opened = fuller

    def _is_free(self, name: str) -> bool:
        """True if an import may change a branch: one that imports make, with no turn under way."""
        return name not in self._leased and _IMPORTED_NAME.fullmatch(name) is not None

    def _container(self, name: str) -> str:
        """The branch that grew and now says all that another one says; empty for none."""
        for grown in sorted(self._grown, key=lambda each: each != MAIN):
            named = self._is_named(name) and self._is_named(grown)
            joined = join(self._of(grown, named=named), self._of(name, named=named))
            if joined is not None and joined.is_here:
                return grown
        return ""

    def _growing(self, path: Sequence[Commit]) -> str:
        """The branch whose end is on ``path``, the last of them; empty for none."""
        places = {commit.hash: at for at, commit in enumerate(path)}
        found = {
            name: places.get(line[-1].hash, -1) if line else (-1 if path and name != MAIN else 0)
            for name, line in self._lines.items()
            if self._is_free(name)
        }
        best = max(found, key=lambda name: found[name], default="")
        return best if best and found[best] >= 0 else ""

    def _joined(self, path: Sequence[Commit]) -> str | None:
        """The branch that says what ``path`` says from now on; ``None`` where one did before."""
        chosen = ""
        join_chosen: Joined | None = None
        nearest, shared = "", 0
        for name in sorted(self._lines, key=lambda name: name != MAIN):
            named = self._is_named(name)
            here, there = self._of(name, named=named), units_of(path, keyed=self._has_ids, named=named)
            joined = join(here, there)
            if joined is not None:
                if joined.is_there:
                    self._outdone.add(name)
                if joined.is_here:
                    return None
                if not chosen and self._is_free(name) and may_move(here, joined):
                    chosen, join_chosen = name, joined
            if (at := beginning(here, there)) > shared:
                nearest, shared = name, at
        if join_chosen is not None:
            self._put(chosen, self._sealed(chosen, join_chosen))
            return chosen
        new = next(each for each in numbered(MAIN) if each not in self._lines)
        line: Sequence[Commit] = path
        if nearest:
            named = self._is_named(nearest)
            line = self._sealed(
                nearest, branched(self._of(nearest, named=named), units_of(path, keyed=self._has_ids, named=named))
            )
        self._put(new, line)
        self._outdone.add(new)
        return new

    def _sealed(self, name: str, joined: Joined) -> list[Commit]:
        """The line of a join with a branch."""
        stays = self._lines[name][: sum(len(unit.commits) for unit in joined.units[: joined.settled])]
        return [*stays, *sealed_on(head_of(stays), joined)]

    def _put(self, name: str, line: Sequence[Commit]) -> None:
        """Let a branch be ``line`` from now on."""
        there = self._lines.get(name, ())
        if name in self._lines:
            at = _common(there, line)
            outgrown = head_of(there) if at < len(there) else None
        else:
            at, outgrown = max((_common(each, line) for each in self._lines.values()), default=0), None
        self.tails.append(Tail(new_id(), line[at:], head_of(line[:at]), name, outgrown))
        self._lines[name] = line
        self._units = {key: units for key, units in self._units.items() if key[0] != name}

    def _is_named(self, name: str) -> bool:
        return self._has_ids and is_named(self._lines[name])

    def _of(self, name: str, *, named: bool) -> list[Unit]:
        if (name, named) not in self._units:
            self._units[name, named] = units_of(self._lines[name], keyed=self._has_ids, named=named)
        return self._units[name, named]


def _common(one: Sequence[Commit], other: Sequence[Commit]) -> int:
    """Count the commits that two lines begin with together, up to the response in which they part."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # a hash covers all before it
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[middle - 1].hash == other[middle - 1].hash else (low, middle - 1)
    while (
        0 < low < len(other)
        and low < len(one)
        and other[low].response
        and other[low].response == other[low - 1].response
    ):
        low -= 1  # a response stands in one piece
    return low


class Tombs:
    """What was erased of a session, by which an ``arriving`` copy is kept from bringing it back.

    A commit is known by its content, a short one with its time, wherever it stands; an edited one by the source's id
    of its entry, where the source ``has_ids``; one of another session by the ``memory`` of the log.
    """

    def __init__(
        self,
        here: Iterable[Commit],
        arriving: Iterable[tuple[Draft, int]],
        memory: Memory = NOTHING_ERASED,
        *,
        has_ids: bool = True,
    ) -> None:
        stored = [*here]
        self._memory = memory
        stones = [commit for commit in stored if isinstance(commit.value, Erased)]
        self._exact = {(stone.kind, stone.digest, stone.time): stone for stone in stones}
        self._long = {(stone.kind, stone.digest): stone for stone in stones}
        self._has_ids = has_ids
        self._alive = {commit.digest for commit in stored if not isinstance(commit.value, Erased)}
        said = {(draft.kind, digest) for draft, _ in arriving for digest in _digests(draft)} if stones else set()
        self._named: dict[tuple[str, str], list[Commit]] = defaultdict(list)
        # Of these only what is opaque is gone, because other words of the response are.
        self._torn = {stone.response for stone in stones if stone.index >= 0}
        for stone in stones:
            id, left = self._id(stone), stone.value
            is_void = isinstance(left, Erased) and left.remainder != "" and REDACTED not in left.remainder
            if id and not is_void and (stone.kind, stone.digest) not in said:
                self._named[id, stone.kind].append(stone)

    def in_place(self, commit: Commit) -> Commit:
        """The commit, or the tombstone of what it would bring back."""
        if not self._exact:
            return self._elsewhere(commit)
        draft = Draft(commit.kind, commit.value)
        exact = [self._exact.get((commit.kind, digest, commit.time)) for digest in _digests(draft)]
        if len(commit.payload) > _SHORT:
            exact += [self._long.get((commit.kind, digest)) for digest in _digests(draft)]
        stone = next(filter(None, exact), None)
        if stone is None and commit.digest not in self._alive:
            id = self._id(commit)
            waiting = self._named.get((id, commit.kind)) if id else None
            stone = waiting.pop(0) if waiting else None
        if stone is not None:
            return _instead(commit, stone.value, stone.payload, stone.digest)
        is_piece = commit.index >= 0 or commit.kind == "response"
        if not is_piece or commit.response not in self._torn or commit.digest in self._alive:
            return self._elsewhere(commit)
        value = voided(commit.value) or commit.value
        payload = canonical.encode(value)
        return _instead(commit, value, payload, canonical.digest(payload))

    def _elsewhere(self, commit: Commit) -> Commit:
        """The commit, or the tombstone of one that was erased in another session and does not stand in this one."""
        return commit if commit.digest in self._alive else self._memory.tombstone(commit)

    def _id(self, commit: Commit) -> str:
        return (commit.response if self._has_ids else "") or source_of(commit.value)


def _instead(commit: Commit, value: Payload, payload: bytes, digest: str) -> Commit:
    """A commit that says something else at its place."""
    hash = commit_hash(commit.parents, commit.kind, digest, commit.edit, commit.response, commit.index, commit.time)
    return msgspec.structs.replace(commit, hash=hash, value=value, payload=payload, digest=digest)


def _digests(draft: Draft) -> list[str]:
    """The digest of what a draft says, and that which an earlier version had, without the id of the source."""
    values = [draft.value]
    if isinstance(draft.value, Message | Content | Compaction) and draft.value.source:
        values.append(msgspec.structs.replace(draft.value, source=""))
    return [canonical.digest(canonical.encode(value)) for value in values]
