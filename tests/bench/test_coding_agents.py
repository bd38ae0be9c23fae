"""Coding agents and the gateway: the model calls what is offered, a hanging program is ended, the page has it all."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from bench.coding_agents.agents import AGENTS, NODE
from bench.coding_agents.cell import Cell
from bench.coding_agents.install import LOCKS, Installed, version
from bench.coding_agents.model import FILES, agent_step, asks, ended
from bench.coding_agents.page import Judged, page
from bench.coding_agents.process import Running, environment
from bench.coding_agents.trial import Sent, Trial, plan
from thinkback.cli.connect.agents import AGENTS as CONNECTED
from thinkback_referee import Call
from thinkback_referee.persona import OfferedTool, View

STRINGS = {"type": "string"}
SHELL = OfferedTool("Bash", "", {"properties": {"command": STRINGS}, "required": ["command"]})
READ = OfferedTool("Read", "", {"properties": {"file_path": STRINGS}, "required": ["file_path"]})
PLACE = "OpenAI Responses"


def cell(through: bool = True, word: str = "ok", known: int = 2, text: str = "") -> Cell:
    """A conversation of Codex with two code words noted."""
    words = ["amber-111", "birch-222"]
    act = "" if word == "ok" else "three rounds"
    return Cell("codex", PLACE, through, word, act, text, ["three rounds"], 6, words, words[:known])


def test_the_plan_is_played_with_the_tools_that_are_offered() -> None:
    """Three rounds, the second with two calls at once, the reader last; reminders behind the words change nothing."""
    asked = f"{asks('boxes', '/box')}<system-reminder>Be brief.</system-reminder>"
    rounds = [agent_step(View(asked, tools=(SHELL, READ), rounds=number, steps=number)) for number in range(4)]
    one, two, three = (f"/box/{name}" for name in FILES)
    shell = [[Call("Bash", {"command": f"cat {one}"})]]
    shell.append([Call("Bash", {"command": f"cat {two}"}), Call("Bash", {"command": f"wc -c {three}"})])
    assert [*shell, [Call("Read", {"file_path": three})], []] == [step.tool_calls for step in rounds]
    assert rounds[3].text.startswith(ended("boxes"))


def test_without_tools_or_a_plan_the_model_talks() -> None:
    """A request for a title, and words of somebody else."""
    asked = (View(asks("boxes", "/box")), View("plan:nothing() in /box", tools=(SHELL,)), View("hi", tools=(SHELL,)))
    assert ["Understood. "] * 3 == [agent_step(view).text for view in asked]


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """The pipe that both hold is closed when both have ended."""
    read, held = os.pipe()
    os.set_inheritable(held, True)
    program = f"exec 3>&{held}; sleep 60 & echo started; wait"
    running = Running(["bash", "-c", program], tmp_path, {"PATH": os.environ["PATH"]}, keep=(held,))
    os.close(held)
    ran = running.wait(0.5)
    assert (b"", True) == (os.read(read, 1), ran.failed.startswith("no end after 0.5 s"))
    os.close(read)


def test_agents_find_nothing_of_whoever_runs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys nor proxies nor a home."""
    for name in ("OPENAI_API_KEY", "HTTPS_PROXY", "CODEX_HOME"):
        monkeypatch.setenv(name, "mine")
    found = environment(tmp_path, [], {"MORE": "1"})
    assert (str(tmp_path), "1", False) == (found["HOME"], found["MORE"], "mine" in found.values())


@pytest.mark.parametrize("name", [NODE, *(name for name, agent in AGENTS.items() if not agent.is_python)])
def test_locks_have_hashes_and_no_addresses(name: str) -> None:
    """Every package with its integrity, and nothing that says where it came from."""
    text = (LOCKS / f"{name}.json").read_text(encoding="utf-8")
    packages = json.loads(text)["packages"]
    assert ("://" in text, []) == (
        False,
        [path for path, each in packages.items() if path and not each.get("integrity")],
    )


def test_every_agent_that_can_be_connected_is_run() -> None:
    """And each has a version."""
    assert set(CONNECTED) == {agent.connect for agent in AGENTS.values()}
    assert all(version(name, agent) for name, agent in AGENTS.items())


def test_page_shows_both_ways_and_what_is_left_out() -> None:
    """What the model no longer knows is forgotten where it knew that before; texts have numbers."""
    found = {name: Installed(missing="npm is not installed") for name in AGENTS}
    found["codex"] = Installed(("codex",), "1.2")
    cells = [cell(through=False, word="refused", text="bad messages[3].x"), cell()]
    text = page(cells, found, "v22").splitlines()
    assert f"| {PLACE} | refused [1] → ok |" in text
    assert "1. three rounds: bad messages[N].x" in text
    assert "| aider | aider-chat |  | two questions | left out: npm is not installed |" in text
    assert ["forgot", "none"] == [
        Judged([cell(), each]).word(each) for each in (cell(known=1), cell()._replace(noted=[]))
    ]


def test_a_trial_finds_what_is_lost_and_what_was_not_sent() -> None:
    """A response under way when the gateway was killed is not lost; the same seed plans the same turns."""
    sent = [Sent(digest, at, "deepseek") for digest, at in (("a", 1.0), ("a", 2.0), ("b", 3.0), ("c", 9.0))]
    found = Trial(9, [], [], 0, sent, [9.5], 0, Counter("aad"), 0, Counter())
    assert (["b", "c"], ["b"], 1) == ([x.digest for x in found.missing], [x.digest for x in found.lost], found.made_up)
    turns = plan(7, 300)
    assert plan(7, 300) == turns
    assert min(sum(turn.gateway > 0 for turn in turns), sum(turn.agent > 0 for turn in turns)) >= 20
