"""The model that the referee plays to an agent: which of the agent's tools it calls, by what the person's words name.

Promises: the next response follows from the request alone, so that kills, retries, requests for a title and subagents
put nothing out of order. Calls name a tool by pattern and have the arguments that its schema declares; they read the
three files of the agent's own directory and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from thinkback_referee import Call, Step
from thinkback_referee.house import memory, think
from thinkback_referee.persona import View
from thinkback_referee.played import NOTES, fitted

FILES: Mapping[str, str] = {
    "one.txt": "first box: a red pen",
    "two.txt": "second box: a blue cup",
    "three.txt": "empty",
}
"""What is in an agent's directory; the texts are looked for in what its tools answer."""

SHELL = "bash|exec_command|shell|shell_command|local_shell|run_shell_command|*shell*|exec"
READ = "read|read_file|look"
TASK = "agent|task|invoke_agent|*subagent*"
_PLAN = re.compile(r"plan:([a-z]+)\(([a-z-]*)\) in (\S+?)[.`'\"<]*(?:\s|$)")


def asks(plan: str, directory: str, kind: str = "") -> str:
    """What a person says so that the model follows a plan; ``kind`` is that of the subagent which there is."""
    return f"{_WORDS[plan]} This is plan:{plan}({kind}) in {directory}\n"


def agent_step(view: View, seed: int = 0) -> Step:
    """The next response: that of the plan that the person's words name last, as far as tools are offered."""
    named = _PLAN.findall(view.asked)
    if not named or not view.tools or view.choice == "none" or named[-1][0] not in _PLANS:
        return Step(
            reasoning=think(view, seed, view.steps, "No plan is named."), text=f"Understood. {memory(view, seed)}"
        )
    plan, kind, directory = named[-1]
    rounds = _PLANS[plan](directory, kind)
    calls = rounds[view.rounds] if view.rounds < len(rounds) else []
    text = "" if calls else f"{ended(plan)} {NOTES}"
    return fitted(Step(f"Round {view.rounds + 1} of {plan}.", text, calls), view, seed)


def ended(plan: str) -> str:
    """How the last text of a plan begins."""
    return f"The plan {plan} is done."


def _shell(command: str) -> Call:
    # Codex has its models write a script that runs the shell.
    script = f"text(await tools.exec_command({json.dumps({'cmd': command})}))"
    called = {"command": command, "cmd": command, "input": script}
    return Call(SHELL, {**called, "description": "Look into a box", "is_background": False})


def _read(path: str) -> Call:
    named = ("path", "file_path", "filePath", "absolute_path")
    return Call(READ, dict.fromkeys(named, path))


def _boxes(directory: str, kind: str) -> list[list[Call]]:
    """Three rounds, the second with two calls at once."""
    one, two, three = (f"{directory}/{name}" for name in FILES)
    return [[_shell(f"cat {one}")], [_shell(f"cat {two}"), _shell(f"wc -c {three}")], [_reader_or_shell(three)]]


def _reader_or_shell(path: str) -> Call:
    """A file reader where there is one, else a shell: the pattern's first name that is offered."""
    read, shell = _read(path), _shell(f"cat {path}")
    return Call(f"{READ}|{SHELL}", {**dict(shell.arguments), **dict(read.arguments)})  # type: ignore[arg-type]


def _again(directory: str, kind: str) -> list[list[Call]]:
    return [[_shell(f"cat {directory}/two.txt")]]


def _delegate(directory: str, kind: str) -> list[list[Call]]:
    task = asks("again", directory)
    kinds = {"subagent_type": kind, "agent": kind, "agent_name": kind}
    return [[Call(TASK, {"prompt": task, "description": "Look again", "message": task, "task": task, **kinds})]]


def _talk(directory: str, kind: str) -> list[list[Call]]:
    """No calls: an agent that compacts after every response would do nothing else."""
    return []


_Plan = Callable[[str, str], list[list[Call]]]
_PLANS: Mapping[str, _Plan] = {"boxes": _boxes, "again": _again, "delegate": _delegate, "talk": _talk}
_WORDS: Mapping[str, str] = {
    "boxes": "Look into all three boxes.",
    "again": "Look into the second box once more.",
    "delegate": "Let somebody else look into the second box.",
    "talk": "Say what you have seen.",
}
