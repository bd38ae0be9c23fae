"""Size on disk, with the search index, against the raw JSON of the same conversation: its messages, reasoning included.

Two shapes: ``chat``, the recipe of the peers' figures (questions of 200 characters, answers of 600 of reasoning and 200
of text), and ``agent``, where four responses of a turn think 1,500 characters and call a tool that gives back 3,000.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import NamedTuple

from bench.branching import SEGMENTS, forked, place, texts
from bench.conversation import sealed, told_before
from bench.measure import Figure, Group
from thinkback.log.protocol import MAIN, Origin, Query, Store
from thinkback.log.seal import head_of
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Head, Message, Response, TurnEnded, Usage, block_draft
from thinkback.stores import open_store
from thinkback.turn.plan import History

SESSION = "bench"
FORKS = 200


class Weight(NamedTuple):
    """Bytes: of the messages as JSON, of the file without and with the index, of one more fork; ``page``: the first
    page of a search in it, ms.
    """

    commits: int
    raw: int
    log: int
    whole: int
    fork: float
    page: float


def weigh(store: Store, session: str, directory: Path) -> Weight:
    """Weigh a copy of the log; ``session`` has the whole conversation."""
    store.care.backup(str(directory / "copy.db"))
    copy = open_store(directory / "copy.db", "normal")
    commits = copy.read(session)
    raw = len(bytes(place().plan(History(commits))))
    log = _bytes(copy, directory)
    at = head_of(commits)
    for number in range(FORKS):
        copy.create_session(f"fork of it {number}", f"fork of it {number}", 0, Origin(session, MAIN, at))
    fork = (_bytes(copy, directory) - log) / FORKS
    while copy.search.fill():
        pass
    whole = _bytes(copy, directory) - int(fork * FORKS)
    page = _first_page(copy)
    copy.close()
    return Weight(len(commits), raw, log, whole, fork, page)


def _bytes(store: Store, directory: Path) -> int:
    """The file as a copy that has no free pages to spare."""
    file = directory / "weighed.db"
    store.care.backup(str(file))
    size = file.stat().st_size
    file.unlink()
    return size


def chat(commits: int) -> Weight:
    """The conversation of the figures about growth."""
    log = forked(commits)
    store = open_store(log.log, "normal")
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as directory:
        weight = weigh(store, log.session, Path(directory))
    store.close()
    return weight


def agent(commits: int) -> Weight:
    """A conversation with a tool."""
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as name:
        store = open_store(Path(name) / "log.db", "normal")
        store.create_session(SESSION, SESSION, 0)
        head = Head()
        for number, drafts in enumerate(_agent()):
            if head.seq >= commits:
                break
            part = sealed(drafts, head, number)
            store.append(SESSION, f"step-{number}", part, head)
            head = head_of(part)
        weight = weigh(store, SESSION, Path(name))
        store.close()
    return weight


def _agent() -> Iterator[list[Draft]]:
    """Steps without end: a question; three responses, each with a call and then its result; the answer."""
    chance, source = random.Random(13), texts()[1]
    whole = place().plan(History()).record()
    for number in count():
        record = told_before(whole) if number else whole
        id, at = f"{number:024x}", number % 4
        call = ToolCall(f"call_{number}", "read_file", f'{{"path":"src/part_{number}.py","lines":"1-80"}}')
        said = call if at < 3 else Text(source(chance, 800))
        if at == 0:
            yield [Draft("user", Message(source(chance, 200)))]
        yield [
            Draft("request", record, id),
            Draft("response", Response(place().origin, id=id, finish="stop", blocks=2), id),
            block_draft(ThinkingBlock(source(chance, 1_500), source_field="reasoning_content"), id, 0),
            block_draft(said, id, 1),
            Draft("provider_usage", Usage(input=70 + number, output=400, reasoning=300), id),
            *([] if at < 3 else [Draft("turn_ended", TurnEnded("completed"))]),
        ]
        if at < 3:
            yield [Draft("tool_result", ToolResult(call.id, source(chance, 3_000)))]


def _first_page(store: Store) -> float:
    """The 95th percentile of first pages in ms: words of the texts, common ones more often than rare ones."""
    taken, chance, source = [], random.Random(5), texts()[1]
    for _ in range(120):
        word = chance.choice(source(chance, 600).split()[1:-1])
        start = perf_counter()
        store.search.find(Query(word, kinds=("reasoning",)))
        taken.append((perf_counter() - start) * 1e3)
    return quantiles(taken, n=20)[18]


def _weighed(shape: str, quick: bool) -> Figure:
    commits = 10_000 if quick else 100_000
    weight = chat(commits) if shape == "chat" else agent(commits)
    ratio, forks = weight.whole / weight.raw, f"in {SEGMENTS} segments, " if shape == "chat" else ""
    return Figure(
        f"size.{shape}",
        weight.whole / 1e6,
        "MB",
        ratio,
        aim="<= 1.0x the raw JSON, search index included",
        met=ratio <= 1.0,
        note=f"{weight.commits} commits {forks}with texts of {texts()[0]}; raw JSON of the messages "
        f"{weight.raw / 1e6:.1f} MB; without the index {weight.log / weight.raw:.2f}x; a commit takes "
        f"{weight.log / weight.commits:.0f} B of the log, a fork {weight.fork:.0f} B",
    )


GROUP = Group("size", (partial(_weighed, "chat"), partial(_weighed, "agent")))
