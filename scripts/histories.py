"""Has the real programs write histories before the referee, imports them while and after they run, and compares.

What was played, what the files say by a count without the readers, what one import stores, and what
``thinkback import --follow`` stored beside the running program: all of it the same, once. ``make histories``;
``--only codex`` plays one program, ``--write`` keeps what they wrote as files for tests: without long texts (prompts of
the programs), directories and keys.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.coding_agents.agents import STORED
from bench.coding_agents.cell import Where, play
from bench.coding_agents.install import PLACE, installed
from bench.coding_agents.model import agent_step
from bench.coding_agents.page import DEMANDING
from bench.gateway_clients.places import front_of
from bench.gateway_clients.process import ROOT
from bench.peers.places import KEY
from tests.formats.accounting import Facts, in_log, in_source
from thinkback.formats.history import Format
from thinkback.formats.registry import program
from thinkback.log.protocol import Store
from thinkback.session.exchange.following import RESTED
from thinkback.session.exchange.histories import Wanted, run
from thinkback.stores import open_store
from thinkback_referee import Referee

PROGRAMS = (
    "claude-code",
    "claude-code-audited",
    "codex",
    "gemini-cli",
    "opencode",
    "opencode-audited",
    "pi",
    "pi-audited",
)
MADE = ROOT / "tests" / "formats" / "made"
_LONGEST, _MOST, _LINE = 120, 12, 4_000
"""Characters of a text, items of a list, and characters of a line, that are kept."""
_TAG = re.compile(r"<[\w ]{1,40}>")
_FRONTS = ("anthropic", "openai-responses", "gemini", "openai-chat")
"""The dialects, those first whose reasoning is signed or sealed."""


class Counted(NamedTuple):
    """What was played, and what is in the log: thoughts, calls, their results, and the answers that end a run."""

    version: str
    thoughts: tuple[int, int]
    calls: tuple[int, int]
    results: tuple[int, int]
    answers: tuple[int, int]
    said: str
    wrong: str = ""


def main() -> int:
    """Play, import, compare, print; 1 where something is missing or there twice."""
    parser = argparse.ArgumentParser(prog="python -m scripts.histories")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    PLACE.mkdir(exist_ok=True)
    bad = 0
    for name in PROGRAMS:
        if chosen.only in name:
            counted = made(name, chosen.write)
            pairs = counted[1:5]
            differs = any(played != stored for played, stored in pairs) or bool(counted.wrong)
            bad += differs or not counted.calls[0]
            print(f"{name:19} {counted.version:9} thoughts, calls, results, answers: {pairs}", end=" ", flush=True)
            print("DIFFERS" if differs else "", counted.said, counted.wrong, flush=True)
    return int(bad > 0)


def made(name: str, write: bool) -> Counted:
    """A conversation of two questions, with the program's own store of it."""
    found, format = installed(name), program(name.removesuffix("-audited"))
    nothing = (0, 0)
    if found.missing:
        return Counted("", nothing, nothing, nothing, nothing, found.missing)
    fronts = [front for front in _FRONTS if front in STORED[name].fronts]
    place = next(place for place in DEMANDING.values() if front_of(place) == fronts[0])
    with tempfile.TemporaryDirectory(prefix="histories-") as folder, Referee(house=agent_step) as referee:
        here = Path(folder).resolve()
        where = Where(referee.base_url(place.host), KEY, place.model, front=front_of(place))
        home = here / "home" / format.home
        home.mkdir(parents=True)
        with followed(format, home, here / "log.db"):
            cell = play(name, found, referee, place, where, here)
        steps = [each.step for each in referee.requests if each.step]
        calls = sum(len(step.tool_calls) for step in steps)
        thoughts = sum(bool(step.reasoning) for step in steps)
        answers = {step.text for step in steps if step.text and not step.tool_calls}
        with closing(open_store(":memory:")) as log, closing(open_store(here / "log.db")) as beside:
            run(log, Wanted(format.name, str(home)))
            told = sum((in_source(format.name, data) for data in _told(format, home)), Counter())
            stored = in_log(log)
            wrong = f"{_difference('in the log', told, stored)} {_difference('with --follow', stored, in_log(beside))}"
            wrong += "" if _heads(log) == _heads(beside) and log.count() == beside.count() else " other branches"
        kinds = Counter(kind for kind, _ in stored.elements())
        texts = {text for kind, text in stored if kind == "said"}
        if write:
            _keep(format, found.version, home, here)
    return Counted(
        found.version,
        (thoughts, kinds["thought"]),
        (calls, kinds["call"]),
        (kinds["call"], kinds["result"]),
        (len(cell.acts), len({"".join(answer.split()) for answer in answers} & texts)),
        cell.text,
        wrong.strip(),
    )


@contextmanager
def followed(format: Format, home: Path, db: Path) -> Iterator[None]:
    """``thinkback import --follow`` while the program runs, and until all that it wrote has rested."""
    command = [sys.executable, "-W", "ignore", "-m", "thinkback", "import", "--program", format.name]
    words = [*command, "--dir", str(home), "--follow", "--db", str(db)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ)) as running:
        try:
            yield
            time.sleep(2 * RESTED)
        finally:
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=60)[0]
        if running.returncode:
            print(said.decode(errors="replace"), file=sys.stderr)


def _told(format: Format, home: Path) -> Iterator[str]:
    """What the program stored, as JSON lines; of a database its rows, of documents all of them in one."""
    documents = [path for path in sorted(home.rglob("*.json")) if path.parent.parent.name in format.documents]
    if documents:
        yield "".join(map(_document, documents))
    for path in sorted(home.rglob("*")):
        if not path.is_file() or not path.name.endswith(format.endings):
            continue
        if not format.tables:
            data = path.read_bytes()
            if format.is_own(data[:200_000]):
                yield data.decode()
            continue
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            yield "".join(_rows(database, format.tables))


def _document(path: Path) -> str:
    row = {"table": path.parent.parent.name, "id": path.stem, "within": path.parent.name}
    return json.dumps({**row, "data": json.loads(path.read_bytes())}, ensure_ascii=False) + "\n"


def _rows(database: sqlite3.Connection, tables: tuple[str, ...]) -> Iterator[str]:
    there = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in (name for name in tables if name in there):
        for row in map(dict, database.execute(f'SELECT * FROM "{table}"')):
            data = {"data": json.loads(row["data"])} if isinstance(row.get("data"), str) else {}
            yield json.dumps({"table": table, **row, **data}, ensure_ascii=False) + "\n"


def _difference(where: str, expected: Facts, found: Facts) -> str:
    kinds = Counter(kind for kind, _ in (expected - found).elements())
    more = Counter(kind for kind, _ in (found - expected).elements())
    return f"{where} missing {dict(kinds)}, too many {dict(more)}" if kinds or more else ""


def _heads(log: Store) -> dict[str, list[str]]:
    return {info.id: [branch.head.hash for branch in log.refs.list(info.id)] for info in log.list_sessions()}


def _keep(format: Format, version: str, home: Path, folder: Path) -> None:
    """The longest file that the program wrote, as a test reads it."""
    lines = max(_told(format, home), key=len, default="").splitlines()
    MADE.mkdir(exist_ok=True)
    short = (json.dumps(_cut(json.loads(line), str(folder)), ensure_ascii=False) for line in lines if line.strip())
    kept = "".join(f"{line}\n" for line in short if len(line) <= _LINE)
    (MADE / f"{format.name}-{version}.jsonl").write_text(kept, encoding="utf-8")


def _cut(value: Any, folder: str) -> Any:
    """Without directories, keys and long texts."""
    match value:
        case str():
            plain = (
                value.replace(folder, "/home/person")
                .replace(folder[1:], "home/person")
                .replace(KEY, "key")
                .replace(platform.release(), "release")
            )
            tag = _TAG.match(plain)  # by which a reader tells what a program says from what a person says
            return plain if len(plain) <= _LONGEST else f"{tag[0] if tag else ''}(a text of {len(plain)} characters)"
        case list():
            return [_cut(each, folder) for each in value[:_MOST]]
        case dict():
            return {key: _cut(each, folder) for key, each in value.items()}
    return value


if __name__ == "__main__":
    raise SystemExit(main())
