"""The branches of a family of sessions as lanes of a picture: each from where it left another to its last commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thinkback.errors import ThinkbackError
from thinkback.log.protocol import SessionInfo
from thinkback.session.history.branches import SessionNode
from thinkback.session.store import SessionStore

MOST = 100
"""Branches of a picture: finding where each left another takes longer the more there are."""
WIDTH, LANE, _LEFT = 900, 44, 12


class Lane(NamedTuple):
    """A branch: its line at height ``y`` from ``begin`` to ``end``, and where it left another at (``fork``, ``above``).

    ``after`` is the hash of the commit after which it left ``parent``; empty for one that begins by itself.
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


def lanes_of(store: SessionStore, info: SessionInfo) -> list[Lane]:
    """The lanes of the family of ``info``. Raises ``ThinkbackError`` for a family that is too large for a picture."""
    family = [other for other in store.sessions() if other.family == info.family]
    if sum(len(store.log.refs.list(other.id)) for other in family[: MOST + 1]) > MOST:
        raise ThinkbackError(
            f"the family of {info.name} has more than {MOST} branches", next_actions=("`thinkback tree` lists them",)
        )
    return laid_out(store.existing(info).branches.tree())


def laid_out(nodes: Sequence[SessionNode]) -> list[Lane]:
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
                )
            )
    return lanes
