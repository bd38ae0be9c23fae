"""The page: what came of every client at every provider, alone and through the gateway, and how each is set up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from bench.gateway_clients.holding import Held
from bench.gateway_clients.job import STRUCTURED, Script
from bench.gateway_clients.places import ALIASES, DEMANDS, FRONTS, PLACES, front_of
from bench.peers.table import shortened, table

HEAD = """# Clients and the gateway

What existing clients get from `thinkback gateway`: each is used as its documentation shows, unpatched, first with the
provider and then with the gateway as its base URL. `make clients` makes this page; providers are played by the referee,
a strict stand-in that refuses requests in the providers' own words. It is part of this project, and no proof of what a
provider does.

A conversation has three questions: one that takes two tool calls after one another, one that takes one, and one that
takes two at once. Each goes through the whole tool loop before the next. Each client holds it in every way it has of
asking (its *modes*), each time with a virtual key of its own; *rebuilt* is a program that keeps text and calls of a
response and nothing else, as most databases behind chats do; *structured* asks for answers by a schema.

- `ok`: no request was refused, the client read what the model said, and the model still knew what it had noted in its
  reasoning (it can name a code word later only if its reasoning came back).
- `forgot`: no request was refused, but the model did not get its reasoning back.
- `refused`: the provider refused a request. `strict`: the referee did, where the provider may be milder.
- `failed`: the client raised an error of its own, or read something else than the model said.
"""
_FRONTS = {
    "openai-chat": "Chat completions",
    "openai-responses": "Responses",
    "anthropic": "Messages",
    "gemini": "generateContent",
}
WORDS = ("ok", "forgot", "refused", "strict", "failed")


class Judged:
    """The conversations with their words, and the numbered texts of what went wrong."""

    def __init__(self, held: Iterable[Held]) -> None:
        self.held = list(held)
        self._texts: dict[str, int] = {}
        self._best: dict[str, int] = {}
        for each in self.held:
            self._best[each.place] = max(self._best.get(each.place, 0), each.outcome.known)

    def word(self, held: Held) -> str:
        """What came of it, in a word."""
        outcome = held.outcome
        if outcome.refused:
            return "strict" if outcome.strict else "refused"
        if outcome.failed:
            return "failed"
        forgot = outcome.lost or (held.mode != STRUCTURED and outcome.known < self._best[held.place])
        return "forgot" if forgot else "ok"

    def found(self, client: str, place: str, through: bool) -> list[Held]:
        """A client's conversations at a place, in all modes."""
        return [each for each in self.held if (client, place, through) == (each.client, each.place, each.through)]

    def cell(self, held: Sequence[Held]) -> str:
        """How many modes went how; one word where all went alike."""
        counts = Counter(self.word(each) for each in held)
        parts = []
        for word in WORDS:
            if counts[word]:
                notes = sorted({self.note(each) for each in held if self.word(each) == word} - {0})
                numbers = f" [{', '.join(map(str, notes))}]" if notes else ""
                parts.append(f"{word} {counts[word]}{numbers}" if len(counts) > 1 else f"{word}{numbers}")
        return ", ".join(parts) or "n/a"

    def note(self, held: Held) -> int:
        """The number of its text; 0: it has none."""
        text = shortened(held.outcome.refused or held.outcome.failed)
        return self._texts.setdefault(text, len(self._texts) + 1) if text else 0

    def notes(self) -> str:
        """The texts in the order of their numbers."""
        return "\n".join(f"{number}. {text}" for text, number in self._texts.items()) or "None."


def page(held: Sequence[Held], scripts: Sequence[Script], versions: Mapping[str, str], left_out: Sequence[str]) -> str:
    """The whole page."""
    judged = Judged(held)
    parts = [HEAD, _summary(judged), _unserved(scripts), *(f"\n{line}" for line in left_out)]
    for front in FRONTS:
        shown = [script for script in scripts if script.front == front]
        parts += [f"\n## {_FRONTS[front]}\n", *_front(judged, front, shown)]
    parts += ["\n## How each is pointed at the gateway\n", _pointed(scripts, versions)]
    parts += ["\n## Providers\n", _places(), "\n## Texts\n", judged.notes()]
    return "\n".join(parts) + "\n"


def _unserved(scripts: Sequence[Script]) -> str:
    each = [f"- {script.name} at {place}: {why}." for script in scripts for place, why in script.unserved.items()]
    return "\n".join(["\nKnown not to be served:\n", *each]) if each else ""


def lines(held: Sequence[Held]) -> list[str]:
    """A line for each client, place and outcome, for those who work on it."""
    judged, rows = Judged(held), []
    for each in held:
        text = shortened(each.outcome.refused or each.outcome.failed)
        way = "with" if each.through else "without"
        row = f"{way} | {each.client} | {each.place} | {judged.word(each)} | {each.mode} | {text}"
        rows.append(row)
    return rows


def _summary(judged: Judged) -> str:
    through = [each for each in judged.held if each.through]
    alone = [each for each in judged.held if not each.through]
    rows = []
    for title, some in (("without the gateway", alone), ("with it", through)):
        counts = Counter(judged.word(each) for each in some)
        asked = sum(each.requests for each in some)
        rows.append([title, str(len(some)), str(asked), *(str(counts[word]) for word in WORDS)])
    return table(["", "conversations", "requests that providers got", *WORDS], rows)


def _front(judged: Judged, front: str, scripts: Sequence[Script]) -> list[str]:
    """Providers that demand reasoning first; before the arrow without the gateway, where a client can go there."""
    rows = []
    for place in sorted(PLACES.values(), key=lambda place: place.name not in DEMANDS):
        row = []
        for script in scripts:
            cell = judged.cell(judged.found(script.name, place.name, True))
            if front_of(place) == front:
                cell = f"{judged.cell(judged.found(script.name, place.name, False))} → {cell}"
            row.append(cell)
        rows.append([place.name, "yes" if place.name in DEMANDS else "no", *row])
    return [table(["provider", "demands reasoning", *(script.name for script in scripts)], rows)]


def _pointed(scripts: Sequence[Script], versions: Mapping[str, str]) -> str:
    parts = []
    for script in scripts:
        named = ", ".join(f"{package} {versions[package]}" for package in script.packages)
        about = f"**{script.name}** ({named}; modes: {', '.join(script.modes)})"
        parts.append(f"{about}\n\n{_fenced(script)}\n")
    return "\n".join(parts)


def _fenced(script: Script) -> str:
    """The lines as code, laid out as the formatter of this project wants it."""
    first, _, rest = script.lines.partition("\n")
    language = "yaml" if first.startswith("#") else "python" if script.hold else "js"
    blank = "\n" if first.startswith(("import ", "from ")) else ""
    return f"```{language}\n{first}\n{blank}{rest}\n```"


def _places() -> str:
    rows = [
        [place.name, place.host, place.endpoint, place.model, ALIASES[place.name], place.effort or "as it comes"]
        for place in PLACES.values()
    ]
    return table(["provider", "the referee's name", "the gateway's endpoint", "model", "alias", "effort"], rows)
