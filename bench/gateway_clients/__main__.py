"""``python -m bench.gateway_clients``: every client at every provider, first alone, then through the gateway.

Prints the page and keeps it in docs/clients.md; the exit code is 1 where a conversation through the gateway failed that
should not.
With ``--clients``, ``--places``, ``--modes`` (parts of names) or ``--only without|with`` it plays a part, prints a line
for each conversation and keeps nothing. ``--again`` with a part of a name plays these clients and takes from the last
run what it found of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec

from bench.gateway_clients.gateway import Gateway, serving
from bench.gateway_clients.holding import Held, hold
from bench.gateway_clients.job import STRUCTURED, Job, Script
from bench.gateway_clients.page import Judged, lines, page
from bench.gateway_clients.places import ALIASES, PLACES, front_of
from bench.gateway_clients.process import ROOT, Worker
from bench.gateway_clients.scripts import NODE, PYTHON
from bench.peers.places import KEY, Place
from thinkback_referee import Referee

PAGE = ROOT / "docs" / "clients.md"
SECONDS = 240.0
_LAST = ROOT / "bench" / "latest-clients.json"
LANES = min(4, os.cpu_count() or 1)
_VERCEL = Path(__file__).parent / "vercel"
_VERSIONS = """
import json, sys
from importlib.metadata import version
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""


def main() -> int:
    """Play, print, keep."""
    chosen = _chosen()
    node = _node()
    scripts = [*PYTHON, *(() if node else NODE)]
    played = [script for script in scripts if chosen.clients in script.name and chosen.again in script.name]
    found = _found_before() if chosen.again else {}
    with ThreadPoolExecutor(LANES) as lanes:
        for script, held in zip(played, lanes.map(lambda script: _played(script, chosen), played), strict=True):
            found[script.name] = held
            if _is_whole(chosen):
                print(f"{script.name}: {len(held)} conversations", file=sys.stderr)
                _LAST.write_bytes(msgspec.json.encode(found))
    if _is_whole(chosen):
        shown = [script for script in scripts if script.name in found]
        every = [each for script in shown for each in found[script.name]]
        text = page(every, shown, versions(shown), [node] if node else [])
        PAGE.write_text(text, encoding="utf-8")
        sys.stdout.write(text)
    elif node:
        print(node)
    judged = Judged(each for held in found.values() for each in held)
    known = {(script.name, place) for script in scripts for place in script.unserved}
    failed = [each for each in judged.held if each.through and judged.word(each) != "ok"]
    return int(any((each.client, each.place) not in known for each in failed))


def _found_before() -> dict[str, list[Held]]:
    """What the last run found, by client."""
    return msgspec.json.decode(_LAST.read_bytes(), type=dict[str, list[Held]])


def _chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway_clients")
    for name in ("again", "clients", "places", "modes"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--only", choices=("without", "with"), default="")
    return parser.parse_args()


def _played(script: Script, chosen: argparse.Namespace) -> list[Held]:
    """Everything with one client, before a referee and a gateway of its own."""
    held: list[Held] = []
    command = [str(clients_python()), "-m", "bench.gateway_clients.worker"]
    worker = Worker(command if script.hold else ["node", str(_VERCEL / "worker.mjs")], SECONDS)
    with tempfile.TemporaryDirectory() as directory, Referee() as referee, closing(worker):
        if chosen.only != "with":
            held += _alone(referee, script, worker, chosen)
        if chosen.only != "without":
            with serving(Path(directory), referee) as gateway:
                held += _through(gateway, referee, script, worker, chosen)
    return held


def _node() -> str:
    """Why clients that need Node are left out; empty: they are not."""
    if shutil.which("node") is None:
        return "Node is not installed: the clients from npm (the Vercel AI SDK) are left out."
    if not (_VERCEL / "node_modules").is_dir():
        return "The packages from npm are not installed: the Vercel AI SDK is left out."
    return ""


def _alone(referee: Referee, script: Script, worker: Worker, chosen: argparse.Namespace) -> Iterator[Held]:
    """At the providers that speak the client's dialect."""
    for place, mode in _cases(script, chosen):
        if front_of(place) == script.front:
            base = referee.base_url(place.host).removesuffix("/v1beta")
            job = Job(script.name, mode, base, KEY, place.model, place.effort, [])
            yield _told(hold(worker, referee, job, place, False), chosen)


def _through(
    gateway: Gateway, referee: Referee, script: Script, worker: Worker, chosen: argparse.Namespace
) -> Iterator[Held]:
    """At every provider, each time with a key of its own."""
    for place, mode in _cases(script, chosen):
        # What a client of another dialect would say of effort is the alias's business.
        effort = place.effort if front_of(place) == script.front else ""
        base, key = gateway.base_url(script.front), gateway.key(f"{script.name}, {mode}, {place.name}")
        job = Job(script.name, mode, base, key, ALIASES[place.name], effort, [])
        yield _told(hold(worker, referee, job, place, True), chosen)


def _told(held: Held, chosen: argparse.Namespace) -> Held:
    if not _is_whole(chosen):
        print(lines([held])[0], flush=True)
    return held


def _is_whole(chosen: argparse.Namespace) -> bool:
    return not (chosen.clients or chosen.places or chosen.modes or chosen.only)


def _cases(script: Script, chosen: argparse.Namespace) -> Iterator[tuple[Place, str]]:
    for place in PLACES.values():
        for mode in script.modes:
            shaped = mode != STRUCTURED or place.model.startswith(script.shapes)
            if chosen.places in place.name and chosen.modes in mode and shaped:
                yield place, mode


def clients_python() -> Path:
    """The interpreter of the clients' environment; ``make clients`` makes it."""
    return Path(os.environ.get("THINKBACK_CLIENTS") or ROOT / ".venv-clients/bin/python").absolute()


def versions(scripts: Sequence[Script]) -> dict[str, str]:
    names = {package for script in scripts if script.hold for package in script.packages}
    asked = [str(clients_python()), "-c", _VERSIONS, *sorted(names)]
    found: dict[str, str] = json.loads(subprocess.run(asked, stdout=subprocess.PIPE, check=True).stdout)
    for package in {package for script in scripts if not script.hold for package in script.packages}:
        about = json.loads((_VERCEL / "node_modules" / package / "package.json").read_text(encoding="utf-8"))
        found[package] = str(about["version"])
    return found


if __name__ == "__main__":
    sys.exit(main())
