"""The model behind every stand-in: visible words follow from the question alone, the reasoning never repeats.

Each answer has a serial number, which stands in its thought and in its opaque value, so that whoever reads a request
sees whose reasoning it carries. A ``Mood`` says what else providers do: absurd figures, queued answers, cut streams.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]
Number: TypeAlias = int | str | None

INFINITE = "@infinite@"
"""Written as ``1e999``: JSON, and more than a double holds."""
ABSURD: Mapping[str, Number] = {
    "missing": None,
    "zero": 0,
    "negative": -7,
    "not-finite": INFINITE,
    "1e18": 10**18,
    "1e30": 10**30,
    "past-int64": 2**63,
    "below-int64": 4611686018427387853,
}
_MARK = re.compile(r"(?:Thought #|VEhO)(\d{6})")


class Call(NamedTuple):
    """A call that the model wants made."""

    name: str
    arguments: Json


class Ask(NamedTuple):
    """A request as a model sees it; ``results`` came since the question, ``calls`` since the beginning."""

    model: str
    question: str
    results: int
    calls: int
    tools: tuple[str, ...]
    streams: bool


class Refused(Exception):
    """A request that the provider refuses."""

    def __init__(self, body: Json, status: int = 400) -> None:
        super().__init__(json.dumps(body))
        self.body, self.status = body, status


@dataclass
class Mood:
    """How the next answers are: which figures are reported, whether they are ready, after which event they break."""

    usage: str = "true"
    queued: bool = False
    breaks_after: int | None = None
    thinking: int = 0
    """The tokens of a thought; by the length of its words, if 0."""
    summary: bool = True
    """Whether the reader is shown the thought, where a provider hides it."""
    status: int = 200
    """The status of all answers, where it is an error."""
    counts_thinking: bool = True
    """Whether usage has a count of its own for reasoning."""


class Figures(NamedTuple):
    """Counts as they are reported."""

    input: Number
    output: Number
    thinking: Number

    def named(self, input: str, output: str, thinking: str = "") -> Json:
        """The counts under a dialect's names, those that there are; a dotted name is one of a details object."""
        found: Json = {}
        for name, value in zip((input, output, thinking), self, strict=True):
            outer, _, inner = name.rpartition(".")
            if name and value is not None:
                (found.setdefault(outer, {}) if outer else found)[inner] = value
        return found


@dataclass
class Answer:
    """One response: its reasoning, with the opaque value that ties it, its words, its calls."""

    serial: int
    ask: Ask
    thought: str
    opaque: str
    text: str
    calls: tuple[Call, ...]
    figures: Figures
    mood: Mood
    report: list[Json] = field(default_factory=list)
    """What the provider left out of the request."""

    @property
    def shown(self) -> str:
        """The thought as far as the reader may see it."""
        return self.thought if self.mood.summary else ""

    @property
    def beside(self) -> Figures:
        """The figures of a provider that counts reasoning beside its output."""
        output = self.figures.output
        if self.mood.usage != "true" or not isinstance(output, int):
            return self.figures
        return self.figures._replace(output=output - (self.mood.thinking or len(self.thought) // 4))

    def pieces(self, text: str) -> list[str]:
        """``text`` in two."""
        return [part for part in (text[: len(text) // 2], text[len(text) // 2 :]) if part]


class Minted(NamedTuple):
    """What the provider remembers of an answer: for whom, by which model, behind what, of how many hidden tokens."""

    serial: int
    account: str
    model: str
    prefix: Any
    thinking: int


@dataclass
class Memory:
    """All answers of one provider, by opaque value and by the id of each item."""

    opaque: dict[str, Minted] = field(default_factory=dict)
    items: dict[str, Any] = field(default_factory=dict)


def serials(body: object) -> list[int]:
    """Whose reasoning ``body`` carries, in order, each once."""
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return list(dict.fromkeys(int(found) for found in _MARK.findall(text)))


def size_of(body: Json, memory: Memory) -> int:
    """The tokens of a request: four characters each, and what an opaque value stands for, not its length."""
    sent = json.dumps(body, ensure_ascii=False)
    known = [(value, minted.thinking) for value, minted in memory.opaque.items() if value in sent]
    return (len(sent) - sum(len(value) for value, _ in known)) // 4 + sum(tokens for _, tokens in known)


def dumps(body: object) -> bytes:
    """JSON, with what Python cannot write."""
    return json.dumps(body, ensure_ascii=False).replace(f'"{INFINITE}"', "1e999").encode()


class Mind:
    """Says what a model says; one for all stand-ins of a server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._serial = 0

    def answer(self, ask: Ask, body: Json, memory: Memory, mood: Mood) -> Answer:
        """A new answer: a call where weather is asked for and a tool is there, else words."""
        with self._lock:
            self._serial += 1
            serial = self._serial
        digest = hashlib.sha256(str(serial).encode()).hexdigest()
        thought = f"Thought #{serial:06d}: {digest[:8]} about {ask.question[:40]}"
        opaque = f"VEhO{serial:06d}{digest}{digest[:30]}"
        calls: tuple[Call, ...] = ()
        if ask.tools and not ask.results and "weather" in ask.question:
            cities = ("Oslo", "Rome") if "both" in ask.question else ("Oslo",)
            calls = tuple(Call(ask.tools[0], {"city": city}) for city in cities)
        text = "" if calls else f"It is {4 * max(1, ask.results)} degrees; you asked: {ask.question[:60]}"
        thinking = mood.thinking or len(thought) // 4
        figures = self._figures(body, memory, mood, len(text + str(calls)) // 4, thinking)
        return Answer(serial, ask, thought, opaque, text, calls, figures, mood)

    def _figures(self, body: Json, memory: Memory, mood: Mood, words: int, thinking: int) -> Figures:
        if mood.usage != "true":
            absurd = ABSURD[mood.usage]
            return Figures(absurd, absurd, absurd)
        return Figures(size_of(body, memory), words + thinking, thinking if mood.counts_thinking else None)
