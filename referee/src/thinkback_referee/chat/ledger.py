"""What was minted: the reasoning of every response, found again by its tool-call ids or by its answer text.

The ledger is how the referee can be stricter than the providers: they cannot tell altered reasoning from their own,
it can. It only grows; ``Referee.reset`` starts a new one. It learns from recorded responses as well, whole or streamed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from .request import Message


@dataclass(frozen=True, slots=True)
class Mint:
    """One response: who made it, what it thought, and by what it is recognised."""

    host: str
    model: str
    reasoning: str
    text: str
    calls: tuple[str, ...] = ()
    tagged: bool = False
    """The thought came as tags inside the text, so a client may carry it in any field, or none."""


class Ledger:
    """Mints by tool-call id, by text, and by reasoning."""

    def __init__(self) -> None:
        self._by_key: defaultdict[str, dict[Mint, None]] = defaultdict(dict)
        self._by_reasoning: defaultdict[str, set[Mint]] = defaultdict(set)

    def add(self, mint: Mint) -> None:
        """Note a mint; the same mint twice is noted once."""
        for key in _keys(mint.calls, mint.text):
            self._by_key[key][mint] = None
        self._by_reasoning[mint.reasoning].add(mint)

    def mints(self, host: str, message: Message) -> list[Mint]:
        """The mints of this host that the message can be a replay of."""
        return [mint for mint in self._matching(message) if mint.host == host]

    def foreign(self, host: str, message: Message) -> list[Mint]:
        """The mints of other hosts that the message can be a replay of."""
        return [mint for mint in self._matching(message) if mint.host != host]

    def issued(self, reasoning: str) -> int:
        """How many different responses were minted with exactly this reasoning."""
        return len(self._by_reasoning.get(reasoning, ()))

    def _matching(self, message: Message) -> list[Mint]:
        found: dict[Mint, None] = {}
        for key in _keys(message.calls, message.text):
            found.update(self._by_key.get(key, {}))
        return list(found)


def _keys(calls: tuple[str, ...], text: str) -> list[str]:
    return [f"call:{call}" for call in calls] if calls else [f"text:{text}"]
