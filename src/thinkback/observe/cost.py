"""What requests cost: by the provider's own word, else by dated list prices.

Promises: never a guess. Where a provider's report, a price, or a count that the price needs is missing, there is no
cost, and sums say how much of them is known. Prices are data, and a person's own come first.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from thinkback.errors import RuleFileError
from thinkback.model.commits import Usage
from thinkback.model.target import lookup, model_matches
from thinkback.turn.spending import StepUse
from thinkback.turn.usage import TokenUse

MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens. ``cached`` are tokens read from a cache, ``write`` those written to one.

    It is about the endpoints and models (glob patterns) it names, from the day ``since`` on, and about requests of at
    most ``up_to`` input tokens (0: any). ``unless`` are dotted paths in the provider's usage: it is not about requests
    that have a number there.
    """

    input: float
    output: float
    since: str
    source: str
    models: tuple[str, ...]
    endpoints: tuple[str, ...] = ("*",)
    cached: float | None = None
    write: float | None = None
    up_to: int = 0
    unless: tuple[str, ...] = ()


class Reported(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where endpoints report what a request cost: a dotted ``path`` in their usage; ``per`` of it make a dollar."""

    endpoints: tuple[str, ...]
    path: str
    source: str
    per: float = 1


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A price file."""

    price: tuple[Price, ...] = ()
    reported: tuple[Reported, ...] = ()


class Cost(NamedTuple):
    """US dollars of several responses: of ``known`` of them, while nobody can say it of ``unknown``."""

    usd: float
    known: int
    unknown: int


def cost(use: TokenUse, usage: Usage | None, endpoint: str, model: str, at: int, own: Prices) -> float | None:
    """US dollars of one response at ``at`` (microseconds UTC); ``None`` where that is not known.

    ``own`` are a person's prices, which win over ours.
    """
    reported = usage_of(usage)
    said = _reported(reported, endpoint, own)
    if said is not None:
        return said
    day = time.strftime("%Y-%m-%d", time.gmtime(at // MILLION))
    for prices in (own, packaged()):
        row = _row(prices, endpoint, model, day, use.input or 0)
        if row is not None:
            return None if any(lookup(reported, path) for path in row.unless) else _priced(row, use, usage)
    return None


def cost_of(steps: Iterable[StepUse], own: Prices) -> Cost:
    """What steps cost together."""
    found = [cost(step.use, step.usage, *_where(step), step.time, own) for step in steps]
    known = [usd for usd in found if usd is not None]
    return Cost(sum(known), len(known), len(found) - len(known))


def _where(step: StepUse) -> tuple[str, str]:
    """Endpoint and model; who wrote a summary is one word, ``endpoint/model``."""
    if step.kind == "response":
        return step.place, step.model
    place, _, model = step.model.partition("/")
    return place, model


def read(name: str, text: str) -> Prices:
    """A person's price file. Raises ``RuleFileError`` with file, key and reason."""
    try:
        return msgspec.toml.decode(text, type=Prices)
    except msgspec.ValidationError as error:
        reason, _, at = str(error).partition(" - at `$.")
        key = at.rstrip("`")
        raise RuleFileError(
            f"{name}: {key + ': ' if key else ''}{reason}", details={"file": name, "key": key, "reason": reason}
        ) from error
    except (msgspec.DecodeError, ValueError) as error:
        raise RuleFileError(f"{name}: not valid TOML: {error}", details={"file": name}) from error


@functools.cache
def packaged() -> Prices:
    """The prices that ship with the package, read on first use and kept."""
    text = resources.files("thinkback.observe").joinpath("data", "prices.toml").read_text("utf-8")
    return read("prices.toml", text)


def usage_of(usage: Usage | None) -> dict[str, Any]:
    """The provider's own usage object; empty where it gave none."""
    if usage is None or not usage.wire:
        return {}
    found = msgspec.json.decode(usage.wire.encode("utf-8", "replace"))
    return found if isinstance(found, dict) else {}


def _reported(usage: dict[str, Any], endpoint: str, own: Prices) -> float | None:
    rows = (row for row in (*own.reported, *packaged().reported) if endpoint in row.endpoints)
    found = ((lookup(usage, row.path), row.per) for row in rows)
    return next((value / per for value, per in found if isinstance(value, int | float)), None)


def _row(prices: Prices, endpoint: str, model: str, day: str, input: int) -> Price | None:
    """The row in force: of those that fit, the longest pattern, then the newest, then the narrowest."""
    fitting = [
        (max(len(pattern) for pattern in row.models if model_matches(model, (pattern,))), row.since, -row.up_to, row)
        for row in prices.price
        if model_matches(endpoint, row.endpoints) and model_matches(model, row.models) and row.since <= day
    ]
    within = [found for found in fitting if not found[3].up_to or input <= found[3].up_to]
    # a row without a bound is the widest of all
    return max(within, key=lambda found: (found[0], found[1], found[3].up_to > 0, found[2]))[3] if within else None


def _priced(row: Price, use: TokenUse, usage: Usage | None) -> float | None:
    """By the prices of ``row``; ``None`` where a count or a price that it takes is missing."""
    if use.input is None or use.output is None:
        return None
    cached, written = use.cached or 0, (usage.cache_write if usage is not None else 0) or 0
    if (cached and row.cached is None) or (written and row.write is None):
        return None
    fresh = max(use.input - cached - written, 0)
    tokens = fresh * row.input + cached * (row.cached or 0) + written * (row.write or 0) + use.output * row.output
    return tokens / MILLION
