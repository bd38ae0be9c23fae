"""From the name of a commit to the history it ends, as a session sees it: its branches, and those of its family."""

from __future__ import annotations

import string
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from thinkback.errors import BranchError, NotFoundError
from thinkback.log.lines import end_of, holds, is_torn
from thinkback.log.names import HEAD, PREVIOUS, Name, parse, walk
from thinkback.log.protocol import SessionInfo, Store
from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Head
from thinkback.session.ids import outside

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation

_HEX = frozenset(string.hexdigits)


class ResolvedRevision(NamedTuple):
    """The commits up to the one that was named; ``branch`` is set where that is the head of a branch of the session."""

    commits: Sequence[Commit]
    branch: str = ""

    @property
    def head(self) -> Head:
        """The named commit."""
        return head_of(self.commits)


def find(conversation: Conversation, name: str) -> ResolvedRevision:
    """The history that ends with exactly the commit ``name`` means.

    A branch wins over the beginning of a hash; ``SESSION:BRANCH`` is one of another session of the family.
    Raises ``NotFoundError``, with the candidates where several hashes begin so.
    """
    return _find(conversation, name, parse(name), None)


def _find(conversation: Conversation, name: str, wanted: Name, known: Sequence[Commit] | None) -> ResolvedRevision:
    """What ``name``, parsed as ``wanted``, means. ``known``: the session's own line as of now, where places are enough:
    then it is not read again.
    """
    line, branch = _base(conversation, wanted, known)
    if wanted.steps or wanted.time is not None:
        if any(step.sign == "~" and step.number > 1 for step in wanted.steps):
            _explain(name)
        return ResolvedRevision(walk(line, wanted))
    return ResolvedRevision(line, branch)


def find_whole(conversation: Conversation, name: str) -> ResolvedRevision:
    """The same for a place to go on from: inside a response, it is the end of the response (with usage and turn).

    The session is as of now, and only the places of the commits are to be used: of those that the session has, values
    may be ones that the log must not get. Raises ``BranchError`` where no line has that response whole.
    """
    known, wanted = conversation.history.commits, parse(name)
    found = _find(conversation, name, wanted, known)
    if found.branch or not found.commits:
        return found
    own = [known] if holds(known, found.head) else []
    for line in chain(own, lines_with(conversation, found.head)):
        commits = line[: end_of(line, found.head.seq) + 1]
        if not is_torn(commits):
            more = commits[len(found.commits) :]
            # Silent where the last block of the response was named by its hash.
            if more and (wanted.steps or any(commit.kind in _BLOCKS for commit in more)):
                _report_rounding(name, more[-1])
            return ResolvedRevision(commits)
    raise BranchError(
        f"commit {found.head.hash[:12]} stands inside a response that is nowhere whole",
        details={"commit": found.head.hash},
        next_actions=("take the commit before that response",),
    )


def _explain(name: str) -> None:
    """Say what ``~`` means, and what it meant: until the first release.

    Not of ``~1``: one commit before the end is inside the last answer, where nobody goes on from.
    """
    text = f"{name} counts questions; {name.replace('~', '^')} counts commits, as ~ did before"
    warnings.warn(text, stacklevel=outside())


# What a response consists of; behind it come only its usage and the end of the turn.
_BLOCKS = frozenset({"reasoning", "assistant", "tool_call", "media", "other"})


def _report_rounding(name: str, end: Commit) -> None:
    """Say that the place is ``end``, behind the commit that was named."""
    text = f"{name} is inside a response; using the end of that response, {end.hash[:12]}"
    warnings.warn(text, stacklevel=outside())


def lines_with(conversation: Conversation, head: Head) -> Iterator[Sequence[Commit]]:
    """The histories that hold ``head``: the session's own, then branches, then what no branch holds any more."""
    log = conversation.store.log
    if holds(conversation.history.commits, head):
        yield conversation.line.read()
    for owner, branch in branches(log, conversation.info):
        if has(log, owner, branch, head):
            yield log.read(owner, branch=branch)
    for info in family(log, conversation.info.family):
        for end in log.care.ends(info.id):
            line = log.read_to(info.id, end.hash) if end.seq >= head.seq else ()
            if holds(line, head):
                yield line


def branches(log: Store, of: SessionInfo) -> Iterator[tuple[str, str]]:
    """(session id, branch) of the family, the session's own first."""
    yield from ((of.id, branch.name) for branch in log.refs.list(of.id))
    for info in family(log, of.family):
        if info.id != of.id:
            yield from ((info.id, branch.name) for branch in log.refs.list(info.id))


def has(log: Store, session: str, branch: str, head: Head) -> bool:
    """Whether ``head`` stands on the branch."""
    found = log.read(session, head.seq - 1, branch)
    return head.seq < 0 or (bool(found) and found[0].hash == head.hash)


def branch_with(log: Store, session: str, head: Head, first: Sequence[str] = (), most: int = 1_000) -> str:
    """The branch of a session on which ``head`` stands; empty for none among the ``most`` that changed last.

    Those named ``first`` are looked at first; of each no more is read than from ``head`` on.
    """
    found = {branch.name: branch for branch in sorted(log.refs.list(session), key=lambda each: -each.updated)}
    names = [name for name in dict.fromkeys((*first, *found)) if name in found and found[name].head.seq >= head.seq]
    return next((name for name in names[:most] if has(log, session, name, head)), "")


def family(log: Store, root: str) -> list[SessionInfo]:
    """The sessions that descend from ``root``, the oldest first."""
    members = [info for info in log.list_sessions() if info.family == root]
    return sorted(members, key=lambda info: (info.id != root, info.created, info.name))


def _base(conversation: Conversation, wanted: Name, known: Sequence[Commit] | None) -> tuple[Sequence[Commit], str]:
    """The line that a name begins from, and the branch it is."""
    log, line, base = conversation.store.log, conversation.line, wanted.base
    if base == HEAD:
        return line.read() if known is None else known, "" if line.looks_at else line.branch
    if base == PREVIOUS:
        if not line.before:
            raise NotFoundError("there is no branch before this one", next_actions=("name a branch",))
        base = line.before
    names = [branch.name for branch in log.refs.list(conversation.info.id)]
    if base in names:
        return log.read(conversation.info.id, branch=base), base
    owner, colon, branch = base.rpartition(":")
    if colon:
        return _of_another(log, conversation, owner, branch), ""
    if not _HEX.issuperset(base):
        raise NotFoundError(
            f"there is no branch {base!r}, and no commit whose hash begins so",
            details={"name": base},
            next_actions=(f"branches are {', '.join(names)}",),
        )
    commit = log.find_commit(base, conversation.info.id)[1]
    if known is not None and holds(known, Head(commit.hash, commit.seq)):
        return known[: commit.seq + 1], ""
    return log.read_to(conversation.info.id, commit.hash), ""


def _of_another(log: Store, conversation: Conversation, name: str, branch: str) -> Sequence[Commit]:
    info = log.find_session(name)
    if info is None or info.family != conversation.info.family:
        raise NotFoundError(
            f"there is no session {name!r} in the family of {conversation.info.name!r}",
            details={"session": name},
            next_actions=("session.branches.tree() shows the family",),
        )
    return log.read(info.id, branch=branch or info.branch)
