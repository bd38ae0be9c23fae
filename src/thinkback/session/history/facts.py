"""What is known of one commit besides its payload: who answered where, and what annotations say of it. Looks only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from thinkback.errors import NotFoundError
from thinkback.log.protocol import Store
from thinkback.model.commits import Commit, Request, Response, surviving
from thinkback.model.curation import curate, read_metadata

_ID = re.compile(r"[0-9a-f]{8,64}")


class Facts(NamedTuple):
    """``model`` and ``endpoint`` are those of the commit's response or request; the rest is what annotations say."""

    model: str = ""
    endpoint: str = ""
    priority: str = ""
    reason: str = ""
    tags: Sequence[str] = ()
    message: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})


def find(log: Store, name: str) -> tuple[str, Commit]:
    """The session and the commit that ``name`` begins the hash of, else the response whose id it begins.

    Raises ``NotFoundError``.
    """
    try:
        return log.find_commit(name)
    except NotFoundError:
        if not _ID.fullmatch(name.lower()):
            raise
        for info in log.list_sessions():
            for branch in log.refs.list(info.id):
                for commit in log.read(info.id, branch=branch.name):
                    if commit.kind == "response" and commit.response.startswith(name.lower()):
                        return info.id, commit
        raise


def facts_of(log: Store, session: str, commit: Commit) -> Facts:
    """What its session says of ``commit``: on the current branch where it stands there, else up to it."""
    info = log.find_session(session)
    history = log.read(session, branch=info.branch) if info is not None else []
    if all(commit.hash != other.hash for other in history):
        history = log.read_to(session, commit.hash)
    curation = curate(history)
    mark, priority = curation.mark(commit.hash), curation.priority(commit)
    model, endpoint = _place(history, commit)
    return Facts(
        model,
        endpoint,
        priority.value if priority is not None else "",
        mark.reason,
        sorted(mark.tags),
        mark.message,
        read_metadata(mark),
    )


def _place(history: Sequence[Commit], commit: Commit) -> tuple[str, str]:
    """The model that answered, else the one that was asked, and the endpoint."""
    model = endpoint = ""
    for other in history if commit.response else ():
        if other.response != commit.response:
            continue
        match surviving(other.value):
            case Request(target={"endpoint": named} as target):
                endpoint, model = named, model or target["model"]
            case Response(origin=origin):
                model, endpoint = origin.served_model or origin.requested_model, endpoint or origin.endpoint
            case _:
                pass
    return model, endpoint
