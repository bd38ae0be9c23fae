"""A request as it was read: what it says, in whose scope, with what its client kept for the gateway opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from thinkback.errors import WireError
from thinkback.gateway.engine import client_state
from thinkback.gateway.engine.facts import Facts
from thinkback.gateway.incoming import Incoming
from thinkback.gateway.recognition import conversation
from thinkback.gateway.secrets.sealing import Sealer
from thinkback.model.blocks import Origin
from thinkback.session.fresh import new_id
from thinkback.wire.registry import dialect, front
from thinkback.wire.result import ReadRequest


class Asked(NamedTuple):
    """``request`` is as its dialect reads it, ``known`` the same with every token opened."""

    incoming: Incoming
    facts: Facts
    scope: bytes
    request: ReadRequest
    known: conversation.Request


def check_length(facts: Facts, most: int) -> None:
    """Raise ``WireError`` for more than ``most`` messages."""
    if facts.messages > most:
        raise WireError(f"the request has {facts.messages} messages, and {most} are allowed")


def read(incoming: Incoming, body: Mapping[str, Any], facts: Facts, sealer: Sealer) -> Asked:
    """``incoming``, whose ``body`` and ``facts`` are known. Raises ``WireError`` for what is none of its dialect."""
    scope = incoming.grant.scope(facts.end_user)
    request = dialect(incoming.front).read_request(body, new_id, Origin(incoming.front, "", ""))
    drafts = request.drafts
    if client_state.holds_tokens(incoming.body):
        bare = front(incoming.front).bare
        drafts = tuple(client_state.opened(drafts, lambda token: sealer.open(token, scope), bare))
    return Asked(incoming, facts, scope, request, conversation.request_of(drafts, facts.previous_response))
