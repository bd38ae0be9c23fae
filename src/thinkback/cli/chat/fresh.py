"""New sessions: what one is called that nobody named, and which are nothing, so that none of these is left behind."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from thinkback.errors import StoreError, ThinkbackError, UnknownModelError

if TYPE_CHECKING:
    from thinkback.log.protocol import Store


def name() -> str:
    """One that no session has yet, and that says when it began."""
    return time.strftime("chat-%Y%m%d-%H%M%S-", time.localtime()) + secrets.token_hex(2)


def is_unused(log: Store, session: str, made_with: Mapping[str, str] | None, *, is_misnamed: bool = False) -> bool:
    """Whether nothing was said in the session with that id, on any branch, and nothing forked from it.

    ``made_with`` are its settings at the beginning where somebody named it: other ones are something to be kept; those
    of a session without a name (``None``) are not. ``is_misnamed``: no more came of its questions than that the
    endpoint knows no such model; without a name, then, they are nothing.
    """
    info = log.find_session(session)
    if info is None or (made_with is not None and info.settings != made_with):
        return False
    if made_with is None and is_misnamed:
        is_empty = not is_answered(log, session)
    else:
        is_empty = not (info.commits or any(branch.head.hash for branch in log.refs.list(session)))
    return is_empty and not any(other.parent == session for other in log.list_sessions())


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
