"""What goes upstream: the history and the client's parameters as a plan for one place, in the client's own bytes.

Promises: reasoning is decided by compile on the history, as for any session; what is left out is named. Must not: send
anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from thinkback.gateway.engine import spelling
from thinkback.gateway.engine.asked import Asked
from thinkback.gateway.engine.settings import Effective
from thinkback.gateway.engine.taking_up import TakenUp
from thinkback.gateway.headers import of_dialect
from thinkback.gateway.incoming import Incoming
from thinkback.gateway.recognition import losses, references
from thinkback.gateway.upstreams.routing import Route
from thinkback.log.erasing import END_USER
from thinkback.model.target import Settings, Target, merge, merge_headers
from thinkback.settings import snapshot
from thinkback.turn.plan import Plan
from thinkback.turn.translation import plan_without_refused, translate, without_own
from thinkback.wire.registry import dialect, front
from thinkback.wire.result import WantedOptions

_INCLUDE = "reasoning.includeInContext"


class Planned(NamedTuple):
    """``left`` names what the client asked for and this place cannot be, each once, in the order of the alphabet."""

    plan: Plan
    left: tuple[str, ...]


def planned(
    asked: Asked, taken: TakenUp, route: Route, effective: Effective, defaults: Mapping[str, object]
) -> Planned:
    """The request to ``route``; ``defaults`` are the settings of the gateway. Raises what ``translate`` raises."""
    target, incoming = route.target, asked.incoming
    settings = _settings(asked, route, effective, defaults)
    own = [path for path in asked.facts.own if path not in target.endpoint.takes]
    params = {key: value for key, value in _params(asked, taken).items() if key not in own}
    translated = translate(incoming.front, target, params, settings, asked.request.amid)
    if incoming.front != target.endpoint.dialect:
        references.check(taken.known.drafts)
    params = _with_options(asked, target, translated.params)
    plan, refused = plan_without_refused(taken.history, target, translated.settings, params)
    remarks: dict[str, str] = {}
    if asked.facts.end_user:
        remarks[END_USER] = asked.facts.end_user
    if taken.missing:
        remarks["not_found"] = "; ".join(f"{at}: {why}" for at, why in taken.missing)
    if taken.lost:
        remarks[losses.REMARK] = " ".join(taken.lost)
    streams = asked.facts.streams if target.endpoint.stream_path else plan.streams
    plan = msgspec.structs.replace(
        plan,
        settings=snapshot(translated.settings),
        remarks=remarks,
        streams=streams,
        base_headers=_headers(plan.added_headers, route, incoming, streams=streams),
        authenticator=route.authenticator,
        leaked_calls=route.leaked_calls,
    )
    tools = (f"tool {control.value}: {control.reason}" for control in plan.controls if control.key == "tools")
    theirs = (f"{path}: it is for one provider, and {target.endpoint.id} may not know it" for path in own)
    return Planned(plan, tuple(sorted({*translated.left, *refused, *tools, *theirs})))


def body_of(plan: Plan, incoming: Incoming) -> bytes:
    """What is sent: the plan's request, in the client's own bytes where both speak one dialect."""
    written = bytes(plan)
    if plan.target.endpoint.dialect != incoming.front:
        return written
    as_asked = front(incoming.front).as_asked
    if as_asked is not None:
        written = as_asked(incoming.body, written)
    written = without_own(incoming.front, plan.target.endpoint, written)
    return spelling.spelled(incoming.body, written)


def _settings(asked: Asked, route: Route, effective: Effective, defaults: Mapping[str, object]) -> Settings:
    settings = effective.of(
        defaults,
        route.settings,
        asked.incoming.grant.settings,
        asked.incoming.headers,
        route.target.endpoint.settings,
    )
    if _INCLUDE in settings.explicit or all(draft.kind != "reasoning" for draft in asked.request.drafts):
        return settings
    # A client that sends reasoning back wants it to go along, wherever it may.
    return msgspec.structs.replace(settings, include_in_context=True, explicit=settings.explicit | {_INCLUDE})


def _params(asked: Asked, taken: TakenUp) -> dict[str, Any]:
    """The client's parameters; the conversation that it only names goes along whole."""
    params = asked.request.params
    if not (taken.known.previous and taken.goes_on):
        return params
    return {key: value for key, value in params.items() if key != "previous_response_id"}


def _with_options(asked: Asked, target: Target, params: dict[str, Any]) -> dict[str, Any]:
    """``params`` with what asks for a stream in the upstream's words, or in the client's own for its counts."""
    endpoint, facts = target.endpoint, asked.facts
    if asked.incoming.front != endpoint.dialect:
        wanted = WantedOptions(facts.streams and not endpoint.stream_path, endpoint.stream_usage)
        rest = {key: value for key, value in params.items() if key != "stream"}
        return {**rest, **dialect(endpoint.dialect).options(wanted)}
    if facts.hides_counts and endpoint.stream_usage:
        return merge(params, dialect(endpoint.dialect).options(WantedOptions(facts.streams, usage=True)))
    return params


def _headers(added: dict[str, str], route: Route, incoming: Incoming, *, streams: bool) -> dict[str, str]:
    headers = merge_headers(route.streaming if streams else route.whole, added)
    if incoming.front == route.target.endpoint.dialect:
        headers = merge_headers(headers, of_dialect(incoming.front, incoming.headers))
    return headers
