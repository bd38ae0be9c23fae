"""What hints, errors, help texts and the prose of pages name in backquotes is run: each command once."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Inside
from tests.docs.test_examples import PLACE, fault, named, point_endpoints_at
from thinkback_referee import Referee

FILLED: Mapping[str, Mapping[str, Sequence[str]]] = {
    "": {
        **dict.fromkeys(("SESSION", "NAME", "X", "--session", "primes", "llm-ID"), ("talk",)),
        **dict.fromkeys(("ENDPOINT", "ID", "WORD", "--endpoint"), ("deepseek",)),
        "TIME": ("2020-01-01",),
        **dict.fromkeys(("TEXT", "MESSAGE", "PROMPT"), ("more words",)),
        **dict.fromkeys(("PLACE/acme.db", "/var/lib/thinkback/default.db"), ("log.db",)),
        **{"HASH": ("{hash}",), "BRANCH": ("side",), "AGENT": ("codex",), "erased-imports": ("talk",)},
        **{"FILE": ("made",), "FILE.jsonl": ("made.jsonl",)},
        "--model": ("deepseek-v4-pro",),
        "--branch": ("side",),
    },
    "branch": {"NAME": ("new",), "X": ("new", "{hash}")},
    "branch NAME": {"NAME": ("new",), "X": ("{hash}",)},
    "diff": {"OLD": ("main~1",), "NEW": ("main",)},
    "gateway keys": {"NAME": ("ada",)},
    "import": {"FILE": ("talk.jsonl",)},
    "keys set": {"NAME": ("deepseek",), "X": ("deepseek",)},
    "models": {"X": ("deepseek",)},
    "profile": {"NAME": ("second",), "X": ("second",)},
    "reset": {"X": ("{hash}",)},
    "settings": {"X": ("reasoning.effort", "high")},
    "show": {"X": ("{hash}",)},
    "switch": {"X": ("side",)},
}
"""What stands for a placeholder, by how the command begins: for the first one, and for those behind it. ``X`` is what a
program puts in; the value of an option goes by the option.
"""
PLACEHOLDER = re.compile("[A-Z][A-Z-]*")
BEFORE = (
    *("run Hello --session talk", "run Again --session talk", "branch side", "export talk.jsonl"),
    *("profile save usual", "profile save careful", "profile save second", "profile default usual"),
    "gateway keys create ada",
)
"""What was done in the place of each command."""
SERVES = "serves until it is ended: tests/cli, tests/servers"
NOT_RUN = {
    **dict.fromkeys(("gateway", "view", "view --write", "mcp", "acp", "referee", "referee --script FILE"), SERVES),
    "demo": "takes its time for those who watch: tests/cli/test_demo.py",
    **dict.fromkeys(
        ("probe X --model X", "probe NEW-NAME --base-url URL --model NAME"),
        "costs money, so that it asks on a terminal: tests/cli/config/test_probe.py",
    ),
    **dict.fromkeys(
        ("import --program otlp FILE", "import FILE --program codex"),
        "needs the histories of another program: tests/cli/history/test_exchange.py",
    ),
    "compact": "has nothing to gain in a short conversation: tests/cli/history/test_compact.py",
    "purge --key ID --db /var/lib/thinkback/default.db": "needs a gateway's log: tests/session/history/test_erasing.py",
    "rules update FILE": "needs a file of rules: tests/cli/config/test_rules.py",
    "rules undo": "undoes what was updated: tests/cli/config/test_rules.py",
    "decode anthropic body.sse --json": "needs a recorded body: tests/cli/wire",
    "convert --from anthropic --to gemini --model gemini-3-pro request.json": "needs a request: tests/cli/wire",
    "doctor SESSION --endpoint groq --model openai/gpt-oss-120b --dry-run": "asks a host that is not here",
    "why SESSION --next --endpoint lab --model acme/thinker-2": "is about a host that nobody has",
}
"""Commands that are parsed alone, and why."""


class Row(NamedTuple):
    """A command that is named: ``line`` behind the program's name."""

    line: str
    is_printed: bool
    """By the program; else it stands on pages alone."""

    @property
    def is_name(self) -> bool:
        """Whether a page speaks of a command or an option, which take more."""
        is_bare = re.fullmatch("[a-z -]+", self.line) is not None and not FILLED[""].keys() & set(self.line.split())
        return not self.is_printed and (is_bare or fault(self.line).startswith(("Missing", "Option")))


def rows() -> list[Row]:
    """Each command once."""
    found: dict[str, bool] = {}
    for where, line in named():
        if "|" not in line:
            is_printed = where.endswith(".py") and not where.startswith("a docstring")
            found[line] = found.get(line, False) or is_printed
    return [Row(*each) for each in sorted(found.items())]


def filled(line: str, commit: str) -> list[str]:
    """The words of a command, with something in the place of each placeholder."""
    start = max((start for start in FILLED if line.startswith(start)), key=len)
    own, words, used = {**FILLED[""], **FILLED[start]}, shlex.split(line), set()
    for at, word in enumerate(words):
        option = words[at - 1] if at and PLACEHOLDER.fullmatch(word) else ""
        key = option if option in own else word
        if key in own and not word.startswith("--"):
            words[at] = own[key][key in used and len(own[key]) > 1].format(hash=commit)
            used.add(key)
    assert [] == [word for word in words if PLACEHOLDER.fullmatch(word)], line
    return words


@pytest.mark.filterwarnings("ignore")
def test_every_command_that_is_named_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with 0, each in the same place, where a conversation was had."""
    ready, place = tmp_path / "ready", tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    inside = Inside(place, monkeypatch, capsys)
    told = []
    with Referee() as referee:
        point_endpoints_at(referee, inside.config, monkeypatch)
        for line in BEFORE:
            assert 0 == inside(*line.split(), *(PLACE if line.startswith(("run", "profile save")) else ())).code
        commits = inside("log", "talk", "--json").json
        answer = next(each["hash"] for each in commits if each["kind"] == "assistant")
        shutil.copytree(place, ready)
        for row in rows():
            if row.line not in NOT_RUN and not row.is_name:
                for left in place.iterdir():
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                shutil.copytree(ready, place, dirs_exist_ok=True)
                typed = b"y\n" if "delete" in row.line else b"sk-0123456789abcdef\n"
                done = inside(*filled(row.line, answer), stdin=typed)
                told.append((row.line, done.code, done.err[-300:]))
    assert [] == [each for each in told if each[1]]
    assert len(told) > 70
    assert set() == set(NOT_RUN) - {row.line for row in rows()}
