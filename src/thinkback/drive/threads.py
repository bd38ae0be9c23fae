"""Foreign code in threads of its own, which keep no program alive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def in_thread(work: Callable[[], T], slots: threading.Semaphore) -> Future[T]:
    """``work`` in a daemon thread, in the caller's context variables, as soon as one of ``slots`` is free.

    Cancelling the future keeps work from beginning; what has begun goes on, and nobody waits for it.
    """
    future: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        with slots:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(context.run(work))
            except BaseException as error:  # handed to whoever asks for the result
                future.set_exception(error)

    threading.Thread(target=run, name="thinkback-tool", daemon=True).start()
    return future
