"""The page: every peer's results beside thinkback's, the texts of the refusals, and how each was used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from bench.peers.places import PLACES
from bench.peers.play import ALONE, SWITCHES, Cell, Peer

HEAD = """# Other clients before the referee

Each client holds the same conversations with the referee, a strict stand-in for the providers. `make peers` makes this
page. A conversation begins with a prompt that takes two tool calls after one another (*tool loop*), goes on with
another prompt (*next turn*), or begins with one that takes two calls at once (*parallel calls*). In the switches it
goes to another place and back: after a finished turn, or after the first result of the tool loop.

- `ok`: every request was accepted, and the model still knew what it should know. In its first thought of a turn it
  notes a code word that it can name later only if its reasoning came back to it. Counted are a place's own code words.
- `forgot`: every request was accepted, but the model said that it had lost its notes, or it named fewer code words
  than with another client in the same conversation.
- `refused`: the provider, as the referee plays it, did not take a request.
- `strict`: the referee did not take a request, but is stricter there than the provider is known to be: unsigned text
  that the place did not write, a message field that the provider may ignore, a signature on another part. What the
  provider would have done stays open.
- `failed`: the client raised an error of its own.
- `n/a`: the client's documentation shows no way, or the referee does not play it.

A number in brackets is that of the text at the end. The referee is part of this project, and thinkback is developed
against it. Its rules and texts come from documentation, recordings and reports; some texts are unconfirmed, and it is
no proof of what a provider does.

The versions are the newest that install together. Clients of the Messages API are told the `anthropic-version` that
the referee plays, 2023-06-01. litellm needs its extra `mcp` to take tools.
"""
_WORDS = ("ok", "forgot", "refused", "strict", "failed")
_LONGEST = 240
_Key = tuple[str, str, str, bool]


def page(cells: Sequence[Cell], peers: Sequence[Peer], versions: Mapping[str, str]) -> str:
    """The whole page."""
    judged = Judged(cells)
    parts = [HEAD, "## Clients\n", _clients(peers, versions)]
    for stream, title in ((False, "In one piece"), (True, "Streamed")):
        parts += [f"\n## {title}: one place\n", _alone(judged, peers, stream)]
        parts += [f"\n## {title}: to another place and back\n", _switched(judged, peers, stream)]
    parts += ["\n## What is left out\n", _apart(peers), "\n## Texts\n", judged.notes(), "\n## Places\n", _places()]
    return "\n".join(parts) + "\n"


class Judged:
    """The cells with their words, and the numbered texts of what went wrong."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._texts: dict[str, int] = {}
        self.cells = {(cell.peer, *_key(cell)): cell for cell in cells}
        self._best: dict[_Key, int] = {}
        for cell in cells:
            self._best[_key(cell)] = max(self._best.get(_key(cell), 0), cell.outcome.known)

    def word(self, cell: Cell) -> str:
        """What came of it, in a word."""
        outcome = cell.outcome
        if outcome.refused:
            return "strict" if outcome.strict else "refused"
        if outcome.failed:
            return "failed"
        return "forgot" if outcome.lost or outcome.known < self._best[_key(cell)] else "ok"

    def note(self, cell: Cell) -> int:
        """The number of its text; 0: it has none."""
        text = shortened(cell.outcome.refused or cell.outcome.failed)
        return self._texts.setdefault(text, len(self._texts) + 1) if text else 0

    def notes(self) -> str:
        """The texts in the order of their numbers."""
        return "\n".join(f"{number}. {text}" for text, number in self._texts.items()) or "None."

    def found(self, peer: str, home: str, kind: str, stream: bool) -> list[Cell]:
        """The peer's conversations of a kind that began at a place."""
        keys = [(peer, kind, home, abroad, stream) for abroad in ("", *PLACES)]
        return [self.cells[key] for key in keys if key in self.cells]


def shortened(text: str) -> str:
    """A refusal without what differs from run to run: ids, positions, and its length."""
    text = re.sub(r"\b(rs|fc|msg)_[\w-]+", r"\1_…", " ".join(text.split()))
    text = re.sub(r"(?<=\[)\d+(?=\])|(?<=messages\.)\d+|(?<=content\.)\d+|(?<=index )\d+", "N", text)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return text.replace("|", "\\|").replace("<", "&lt;")


def _key(cell: Cell) -> _Key:
    return cell.kind, cell.home, cell.abroad, cell.stream


def _alone(judged: Judged, peers: Sequence[Peer], stream: bool) -> str:
    rows = []
    for home in PLACES:
        row = [_one_place([cell for kind in ALONE for cell in judged.found(peer.name, home, kind, stream)], judged)
               for peer in peers]  # fmt: skip
        rows.append([home, *row])
    return table(["place", *(peer.name for peer in peers)], rows)


def _one_place(cells: Sequence[Cell], judged: Judged) -> str:
    """``ok`` for all three kinds, or what is not."""
    if not cells:
        return "n/a"
    words = {cell.kind: _with_note(judged, cell) for cell in cells}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{kind}: {word}" for kind, word in words.items() if word != "ok")


def _switched(judged: Judged, peers: Sequence[Peer], stream: bool) -> str:
    shown = [peer for peer in peers if peer.switches]
    rows = []
    for kind in SWITCHES:
        for home in PLACES:
            row = [_many(judged.found(peer.name, home, kind, stream), judged) for peer in shown]
            rows.append([kind, home, *row])
    return table(["situation", "from", *(peer.name for peer in shown)], rows)


def _many(cells: Sequence[Cell], judged: Judged) -> str:
    """How many went how."""
    if not cells:
        return "n/a"
    counts = Counter(judged.word(cell) for cell in cells)
    if counts["ok"] == len(cells):
        return f"ok {len(cells)}"
    parts = []
    for word in _WORDS:
        notes = sorted({judged.note(cell) for cell in cells if judged.word(cell) == word} - {0})
        if counts[word]:
            parts.append(f"{word} {counts[word]}" + (f" [{', '.join(map(str, notes))}]" if notes else ""))
    return ", ".join(parts)


def _with_note(judged: Judged, cell: Cell) -> str:
    note = judged.note(cell)
    return f"{judged.word(cell)} [{note}]" if note else judged.word(cell)


def _clients(peers: Sequence[Peer], versions: Mapping[str, str]) -> str:
    rows = []
    for peer in peers:
        named = ", ".join(f"{package} {versions[package]}" for package in peer.packages)
        rows.append([peer.name, named, peer.turns, peer.switch])
    return table(["client", "versions", "within a conversation", "to another place"], rows)


def _apart(peers: Sequence[Peer]) -> str:
    lines: dict[str, None] = {}
    for peer in peers:
        for (place, stream), why in sorted(peer.apart.items()):
            lines[f"- {peer.name}, {place}, {'streamed' if stream else 'in one piece'}: {why}."] = None
    return "\n".join(lines) or "Nothing."


def _places() -> str:
    rows = [[place.name, place.host, place.model, place.effort or "as it comes"] for place in PLACES.values()]
    return table(["place", "the referee's name", "model", "effort"], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join([_row(head), "|---" * len(head) + "|", *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
