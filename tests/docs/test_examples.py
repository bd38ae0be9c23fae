"""The examples of the documentation, run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from thinkback.cli.referee import referee_command
from thinkback.rules import load_rulebook
from thinkback_referee import Referee

ROOT = Path(__file__).parents[2]
PORT = next(option.default for option in referee_command.params if option.name == "port")


def point_endpoints_at(referee: Referee, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's rule file that moves the endpoints of the examples to the referee."""
    place.mkdir()
    (place / "rules.toml").write_text(
        f"""
        [[endpoint]]
        id = "deepseek"
        name = "DeepSeek"
        base_url = "{referee.base_url("deepseek")}"
        auth = {{ env = ["DEEPSEEK_API_KEY"] }}
        source = "a test"

        [[endpoint]]
        id = "anthropic"
        name = "Anthropic"
        base_url = "{referee.base_url("anthropic")}"
        dialect = "anthropic"
        path = "/messages"
        auth = {{ scheme = "header", header = "x-api-key", env = ["ANTHROPIC_API_KEY"] }}
        headers = {{ anthropic-version = "2023-06-01" }}
        source = "a test"
        """
    )
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(place))
    monkeypatch.setenv("DEEPSEEK_API_KEY", "a-key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another-key")


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("library.md", "completed"),
        ("history.md", "both_edit"),
        ("agents.md", "Oslo: rain"),
        ("profiles.md", "claude-opus-4-6 completed"),
    ],
)
@pytest.mark.filterwarnings("ignore:this voids what goes back")
def test_a_guide_runs_as_it_stands(
    page: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every Python block of a guide runs, in order, in one namespace, and every request is accepted."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with Referee() as referee:
        point_endpoints_at(referee, tmp_path / "configuration", monkeypatch)
        namespace: dict[str, object] = {"__name__": "guide"}
        for block in blocks:
            exec(compile(block, f"docs/{page}", "exec"), namespace)
        statuses = [exchange.status for exchange in referee.requests]

    assert len(blocks) > 4
    assert {200} == set(statuses)
    assert shown in capsys.readouterr().out


def test_the_example_on_the_first_screen_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first Python block of the README runs as it stands beside the referee, and its tool is called.

    What it needs is installed on the page before.
    """
    readme = (ROOT / "README.md").read_text()
    before, block = readme.partition("```python\n")[0], re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    assert block is not None
    assert "pip install . ./referee\n" in before
    assert load_rulebook().endpoint("referee").base_url == f"http://127.0.0.1:{PORT}/deepseek"
    said = 'endpoint="referee"'
    assert said in block[1]
    with Referee() as referee:
        there = f"{said}, base_url={referee.base_url('deepseek')!r}"
        exec(compile(block[1].replace(said, there), "README.md", "exec"), {"__name__": "example"})

    shown = capsys.readouterr().out
    assert "3 tests failed" in shown
    assert "still known" in shown
