"""A person's word on calls, through a function of the program.

Promises: what does not say yes is a no, a function that fails or answers something else too.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple, TypeAlias

from thinkback.drive.threads import in_thread
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
        answered = _read(approval.approve(request))
    except Exception as error:  # foreign code: whatever it raises is no consent
        answered = _failed(error)
    if answered.allow and answered.always:
        approval.remember(request)
    return answered


async def answer_async(approval: Approval, request: PermissionRequest, executor: Executor) -> PermissionAnswer:
    """Await the answer; a plain function is called in a thread. ``executor`` is the store's."""
    try:
        if is_coroutine(approval.approve):
            said = approval.approve(request)
        else:
            said = await asyncio.wrap_future(in_thread(partial(approval.approve, request), threading.Semaphore()))
        answered = _read(await said if inspect.isawaitable(said) else said)
    except Exception as error:  # foreign code: whatever it raises is no consent
        answered = _failed(error)
    if answered.allow and answered.always:
        await asyncio.get_running_loop().run_in_executor(executor, approval.remember, request)
    return answered


def _read(said: object) -> PermissionAnswer:
    if isinstance(said, PermissionAnswer):
        return said
    if isinstance(said, bool):
        return PermissionAnswer(said)
    return PermissionAnswer(False, note=f"approve returned {type(said).__name__} in place of true or false")


def _failed(error: Exception) -> PermissionAnswer:
    return PermissionAnswer(False, note=f"approve failed: {type(error).__name__}")
