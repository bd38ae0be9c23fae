"""Sessions that nobody named: what a new one is called, and that none is left behind in which nothing was said."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from thinkback.errors import StoreError

if TYPE_CHECKING:
    from thinkback.log.protocol import Store


def name() -> str:
    """One that no session has yet, and that says when it began."""
    return time.strftime("chat-%Y%m%d-%H%M%S-", time.localtime()) + secrets.token_hex(2)


@contextmanager
def kept_if_used(log: Store, session: str) -> Iterator[None]:
    """Forget the session with that id in the end, unless something was said in it or forked from it."""
    try:
        yield
    finally:
        forget_unused(log, session)


def forget_unused(log: Store, session: str) -> None:
    """Delete the session with that id where nothing was said in it and nothing forked from it."""
    info = log.find_session(session)
    is_used = info is None or info.commits or any(other.parent == session for other in log.list_sessions())
    if not is_used:
        forget(log, session)


def forget(log: Store, session: str) -> None:
    """Delete the session with that id."""
    with suppress(StoreError):  # it is gone, and what it was called is to be overwritten by the next erasure
        log.care.delete_session(session)
