"""Where two lines meet: what one has of the other already, by which copies, and what would be new to it.

A line has what it shares from the beginning, what its merges say they copied, and a response of the same id and
content (one that was picked or rebased), with the messages before it. Must not: copy, or judge contradictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from thinkback.log.copy_commits import is_said
from thinkback.log.lines import common
from thinkback.model.blocks import ToolResult
from thinkback.model.commits import Commit, Merge, Response


class Meeting(NamedTuple):
    """``ours`` and ``theirs`` begin with ``shared`` common commits.

    ``known``: what ours has of the rest of theirs (hash there to hash here), ``found`` those that no merge named.
    ``start``: where in theirs begins what was never merged; ``fresh`` of that a merge would copy. ``base`` is the last
    state that both had, ours up to ``ours_since`` and theirs up to ``theirs_since`` hold it. ``places`` is where in
    ours each hash stands.
    """

    ours: Sequence[Commit]
    theirs: Sequence[Commit]
    shared: int
    known: dict[str, str]
    found: dict[str, str]
    start: int
    fresh: list[Commit]
    base: Sequence[Commit]
    ours_since: int
    theirs_since: int
    places: dict[str, int]

    def here(self, hash: str) -> str:
        """The hash in ours of a commit of theirs; empty where ours does not have it."""
        return self.known.get(hash) or (hash if self.places.get(hash, self.shared) < self.shared else "")


def meet(ours: Sequence[Commit], theirs: Sequence[Commit]) -> Meeting:
    """What ours has of theirs, and what it lacks."""
    shared = common(ours, theirs)
    places = {commit.hash: commit.seq for commit in ours}
    mine, yours = list(_merges(ours, shared)), list(_merges(theirs, shared))
    known = _copied(ours, theirs, shared, mine, yours)
    found = _recognised(ours, theirs, shared, known)
    known |= found
    base, ours_since, theirs_since, start = _last_met(ours, theirs, shared, mine, yours)
    fresh = list(_fresh(theirs[start:], known, places))
    return Meeting(ours, theirs, shared, known, found, start, fresh, base, ours_since, theirs_since, places)


def _merges(history: Sequence[Commit], since: int) -> Iterator[tuple[int, Merge]]:
    for commit in history[since:]:
        if isinstance(commit.value, Merge):
            yield commit.seq, commit.value


def _copied(
    ours: Sequence[Commit],
    theirs: Sequence[Commit],
    shared: int,
    mine: Sequence[tuple[int, Merge]],
    yours: Sequence[tuple[int, Merge]],
) -> dict[str, str]:
    """What of theirs ours has as the merges of both tell: copied from them, from us, or by both from a third."""
    if not mine and not yours:
        return {}
    here = {there: copy for _, merge in mine for there, copy in merge.copies}
    here |= {commit.hash: commit.hash for commit in ours[shared:]}
    sources: dict[str, list[str]] = {}
    for _, merge in yours:
        for there, copy in merge.copies:
            sources.setdefault(copy, []).append(there)
    known: dict[str, str] = {}
    for commit in theirs[shared:]:
        waiting = [commit.hash]
        while waiting and commit.hash not in known:
            hash = waiting.pop()
            if hash in here:
                known[commit.hash] = here[hash]
            waiting += sources.get(hash, ())
    return known


def _recognised(ours: Sequence[Commit], theirs: Sequence[Commit], shared: int, known: dict[str, str]) -> dict[str, str]:
    """The same responses under other hashes, and results of calls that ours has answered already."""
    wanted = {commit.response for commit in theirs[shared:] if commit.response and commit.hash not in known}
    mine = _by_response(ours, wanted)
    yours = _by_response(theirs, set(mine))
    found: dict[str, str] = {}
    for response, parts in yours.items():
        same = mine[response]
        if _content(same) != _content(parts):
            continue
        at = {_part(commit): commit.hash for commit in reversed(same)}
        for commit in parts:
            if commit.seq >= shared and commit.hash not in known and _part(commit) in at:
                found[commit.hash] = at[_part(commit)]
        found |= _led_to(ours[: same[0].seq], theirs[shared : parts[0].seq], known)
    return found


def _led_to(ours: Sequence[Commit], theirs: Sequence[Commit], known: dict[str, str]) -> dict[str, str]:
    """Messages that stand before the same response here and there and say the same: a rebase names no copies."""
    found: dict[str, str] = {}
    before = (commit for commit in reversed(ours) if is_said(commit))
    for commit in reversed(theirs):
        if is_said(commit):
            other = next(before, None)
            if other is None or commit.hash in known or commit.response or _words(commit) != _words(other):
                break
            found[commit.hash] = other.hash
    return found


def _words(commit: Commit) -> tuple[str, str]:
    return commit.kind, commit.digest


def _by_response(history: Sequence[Commit], wanted: set[str]) -> dict[str, list[Commit]]:
    """The commits of the ``wanted`` responses that ``history`` has."""
    found: dict[str, list[Commit]] = {}
    if wanted:
        for commit in history:
            if commit.response in wanted and (commit.kind == "response" or commit.response in found):
                found.setdefault(commit.response, []).append(commit)
    return found


def _content(parts: Sequence[Commit]) -> list[tuple[int, str]]:
    """What a response is: its header and blocks, whatever results and counts came since."""
    return [(c.index, c.digest) for c in parts if c.index >= 0 or isinstance(c.value, Response)]


def _part(commit: Commit) -> tuple[str, int, str]:
    """What a commit is within its response; a call has one result, whatever it says."""
    value = commit.value
    return commit.kind, commit.index, value.id if isinstance(value, ToolResult) else ""


def _last_met(
    ours: Sequence[Commit],
    theirs: Sequence[Commit],
    shared: int,
    mine: Sequence[tuple[int, Merge]],
    yours: Sequence[tuple[int, Merge]],
) -> tuple[Sequence[Commit], int, int, int]:
    """The last state that both had, how much of each had it, and how much of theirs was ever merged into ours."""
    met: list[tuple[Sequence[Commit], int, int]] = [(ours[:shared], shared, shared)]
    start = shared
    if mine:
        there = {commit.hash: commit.seq for commit in theirs}
        for at, merge in mine:
            if merge.head in there:
                end = there[merge.head] + 1
                met.append((theirs[:end], at + 1, end))
                start = max(start, end)
    if yours:
        here = {commit.hash: commit.seq for commit in ours}
        met += [
            (ours[: here[merge.head] + 1], here[merge.head] + 1, at + 1) for at, merge in yours if merge.head in here
        ]
    return *max(met, key=lambda state: state[1] + state[2]), start


def _fresh(window: Sequence[Commit], known: dict[str, str], places: dict[str, int]) -> Iterator[Commit]:
    """What a merge would copy. The end of a turn goes along with what was said in it."""
    said = False
    for commit in window:
        value = commit.value
        if commit.hash in known or commit.kind == "request" or (isinstance(value, Merge) and value.head in places):
            continue
        if commit.kind == "turn_ended":
            if said:
                yield commit
            said = False
            continue
        said = said or is_said(commit)
        yield commit
