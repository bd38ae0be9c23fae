"""Every shipped rule row with a model that it is in force for and was not guessed for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from thinkback.model.target import Target
from thinkback.rules import load_rulebook

BOOK = load_rulebook()
DAY = "2026-11-20"
ADDRESS = "https://house.example/v1"


@cache
def reachable() -> Mapping[str, Target]:
    """A target by the id of its rule row, for each row that some model of some endpoint is not guessed to have."""
    found: dict[str, Target] = {}
    for endpoint in BOOK.endpoints():
        if endpoint.id == "unknown":
            continue
        for model in _models(endpoint.id):
            place = endpoint.base_url or ADDRESS
            target = BOOK.target(endpoint.id, model, on=DAY, base_url=place)
            if not target.guessed:
                found.setdefault(target.rule.id, msgspec.structs.replace(target, account="a", account_known=True))
    return MappingProxyType(found)


def _models(endpoint: str) -> Iterator[str]:
    """Names of models: those that are known to be served there, and what the patterns of the rows stand for."""
    yield from BOOK.served(endpoint)
    for row in BOOK.rules():
        if row.endpoint in (endpoint, "*"):
            for pattern in row.model:
                yield pattern.replace("*", "") or "some-model"
                yield pattern.replace("[", "").replace("]", "").replace("*", "-1")
