"""One agent at one provider: a conversation in several runs of its program, and what the referee made of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from bench.coding_agents.agents import STORED, Agent, Front
from bench.coding_agents.install import Installed
from bench.coding_agents.model import FILES, asks, ended
from bench.coding_agents.process import Ran, Running, environment
from bench.peers.places import Place
from bench.peers.play import refusal
from thinkback_referee import LOST, Exchange, Referee

SECONDS = 300.0
"""What one run of a program may take."""
FIRST, NEXT, SWITCH, BACK, SUBAGENT, COMPACT, AFTER = (
    "three rounds",
    "second question",
    "another model",
    "back",
    "subagent",
    "compaction",
    "after it",
)
_NOWHERE = "http://127.0.0.1:1"
_NODE_OPTIONS = f'--require="{Path(__file__).parent / "baseline_wasm.cjs"}"'
_NOTED = re.compile(r"Round 1 of \w+\. Note to self: the code word is ([a-z]+-\d{3})")


class Cell(NamedTuple):
    """What came of a conversation. ``word``: ok, forgot, refused, strict or failed, in the run named ``act``; ``text``
    says why. ``acts`` are the runs that went well, ``requests`` counts what the referee saw. ``noted``: the code words
    of the first two questions; ``known``: those that the model still knew at the end of the second.
    """

    agent: str
    place: str
    through: bool
    word: str
    act: str
    text: str
    acts: list[str]
    requests: int
    noted: list[str]
    known: list[str]


class Where(NamedTuple):
    """How an agent gets to a place: its address and key, and the model's name there; ``abroad`` is another model.
    ``front`` is the provider's dialect where it is asked directly; empty: the gateway is.
    """

    address: str
    key: str
    model: str
    abroad: str = ""
    front: str = ""


class Wrong(Exception):
    """Something went wrong: the word for it, and why."""


def play(name: str, found: Installed, referee: Referee, place: Place, where: Where, kept: Path | None = None) -> Cell:
    """Have the conversation in a home of its own; the first thing that goes wrong ends it.

    The home is below ``kept``, which stays, where one is given.
    """
    referee.reset()  # what others said before must not be taken for this conversation's
    through = not where.front
    done: list[str] = []
    noted: list[str] = []
    known: list[str] = []
    made = tempfile.TemporaryDirectory(prefix="agent-", ignore_cleanup_errors=True)
    act = FIRST
    with made if kept is None else nullcontext(kept) as directory:
        try:
            talk = Talk(STORED[name], found, referee, where, Path(directory).resolve())
            for act in _acts(STORED[name], where):
                talk.run(act)
                done.append(act)
                if act in (FIRST, NEXT):
                    noted, known = talk.noted(), talk.known()
        except Wrong as wrong:
            word, text = wrong.args
            return Cell(name, place.name, through, word, act, text, done, len(referee.requests), noted, known)
    return Cell(name, place.name, through, "ok", "", "", done, len(referee.requests), noted, known)


def _acts(agent: Agent, where: Where) -> Iterator[str]:
    """The runs, in their order. Where nothing is between agent and provider, no more than what a provider demands."""
    yield FIRST
    if agent.again:
        yield NEXT
    if agent.again_only or where.front:
        return
    if agent.again and where.abroad:
        yield SWITCH
        yield BACK
    if agent.kind:
        yield SUBAGENT
    if agent.compact:
        yield COMPACT
        yield AFTER


class Talk:
    """A conversation under way, in a home of its own below ``directory``."""

    def __init__(self, agent: Agent, found: Installed, referee: Referee, where: Where, directory: Path) -> None:
        self._agent = agent
        self._found = found
        self._referee = referee
        self._where = where
        self._home, self._project = directory / "home", directory / "project"
        (self._home / "tmp").mkdir(parents=True)
        self._project.mkdir()
        for file, text in FILES.items():
            (self._project / file).write_text(f"{text}\n", encoding="utf-8")
        self._line = self.connect(where.model)

    def run(self, act: str) -> None:
        """One run of the program; raises ``Wrong``."""
        if act in (SWITCH, BACK):
            self.connect(self._where.abroad if act == SWITCH else self._where.model)
        plan = {FIRST: "boxes", SUBAGENT: "delegate", COMPACT: "talk"}.get(act, "again")
        command = {FIRST: self._agent.first, COMPACT: self._agent.compact}.get(act, self._agent.again)
        before = len(self._referee.requests)
        ran = self.start(command, plan).wait(SECONDS)
        seen = self._referee.requests[before:]
        self._judge(act, plan, ran, seen)

    def noted(self) -> list[str]:
        """The code words that the model noted so far."""
        thoughts = [seen.step.reasoning for seen in self._referee.requests if seen.step]
        return list(dict.fromkeys(word for thought in thoughts for word in _NOTED.findall(thought)))

    def known(self) -> list[str]:
        """Those of them that the last answer names."""
        texts = [seen.step.text for seen in self._referee.requests if seen.step and seen.step.text]
        return [word for word in self.noted() if texts and word in texts[-1]]

    def start(self, command: Sequence[str], plan: str) -> Running:
        """Start the program with the words that name a plan."""
        prompt = asks(plan, str(self._project), self._agent.kind)
        words: list[str] = []
        for word in command:
            if word == "{program}":
                words += self._found.program
            else:
                filled = {"{prompt}": prompt, "{line}": self._line}
                words.append(
                    filled.get(word, word.replace("{here}", str(Path(__file__).parent)).replace("{model}", self._model))
                )
        return Running(words, self._project, self._environment())

    def _environment(self) -> dict[str, str]:
        path = [Path(self._found.program[0]).parent]
        more = {"NODE_OPTIONS": _NODE_OPTIONS, "THINKBACK_KEY": self._where.key}
        return environment(self._home, path, {**self._agent.environment, **more})

    def connect(self, model: str) -> str:
        """``thinkback connect AGENT --write``, and for a provider itself its address in the gateway's place."""
        self._model = model
        front = self._agent.fronts.get(self._where.front) if self._where.front else None
        gateway = _NOWHERE if front else self._where.address
        command = [sys.executable, "-m", "thinkback", "connect", self._agent.connect, "--write"]
        ran = subprocess.run(
            [*command, "--model", model, "--gateway", gateway],
            cwd=self._project,
            env={**self._environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        if ran.returncode:
            raise Wrong("failed", f"thinkback connect: {ran.stderr.strip() or ran.stdout.strip()}")
        line = "".join(re.findall(r"in your code: (.*)", ran.stdout))
        if not front:
            return line
        chat = self._where.address
        root = chat.removesuffix("/v1beta").removesuffix("/v1")
        address = chat if front.version is None else f"{root}{front.version}"
        for file in (*self._home.rglob("*"), *self._project.rglob("*")):
            if file.is_file() and _NOWHERE.encode() in file.read_bytes():
                file.write_text(_elsewhere(file.read_text(encoding="utf-8"), front, address), encoding="utf-8")
        return _elsewhere(line, front, address)

    def _judge(self, act: str, plan: str, ran: Ran, seen: Sequence[Exchange]) -> None:
        refused = refusal(seen)
        if refused is not None:
            raise Wrong("strict" if refused.strict else "refused", refused.refused)
        if ran.failed:
            raise Wrong("failed", ran.failed)
        steps = [each.step for each in seen if each.step]
        if act == COMPACT:
            if not steps:
                raise Wrong("failed", "it asked nobody for a summary")
            return
        said = [step.text for step in steps if step.text.startswith(ended(plan) if self._agent.tools else "")]
        if not said:
            raise Wrong("failed", f"the plan was not played to its end: {[step.text for step in steps][-1:]}")
        if self._agent.tools and any(LOST in text for text in said):
            raise Wrong("forgot", "the model said that it had lost its notes")
        # a subagent that ends later makes some agents ask once more, and print that answer alone
        last = next(step.text for step in reversed(steps) if step.text)
        if not any(text.split(".")[0] in ran.output for text in (said[-1], last)):
            raise Wrong("failed", f"the model answered {said[-1]!r}, the agent printed {ran.output[-200:]!r}")
        if act == FIRST and self._agent.tools and not _brought(seen):
            raise Wrong("failed", "what its tools answered was not in the last request")


def _elsewhere(text: str, front: Front, address: str) -> str:
    """A file of settings, with a provider's address in the gateway's place."""
    text = text.replace(f"{_NOWHERE}/v1", address).replace(_NOWHERE, address)
    return text.replace(front.written, front.instead) if front.written else text


def _brought(seen: Sequence[Exchange]) -> bool:
    """Whether the last request has what is in the boxes."""
    raw = b"".join(each.raw for each in seen if each.step and each.step.text)
    return all(text.encode() in raw for text in FILES.values())
