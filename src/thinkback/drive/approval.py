"""A person's word on calls, through a function of the program.

Promises: what does not say yes is a no, a function that fails or answers something else too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from thinkback.turn.permissions import PermissionAnswer, PermissionRequest

Approve: TypeAlias = Callable[[PermissionRequest], object]
"""Says whether a call may run: true or false, or a ``PermissionAnswer``; with asyncio it may be a coroutine."""


class Approval(NamedTuple):
    """``approve`` asks the person, ``remember`` keeps the rule that an answer of "always" adds."""

    approve: Approve
    remember: Callable[[PermissionRequest], object]


def is_coroutine(approve: Approve) -> bool:
    """Whether ``approve`` must be awaited."""
    return inspect.iscoroutinefunction(approve)


def answer(approval: Approval, request: PermissionRequest) -> PermissionAnswer:
    """Ask in this thread."""
    try:
        answered = read(approval.approve(request))
    except Exception as error:  # foreign code: whatever it raises is no consent
        answered = failed(error)
    if answered.allow and answered.always:
        approval.remember(request)
    return answered


def read(said: object) -> PermissionAnswer:
    """What ``approve`` returned."""
    if isinstance(said, PermissionAnswer):
        return said
    if isinstance(said, bool):
        return PermissionAnswer(said)
    return PermissionAnswer(False, note=f"approve returned {type(said).__name__} in place of true or false")


def failed(error: Exception) -> PermissionAnswer:
    """What becomes of an ``approve`` that raised."""
    return PermissionAnswer(False, note=f"approve failed: {type(error).__name__}")
