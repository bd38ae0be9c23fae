"""What the provider said it did with what was sent, put beside the decisions that sent it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from thinkback.model.commits import Commit, Response
from thinkback.model.target import Decision
from thinkback.wire.registry import dialect
from thinkback.wire.result import Report

_PATH = re.compile(r"(?:messages|input)\.(\d+)(?:\.content\.(\d+))?$")


def report_of(response: str, commits: Iterable[Commit]) -> Report:
    """What the response of that id reports; nothing where none came."""
    found = (c.value for c in commits if c.response == response and isinstance(c.value, Response))
    header = next(found, None)
    return dialect(header.origin.dialect).report(header.envelope) if header is not None else Report()


def reported(decisions: Sequence[Decision], report: Report, commits: Iterable[Commit]) -> list[Decision]:
    """``decisions`` with the provider's words on those it is about: by item id, or by the place of the block."""
    if not report.removed:
        return list(decisions)
    by_id = {where: what for where, what in report.removed if _PATH.search(where) is None}
    by_place: dict[tuple[int, int], str] = {}
    for where, what in report.removed:
        path = _PATH.search(where)
        if path is not None:
            by_place[int(path[1]), int(path[2] or -1)] = what
    words: dict[str, str] = {}
    for commit in commits if by_id else ():
        for carrier in getattr(commit.value, "carriers", ()):
            if carrier.value in by_id:
                words[commit.hash] = by_id[carrier.value]
    told: list[Decision] = []
    for decision in decisions:
        place = (decision.message, decision.part)
        word = words.get(decision.block) or by_place.get(place) or by_place.get((decision.message, -1))
        sent = decision.message >= 0
        told.append(msgspec.structs.replace(decision, reported=word) if word and sent else decision)
    return told
