"""How a client is shown a response: under which id, with how much of its reasoning, what it keeps for the gateway.

Promises: opaque values leave sealed, with the origin that they are good for. Must not: write a dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from thinkback.compile.write import BEHIND
from thinkback.model.blocks import Block
from thinkback.proxy import client_state
from thinkback.proxy.client_state import Keeper, Sealing
from thinkback.proxy.request_view import View
from thinkback.turn.exchange import Exchange
from thinkback.turn.plan import Plan
from thinkback.turn.reading import origin_of
from thinkback.wire.registry import front
from thinkback.wire.writing import Shown

_BEHIND_TEXT = "opaque values that arrive behind the text: a stream has no place for them, and nothing is recorded"


class Clock:
    """``now`` is the time of the last event, in microseconds UTC."""

    def __init__(self, now: int) -> None:
        self.now = now

    def seconds(self) -> int:
        """Seconds since 1970."""
        return self.now // 1_000_000


def is_native(view: View, plan: Plan) -> bool:
    """Whether the client is given the upstream's own bytes."""
    rewrites = plan.leaked_calls == "pass" and plan.target.rule.leaked_calls
    speaks = plan.target.endpoint.dialect == view.received.front
    return speaks and plan.wanted.include_in_response and not (rewrites or plan.as_functions)


def keeper_of(view: View, sealing: Sealing | None, exchange: Exchange) -> Keeper | None:
    """Seals what a response brings, for its client to keep."""
    if sealing is None:
        return None
    plan = exchange.plan
    minted = client_state.minted_of(plan.record()) if plan.target.rule.prefix_bound else None
    return Keeper(sealing, view.scope, origin_of(plan), exchange.response, minted)


def shown(view: View, exchange: Exchange, keeper: Keeper | None, began: int, clock: Clock) -> Shown:
    """How a writer of the client's dialect writes a response; ``began`` is when the request came, in microseconds."""
    facts, plan = view.facts, exchange.plan
    takes = facts.takes_reasoning
    return Shown(
        id=shown_as(view.received.front, exchange.response),
        model=facts.model,
        created=began // 1_000_000,
        reasoning=plan.wanted.include_in_response and takes and not plan.unasked,
        usage=facts.wants_usage,
        state=keeper.blocks if keeper is not None and takes else _no_state,
        block=exchange.block,
        request=view.request.params,
        now=clock.seconds,
        recorded=view.received.client.records,
    )


def withheld_from(view: View, plan: Plan) -> tuple[str, ...]:
    """What of the response to ``plan`` the client may not be given, and nobody else keeps."""
    received = view.received
    if not front(received.front).blocks_in_order or received.client.records or is_native(view, plan):
        return ()
    return (_BEHIND_TEXT,) if view.facts.streams and view.facts.takes_reasoning else ()


def system_of(plan: Plan | None) -> str:
    """That a part of the client's system prompt stands behind the history, and how many thoughts go for it."""
    if plan is None or plan.wanted.system_changes != "append":
        return ""
    moved = any(decision.reason == BEHIND for decision in plan.decisions)
    return f"appended; kept={plan.request.chain.length}" if moved and plan.request.chain is not None else ""


def shown_as(name: str, response: str) -> str:
    """Our id of a response as a client of the dialect ``name`` reads it."""
    return f"{front(name).id_prefix}{response}"


def header(value: str) -> str:
    """``value`` as a header can carry it."""
    return value.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")[:1000]


def _no_state(blocks: Sequence[Block]) -> str:
    """Nothing for the client to keep: the gateway remembers."""
    return ""
