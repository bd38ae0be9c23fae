"""Logs that the viewer is looked at over in both databases: with histories of other programs, and one of a gateway.

``whole`` has everything that its pages tell apart; ``gateway`` runs a gateway that writes while somebody looks.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import thinkback
from scripts.browser_page import ROOT
from scripts.viewer_log import add_long, make
from tests.formats.samples import write_database
from tests.servers.gateway.harness.house import House, Provider, wait_until
from tests.stores.postgres_server import Server
from thinkback.formats.registry import program
from thinkback.model.blocks import ThinkingBlock
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.servers.gateway.config.schema import Config, Store
from thinkback.servers.gateway.running.places import office_of
from thinkback.session.exchange.histories import Wanted, run
from thinkback.session.history.search import BATCH
from thinkback.session.store import SessionStore
from thinkback_referee import Referee, Step

MADE = ROOT / "tests" / "formats" / "made"
LONG = (10_000, 50_000)
REPORT = "thinking_dropped: not_readable"


@contextmanager
def databases(home: Path) -> Iterator[dict[str, tuple[str, str]]]:
    """Where a log and those of a gateway may be made: in files, and in PostgreSQL where one can be run."""
    found = {"sqlite": (str(home / "log.db"), str(home / "logs"))}
    try:
        server = Server()
    except (OSError, RuntimeError) as error:
        print(f"PostgreSQL cannot be run here, and was left out: {error}")
        yield found
        return
    with server:
        yield {**found, "postgres": (server.make_database("log"), server.make_database("gateway"))}


def whole(path: str, referee: Referee) -> list[str]:
    """A log at ``path`` with all that its pages tell apart; the names of the sessions of other programs in it."""
    make(path, referee)
    with thinkback.open(path, rules={}, settings={}, durability="normal") as store:
        add_curated(store, referee)
        _reported(store)
        for commits in LONG:
            add_long(store, f"long-{commits}", commits)
        imported = [*_imported(store)]
        while store.log.search.fill(BATCH):
            pass
        return imported


def add_curated(store: SessionStore, referee: Referee) -> None:
    """The session ``plan``: an edit, words that were taken out, a branch, a checkpoint, and a fork of it."""
    place: dict[str, Any] = {
        "endpoint": "deepseek",
        "model": "deepseek-v4-pro",
        "base_url": referee.base_url("deepseek"),
    }
    session = store.session("plan", **place, api_key="a key")
    session.set("reasoning.includeInContext", True)
    for number in range(4):
        referee.push(Step(reasoning=f"Thought {number}: the code is 47-11-{number}. " * 20, text=f"Answer {number}."))
        session.chat(f"Question {number} of the plan? " * 20)
    said = session.log(kinds=["user"])
    session.commit("What is the plan, in other words?", edit=said[1].hash)
    store.care.redact(session.log(kinds=["reasoning"])[0].hash, r"47-11-\d")
    session = store.session("plan", **place, api_key="a key")
    session.branches.branch("other", switch=True)
    referee.push(Step(reasoning="Only on the other branch.", text="Otherwise."))
    session.chat("And otherwise?")
    session.branches.switch("main")
    fork = session.branches.fork("plan-2", purpose="try it")
    fork.commit("In the fork alone.")
    session.compaction.run("manual", 1, text="Four questions were answered.")
    referee.push(Step(reasoning="With the summary.", text="Done."))
    session.chat("Is it done?")


def _reported(store: SessionStore) -> None:
    """The session ``reported``: its provider says which thought it left out."""
    session = store.session("reported", endpoint="anthropic", model="claude-opus-4-6", api_key="a key")
    session.set("reasoning.effort", "high")
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "EpwGCkYIBxgCKkA" * 8}
    answer = {"type": "message", "id": "m", "role": "assistant", "model": "served", "stop_reason": "end_turn"}
    kind, _, reason = REPORT.partition(": ")
    left_out = [{"type": kind, "path": "messages.1.content.0", "reason": reason}]
    for told in (
        {"content": [thinking, {"type": "text", "text": "So."}]},
        {"content": [{"type": "text", "text": "And so."}], "input_transformations": left_out},
    ):
        session.wire.plan("Why?", stream=False)
        session.wire.ingest(json.dumps({**answer, **told}))


def _imported(store: SessionStore) -> Iterator[str]:
    """The histories that are here: those of the project, and those that THINKBACK_HISTORIES names."""
    files = [(re.sub(r"-[0-9.]+$", "", path.stem), path) for path in sorted(MADE.iterdir())]
    place = os.environ.get("THINKBACK_HISTORIES", "")
    others = sorted(Path(place).rglob("*.jsonl")) if place else []
    files += [(path.relative_to(place).parts[0], path) for path in others]
    with tempfile.TemporaryDirectory() as home:
        for name, path in files:
            if program(name).tables:
                path = write_database(Path(home, f"{path.stem}.db"), path.read_bytes())
            took, _ = run(store.log, Wanted(name, str(path)))
            yield from (each.name for each in took if each.made)


class Gateway(NamedTuple):
    """A gateway that runs: the address of its viewer, the log of its tenant, keys that may look, that may not, and
    whose conversations are not recorded.
    """

    house: House
    provider: Provider
    url: str
    log: str
    key: str
    blind: str
    quiet: str


@contextmanager
def gateway(home: Path, store: str) -> Iterator[Gateway]:
    """A gateway with a viewer, whose logs are in the directory ``store``, or in the PostgreSQL at that address."""
    is_url = "://" in store
    with Provider() as provider:
        house = House(home, provider.url, store, '[viewer]\nlisten = "127.0.0.1:0"\n')
        try:
            made = [new_key(terms, 1) for terms in (Terms(view=True), Terms(), Terms(recording="metadata"))]
            with closing(office_of(Config(store=Store(url=store) if is_url else Store(path=store)))) as office:
                for _, row in made:
                    office.keys.create(row)
            wait_until(lambda: "viewer, for " in (home / "said").read_text().rpartition("\n")[0], "the viewer listens")
            (at,) = re.findall(r"viewer, for .*: (http://\S+)", (home / "said").read_text())
            log = store if is_url else str(Path(store, "default.db"))
            yield Gateway(house, provider, at, log, *(secret for secret, _ in made))
        finally:
            house.stop()


def opaque_values(store: SessionStore, session: str) -> list[str]:
    """The opaque values in a session that no page may show."""
    blocks = (commit.value for commit in store.commits(session))
    found = [carrier.value for block in blocks for carrier in getattr(block, "carriers", ())]
    return [value for value in found if len(value) > 40]


def thoughts_of(store: SessionStore, session: str) -> tuple[int, int]:
    """The thoughts of a session: those with a text, and those whose text was withheld."""
    thoughts = [commit.value for commit in store.commits(session) if commit.kind == "reasoning"]
    withheld = sum(isinstance(thought, ThinkingBlock) and not thought.thought for thought in thoughts)
    return len(thoughts) - withheld, withheld
