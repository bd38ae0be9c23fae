"""The page: what came of every agent at every provider, alone and through the gateway."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from bench.coding_agents.agents import AGENTS
from bench.coding_agents.cell import Cell
from bench.coding_agents.install import Installed
from bench.gateway_clients.places import ALIASES, DEMANDS, PLACES, front_of
from bench.peers.places import Place
from bench.peers.table import shortened, table

DEMANDING: Mapping[str, Place] = {name: place for name, place in PLACES.items() if name in DEMANDS}
"""The providers that refuse a request whose reasoning is missing."""

HEAD = """# Coding agents and the gateway: results

What coding agents get from `thinkback gateway`: each is the program that its users install, unmodified, in a home of
its own that `thinkback connect` has configured ([coding agents](coding-agents.md)). `make agents` makes this page.
Providers are played by the referee, a strict stand-in that refuses requests in the providers' own words. It is part of
this project, and no proof of what a provider does. Its model calls the agent's own tools.

A conversation has these runs of the program, each in a new process:

1. *three rounds*: the model calls a shell, then the shell twice at once, then a file reader (a shell where there is
   none), and answers.
2. *second question*: the conversation is resumed; the model knows what it noted in its first reasoning only if that
   came back.
3. *another model* and *back*: the conversation is resumed with the model of the next provider in the table, then with
   the first one (through the gateway).
4. *subagent*, *compaction* and a question *after it*, where the agent can be made to do that without a person (through
   the gateway).

- `ok`: no request was refused, the agent printed what the model said, and the model knew what it should know.
- `forgot`: no request was refused, but reasoning that the provider would have shown the model did not come back.
- `none`: no request was refused, and the agent did not ask for reasoning.
- `refused`: the provider refused a request. `strict`: the referee did, where the provider may be milder.
- `failed`: the agent ended with an error, printed something else, or did not end in time.

Before the arrow the agent speaks with the provider itself, where it can; what is refused or forgotten there is the
agent's. After the arrow it goes through the gateway, which then answers for both. The numbers in brackets are those of
the texts below. Only providers are listed that refuse a request without its reasoning.
"""
# Paths are those of one machine and one run.
_PATHS = re.compile(r"\x1b\[\d*m|(?<![\w.])(?:/[\w@.+-]+){2,}")
_WORDS = ("ok", "none", "forgot", "refused", "strict", "failed")


class Judged:
    """The conversations with their words, and the numbered texts of what went wrong."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = list(cells)
        self._texts: dict[str, int] = {}
        # whether a place shows the reasoning of finished turns: it did so to somebody
        self._shows = {each.place for each in self.cells if len(each.noted) > 1 and each.known == each.noted}

    def word(self, cell: Cell) -> str:
        """What came of it, in a word."""
        if cell.word != "ok":
            return cell.word
        if not cell.noted:
            return "ok" if not AGENTS[cell.agent].tools else "none"
        return "forgot" if cell.place in self._shows and cell.known != cell.noted else "ok"

    def shown(self, agent: str, place: str, through: bool) -> str:
        """A cell of the table."""
        for each in self.cells:
            if (each.agent, each.place, each.through) == (agent, place, through):
                word = self.word(each)
                number = self._note(each, word)
                return f"{word} [{number}]" if number else word
        return "not run"

    def notes(self) -> str:
        """The texts in the order of their numbers."""
        return "\n".join(f"{number}. {text}" for text, number in self._texts.items()) or "None."

    def bad(self) -> list[Cell]:
        """What went wrong through the gateway."""
        return [each for each in self.cells if each.through and self.word(each) != "ok"]

    def _note(self, cell: Cell, word: str) -> int:
        if word in ("ok", "none"):
            return 0
        text = (
            f"{cell.act}: {shortened(_PATHS.sub('…', cell.text))}"
            if cell.act
            else "the second answer named fewer code words"
        )
        return self._texts.setdefault(text, len(self._texts) + 1)


def page(cells: Sequence[Cell], found: Mapping[str, Installed], node: str) -> str:
    """The whole page."""
    judged = Judged(cells)
    here = [name for name in AGENTS if any(each.agent == name for each in judged.cells)]
    apart = [title(name, found) for name in AGENTS if name not in here and not found[name].missing]
    parts = [HEAD, f"Node: {node}.\n", _agents(found), "", _summary(judged)]
    parts += [f"\nNot run yet: {', '.join(apart)}."] if apart else []
    parts += ["\n## Results\n", _results(judged, here)]
    parts += ["\n## Providers\n", _places(), "\n## Texts\n", judged.notes()]
    return "\n".join(parts) + "\n"


def line(cell: Cell) -> str:
    """A conversation in a line, for those who work on it."""
    way = "through" if cell.through else "alone"
    known = f"{len(cell.known)} of {len(cell.noted)} known"
    parts = [way, cell.agent, cell.place, cell.word, known, ", ".join(cell.acts), cell.act, shortened(cell.text)]
    return " | ".join(parts)


def title(name: str, found: Mapping[str, Installed]) -> str:
    """An agent with its version, as a column is headed."""
    return f"{AGENTS[name].connect} {found[name].version}"


def _agents(found: Mapping[str, Installed]) -> str:
    rows = []
    for name, agent in AGENTS.items():
        has = [word for word, there in (("subagent", agent.kind), ("compaction", agent.compact)) if there]
        runs = "second question" if agent.again_only else ", ".join(["all", *has]) if agent.again else "three rounds"
        notes = [f"left out: {found[name].missing}"] if found[name].missing else [agent.notes] if agent.notes else []
        rows.append(
            [agent.connect, agent.package, found[name].version, runs if agent.tools else "two questions", *notes]
        )
    return table(["agent", "package", "version", "runs", "notes"], [[*row, ""][:5] for row in rows])


def _summary(judged: Judged) -> str:
    rows = []
    for through, way in ((False, "alone"), (True, "through the gateway")):
        cells = [each for each in judged.cells if each.through is through]
        counts = Counter(judged.word(each) for each in cells)
        requests = sum(each.requests for each in cells)
        rows.append([way, str(len(cells)), str(requests), *(str(counts[word]) for word in _WORDS)])
    return table(["", "conversations", "requests", *_WORDS], rows)


def _results(judged: Judged, here: Sequence[str]) -> str:
    rows = []
    for agent in here:
        row = []
        for place in DEMANDING:
            alone, through = (judged.shown(agent, place, way) for way in (False, True))
            speaks = front_of(DEMANDING[place]) in AGENTS[agent].fronts
            row.append(f"{alone} → {through}" if speaks else through)
        rows.append(row)
    head = ["provider", *(f"{AGENTS[name].connect}{' (older)' if AGENTS[name].again_only else ''}" for name in here)]
    return table(head, [[place, *cells] for place, cells in zip(DEMANDING, zip(*rows, strict=True), strict=True)])


def _places() -> str:
    rows = [
        [place.name, place.host, place.endpoint, place.model, ALIASES[place.name], place.effort or "as it comes"]
        for place in DEMANDING.values()
    ]
    return table(["provider", "the referee's name", "the gateway's endpoint", "model", "alias", "effort"], rows)
