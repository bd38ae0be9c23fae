"""``python -m bench.programs``: programs at the providers of their dialect, without the transport and with it.

Prints the page and keeps it in docs/programs.md, then runs the programs in ``examples``; the exit code is 1 where a
conversation with the transport did not go well at a provider that demands reasoning.
With ``--clients``, ``--places`` or ``--modes`` (parts of names) or ``--only without|with`` it plays a part, prints a
line for each conversation, and keeps nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import tomlkit

from bench import examples
from bench.gateway_clients.__main__ import LANES, SECONDS, clients_python, versions
from bench.gateway_clients.holding import Held, hold
from bench.gateway_clients.job import STRUCTURED, Job, Script
from bench.gateway_clients.page import WORDS, Judged, lines
from bench.gateway_clients.places import ALIASES, DEMANDS, FRONTS, PLACES, front_of
from bench.gateway_clients.process import ROOT, Worker
from bench.gateway_clients.scripts import NODE, PYTHON
from bench.peers.places import KEY, Place
from bench.peers.table import table
from thinkback.rules import load_rulebook
from thinkback_referee import Referee

PAGE = ROOT / "docs" / "programs.md"
_TITLES = {
    "openai-chat": "Chat completions",
    "openai-responses": "Responses",
    "anthropic": "Messages",
    "gemini": "generateContent",
}
_MADE = "<!-- made by `make programs`: what stands below is written by a run -->"
_HEAD = """## What survives, without it and with it

Each program is used as its documentation shows, first alone, then with the transport, in every way it has of asking,
each time with a log of its own. The questions, the words and the referee, which plays the providers, are those of
[the gateway's page](clients.md).

- `before → after`: a provider that speaks the program's dialect. The transport translates nothing there.
- one word: any other provider that demands reasoning, by `route="ENDPOINT/MODEL"`. The program is told an address at
  which nobody listens, and a key of its own.

LangChain's ChatAnthropic and ChatGoogleGenerativeAI take no HTTP client: `ThinkbackMiddleware.through` puts the
transport below them. litellm takes one inside an SDK's client (`client=`). llm's own models take none; after the arrow
[its plugin](llm.md) asks, which uses thinkback without the transport. pydantic-ai's OpenAIChatModel does not ask
OpenRouter for reasoning; with the transport `settings={"reasoning.effort": "high"}` asks. At Mistral both sides of an
arrow are the same for what goes through the transport: its answers are lists of parts, which is not the form of chat
completions that the transport reads, so that it passes them untouched; the gateway translates them.
"""
_NOWHERE = "http://127.0.0.1:9"
_KEY_OF_ITS_OWN = "sk-of-the-program-0123456789"
_BYPASSING = "These of [the clients' page](clients.md) do not go through it. The gateway serves them:"
TAKING = tuple(script for script in PYTHON if not script.bypasses)
"""The programs that the transport can serve."""


def main() -> int:
    """Play, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m bench.programs")
    for name in ("clients", "places", "modes"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--only", choices=("without", "with"), default="")
    chosen = parser.parse_args()
    is_whole = not (chosen.clients or chosen.places or chosen.modes or chosen.only)
    scripts = [script for script in TAKING if chosen.clients in script.name]
    held: list[Held] = []
    lost = 0
    with ThreadPoolExecutor(LANES) as lanes:
        for some in lanes.map(lambda script: list(_played(script, chosen)), scripts):
            held += some
            if not is_whole:
                print("\n".join(lines(some)), flush=True)
    if is_whole:
        text = f"{_above()}{_MADE}\n\n{made(held, scripts, versions(scripts))}"
        PAGE.write_text(text, encoding="utf-8")
        sys.stdout.write(text)
        with tempfile.TemporaryDirectory() as directory, Referee() as referee:
            # On one log: programs are run again and again.
            runs = [examples.run(str(clients_python()), examples.NAMES, referee, Path(directory)) for _ in range(3)]
            refused = [exchange.path for exchange in referee.requests if exchange.status != 200]
        lost = sum(shown.count("missing") for shown in runs)
        said = f"{len(refused)} requests refused, {lost} without reasoning"
        print(f"examples: {len(examples.NAMES)} run three times, {said}", file=sys.stderr)
    judged = Judged(held)
    fell_short = any(judged.word(each) != "ok" for each in judged.held if each.through and each.place in DEMANDS)
    return int(fell_short or lost > 0)


def _above() -> str:
    """What people wrote."""
    return PAGE.read_text(encoding="utf-8").partition(_MADE)[0]


def _played(script: Script, chosen: argparse.Namespace) -> Iterator[Held]:
    """One program at all of its providers, before a referee of its own, each time with a log of its own."""
    command = [str(clients_python()), "-m", "bench.gateway_clients.worker"]
    with (
        tempfile.TemporaryDirectory() as directory,
        Referee() as referee,
        closing(Worker(command, SECONDS, _configured(Path(directory), referee))) as worker,
    ):
        for through in (False, True):
            if chosen.only in ("", "with" if through else "without"):
                yield from _all(script, worker, referee, Path(directory), chosen, through=through)


def _configured(directory: Path, referee: Referee) -> Mapping[str, str]:
    """An environment in which each provider is the referee's, with a key for each; for what thinkback sends itself."""
    book, hosts = load_rulebook(), {place.endpoint: place.host for place in PLACES.values()}
    endpoints = [book.endpoint(id) for id in hosts]
    rows = [
        {**msgspec.to_builtins(endpoint), "base_url": referee.base_url(hosts[endpoint.id]), "source": "here"}
        for endpoint in endpoints
    ]
    (directory / "rules.toml").write_text(tomlkit.dumps({"endpoint": rows}), encoding="utf-8")
    keys = {endpoint.auth.env[0]: KEY for endpoint in endpoints if endpoint.auth.env}
    return {**keys, "THINKBACK_CONFIG_DIR": str(directory), "THINKBACK_USAGE_LOG": str(directory / "usage.jsonl")}


def _all(
    script: Script, worker: Worker, referee: Referee, directory: Path, chosen: argparse.Namespace, *, through: bool
) -> Iterator[Held]:
    for place in PLACES.values():
        is_home = front_of(place) == script.front
        if not (is_home or (through and place.name in DEMANDS)) or chosen.places not in place.name:
            continue
        for number, mode in enumerate(script.modes):
            if chosen.modes not in mode or (mode == STRUCTURED and not place.model.startswith(script.shapes)):
                continue
            log = str(directory / f"{ALIASES[place.name]}-{number}.db") if through else ""
            job = _at_home(referee, script, place) if is_home else _elsewhere(script, place)
            yield hold(worker, referee, job._replace(mode=mode, log=log, endpoint=place.endpoint), place, through)


def _at_home(referee: Referee, script: Script, place: Place) -> Job:
    base = referee.base_url(place.host).removesuffix("/v1beta")
    return Job(script.name, "", base, KEY, place.model, place.effort, [])


def _elsewhere(script: Script, place: Place) -> Job:
    base = f"{_NOWHERE}/v1" if script.front.startswith("openai") else _NOWHERE
    job = Job(script.name, "", base, _KEY_OF_ITS_OWN, ALIASES[place.name], "", [])
    return job._replace(routed=place.model, asks=place.effort)


def made(held: Sequence[Held], scripts: Sequence[Script], known: Mapping[str, str]) -> str:
    """The tables."""
    judged = Judged(held)
    rows = []
    for title, through in (("without the transport", False), ("with it", True)):
        some = [each for each in judged.held if each.through == through]
        counts = Counter(judged.word(each) for each in some)
        asked = sum(each.requests for each in some)
        rows.append([title, str(len(some)), str(asked), *(str(counts[word]) for word in WORDS)])
    parts = [_HEAD, table(["", "conversations", "requests that providers got", *WORDS], rows)]
    for front in FRONTS:
        shown = [script for script in scripts if script.front == front]
        rows = []
        for place in sorted(PLACES.values(), key=lambda place: place.name not in DEMANDS):
            if front_of(place) == front or place.name in DEMANDS:
                ways = (False, True) if front_of(place) == front else (True,)
                cells = [
                    " → ".join(judged.cell(judged.found(script.name, place.name, way)) for way in ways)
                    for script in shown
                ]
                rows.append([place.name, "yes" if place.name in DEMANDS else "no", *cells])
        names = [script.name for script in shown]
        parts.append(f"\n### {_TITLES[front]}\n\n{table(['provider', 'demands reasoning', *names], rows)}")
    bypass = "\n".join(f"- {each.name}: {each.bypasses}." for each in (*PYTHON, *NODE) if each.bypasses)
    parts.append(f"\n### What the transport cannot serve\n\n{_BYPASSING}\n\n{bypass}")
    packages = ", ".join(f"{name} {version}" for name, version in sorted(known.items()))
    parts += ["\n### Texts\n", judged.notes(), f"\nPlayed with {packages}."]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
