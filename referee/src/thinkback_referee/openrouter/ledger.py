"""What was minted through the router: the details of every response, found again by their opaque values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..jsons import as_text


@dataclass(frozen=True, slots=True)
class Mint:
    """The details of one response, and what they stand for."""

    model: str
    account: str
    carriers: tuple[str, ...]
    thought: str
    calls: tuple[str, ...]


class Ledger:
    """Mints by carrier, and by readable thought."""

    def __init__(self) -> None:
        self._by_carrier: dict[str, Mint] = {}
        self._by_thought: dict[str, Mint] = {}

    def add(self, mint: Mint) -> None:
        """Note a mint."""
        for carrier in mint.carriers:
            self._by_carrier[carrier] = mint
        self._by_thought[mint.thought] = mint

    def carried(self, carrier: str) -> Mint | None:
        """The mint that an opaque value belongs to."""
        return self._by_carrier.get(carrier)

    def thought(self, text: str) -> Mint | None:
        """The last mint with exactly this thought."""
        return self._by_thought.get(text)


def carrier_of(entry: Mapping[str, object]) -> str:
    """The opaque value of an entry: its data or its signature."""
    return as_text(entry.get("data")) or as_text(entry.get("signature"))


def text_of(entry: Mapping[str, object]) -> str:
    """The readable text of an entry."""
    return as_text(entry.get("text")) or as_text(entry.get("summary"))
