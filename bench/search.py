"""Search: the first page of hits, what filling the index costs, and what it adds to the log.

Sessions of 1,000 responses whose reasoning has 600 characters of a vocabulary as uneven as a language's.
``python -m bench.search 1000000`` measures a log of that many blocks.
"""

from __future__ import annotations

import atexit
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import NamedTuple, TypeAlias

from bench.measure import Figure, Group, spread
from thinkback.log.protocol import About, Query, Store
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Origin, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Draft, Head, Response, Step, Usage, block_draft
from thinkback.session.history.search import Filters, facets, search
from thinkback.stores import open_store

AIM_MS = 50.0
PER_SESSION = 1_000
PER_STEP = 50
WORDS = 105
MODELS = tuple(f"reasoner-{number}" for number in range(5))
PROGRAMS = ("", "claude-code", "codex", "pi")
ASKED = ("program", "project and time", "facets")
TOOLS = ("bash", "read_file", "edit_file", "search", "")
_HOUR = 3_600_000_000
_closing = ExitStack()
atexit.register(_closing.close)

Measure: TypeAlias = Callable[[int, bool], Figure]


class Vocabulary:
    """Words from common to rare: the n-th comes about once where the first comes n times."""

    def __init__(self) -> None:
        chance = random.Random(11)
        letters = "etaoinshrdlucmfwypvbgk"
        self.words = list(
            dict.fromkeys("".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(60_000))
        )
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(len(self.words))))

    def text(self, chance: random.Random, count: int = WORDS) -> str:
        """``count`` words."""
        return " ".join(chance.choices(self.words, cum_weights=self._weights, k=count))


class Built(NamedTuple):
    """A log with its index. ``page`` gives queries of a kind; sizes are bytes."""

    store: Store
    samples: list[str]
    blocks: int
    fill_seconds: float
    payload: int
    log: int
    whole: int


@cache
def vocabulary() -> Vocabulary:
    """Made once."""
    return Vocabulary()


@cache
def built(blocks: int) -> Built:
    """A log of so many reasoning blocks, appended and then taken in."""
    directory = Path(_closing.enter_context(tempfile.TemporaryDirectory(prefix="thinkback-bench-")))
    path = directory / "log.db"
    store = open_store(path, "normal")
    chance = random.Random(3)
    payload = 0
    samples: list[str] = []
    for session in range(0, blocks, PER_SESSION):
        number = session // PER_SESSION
        about = About(PROGRAMS[number % len(PROGRAMS)], f"project-{number % 10}")
        store.create_session(f"s{session}", f"s{session}", 0, about=about)
        head = Head()
        for at in range(session, min(session + PER_SESSION, blocks), PER_STEP):
            commits = seal(_step(at, chance, samples), head)
            store.append(f"s{session}", f"step {at}", commits, head)
            head = head_of(commits)
            payload += sum(len(commit.payload) for commit in commits)
    store.close()
    log = path.stat().st_size
    store = open_store(path, "normal")
    _closing.callback(store.close)
    start = perf_counter()
    while store.search.fill():
        pass
    seconds = perf_counter() - start
    copy = directory / "copy.db"
    store.care.backup(str(copy))
    whole = copy.stat().st_size
    copy.unlink()
    return Built(store, samples, blocks, seconds, payload, log, whole)


def _step(first: int, chance: random.Random, samples: list[str]) -> Step:
    drafts: list[Draft] = []
    for at in range(first, first + PER_STEP):
        id, text = f"{at:024x}", vocabulary().text(chance)
        if at % 97 == 0:
            samples.append(text)
        origin = Origin("openai-chat", "https://api.example.com/v1", MODELS[at % 5])
        tool = TOOLS[chance.randrange(5)]
        drafts.append(Draft("response", Response(origin, id=id, finish="stop", blocks=3 if tool else 2), id))
        drafts.append(block_draft(ThinkingBlock(text, source_field="reasoning_content"), id, 0))
        drafts.append(block_draft(Text(text[:200]), id, 1))
        if tool:
            drafts.append(block_draft(ToolCall(id, tool, f'{{"path":"src/{text[:12]}"}}'), id, 2))
        drafts.append(Draft("provider_usage", Usage(output=250, reasoning=150), id))
    return Step(f"step {first}", tuple(drafts), first * _HOUR // 100)


def _common(log: Built, chance: random.Random) -> Query:
    return Query(vocabulary().words[chance.randrange(30)], kinds=("reasoning",))


def _rare(log: Built, chance: random.Random) -> Query:
    words = vocabulary().words
    return Query(words[chance.randrange(len(words) // 2, len(words))], kinds=("reasoning",))


def _phrase(log: Built, chance: random.Random) -> Query:
    """Three words that stand side by side in a block."""
    words = chance.choice(log.samples).split()
    at = chance.randrange(len(words) - 3)
    return Query(f'"{" ".join(words[at : at + 3])}"', kinds=("reasoning",))


def _filtered(log: Built, chance: random.Random) -> Query:
    """Two of them, of one model before one tool, in the older half, within a session or not."""
    words = chance.choice(log.samples).split()
    at = chance.randrange(len(words) - 2)
    session = chance.randrange(0, log.blocks, PER_SESSION)
    return Query(
        f'"{" ".join(words[at : at + 2])}"',
        kinds=("reasoning",),
        model=chance.choice(MODELS),
        tool=chance.choice(TOOLS),
        min_tokens=50,
        until=log.blocks // 2 * _HOUR // 100,
        session=f"s{session}" if chance.random() < 0.5 else "",
    )


def _filters(log: Built, chance: random.Random) -> Query:
    return Query(
        kinds=("reasoning",), model=chance.choice(MODELS), tool=chance.choice(TOOLS), max_tokens=chance.choice((9, 999))
    )


def _project(log: Built, chance: random.Random) -> Query:
    """A common word in the sessions of a project: a tenth of all."""
    word = vocabulary().words[chance.randrange(30)]
    sessions = range(0, log.blocks, PER_SESSION)
    return Query(word, kinds=("reasoning",), owners=tuple(f"s{at}" for at in sessions if at // PER_SESSION % 10 == 0))


KINDS: dict[str, Callable[[Built, random.Random], Query]] = {
    "common": _common,
    "rare": _rare,
    "phrase": _phrase,
    "filtered": _filtered,
    "filters": _filters,
    "project": _project,
}


def page(kind: str, blocks: int, quick: bool) -> Figure:
    """95 of 100 first pages come within the value."""
    log, chance = built(blocks), random.Random(5)
    taken: list[float] = []
    worked: list[float] = []
    hits = 0
    for _ in range(60 if quick else 300):
        query = KINDS[kind](log, chance)
        start, began = perf_counter(), process_time()
        hits += len(log.store.search.find(query))
        worked.append((process_time() - began) * 1e3)
        taken.append((perf_counter() - start) * 1e3)
    cuts = quantiles(taken, n=20)
    return Figure(
        f"search.{kind}.{_short(blocks)}",
        cuts[18],
        "ms (p95)",
        aim=f"first page p95 <= {AIM_MS:.0f} ms at 1M blocks",
        met=cuts[18] <= AIM_MS,
        note=f"p50 {cuts[9]:.2f} ms, slowest {max(taken):.1f} ms; processor p95 {quantiles(worked, n=20)[18]:.2f} ms; "
        f"{hits / len(taken):.0f} hits a page",
    )


def asked(kind: str, blocks: int, quick: bool) -> Figure:
    """What a person waits for who asks for a program, a project and a time, as ``thinkback search`` does."""
    log, chance = built(blocks), random.Random(5)
    since = blocks // 2 * _HOUR // 100
    taken: list[float] = []
    worked: list[float] = []
    hits = 0
    for _ in range(20 if quick else 100):
        word = vocabulary().words[chance.randrange(300)]
        program, project = chance.choice(PROGRAMS), f"project-{chance.randrange(10)}"
        start, began = perf_counter(), process_time()
        if kind == "facets":
            hits += facets(log.store, word, kinds=("reasoning",)).hits
        else:
            named: Filters = {"program": program} if kind == "program" else {"project": project, "since": since}
            named["kinds"] = ("reasoning",)
            hits += len(search(log.store, word, **named))
        worked.append((process_time() - began) * 1e3)
        taken.append((perf_counter() - start) * 1e3)
    cuts = quantiles(taken, n=20)
    return Figure(
        f"search.{kind}.{_short(blocks)}",
        cuts[18],
        "ms (p95)",
        note=f"p50 {cuts[9]:.2f} ms; processor p95 {quantiles(worked, n=20)[18]:.2f} ms; {hits / len(taken):.0f} hits; "
        f"places of {blocks // PER_SESSION} sessions read",
    )


def fill(blocks: int, quick: bool) -> Figure:
    """How fast the index takes commits in."""
    log = built(blocks)
    return Figure(
        f"search.fill.{_short(blocks)}",
        log.blocks / log.fill_seconds,
        "blocks/s",
        note="each with its response, its answer, a call and its usage",
    )


def size(blocks: int, quick: bool) -> Figure:
    """What the index adds to the file, and the whole file against the payloads."""
    log = built(blocks)
    return Figure(
        f"search.size.{_short(blocks)}",
        (log.whole - log.log) / log.blocks,
        "B/block",
        log.whole / log.payload,
        note=f"payloads {log.payload / blocks:.0f} B a block, the log {log.log / blocks:.0f} B, "
        f"the index {(log.whole - log.log) / log.payload:.2f}x of the payloads",
    )


def lag(blocks: int, quick: bool) -> Figure:
    """How long a response that was just stored takes to be found: what a search after it pays for."""
    log, taken = built(blocks), []
    chance = random.Random(9)
    log.store.create_session("lag", "lag", 0)
    head = Head()
    for at in range(20 if quick else 60):
        drafts = _step(blocks + at * PER_STEP, chance, []).drafts[:5]
        commits = seal(Step(f"lag {at}", drafts, 0), head)
        log.store.append("lag", f"lag {at}", commits, head)
        head = head_of(commits)
        start = perf_counter()
        while log.store.search.fill():
            pass
        taken.append((perf_counter() - start) * 1e3)
    return Figure(f"search.lag.{_short(blocks)}", median(taken), "ms", noise=spread(taken), note="of one response")


def _short(blocks: int) -> str:
    return f"{blocks // 1000}k" if blocks < 1_000_000 else f"{blocks // 1_000_000}M"


MEASURES: tuple[Measure, ...] = (
    fill,
    size,
    *(partial(page, kind) for kind in KINDS),
    *(partial(asked, kind) for kind in ASKED),
    lag,
)


def _sized(measure: Measure, quick: bool) -> Figure:
    return measure(10_000 if quick else 100_000, quick)


GROUP = Group("search", tuple(partial(_sized, measure) for measure in MEASURES))


def main(sizes: Sequence[str]) -> None:
    """Print the figures of logs of these sizes."""
    from bench.__main__ import row

    for blocks in map(int, sizes):
        for measure in MEASURES:
            print(row(measure(blocks, False)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ("10000", "100000"))
