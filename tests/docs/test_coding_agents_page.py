"""docs/coding-agents.md: what it shows is what the command writes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from thinkback.cli.app import group
from thinkback.cli.connect.agents import AGENTS
from thinkback.cli.connect.files import place_of

PAGE = (Path(__file__).parents[2] / "docs" / "coding-agents.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("agent", AGENTS)
def test_the_files_on_the_page_are_those_that_are_written(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A section for each agent, with its files as they are made, where they are made, and its line of code."""
    row = AGENTS[agent]
    for name in {place.variable for file in row.files for place in file.places} | {"XDG_STATE_HOME", "GIT_WORK_TREE"}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("THINKBACK_KEY", "tb-...")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(group, ["connect", agent, "--model", "fast", "--write"])

    _, found, section = PAGE.partition(f"\n### {row.title}\n")
    section = section.partition("\n### ")[0]
    assert (0, True) == (done.exit_code, bool(found))
    places = [place_of(file, os.environ) for file in row.files]
    blocks = re.findall(r"```(?:json|toml|sh|yaml)\n(.*?)```", section, re.DOTALL)
    assert [place.read_text() for place in places] == blocks
    for file, place in zip(row.files, places, strict=True):
        assert f"`{place.name}`" in section
        assert all(one.variable in section for one in file.places)
    code = re.findall(r"in your code: (.*)", done.output)
    assert code == re.findall(r"```python\n(.*?)\n```", section, re.DOTALL)
