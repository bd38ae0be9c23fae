"""By what the responses of an imported history are found again, when its program goes on with it through a gateway.

Promises: they are found in a scope of their own, which no key has. Must not: decide who may use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import msgspec

from thinkback.log.matching import IMPORTED_SCOPE, line_sightings
from thinkback.log.protocol import Arrival, Sighting, Store
from thinkback.model.commits import Commit, Draft, Response


def with_sightings(log: Store, arrival: Arrival) -> Arrival:
    """``arrival`` with a sighting of each line in it that ends with what arrives."""
    arriving = {commit.hash: commit for tail in arrival.tails for commit in tail.commits}
    tails = []
    for tail in arrival.tails:
        whole = [commit.response for commit in tail.commits if commit.kind == "response" and _is_whole(commit)]
        found: list[Sighting] = []
        if whole:
            line = chain(_before(log, arrival.session, tail.expected.hash, arriving), tail.commits)
            found = line_sightings(IMPORTED_SCOPE, map(_draft, line), whole[-1])
        tails.append(msgspec.structs.replace(tail, sightings=found))
    return msgspec.structs.replace(arrival, tails=tails)


def _is_whole(commit: Commit) -> bool:
    return isinstance(commit.value, Response) and commit.value.complete


def _draft(commit: Commit) -> Draft:
    return Draft(commit.kind, commit.value, commit.response, commit.index, commit.edit)


def _before(log: Store, session: str, hash: str, arriving: Mapping[str, Commit]) -> list[Commit]:
    """The line up to a commit, which may be one that arrives as well."""
    line: list[Commit] = []
    while hash in arriving:
        line.append(arriving[hash])
        hash = next(iter(arriving[hash].parents), "")
    return [*(log.read_to(session, hash) if hash else ()), *reversed(line)]
