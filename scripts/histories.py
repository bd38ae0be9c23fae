"""Has the real programs write histories before the referee, imports them, and compares with what the referee played.

``make histories``; ``--only codex`` plays one program, ``--write`` keeps what they wrote as files for tests: without
long texts (prompts of the programs), directories and keys.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bench.coding_agents.agents import AGENTS
from bench.coding_agents.cell import Where, play
from bench.coding_agents.install import PLACE, installed
from bench.coding_agents.model import agent_step
from bench.coding_agents.page import DEMANDING
from bench.gateway_clients.places import front_of
from bench.gateway_clients.process import ROOT
from bench.peers.places import KEY
from thinkback.formats.registry import program
from thinkback.session.exchange.histories import Wanted, run
from thinkback.stores import open_store
from thinkback_referee import Referee

PROGRAMS = ("claude-code", "codex", "gemini-cli", "opencode", "pi")
MADE = ROOT / "tests" / "formats" / "made"
_LONGEST, _MOST, _LINE = 120, 12, 4_000
"""Characters of a text, items of a list, and characters of a line, that are kept."""
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
            differs = any(played != stored for played, stored in pairs)
            bad += differs or not counted.calls[0]
            print(f"{name:12} {counted.version:9} thoughts, calls, results, answers: {pairs}", end=" ", flush=True)
            print("DIFFERS" if differs else "", counted.said, flush=True)
    return int(bad > 0)


def made(name: str, write: bool) -> Counted:
    """A conversation of two questions, with the program's own store of it."""
    found = installed(name)
    nothing = (0, 0)
    if found.missing:
        return Counted("", nothing, nothing, nothing, nothing, found.missing)
    fronts = [front for front in _FRONTS if front in AGENTS[name].fronts]
    place = next(place for place in DEMANDING.values() if front_of(place) == fronts[0])
    with tempfile.TemporaryDirectory(prefix="histories-") as folder, Referee(house=agent_step) as referee:
        where = Where(referee.base_url(place.host), KEY, place.model, front=front_of(place))
        cell = play(name, found, referee, place, where, Path(folder).resolve())
        steps = [each.step for each in referee.requests if each.step]
        calls = sum(len(step.tool_calls) for step in steps)
        thoughts = sum(bool(step.reasoning) for step in steps)
        answers = {step.text for step in steps if step.text and not step.tool_calls}
        home = Path(folder).resolve() / "home" / program(name).home
        with closing(open_store(":memory:")) as log:
            run(log, Wanted(name, str(home)))
            commits = [
                commit
                for info in log.list_sessions()
                for branch in log.refs.list(info.id)
                for commit in log.read(info.id, branch=branch.name)
            ]
        kinds = [commit.kind for commit in commits]
        texts = {getattr(commit.value, "text", "") for commit in commits if commit.kind == "assistant"}
        if write and not program(name).tables:
            _keep(name, found.version, home, Path(folder).resolve())
    return Counted(
        found.version,
        (thoughts, kinds.count("reasoning")),
        (calls, kinds.count("tool_call")),
        (kinds.count("tool_call"), kinds.count("tool_result")),
        (len(cell.acts), len(answers & texts)),
        cell.text,
    )


def _keep(name: str, version: str, home: Path, folder: Path) -> None:
    """The longest file that the program wrote, as a test reads it."""
    format = program(name)
    files = [path for path in home.rglob("*") if path.name.endswith(format.endings) and path.is_file()]
    own = [path for path in files if format.is_own(path.read_bytes()[:200_000])]
    if not own:
        return
    lines = max(own, key=lambda path: path.stat().st_size).read_text(encoding="utf-8").splitlines()
    MADE.mkdir(exist_ok=True)
    short = (json.dumps(_cut(json.loads(line), str(folder)), ensure_ascii=False) for line in lines if line.strip())
    kept = "".join(f"{line}\n" for line in short if len(line) <= _LINE)
    (MADE / f"{name}-{version}.jsonl").write_text(kept, encoding="utf-8")


def _cut(value: Any, folder: str) -> Any:
    """Without directories, keys and long texts."""
    match value:
        case str():
            plain = value.replace(folder, "/home/person").replace(KEY, "key").replace(platform.release(), "release")
            return plain if len(plain) <= _LONGEST else f"(a text of {len(plain)} characters)"
        case list():
            return [_cut(each, folder) for each in value[:_MOST]]
        case dict():
            return {key: _cut(each, folder) for key, each in value.items()}
    return value


if __name__ == "__main__":
    raise SystemExit(main())
