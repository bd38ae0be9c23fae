"""The conversations that every client holds, and what the referee made of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from bench.peers.places import PLACES, Place
from thinkback_referee import KNOWN, LOST, Exchange, Referee, code_word

LOOP, NEXT, PARALLEL, SWITCH, SWITCH_OPEN = (
    "tool loop",
    "next turn",
    "parallel calls",
    "switch between turns",
    "switch in a tool loop",
)
ALONE = (LOOP, NEXT, PARALLEL)
SWITCHES = (SWITCH, SWITCH_OPEN)

_LOOP_PROMPT = "What is the weather in Oslo and then the time?"
_PARALLEL_PROMPT = "What are both the weather and the time in Oslo?"
_NEXT_PROMPT = "And what is the weather in Rome?"
_BACK_PROMPT = "Thank you. What is the time in Bergen?"
_MOST_ROUNDS = 6


class Call(NamedTuple):
    """A tool call that waits for its result."""

    id: str
    name: str


class Client(Protocol):
    """One conversation of one client. Each request answers with the calls that now wait."""

    def say(self, text: str) -> Sequence[Call]:
        """The user's next message."""
        ...

    def give(self, results: Mapping[str, str]) -> Sequence[Call]:
        """The results of all calls that wait, by id."""
        ...

    def move(self, place: Place) -> None:
        """Go on elsewhere, with the history there is."""
        ...

    def close(self) -> None:
        """Give back what the client lets be closed."""
        ...


Locate = Callable[[Place], str]
"""A place's base URL, as a client of the provider is configured with it."""
Open = Callable[[Place, Locate, bool], Client]
"""A fresh conversation at a place, streamed or not."""


@dataclass(frozen=True)
class Peer:
    """A client, where its documentation takes it, and how it is used."""

    name: str
    packages: tuple[str, ...]
    open: Open
    places: frozenset[str]
    turns: str
    """How history and results are passed on within a conversation."""
    switch: str
    """How a conversation goes on elsewhere; how it stands in the documentation if it does not."""
    switches: bool = False
    apart: Mapping[tuple[str, bool], str] = field(default_factory=dict)
    """Why a place is left out, streamed or not."""


class Outcome(NamedTuple):
    """What came of a conversation: a refusal or failure of the client itself, or how many code words came back.

    ``strict``: only the referee is known to refuse it, so that what the provider would have done stays open.
    """

    refused: str = ""
    failed: str = ""
    lost: bool = False
    known: int = 0
    strict: bool = False


# What only the referee is known to refuse, by host: plain text that is not the host's own, fields that it may well
# ignore, a signature on another part.
_STRICT: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (
        frozenset({"deepseek", "deepseek-anthropic", "kimi", "groq", "mistral", "cohere", "ollama"}),
        ("changed", "foreign", "repeated"),
    ),
    (frozenset({"deepseek", "kimi", "openrouter"}), ("unknown field",)),
    (frozenset({"gemini"}), ("moved",)),
)


def play(peer: Peer, referee: Referee, kind: str, home: Place, abroad: Place | None, *, stream: bool) -> Outcome:
    """One conversation; the first thing that goes wrong ends it."""
    referee.reset()  # what others said before must not be taken for this conversation's
    talk = _Talk(referee, home)
    try:
        with closing(peer.open(home, lambda place: referee.base_url(place.host), stream)) as client:
            talk.hold(client, kind, abroad)
    # Whatever a peer raises, and for whatever reason, is its result.
    except Exception as error:
        failed = f"{type(error).__name__}: {str(error).partition('Traceback')[0]}"
    else:
        failed = ""
    refused = refusal(referee.requests)
    if refused is not None:
        return refused
    return Outcome("", failed, talk.lost, talk.known)


def refusal(requests: Sequence[Exchange]) -> Outcome | None:
    """The first refusal among a conversation's requests: a client that mended it by itself was refused all the same."""
    for seen in requests:
        if seen.status >= 400:
            reason = seen.verdict.reason
            strict = any(seen.host in hosts and reason.startswith(start) for hosts, start in _STRICT)
            return Outcome(refused=f"{seen.verdict.message} ({reason})", strict=strict)
    return None


class _Talk:
    """A conversation under way, and what the house model said it knew.

    Counted are code words that were noted at the place that names them: nobody owes one provider the reasoning of
    another. For the same reason lost notes count only where the turn began.
    """

    def __init__(self, referee: Referee, home: Place) -> None:
        self.lost = False
        self.known = 0
        self._referee = referee
        self._place = home
        self._noted: list[tuple[Place, str]] = []

    def hold(self, client: Client, kind: str, abroad: Place | None) -> None:
        prompt = _PARALLEL_PROMPT if kind == PARALLEL else _LOOP_PROMPT
        calls = self._say(client, prompt)
        if kind == SWITCH_OPEN and abroad:
            calls = self._give(client, calls)
            home = self._move(client, abroad)
            self._finish(client, calls)
            self._finish(client, self._say(client, _NEXT_PROMPT))
            self._move(client, home)
            self._finish(client, self._say(client, _BACK_PROMPT))
            return
        self._finish(client, calls)
        if kind == NEXT:
            self._finish(client, self._say(client, _NEXT_PROMPT))
        if kind == SWITCH and abroad:
            home = self._move(client, abroad)
            self._finish(client, self._say(client, _NEXT_PROMPT))
            self._move(client, home)
            self._finish(client, self._say(client, _BACK_PROMPT))

    def _move(self, client: Client, place: Place) -> Place:
        left, self._place = self._place, place
        client.move(place)
        return left

    def _say(self, client: Client, prompt: str) -> Sequence[Call]:
        self._noted.append((self._place, code_word(prompt)))
        return client.say(prompt)

    def _give(self, client: Client, calls: Sequence[Call]) -> Sequence[Call]:
        if not calls:
            raise RuntimeError("the client saw no tool call")
        return client.give({call.id: f"result of {call.name}" for call in calls})

    def _finish(self, client: Client, calls: Sequence[Call]) -> None:
        for _ in range(_MOST_ROUNDS):
            if not calls:
                break
            calls = self._give(client, calls)
        step = self._referee.requests[-1].step
        said = step.text if step else ""
        own = {word for place, word in self._noted if place == self._place}
        self.known += sum(KNOWN.format(word=word) in said for word in own)
        self.lost |= LOST in said and self._noted[-1][0] == self._place


class Cell(NamedTuple):
    """A peer's conversation and its outcome; ``abroad`` is empty where it stayed."""

    peer: str
    kind: str
    home: str
    abroad: str
    stream: bool
    outcome: Outcome


def play_all(peers: Sequence[Peer], referee: Referee) -> list[Cell]:
    """Every conversation that each peer's documentation has a way for."""
    cells = []
    for stream in (False, True):
        for peer in peers:
            names = [name for name in PLACES if name in peer.places and (name, stream) not in peer.apart]
            for home in names:
                for kind in ALONE:
                    outcome = play(peer, referee, kind, PLACES[home], None, stream=stream)
                    cells.append(Cell(peer.name, kind, home, "", stream, outcome))
                for abroad in names if peer.switches else ():
                    for kind in SWITCHES if abroad != home else ():
                        outcome = play(peer, referee, kind, PLACES[home], PLACES[abroad], stream=stream)
                        cells.append(Cell(peer.name, kind, home, abroad, stream, outcome))
    return cells
