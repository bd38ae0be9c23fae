"""Sessions that nobody named: what a new one is called, and that none is left behind in which nothing was said."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from thinkback.errors import StoreError, ThinkbackError, UnknownModelError

if TYPE_CHECKING:
    from thinkback.log.protocol import Store


def name() -> str:
    """One that no session has yet, and that says when it began."""
    return time.strftime("chat-%Y%m%d-%H%M%S-", time.localtime()) + secrets.token_hex(2)


def forget_unused(log: Store, session: str, *, is_misnamed: bool = False) -> None:
    """Delete the session with that id where nothing was said in it and nothing forked from it.

    ``is_misnamed``: no more came of its questions than that the endpoint knows no such model; then they are nothing.
    """
    info = log.find_session(session)
    if info is None or any(other.parent == session for other in log.list_sessions()):
        return
    if not info.commits or (is_misnamed and not is_answered(log, session)):
        forget(log, session)


def is_misnamed(error: ThinkbackError) -> bool:
    """Whether the endpoint certainly knows no such model: of a 400 only a text that names it says so; others may be
    about another field.
    """
    if not isinstance(error, UnknownModelError):
        return False
    told = error.details
    return told["status"] == 404 or str(told["model"]) in str(told["provider_message"])


def is_answered(log: Store, session: str) -> bool:
    """Whether a model answered on any branch of the session with that id."""
    branches = [branch.name for branch in log.refs.list(session)]
    return any(commit.kind == "response" for name in branches for commit in log.read(session, branch=name))


def forget(log: Store, session: str) -> None:
    """Delete the session with that id."""
    with suppress(StoreError):  # it is gone, and what it was called is to be overwritten by the next erasure
        log.care.delete_session(session)
