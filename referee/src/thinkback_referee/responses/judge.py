"""The judge: a request to the verdict. Pure; no I/O. The first refusal of the list below is the verdict."""

from __future__ import annotations

from collections.abc import Callable

from ..verdict import ACCEPTED, Verdict
from . import parameters, replay, structure
from .request import Request

_CHECKS: tuple[Callable[[Request], Verdict | None], ...] = (
    parameters.session_rules,
    parameters.unknown,
    structure.bad_items,
    structure.bad_ids,
    parameters.bad_tools,
    parameters.bad_reasoning,
    parameters.sampling,
    parameters.bad_include,
    parameters.bad_previous,
    structure.duplicates,
    replay.unresolved,
    structure.unpaired_calls,
    structure.split_calls,
    replay.unreadable,
    replay.foreign_ids,
    replay.without_follower,
    replay.without_reasoning,
    replay.altered_text,
)


def judge(request: Request) -> Verdict:
    """The verdict on a request; reads the ledger and changes nothing."""
    for check in _CHECKS:
        if (verdict := check(request)) is not None:
            return verdict
    return ACCEPTED
