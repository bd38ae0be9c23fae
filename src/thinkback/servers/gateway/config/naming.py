"""Names that clients ask for, and what they mean: aliases, patterns with ``*``, and a default upstream for each front.

Promises: an alias of the very name beats every pattern, and a pattern with more letters one with fewer; what ``*``
stands for in a name stands in the model of its target. Pure. Must not: know which models a place has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from thinkback.servers.gateway.config.schema import Alias, To

STAR = "*"


class Meant(NamedTuple):
    """The alias that a name means, by its key under ``models``, and what each ``*`` of it stands for."""

    alias: str
    captured: tuple[str, ...] = ()


def meant(asked: str, models: Mapping[str, Alias]) -> Meant | None:
    """The alias for the name ``asked``; ``None`` where no name and no pattern fits."""
    if asked in models and STAR not in asked:
        return Meant(asked)
    for pattern in by_letters(models):
        found = _expression(pattern).fullmatch(asked)
        if found:
            return Meant(pattern, found.groups())
    return None


def by_letters(models: Mapping[str, Alias]) -> list[str]:
    """The patterns among the names, those with the most letters first."""
    return sorted((name for name in models if STAR in name), key=lambda name: -len(name.replace(STAR, "")))


def filled(to: To, captured: tuple[str, ...]) -> To:
    """``to`` with the model whose every ``*`` is what was captured, in order."""
    if STAR not in to.model:
        return to
    first, *others = to.model.split(STAR)
    parts = (f"{text}{rest}" for text, rest in zip(captured, others, strict=True))
    return msgspec.structs.replace(to, model=first + "".join(parts))


def asked_for(pattern: str, to: To, model: str) -> str:
    """The name by which ``pattern`` leads to ``model`` of the target; empty where it does not."""
    found = _expression(to.model).fullmatch(model)
    if STAR not in to.model or not found:
        return ""
    return filled(To("", pattern), found.groups()).model if pattern.count(STAR) == to.model.count(STAR) else ""


def faults(name: str, alias: Alias) -> Iterator[tuple[str, str]]:
    """(path behind the alias, reason) of what can never match, and what cannot be filled in."""
    stars = name.count(STAR)
    if STAR * 2 in name:
        yield "", "has two * beside each other: one does"
    for at, to in enumerate(alias.targets):
        if to.model.count(STAR) not in (0, stars):
            yield f".targets[{at}].model", f"has as many * as the name, which has {stars}, or none"
    for at, fallback in enumerate(alias.fallbacks):
        if STAR in fallback:
            yield f".fallbacks[{at}]", "is a pattern: name one alias"
    if not name or name != name.strip():
        yield "", "matches nothing: a client's model name is never empty and has no spaces around it"
    if any(letter in name for letter in "?["):
        yield "", "matches nothing: * is the only wildcard, ? and [ match themselves"


def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile("(.+?)".join(map(re.escape, pattern.split(STAR))), re.DOTALL)


_BUDGETS = "a gateway counts reasoning by key, not by session: give the key a limit of reasoning tokens"
UNSERVED: Mapping[str, str] = {
    "reasoning.budget": _BUDGETS,
    "reasoning.budgetAction": _BUDGETS,
    "context.limit": "a client says what its context is, and a gateway does not compact it",
}
"""Settings of sessions that a gateway does not act on, and why: they are refused wherever they are set."""
