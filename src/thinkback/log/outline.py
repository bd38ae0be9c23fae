"""The shape of a history, for whoever cuts it: what must stay in one piece, where turns begin, what is summarised.

Promises: a call, its reasoning and its result are one piece, wherever their commits stand; a cut that ``is_clean``
goes through none. Must not: know what a request looks like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Commit, Compaction, Content, Priority, Response, TurnEnded, surviving
from thinkback.model.curation import Curation, curate

PieceKind: TypeAlias = Literal["system", "said", "response"]

_BLOCKS = frozenset({"reasoning", "assistant", "tool_call", "other", "media"})
_MESSAGES = frozenset({"system", "user", "content", "branch_summary"})
# What stands behind a turn and belongs to it, without being a piece.
_TRAILING = frozenset({"provider_usage", "turn_ended"})


class OutlineItem(NamedTuple):
    """A message, or a response with its blocks and results. ``at`` are the positions of its commits in the history,
    ``hash`` is that of the first, ``turn`` the number of its turn.
    """

    hash: str
    kind: PieceKind
    at: tuple[int, ...]
    turn: int


class Run(NamedTuple):
    """What a checkpoint in force summarises: positions of its ends, both inside."""

    first: int
    last: int
    checkpoint: Compaction


class Outline:
    """``pieces`` in order and how many ``turns`` they make; ``begun``: the last one has a whole response and goes on.

    ``runs`` are what checkpoints in force summarise, in order; ``trimmed`` is hash of a result to its shorter text.
    """

    def __init__(self, commits: Sequence[Commit]) -> None:
        self.commits = commits
        self.curation: Curation = curate(commits)
        grouping = _Grouping()
        for at, commit in enumerate(commits):
            if not commit.edit:
                grouping.take(at, commit)
        self.pieces = tuple(
            OutlineItem(found.hash, found.kind, tuple(found.at), found.turn) for found in grouping.pieces
        )
        self.turns = grouping.turn + 1
        self.begun = grouping.is_minted and grouping.state != "completed"
        self._clean = self._clean_cuts()
        checkpoints = list(self._checkpoints())
        self.runs = self._runs([found for _, found in checkpoints])
        self.trimmed = {
            hash: text
            for at, found in checkpoints
            for hash, text in found.trimmed
            if not any(edit.seq > at for edit in self.curation.edits.get(hash, ()))
        }

    def is_clean(self, at: int) -> bool:
        """Whether no piece stands on both sides of a cut before piece number ``at``."""
        return self._clean[at]

    def priorities(self, piece: OutlineItem) -> set[Priority | None]:
        """What is said of the commits of a piece."""
        return {self.curation.priority(self.commits[at]) for at in piece.at}

    def is_inside(self, piece: OutlineItem) -> bool:
        """Whether a summary in force stands for the piece."""
        return any(run.first <= piece.at[0] <= run.last and piece.hash not in run.checkpoint.kept for run in self.runs)

    def end_of(self, pieces: Sequence[OutlineItem]) -> int:
        """The position of the last commit that belongs to ``pieces``, what stands right behind them included."""
        last = max(piece.at[-1] for piece in pieces)
        while last + 1 < len(self.commits) and self.commits[last + 1].kind in _TRAILING:
            last += 1
        return last

    def _clean_cuts(self) -> tuple[bool, ...]:
        clean, reached = [], -1
        for piece in self.pieces:
            clean.append(reached < piece.at[0])
            reached = max(reached, piece.at[-1])
        return (*clean, True)

    def _checkpoints(self) -> Iterator[tuple[int, Compaction]]:
        """Checkpoints that hold, as last edited, and where they stand; one that was skipped does not."""
        for commit in self.curation.checkpoints:
            found = self.curation.value(commit)
            if isinstance(found, Compaction) and self.curation.priority(commit) is not Priority.SKIP:
                yield commit.seq, found

    def _runs(self, checkpoints: Sequence[Compaction]) -> tuple[Run, ...]:
        if not checkpoints:
            return ()
        places = {commit.hash: at for at, commit in enumerate(self.commits)}
        runs: list[Run] = []
        for found in checkpoints:
            if found.first in places and found.last in places:
                run = Run(places[found.first], places[found.last], found)
                runs = [old for old in runs if not (run.first <= old.first and old.last <= run.last)]
                runs.append(run)
        return tuple(sorted(runs, key=lambda run: run.first))


class _Growing:
    """A piece that is not whole yet."""

    def __init__(self, hash: str, kind: PieceKind, at: int, turn: int) -> None:
        self.hash = hash
        self.kind = kind
        self.at = [at]
        self.turn = turn


class _Grouping:
    """Puts commits into pieces, and pieces into turns, as requests do."""

    def __init__(self) -> None:
        self.pieces: list[_Growing] = []
        self.turn = -1
        self.has_response = self.is_minted = False
        self.state = ""
        self._responses: dict[str, _Growing] = {}
        self._calls: dict[str, _Growing] = {}

    def take(self, at: int, commit: Commit) -> None:
        kind, value = commit.kind, surviving(commit.value)
        if kind in _MESSAGES:
            is_system = kind == "system" or (isinstance(value, Content) and value.role == "system")
            self._open(self.state == "completed" if is_system else self.has_response or self.state != "")
            self.pieces.append(_Growing(commit.hash, "system" if is_system else "said", at, self.turn))
        elif kind == "response":
            self._open(self.state == "completed")
            self.has_response = True
            self.is_minted = self.is_minted or (isinstance(value, Response) and value.complete)
            piece = _Growing(commit.hash, "response", at, self.turn)
            self._responses[commit.response] = piece
            self.pieces.append(piece)
        elif kind in _BLOCKS and commit.response in self._responses:
            piece = self._responses[commit.response]
            piece.at.append(at)
            if isinstance(value, ToolCall):
                self._calls[value.id] = piece
        elif kind == "tool_result":
            id = value.id if isinstance(value, ToolResult) else ""
            caller = self._responses.get(commit.response) or self._calls.get(id)
            if caller is not None:
                caller.at.append(at)
        elif isinstance(value, TurnEnded) and self.turn >= 0 and self.state != "completed":
            self.state = value.state

    def _open(self, is_over: bool) -> None:
        if self.turn < 0 or is_over:
            self.turn += 1
            self.has_response = self.is_minted = False
            self.state = ""
