"""Checkpoints: which run of a history a summary may stand for, what of it stays word for word, what is trimmed.

Promises: whole turns go, and inside a turn whole responses with their results; what is pinned, and what the system
says, stays as it is; a run lies around those of earlier checkpoints or beside them. Must not: write the summary
(``digest``), or know what it saves (that takes a request).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

import msgspec

from thinkback.errors import CompactionRefused
from thinkback.log.outline import Outline, OutlineItem
from thinkback.model.blocks import ToolResult
from thinkback.model.commits import Commit, Compaction, CompactionStrategy, Priority

TRIM_TO = 2_000
"""Characters that are left of a long tool result."""
AUTOMATIC, OVERFLOW = "automatic", "overflow"
"""How the reason of a checkpoint begins that nobody asked for."""
COOLDOWN = 3
"""Turns without a further attempt after one that came to nothing, or to little."""
USEFUL = 0.9
"""A checkpoint leaves less than this of a request, or it was of little use."""

# Shorter than this, what is left out is hardly longer than the note that says so.
_SLACK = 400


class Wish(msgspec.Struct, frozen=True):
    """What a checkpoint is to do. The last ``tail`` turns stay, one under way among them; with ``middle_out`` also the
    first ``head``. ``responses``: of a turn under way only so many of the last ones stay (0: all). ``text`` is the
    summary by hand. ``trims``: results in what stays are cut to ``size`` characters, as ``tool_results`` does.
    """

    strategy: CompactionStrategy = "deterministic"
    tail: int = 4
    head: int = 1
    responses: int = 0
    text: str = ""
    size: int = TRIM_TO
    trims: bool = False


class Cut(NamedTuple):
    """A run to be summarised: positions of its ends, the pieces that a summary stands for, and those that stay."""

    first: int
    last: int
    covered: tuple[OutlineItem, ...]
    kept: tuple[OutlineItem, ...]


def cut(outline: Outline, wish: Wish) -> Cut:
    """The longest run that ``wish`` allows. Raises ``CompactionRefused`` where it covers nothing new."""
    stop = _stop(outline, wish)
    pieces = outline.pieces[_start(outline, wish, stop) : stop]
    stays = [_stays(outline, piece) for piece in pieces]
    kept = tuple(compress(pieces, stays))
    covered = tuple(piece for piece, is_kept in zip(pieces, stays, strict=True) if not is_kept)
    if all(outline.is_inside(piece) for piece in covered):
        raise _nothing_new(outline, wish)
    return Cut(pieces[0].at[0], outline.end_of(pieces), covered, kept)


def _nothing_new(outline: Outline, wish: Wish) -> CompactionRefused:
    """The error for a run without anything to summarise; fewer turns are proposed only where fewer can be kept."""
    fewer = min(wish.tail, outline.turns) - 1
    has = "has 1 turn" if outline.turns == 1 else f"has {outline.turns} turns"
    return CompactionRefused(
        f"there is nothing new to summarise: the session {has}, and the last {wish.tail} stay as they are",
        details={"strategy": wish.strategy, "turns": outline.turns, "tail": wish.tail},
        next_actions=(
            *((f"keep fewer turns: --tail {fewer} (in a program tail={fewer})",) if fewer >= outline.begun else ()),
            "or go on: there is nothing to gain yet",
        ),
    )


def trims(outline: Outline, wish: Wish, found: Cut | None = None) -> tuple[tuple[str, str], ...]:
    """(hash of a result, what is left of it) of long results before the tail; with ``trims`` of all that stay."""
    stop = len(outline.pieces) if wish.trims else _stop(outline, wish)
    covered = {piece.hash for piece in found.covered} if found is not None else set()
    return tuple(
        trimmed
        for piece in outline.pieces[:stop]
        if piece.kind == "response" and piece.hash not in covered and not outline.is_inside(piece)
        for trimmed in _trims(outline, piece, wish.size)
    )


def shortened(text: str, size: int, hash: str) -> str:
    """Head and tail of ``text``, ``size`` characters together, and between them how much is left out."""
    head = size * 2 // 3
    tail = size - head
    left_out = len(text) - head - tail
    note = f"\n[... {left_out:,} characters left out; commit {hash[:12]} of the log has them ...]\n"
    return f"{text[:head]}{note}{text[len(text) - tail :]}"


def checkpoint(outline: Outline, wish: Wish, found: Cut | None, summary: str = "") -> Compaction:
    """The payload of a checkpoint; its tokens are left to whoever builds requests.

    Raises ``CompactionRefused`` where there is nothing to trim either.
    """
    trimmed = trims(outline, wish, found) if found is None or wish.trims else ()
    if found is None:
        if not trimmed:
            raise CompactionRefused(
                f"no tool result before what stays is longer than {wish.size:,} characters",
                details={"strategy": wish.strategy, "tail": wish.tail, "size": wish.size},
                next_actions=("keep fewer turns, or give a smaller size", "or summarise"),
            )
        return Compaction(wish.strategy, trimmed=trimmed)
    first, last = outline.commits[found.first].hash, outline.commits[found.last].hash
    kept = tuple(piece.hash for piece in found.kept)
    return Compaction(wish.strategy, summary, first, last, kept, trimmed)


def is_empty(found: Compaction) -> bool:
    """Whether the checkpoint came to nothing: it only says so."""
    return not (found.first or found.trimmed or found.shortened)


def is_cooling(commits: Sequence[Commit], *, trims: bool = False) -> bool:
    """Whether the last checkpoint that nobody asked for was of little use, and fewer than ``COOLDOWN`` turns ago.

    That trimming was of little use only matters to one that ``trims``.
    """
    turns = 0
    for commit in reversed(commits):
        found = commit.value
        if commit.kind == "user" and not commit.edit:
            turns += 1
            if turns >= COOLDOWN:
                break
        elif isinstance(found, Compaction) and found.reason.startswith((AUTOMATIC, OVERFLOW)):
            if not trims and found.strategy == "tool_results":
                continue
            return is_empty(found) or found.after >= USEFUL * found.before
    return False


def _start(outline: Outline, wish: Wish, stop: int) -> int:
    """The number of the first piece of the run: behind what the system says first and behind the head."""
    head = wish.head if wish.strategy == "middle_out" else 0
    pieces = outline.pieces
    wanted = 0
    while wanted < stop and (pieces[wanted].turn < head or pieces[wanted].kind == "system"):
        wanted += 1
    # What an earlier summary stands for in part goes into the new one as a whole.
    around = [run.first for run in outline.runs if wanted < stop and run.first < pieces[wanted].at[0] <= run.last]
    earlier = [at for at, piece in enumerate(pieces) if piece.at[0] in around]
    return next((at for at in (*earlier, *range(wanted, stop)) if outline.is_clean(at)), stop)


def _stop(outline: Outline, wish: Wish) -> int:
    """The number of the first piece that stays, or how many there are."""
    pieces = outline.pieces
    inside = _inside_turn(outline, wish.responses) if wish.responses else []
    tail = 1 if wish.responses else max(wish.tail, int(outline.begun))
    wanted = sum(piece.turn < outline.turns - tail for piece in pieces)
    starts = [at for at in range(wanted, 0, -1) if at == len(pieces) or pieces[at - 1].turn != pieces[at].turn]
    return next((at for at in (*inside, *starts) if outline.is_clean(at)), 0)


def _inside_turn(outline: Outline, responses: int) -> list[int]:
    """Where a turn under way may be cut, so that at least so many of its responses stay; the longest run first."""
    own = [
        at for at, piece in enumerate(outline.pieces) if piece.turn == outline.turns - 1 and piece.kind == "response"
    ]
    return own[len(own) - responses : 0 : -1] if outline.begun and len(own) > responses else []


def _stays(outline: Outline, piece: OutlineItem) -> bool:
    """Whether it goes word for word: the system's words, what is pinned, and what the turn under way is about."""
    asks = outline.begun and piece.turn == outline.turns - 1 and piece.kind == "said"
    return piece.kind == "system" or asks or Priority.PINNED in outline.priorities(piece)


def _trims(outline: Outline, piece: OutlineItem, size: int) -> Iterator[tuple[str, str]]:
    """The long results of a response; none where a part of it is to stay as it is."""
    if not outline.priorities(piece).isdisjoint((Priority.PINNED, Priority.IMPORTANT)):
        return
    for at in piece.at:
        commit = outline.commits[at]
        value = outline.curation.value(commit)
        if commit.kind == "tool_result" and isinstance(value, ToolResult):
            shown = outline.trimmed.get(commit.hash, value.content)
            if len(shown) > size + _SLACK:
                yield commit.hash, shortened(value.content, size, commit.hash)
