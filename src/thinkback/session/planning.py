"""From a session to the plan of its next request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from thinkback.compile.prefix_binding import OTHER_SYSTEM, OTHER_TOOLS
from thinkback.model import canonical
from thinkback.model.commits import Request
from thinkback.model.plan import Control
from thinkback.model.target import Settings, Target, merge_headers, name_conversation
from thinkback.session import requests
from thinkback.session.ids import outside
from thinkback.session.requests import Options
from thinkback.settings import snapshot
from thinkback.turn.budget import Bounded, bounded
from thinkback.turn.plan import Plan

if TYPE_CHECKING:
    from thinkback.session.configuration import Configuration
    from thinkback.session.conversation import Conversation


def plan_of(
    conversation: Conversation, configuration: Configuration, options: Options, *, with_key: bool = False
) -> Plan:
    """The next request of ``conversation``, by ``configuration`` and the rules."""
    conversation.line.hooks.run("pre_compile", conversation.history.commits)
    target = configuration.target
    wanted = configuration.settings(options.settings)
    params = requests.native_params(target, options, wanted)
    offered = requests.stamped(options.tools, target.endpoint.dialect)
    settings, controls, told = within_budget(conversation, wanted, target, params)
    plan = conversation.history.plan(target, settings, offered, params)
    streams = options.stream if target.endpoint.stream_path else plan.streams
    headers = merge_headers(configuration.headers(streams=streams), plan.added_headers)
    plan = msgspec.structs.replace(
        plan,
        settings=snapshot(settings),
        budget=told,
        controls=(*plan.controls, *requests.stored_params(target, wanted)[1], *controls),
        streams=streams,
        base_headers=name_conversation(target.endpoint, headers, conversation.info.id),
        authenticator=configuration.authenticator() if with_key else None,
    )
    if with_key:
        _warn_of_unsent(conversation, plan, controls)
        if target.rule.prefix_bound:
            _warn_of_changes(conversation, plan)
    return plan


_CHANGED = {OTHER_TOOLS: "the tools changed", OTHER_SYSTEM: "the system prompt changed"}


def _warn_of_changes(conversation: Conversation, plan: Plan) -> None:
    """Say that a change of the session's own takes bound reasoning away, at the first request it does that to."""
    dropped = [each for each in plan.decisions if each.action == "drop" and each.what != "reasoning"]
    told = {}
    for cause, what in _CHANGED.items():
        blocks = {decision.block for decision in dropped if cause in decision.reason}
        if blocks:
            told[cause] = (
                f"{what}, and earlier reasoning is bound to the old version: {len(blocks)} blocks are not sent"
            )
    for text in (text for cause, text in told.items() if cause not in conversation.warned):
        conversation.line.hooks.notify(f"{text}; the old version brings them back", outside())
    conversation.warned = conversation.warned.difference(_CHANGED).union(told)


_UNSENT = frozenset({"absent", "suppressed", "unrepresentable"})


def _warn_of_unsent(conversation: Conversation, plan: Plan, reported: Sequence[Control]) -> None:
    """Report each control that is not sent, once: at the first request of the session that it concerns.

    Those of the budget are ``reported`` with it.
    """
    at = f"{plan.target.endpoint.id}/{plan.target.model}"
    unsent = {f"{at}: {c.key} = {c.value}": c for c in plan.controls if c.state in _UNSENT and c not in reported}
    new = {what: control for what, control in unsent.items() if what not in conversation.warned}
    conversation.warned |= new.keys()
    if not new or _is_like_the_last(conversation, plan):
        return
    for control in new.values():
        conversation.line.hooks.notify(f"{control.key} = {control.value} is not sent: {control.reason}", outside())


def _is_like_the_last(conversation: Conversation, plan: Plan) -> bool:
    """Whether the last request went to the same place, with the same settings and parameters: it was reported then."""
    commits = conversation.history.commits
    last = next((commit.value for commit in reversed(commits) if isinstance(commit.value, Request)), None)
    if last is None or not last.target:
        return False
    target = plan.target
    there = (last.target["endpoint"], last.target["model"], last.settings, last.params)
    # A version that did not know a setting recorded none: only those that it knew can tell the requests apart.
    known = {key: value for key, value in plan.settings.items() if key in last.settings}
    return there == (target.endpoint.id, target.model, known, canonical.source(plan.native))


def within_budget(conversation: Conversation, settings: Settings, target: Target, params: dict[str, Any]) -> Bounded:
    """``settings`` as far as the budget of reasoning goes. Raises ``BudgetSpent`` where it is to stop."""
    if settings.budget is None:
        return Bounded(settings)
    from thinkback.session.usage import spent

    return bounded(settings, target, params, spent(conversation))
