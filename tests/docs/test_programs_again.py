"""The programs of the pages and in ``examples``, each run three times in a row on one log.

No run loses reasoning, and each adds its own turns, where the first one has them: programs are run again and again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import thinkback
from bench.examples import NAMES, run
from tests.docs.test_examples import PAGES, ROOT, point_endpoints_at
from tests.docs.test_gateway_page import trial
from tests.docs.test_programs_page import HERE
from thinkback.model.commits import Request
from thinkback.proxy.losses import REMARK
from thinkback_referee import Referee

RUNS = 3
GUIDES: Mapping[str, Mapping[str, int]] = {
    "README.md": {"bug-hunt": 1},
    "docs/agents.md": {"release": 5},
    "docs/library.md": {"bug-hunt": 10, "by-hand": 1, "own": 1},
    "docs/profiles.md": {"two": 1, "three": 2},
}
"""Pages whose Python is one program after the other, and how many turns a run of them adds to which session."""
ELSEWHERE = {
    "docs/history.md": "makes branches, whose names are taken from then on",
    "docs/adding-a-dialect.md": "is the source of a dialect: tests/docs/test_adding_a_dialect.py",
    "docs/apps.md": "is a server of tools, which has no log: tests/docs/test_apps_page.py",
    "docs/clients.md": "is where each client has its address: `make clients`",
    "docs/coding-agents.md": "is a provider of one's own for litellm: tests/docs/test_coding_agents_page.py",
    "docs/format.md": "reads a log: tests/log/test_digest.py",
    "docs/programs.md": "is parts of the programs in examples",
    "docs/scale.md": "opens a log at an address of nobody",
    "docs/usage.md": "is the set-up of OpenTelemetry",
}
"""Pages with Python that is not run three times here, and why; of README the gateway's client is."""
CLIENTS = {"README.md": ("openai", 1), "docs/gateway.md": ("openai", 2), "docs/gateway.md ": ("anthropic", 1)}
"""Blocks that ask a gateway, by package, and the requests of each."""


class Kept(NamedTuple):
    """How many messages of users each session has, on all its branches; the records that say that something is lost."""

    turns: dict[str, int]
    missing: list[str]


def kept(log: Path) -> Kept:
    """What is in ``log``."""
    turns: dict[str, int] = {}
    missing: list[str] = []
    with thinkback.open(log) as store:
        for info in store.sessions():
            lines = (store.log.read(info.id, branch=branch.name) for branch in store.log.refs.list(info.id))
            commits = {commit.hash: commit for line in lines for commit in line}
            turns[info.name] = sum(commit.kind == "user" for commit in commits.values())
            for value in (commit.value for commit in commits.values()):
                if isinstance(value, Request):
                    missing += [value.target[name] for name in ("not_found", REMARK) if name in value.target]
    return Kept(turns, missing)


def added(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """What each session has more."""
    return {name: more for name, number in now.items() if (more := number - before.get(name, 0))}


@pytest.mark.parametrize("page", GUIDES)
@pytest.mark.filterwarnings("ignore:this voids what goes back")
def test_a_page_of_the_library_is_run_three_times(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sessions have names: each run goes on with them."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    before: dict[str, int] = {}
    with Referee() as referee:
        point_endpoints_at(referee, tmp_path / "configuration", monkeypatch)
        for turn in range(RUNS):
            namespace: dict[str, object] = {"__name__": "guide"}
            for block in blocks[:1] if page == "README.md" else blocks:
                exec(compile(block, page, "exec"), namespace)
            (log,) = tmp_path.glob("*.db")
            found = kept(log)
            assert [] == found.missing
            if turn:  # the first run begins what is there for good
                assert GUIDES[page] == added(found.turns, before)
            before = found.turns
        assert {200} == {exchange.status for exchange in referee.requests}


def test_the_examples_are_run_three_times(tmp_path: Path) -> None:
    """Each run of one is a conversation of its own with two questions; that with a name is in the session of it."""
    before: dict[str, int] = {}
    with Referee() as referee:
        for _ in range(RUNS):
            assert "missing" not in run(sys.executable, HERE, referee, tmp_path)
            found = kept(tmp_path / "chats.db")
            assert [] == found.missing
            new = added(found.turns, before)
            assert [2] * len(HERE) == list(new.values())
            assert {"weather"} & before.keys() == new.keys() & before.keys()
            before = found.turns
        assert {200} == {exchange.status for exchange in referee.requests}


def client_of(page: str) -> str:
    """The block of a page that asks a gateway."""
    package, _ = CLIENTS[page]
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page.strip()).read_text(encoding="utf-8"), re.DOTALL)
    found: list[str] = [block for block in blocks if f"import {package}" in block]
    return found[0]


def forgetful() -> str:
    """The client that is shown in README."""
    return (ROOT / "examples" / "gateway" / "forgetful_client.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("code", "turns"),
    [*((lambda page=page: client_of(page), number) for page, (_, number) in CLIENTS.items()), (forgetful, 1)],
    ids=[*CLIENTS, "forgetful_client.py"],
)
def test_a_client_of_the_gateway_is_run_three_times(
    code: Callable[[], str],
    turns: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each run is a conversation of its own, also behind a gateway that began anew."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-test-0123456789abcdef")
    before: dict[str, int] = {}
    with Referee() as referee:
        for _ in range(RUNS):
            with trial(referee, tmp_path) as house:
                source = code().replace("http://127.0.0.1:8077", referee.url).replace(":8484", f":{house.port}")
                exec(compile(source, "client", "exec"), {"__name__": "client"})
            assert "missing" not in capsys.readouterr().out
            found = kept(tmp_path / "default.db")
            assert [] == found.missing
            new = added(found.turns, before)
            assert ([turns], set()) == (list(new.values()), new.keys() & before.keys())
            before = found.turns


def test_every_program_is_run_or_has_a_reason() -> None:
    """Those in ``examples`` whose packages are not installed here are run by ``make programs``."""
    there = {page for page in PAGES if "```python\n" in (ROOT / page).read_text(encoding="utf-8")}
    assert there == GUIDES.keys() | ELSEWHERE.keys() | {page.strip() for page in CLIENTS}
    assert set(HERE) <= set(NAMES)
