"""From a session to the plan of its next request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thinkback.model.target import Settings, Target, merge_headers
from thinkback.session import requests
from thinkback.session.requests import Options
from thinkback.settings import snapshot
from thinkback.turn.budget import Bounded, bounded
from thinkback.turn.plan import Plan

if TYPE_CHECKING:
    from thinkback.session.session import Session


def plan_of(session: Session, options: Options, *, with_key: bool = False) -> Plan:
    """The next request, from what the settings, files and rules say now."""
    session._line.hooks.run("pre_compile", session._history.commits)
    place, book = session._place, session._store.rulebook
    target = place.target(book)
    params = requests.native_params(target, options)
    offered = requests.stamped(options.tools, target.endpoint.dialect)
    settings, controls, told = within_budget(session, session._effective(options.settings), target, params)
    plan = session._history.plan(target, settings, offered, params)
    plan.settings, plan.budget = snapshot(settings), told
    plan.controls += controls
    if target.endpoint.stream_path:
        plan.streams = options.stream
    headers = place.headers(book, streams=plan.streams)
    plan.headers = merge_headers(headers, plan.added_headers)
    if with_key:
        plan.authenticator = place.authenticator(book)
    return plan


def within_budget(session: Session, settings: Settings, target: Target, params: dict[str, Any]) -> Bounded:
    """``settings`` as far as the budget of reasoning goes. Raises ``BudgetSpent`` where it is to stop."""
    if settings.budget is None:
        return Bounded(settings)
    from thinkback.session.usage import spent

    return bounded(settings, target, params, spent(session))
