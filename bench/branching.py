"""A log of conversations that are forks of forks, made once for each size: the ground for figures about growth.

A branch of so many commits runs through 20 segments, each in a session of its own that left the one before it a turn
back. The same commits stand in a second file in one segment. ``texts`` are of the recorded exchanges that
``THINKBACK_CORPUS`` names, else of a vocabulary as uneven as a language's.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from bench import conversation
from bench.conversation import Place, sealed, turns
from bench.search import vocabulary
from thinkback.log.protocol import MAIN, Origin, Store
from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Draft, Head
from thinkback.stores import open_store

# Every finished turn keeps its reasoning here: the most to fold and to send.
KEEPS = ("kimi", "kimi-k2-thinking")
SEGMENTS = 20
STRAIGHT = "straight"
_closing = ExitStack()
atexit.register(_closing.close)

Texts: TypeAlias = Callable[[random.Random, int], str]


class Forked(NamedTuple):
    """``log`` has the branch in segments, ``plain`` in one; ``session`` is the last fork, on which the branch ends."""

    log: Path
    plain: Path
    session: str
    commits: int
    segments: int

    def copied(self, purpose: str) -> Path:
        """A copy of ``log`` to change."""
        return Path(shutil.copy(self.log, self.log.with_name(f"{purpose}.db")))


@cache
def place() -> Place:
    """Where the conversation is held."""
    return conversation.place(*KEEPS)


@cache
def texts() -> tuple[str, Texts]:
    """What the texts are from, and one of so many characters."""
    recorded = _recorded()
    if not recorded:
        return "a made vocabulary", lambda chance, size: vocabulary().text(chance, size // 4)[:size]

    def cut(chance: random.Random, size: int) -> str:
        at = chance.randrange(len(recorded) - size)
        return recorded[at : at + size]

    return "recorded exchanges", cut


def _recorded() -> str:
    """What models said and thought in the recorded exchanges, one after the other."""
    named = os.environ.get("THINKBACK_CORPUS")
    parts: list[str] = []
    for file in sorted(Path(named).glob("*/*.json")) if named else ():
        for exchange in json.loads(file.read_text(encoding="utf-8"))["exchanges"]:
            expected = exchange["expect"]
            parts += [expected.get("reasoning_text") or "", expected.get("answer_text") or ""]
    return "\n".join(filter(None, parts))


@cache
def forked(commits: int) -> Forked:
    """A branch of about so many commits, at most a turn fewer."""
    directory = Path(_closing.enter_context(tempfile.TemporaryDirectory(prefix="thinkback-bench-")))
    log, plain = directory / "log.db", directory / "plain.db"
    store, straight = open_store(log, "normal"), open_store(plain, "normal")
    straight.create_session(STRAIGHT, STRAIGHT, 0)
    given = _turns()
    step = len(next(given))
    segments = min(SEGMENTS, commits // (2 * step))
    session, head, before = _fork(store, 0, "", Head()), Head(), Head()
    for segment in range(segments):
        if segment:
            session, head = _fork(store, segment, session, before), before
        while head.seq + 1 + step <= commits * (segment + 1) // segments:
            part = _reseal(next(given), head)
            store.append(session, part[-1].hash, part, head)
            before, head = head, head_of(part)
    _copy(store.read(session), straight)
    store.close()
    straight.close()
    return Forked(log, plain, session, head.seq + 1, segments)


def _turns() -> Iterator[list[Draft]]:
    source = texts()[1]
    for turn in turns(place(), source):
        yield [turn.question, *turn.answer]


def _reseal(drafts: list[Draft], head: Head) -> list[Commit]:
    return sealed(drafts, head, head.seq)


def _fork(store: Store, number: int, parent: str, at: Head) -> str:
    name = f"fork-{number}"
    store.create_session(name, name, 0, Origin(parent, MAIN, at) if parent else None)
    return name


def _copy(commits: list[Commit], store: Store) -> None:
    head = Head()
    for at in range(0, len(commits), 1_000):
        part = commits[at : at + 1_000]
        store.append(STRAIGHT, f"copy-{at}", part, head)
        head = head_of(part)
