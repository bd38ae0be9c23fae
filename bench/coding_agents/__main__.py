"""``python -m bench.coding_agents``: every agent at every provider that demands reasoning, alone and through the
gateway.

Keeps each conversation in ``.agents/results.json`` as soon as it has ended, and goes on where a run stopped. A whole
run writes docs/agent-runs.md. The exit code is 1 where something went wrong through the gateway.
With ``--only NAME`` (parts of names of agents) it repeats those and takes the others from the last run; ``--places``
and ``--way`` play a part. ``--short`` plays two agents at two providers, begins nothing after four minutes and keeps
nothing; what it cannot install or has no time for it leaves out, and says so.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec

from bench.coding_agents.agents import AGENTS, SHORT, Agent
from bench.coding_agents.cell import Cell, Where, play
from bench.coding_agents.install import PLACE, Installed, installed, node_version, version
from bench.coding_agents.model import agent_step
from bench.coding_agents.page import DEMANDING, Judged, line, page
from bench.gateway_clients.gateway import Gateway, serving
from bench.gateway_clients.places import ALIASES, front_of
from bench.gateway_clients.process import ROOT
from bench.peers.places import KEY, Place
from thinkback_referee import Referee

PAGE = ROOT / "docs" / "agent-runs.md"
_RESULTS = PLACE / "results.json"
_LANES = 3
# Gemini CLI asks for a newer model where it knows that a name is retired (docs/coding-agents.md).
_MORE = '\n[models."gemini-*"]\ntargets = [{ upstream = "gemini", model = "gemini-*" }]\n'
_SHORT_PLACES = ("Anthropic 5.5", "DeepSeek chat")
_SHORT_SECONDS = 240.0
"""What the short form may take for each package, and until it begins no more conversations."""


class Results:
    """What is found so far, kept with every conversation; ``path`` None keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        kept = path.read_bytes() if path and path.is_file() else b"[]"
        self.cells = {_key(each): each for each in msgspec.json.decode(kept, type=list[Cell])}

    def add(self, cell: Cell) -> None:
        """Keep it and print a line."""
        with self._lock:
            self.cells[_key(cell)] = cell
            print(line(cell), flush=True)
            if self._path:
                self._path.write_bytes(msgspec.json.encode(list(self.cells.values())))

    def drop(self, names: Sequence[str]) -> None:
        """Forget what was found of these agents."""
        self.cells = {key: each for key, each in self.cells.items() if each.agent not in names}


def main() -> int:
    """Install, play, print, keep."""
    chosen = _chosen()
    names = [name for name in (SHORT if chosen.short else AGENTS) if chosen.only in name]
    PLACE.mkdir(exist_ok=True)
    found = {name: installed(name, _SHORT_SECONDS) if chosen.short else installed(name) for name in names}
    for name in names:
        if found[name].missing:
            print(f"{name}: left out, {found[name].missing}", flush=True)
    results = Results(None if chosen.short else _RESULTS)
    whole = len(results.cells) == _wanted(found) if not chosen.only else True
    if whole and not (chosen.places or chosen.way):
        results.drop(names)
    with ThreadPoolExecutor(_LANES) as lanes:
        for future in [
            lanes.submit(_lane, name, found[name], results, chosen) for name in names if found[name].program
        ]:
            future.result()
    judged = Judged(results.cells.values())
    if not (chosen.short or chosen.places or chosen.way):
        every = {name: found.get(name, Installed(version=version(name, agent))) for name, agent in AGENTS.items()}
        text = page([each for each in judged.cells if each.agent in AGENTS], every, node_version())
        PAGE.write_text(text, encoding="utf-8")
    bad = [each for each in judged.bad() if each.agent in names]
    played = [each for each in judged.cells if each.agent in names]
    print(f"{len(played)} conversations of {len(names)} agents; through the gateway not ok: {len(bad)}")
    for each in bad:
        print(line(each))
    return int(bool(bad))


def _wanted(found: Mapping[str, Installed]) -> int:
    """How many conversations a whole run has."""
    return sum(
        1 + (front_of(place) in AGENTS[name].fronts)
        for name in found
        if found[name].program
        for place in DEMANDING.values()
    )


def _chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.coding_agents")
    parser.add_argument("--only", default="")
    parser.add_argument("--places", default="")
    parser.add_argument("--way", choices=("alone", "through"), default="")
    parser.add_argument("--short", action="store_true")
    return parser.parse_args()


def _lane(name: str, found: Installed, results: Results, chosen: argparse.Namespace) -> None:
    """Everything with one agent, before a referee and a gateway of its own."""
    with ExitStack() as stack:
        referee = stack.enter_context(Referee(house=agent_step))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agents-")))
        gateway: Gateway | None = None
        end = time.monotonic() + (_SHORT_SECONDS if chosen.short else math.inf)
        for place, through in _cases(AGENTS[name], chosen):
            if time.monotonic() > end:
                print(f"{name}, {place.name}: left out, {_SHORT_SECONDS:g} seconds are over", flush=True)
                continue
            if (name, place.name, through) in results.cells and not (chosen.places or chosen.way):
                continue
            if through and gateway is None:
                gateway = stack.enter_context(serving(directory, referee, _MORE))
            where = _through(gateway, name, place) if gateway and through else _alone(referee, place)
            results.add(play(name, found, referee, place, where))


def _cases(agent: Agent, chosen: argparse.Namespace) -> Iterator[tuple[Place, bool]]:
    """What the gateway answers for is first, should the time not be enough for all."""
    names = _SHORT_PLACES if chosen.short else tuple(DEMANDING)
    places = [DEMANDING[name] for name in names if chosen.places in name]
    if chosen.way != "alone":
        yield from ((place, True) for place in places)
    if chosen.way != "through":
        yield from ((place, False) for place in places if front_of(place) in agent.fronts)


def _alone(referee: Referee, place: Place) -> Where:
    return Where(referee.base_url(place.host), KEY, place.model, front=front_of(place))


def _through(gateway: Gateway, name: str, place: Place) -> Where:
    """With a key of its own; the model to change to is the next provider's."""
    names = list(DEMANDING)
    abroad = names[(names.index(place.name) + 1) % len(names)]
    key = gateway.key(f"{name}, {place.name}")
    return Where(gateway.url, key, ALIASES[place.name], ALIASES[abroad])


def _key(cell: Cell) -> tuple[str, str, bool]:
    return cell.agent, cell.place, cell.through


if __name__ == "__main__":
    sys.exit(main())
