"""How a client is shown a response: under which id, with how much of its reasoning, what it keeps for the gateway.

Promises: opaque values leave sealed, with the origin that they are good for. Must not: write a dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from thinkback.drive.sync import now
from thinkback.gateway.engine import client_state
from thinkback.gateway.engine.asked import Asked
from thinkback.gateway.incoming import Notes
from thinkback.gateway.secrets.sealing import Sealer
from thinkback.model.blocks import Block
from thinkback.turn.exchange import Exchange
from thinkback.turn.plan import Plan
from thinkback.turn.reading import origin_of
from thinkback.wire.registry import front
from thinkback.wire.writing import Shown

_BEHIND_TEXT = "opaque values that arrive behind the text: a stream has no place for them, and nothing is recorded"


class Showing:
    """How the responses to one request are shown; ``exchange`` gives the one that is under way.

    ``began`` is when the request came, in microseconds UTC.
    """

    def __init__(self, asked: Asked, sealer: Sealer, began: int, exchange: Callable[[], Exchange | None]) -> None:
        self._asked = asked
        self._sealer = sealer
        self._began = began
        self._exchange = exchange
        self._keepers: dict[str, client_state.Keeper] = {}

    def is_native(self, plan: Plan) -> bool:
        """Whether the client is given the upstream's own bytes."""
        rewrites = plan.leaked_calls == "pass" and plan.target.rule.leaked_calls
        speaks = plan.target.endpoint.dialect == self._asked.incoming.front
        return speaks and plan.wanted.include_in_response and not rewrites

    def shown(self, plan: Plan) -> Shown:
        """What a writer of the client's dialect is told of the response to ``plan``."""
        exchange, facts = self._under_way(), self._asked.facts
        takes = facts.takes_reasoning
        return Shown(
            id=shown_as(self._asked.incoming.front, exchange.response),
            model=facts.model,
            created=self._began // 1_000_000,
            reasoning=plan.wanted.include_in_response and takes,
            usage=facts.wants_usage,
            state=self.keeper(plan).blocks if takes else _no_state,
            block=exchange.block,
            request=self._asked.request.params,
            now=lambda: now() // 1_000_000,
            recorded=self._asked.incoming.grant.records,
        )

    def left(self, plan: Plan) -> tuple[str, ...]:
        """What of the response to ``plan`` the client may not be given, and nobody else keeps."""
        asked = self._asked
        if not front(asked.incoming.front).blocks_in_order or asked.incoming.grant.records or self.is_native(plan):
            return ()
        return (_BEHIND_TEXT,) if asked.facts.streams and asked.facts.takes_reasoning else ()

    def keeper(self, plan: Plan) -> client_state.Keeper:
        """Seals what the response to ``plan`` brings, for its client to keep."""
        response = self._under_way().response
        known = self._keepers.get(response)
        if known is not None:
            return known
        scope, sealer = self._asked.scope, self._sealer
        minted = client_state.minted_of(plan.record()) if plan.target.rule.prefix_bound else None
        made = client_state.Keeper(lambda data: sealer.seal(data, scope), origin_of(plan), response, minted)
        self._keepers[response] = made
        return made

    def _under_way(self) -> Exchange:
        exchange = self._exchange()
        assert exchange is not None
        return exchange


def shown_as(name: str, response: str) -> str:
    """Our id of a response as a client of the dialect ``name`` reads it."""
    return f"{front(name).id_prefix}{response}"


def headers(notes: Notes, left: Sequence[str]) -> dict[str, str]:
    """What the gateway says of a response in its headers; ``left`` is what the upstream was not asked for."""
    said = {
        "thinkback-session": notes.session,
        "thinkback-response": notes.response,
        "thinkback-upstream": notes.upstream,
        "thinkback-reattach": notes.reattach,
        "thinkback-degraded": notes.degraded,
        "thinkback-left-out": "; ".join(left),
    }
    return {name: _header(value) for name, value in said.items() if value}


def _no_state(blocks: Sequence[Block]) -> str:
    """Nothing for the client to keep: the gateway remembers."""
    return ""


def _header(value: str) -> str:
    """``value`` as a header can carry it."""
    return value.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")[:1000]
