"""The branches of a family of sessions as lanes of a picture: each from where it left another to its last commit, with
what was edited and where checkpoints are; and what two of them say differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from thinkback.errors import ThinkbackError
from thinkback.log.diff import Diff, diff
from thinkback.log.lines import common
from thinkback.log.protocol import SessionInfo
from thinkback.model.commits import Commit
from thinkback.session.history.branches import SessionNode
from thinkback.session.history.revisions import find
from thinkback.session.store import SessionStore

MOST = 100
"""Branches of a picture: finding where each left another takes longer the more there are."""
WIDTH, LANE, _LEFT = 900, 44, 12
_MOST_MARKS = 200
"""Edits and checkpoints of a lane."""
_MOST_DIFFERENT = 5_000
"""Commits of a line that are compared: what they say may be alike in every way."""


class Mark(NamedTuple):
    """An edit or a checkpoint ``x`` along a lane; ``hash`` is what was edited, or the checkpoint."""

    what: Literal["edit", "checkpoint"]
    x: float
    hash: str


class Lane(NamedTuple):
    """A branch: its line at height ``y`` from ``begin`` to ``end``, and where it left another at (``fork``, ``above``).

    ``after`` is the hash of the commit after which it left ``parent``; empty for one that begins by itself. ``name``
    and ``other`` name it and ``parent`` where two are compared. ``marks`` are those of its own commits, oldest first.
    """

    session: str
    id: str
    branch: str
    is_current: bool
    commits: int
    y: int
    begin: float
    end: float
    fork: float
    above: int
    parent: str
    after: str
    name: str
    other: str
    marks: tuple[Mark, ...]

    def of(self, what: str) -> Sequence[Mark]:
        """The edits, or the checkpoints."""
        return [mark for mark in self.marks if mark.what == what]


def lanes_of(store: SessionStore, info: SessionInfo) -> list[Lane]:
    """The lanes of the family of ``info``. Raises ``ThinkbackError`` for a family that is too large for a picture."""
    family = [other for other in store.sessions() if other.family == info.family]
    if sum(len(store.log.refs.list(other.id)) for other in family[: MOST + 1]) > MOST:
        raise ThinkbackError(
            f"the family of {info.name} has more than {MOST} branches", next_actions=("`thinkback tree` lists them",)
        )
    return _laid_out(store, info, store.existing(info).branches.tree())


def differences(store: SessionStore, info: SessionInfo, old: str, new: str) -> Diff:
    """What ``new`` says differently from ``old``, which are branches or commits of the family of ``info``.

    Raises ``NotFoundError`` for what names none, ``ThinkbackError`` where too much is to be compared.
    """
    conversation = store.existing(info).conversation
    before, after = find(conversation, old).commits, find(conversation, new).commits
    if max(len(before), len(after)) - common(before, after) > _MOST_DIFFERENT:
        raise ThinkbackError(
            f"{old} and {new} differ by more than {_MOST_DIFFERENT:,} commits",
            next_actions=("`thinkback diff OLD NEW` compares any two",),
        )
    return diff(before, after)


def _laid_out(store: SessionStore, info: SessionInfo, nodes: Sequence[SessionNode]) -> list[Lane]:
    """The lanes of ``nodes``, in order."""
    longest = max((branch.head.seq for node in nodes for branch in node.branches), default=0)

    def across(seq: int) -> float:
        return round(_LEFT + max(seq, 0) * (WIDTH - 2 * _LEFT) / max(longest, 1), 1)

    lanes: list[Lane] = []
    heights: dict[tuple[str, str], int] = {}
    for node in nodes:
        for branch in node.branches:
            y = LANE * (len(lanes) + 1)
            heights[node.name, branch.name] = y
            parent = branch.parent or ("", "")
            lanes.append(
                Lane(
                    node.name,
                    node.id,
                    branch.name,
                    branch.name == node.current,
                    branch.head.seq + 1,
                    y,
                    across(branch.fork.seq + 1) if branch.parent else across(0),
                    across(branch.head.seq),
                    across(branch.fork.seq),
                    heights.get(parent, 0),
                    " / ".join(filter(None, (parent[0] if parent[0] != node.name else "", parent[1]))),
                    branch.fork.hash,
                    _named(info, node.name, branch.name),
                    _named(info, *branch.parent) if branch.parent else "",
                    tuple(
                        Mark("edit" if commit.edit else "checkpoint", across(commit.seq), commit.edit or commit.hash)
                        for commit in _marked(store, node.id, branch.name, branch.fork.seq)
                    ),
                )
            )
    return lanes


def _named(info: SessionInfo, session: str, branch: str) -> str:
    return branch if session == info.name else f"{session}:{branch}"


def _marked(store: SessionStore, session: str, branch: str, since: int) -> Iterator[Commit]:
    """The edits and checkpoints of a branch behind its fork, the newest ones."""
    own = store.log.read(session, since=since, branch=branch)
    yield from [commit for commit in own if commit.edit or commit.kind == "compaction"][-_MOST_MARKS:]
