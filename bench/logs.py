"""Durable append against the logs of other packages, each in a process of its own that takes its turn.

They are installed apart (``make peers`` makes that environment); without it there is nothing to compare with, and the
figures say so.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count, islice
from pathlib import Path

from bench import append
from bench.append import ours, plain
from bench.conversation import Turn, place, turns
from bench.measure import Case, Figure, Group, interleaved
from bench.peer_logs import PEERS
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.commits import Message, Step
from thinkback.stores import Durability

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
AIM = 5.0
RESPONSES = 40
JOURNALS: dict[str, Durability] = {"own": "full", "full": "full", "normal": "normal"}
_SETTINGS = {
    "own": "peers as they come (synchronous FULL, journal of their own choice), thinkback as it comes (FULL)",
    "full": "all with WAL and synchronous FULL",
    "normal": "all with WAL and synchronous NORMAL",
}


def exchange(turn: Turn) -> tuple[str, str, str]:
    """Question, reasoning and answer of a turn."""
    values = [turn.question.value, *(draft.value for draft in turn.answer)]
    (question,) = (value.text for value in values if isinstance(value, Message))
    (thought,) = (value.thought for value in values if isinstance(value, ThinkingBlock))
    (text,) = (value.text for value in values if isinstance(value, Text))
    return question, thought, text


def peer(name: str, path: Path, journal: str, given: Iterator[Turn], closing: ExitStack) -> Case:
    """A case that is what the peer's process says it took."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "LLM_USER_PATH": str(path.parent)}
    command = [str(PYTHON), "-m", "bench.peer_logs", name, str(path), journal]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    closing.enter_context(process)
    closing.callback(process.stdin.close)
    answers, questions = process.stdout, process.stdin
    if answers.readline().strip() != "ready":
        raise RuntimeError(f"the log of {name} does not start")

    def case() -> float:
        print(json.dumps([exchange(turn) for turn in islice(given, RESPONSES)]), file=questions, flush=True)
        return float(answers.readline())

    return case


def _rate(journal: str, quick: bool) -> Figure:
    name = "append.peers" if journal == "own" else f"append.peers.{journal}"
    aim = f">= {AIM:.0f}x every peer" if journal == "own" else ""
    if not PYTHON.exists():
        return Figure(name, None, "responses/s", aim=aim, note="skipped: no environment of peers; make peers makes it")
    at = place("deepseek", "deepseek-reasoner")
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as directory, ExitStack() as closing:
        log = Path(directory) / "thinkback.db"
        steps = (Step(f"step-{number}", turn.answer, number) for number, turn in zip(count(), turns(at), strict=False))
        durability = JOURNALS[journal]
        cases = {
            "thinkback": ours(log, durability, steps, closing, RESPONSES),
            "plain": plain(Path(directory) / "plain.db", durability, append.steps(), closing, joined=False),
        }
        for each in PEERS:
            cases[each] = peer(each, Path(directory) / f"{each}.db", journal, turns(at), closing)
        samples = interleaved(cases, rounds=5 if quick else 15, warm_up=2)
    ratios = {each: samples.ratio(each, "thinkback") for each in PEERS}
    rates = ", ".join(f"{each} {RESPONSES / samples.median(each):.0f}/s" for each in PEERS)
    nearest = min(ratios.values())
    # The limit's samples have more responses; a rate is over as many.
    more = RESPONSES / append.BLOCKS[durability]
    limit = min(samples.ratio(each, "plain").value for each in PEERS) / more
    return Figure(
        name,
        RESPONSES / samples.median("thinkback"),
        "responses/s",
        samples.ratio("plain", "thinkback").value * more,
        peers={each: ratio.value for each, ratio in sorted(ratios.items(), key=lambda one: one[1])},
        aim=aim,
        met=nearest.value >= AIM if aim else None,
        noise=nearest.noise,
        note=f"{_SETTINGS[journal]}; {rates}; thinkback stores 6 commits a response, the peers its text and reasoning; "
        f"the limit, one plain table, is {limit:.1f}x the nearest peer",
    )


GROUP = Group("logs", tuple(partial(_rate, journal) for journal in JOURNALS))
