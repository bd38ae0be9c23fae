"""Why: which reasoning led to a commit, and what the request that brought it carried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from thinkback.errors import NotFoundError
from thinkback.log import blame
from thinkback.log.blame import Blame
from thinkback.model.commits import Commit
from thinkback.model.curation import curate
from thinkback.model.target import Decision
from thinkback.session import requests
from thinkback.turn.plan import Plan

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation


class Explanation(NamedTuple):
    """``blame`` is the reasoning that led to ``commit`` (``None`` for a request), ``plan`` the request that brought it,
    rebuilt and checked against the digest that the record has; where that cannot be, ``unknown`` says why. ``edited``
    names by hash the edit of ``commit`` and of its reasoning that holds now, and the compaction that made it.
    """

    commit: Commit
    blame: Blame | None
    plan: Plan | None
    unknown: str = ""
    edited: Mapping[str, str] = {}

    @property
    def reasoning(self) -> tuple[Commit, ...]:
        """The commits of reasoning that led to it, oldest first."""
        return () if self.blame is None else (*self.blame.earlier, *self.blame.reasoning)

    @property
    def decisions(self) -> list[Decision]:
        """What was done with each block of earlier reasoning in that request."""
        return [] if self.plan is None else self.plan.decisions


def explain(conversation: Conversation, name: str) -> Explanation:
    """The explanation of the commit whose hash begins with ``name``, on whichever branch of the session it is.

    Raises ``NotFoundError`` for a commit that no response brought, ``CorruptLogError`` as ``requests.rebuild`` does.
    """
    conversation.refresh()
    log, commits = conversation.store.log, conversation.history.commits
    _, commit = log.find_commit(name, conversation.info.id)
    if not any(known.hash == commit.hash for known in commits):
        commits = log.read_to(conversation.info.id, commit.hash)
    if commit.kind in ("request", "response"):
        return Explanation(commit, None, requests.rebuild(commits, commit.hash))
    led = blame.why(commits, commit.hash)
    brought, curation = led.call or commit, curate(commits)
    told = {each.hash: curation.why_edited(each) for each in (commit, *led.earlier, *led.reasoning)}
    edited = {hash: why for hash, why in told.items() if why}
    try:
        return Explanation(commit, led, requests.rebuild(commits, brought.hash), edited=edited)
    except NotFoundError as error:  # by hand, adopted, or with reasoning that was not kept
        return Explanation(commit, led, None, error.message, edited)
