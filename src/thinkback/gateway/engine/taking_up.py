"""Where a request goes on: its conversation looked up, and the line that it is recorded on from there.

Promises: while the database is in trouble and the gateway may do without, a request is taken for the first of its
conversation, and that is said. Must not: decide what is sent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from thinkback.gateway.engine.asked import Asked
from thinkback.gateway.engine.engine import Engine
from thinkback.gateway.incoming import Notes
from thinkback.gateway.recognition import conversation, losses, references
from thinkback.gateway.recognition.conversation import Found, Request
from thinkback.gateway.storing.recorder import Recorder, Store
from thinkback.log.protocol import MAIN, Entry
from thinkback.log.seal import seal
from thinkback.model.commits import Commit, Head, Step
from thinkback.session.fresh import new_id
from thinkback.turn.plan import History


class TakenUp(NamedTuple):
    """``known`` is the whole conversation as its client sees it, ``history`` the same with what was recognised.

    ``goes_on`` says whether it was found in the log. ``missing`` are (message, why) of answers whose reasoning is not
    there, ``lost`` the responses among them that are a model's for sure. The recorder holds what the client brought.
    """

    known: Request
    history: History
    goes_on: bool
    missing: Sequence[tuple[int, str]]
    lost: Sequence[str]
    recorder: Recorder


async def take_up(engine: Engine, asked: Asked, notes: Notes, step: str, began: int) -> TakenUp:
    """The conversation of ``asked``. ``step`` is the id of what its client brings, ``began`` microseconds UTC.

    Raises ``WireError`` where it goes on from a response that nothing is known of, ``StoreError``.
    """
    grant = asked.incoming.grant
    echoes = any(message.speaker == "assistant" for message in asked.known.said) or references.names(asked.known.drafts)
    wants = bool(asked.known.previous or echoes)
    started = time.monotonic()
    known, found = await _looked_up(engine, asked, notes, wants)
    whole = conversation.whole(found, known)
    notes.phases["recognise"] = time.monotonic() - started
    missing = conversation.still_missing(found, known)
    lost = losses.lost(missing, known, asked.request.drafts)
    at, commits = _brought(found, known, Step(step, (), began), withholds=grant.withholds)
    recorder = _recorder(engine, asked, found, notes, step, began, at)
    recorder.hold(commits)
    can_know = grant.records and not (wants and notes.degraded)
    notes.session = recorder.session if grant.records else ""
    notes.reattach = str(losses.answers(found.history.commits, lost)) if can_know else "unavailable"
    # below full recording the questions of what it names are nowhere
    if can_know and known.previous and (found.base is None or grant.withholds):
        notes.reattach = "none; missing=1"
        raise conversation.not_found(known.previous)
    return TakenUp(whole, found.history, found.base is not None, missing, lost, recorder)


async def _looked_up(engine: Engine, asked: Asked, notes: Notes, wants: bool) -> tuple[Request, Found]:
    """What the client says with what it names put in, and what is known of it; ``wants``: whether anything can be."""
    records = asked.incoming.grant.records
    known, found = asked.known, conversation.unknown(asked.known)
    notes.degraded = "store" if records and engine.storing.rests else ""
    if records and wants:
        in_log = await engine.storing.asked(partial(_find, engine, asked))
        notes.degraded = "store" if in_log is None else ""
        known, found = in_log or (known, found)
    return known, found


async def _find(engine: Engine, asked: Asked) -> tuple[Request, Found]:
    known, scope, grant = asked.known, asked.scope, asked.incoming.grant
    log = await engine.in_thread(partial(engine.logs.of, grant.tenant))
    if references.names(known.drafts):
        drafts = await references.resolved(known.drafts, log, scope, engine.in_thread)
        known = conversation.request_of(drafts, known.previous)
    if grant.withholds:
        return known, await engine.withheld.find(known, log, grant.tenant, scope, engine.in_thread)
    return known, await conversation.find(known, log, grant.tenant, scope, engine.histories, engine.in_thread)


def _brought(found: Found, known: Request, step: Step, *, withholds: bool) -> tuple[Head, list[Commit]]:
    """Where the log goes on, and what the client brings behind it. The history that is sent takes up its own."""
    at = found.history.head
    commits = seal(Step(step.id, tuple(conversation.opening(found, known)), step.time), at)
    found.history.take(commits)
    if withholds:  # the log has another history: without what was said
        at = found.base.head if found.base is not None else Head()
        commits = seal(Step(step.id, tuple(conversation.unrecorded(found, known)), step.time), at)
    return at, commits


def _recorder(engine: Engine, asked: Asked, found: Found, notes: Notes, step: str, began: int, at: Head) -> Recorder:
    grant = asked.incoming.grant
    session, branch = (found.base.session, found.base.branch) if found.base is not None else (new_id(), MAIN)
    branch = branch or f"{MAIN}-{step[:8]}"  # where it was seen there is no branch any more

    async def store(entry: Entry) -> None:
        if not await engine.record(grant.tenant, entry):
            notes.degraded = "store"

    to: Store = store if grant.records else _nowhere
    return Recorder(to, session, f"{grant.key}/{session}", began, branch, at, grant.recording)


async def _nowhere(entry: Entry) -> None:
    """Nothing is recorded."""
