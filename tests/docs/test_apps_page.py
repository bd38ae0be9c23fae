"""The pages on apps and on usage: their examples run, and their tables are whole."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.test_examples import ROOT, point_endpoints_at
from thinkback.observe.cost import read
from thinkback.session import apps
from thinkback.settings.apps import parse_app
from thinkback.settings.features import packaged
from thinkback_referee import Referee

PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("apps", "usage")}


def test_the_example_of_an_app_is_one() -> None:
    """It is read without a fault, and says what the page says of it."""
    (block,) = re.findall(r"```toml\n(.*?)```", PAGES["apps"], re.DOTALL)
    app = parse_app("apps/reviewer.toml", block)
    assert ("reviewer", "gpt-5.6-sol", ("web_search",)) == (app.id, app.default_model, app.features)
    assert {"TOKEN": "${ISSUES_TOKEN}"} == app.servers["issues"].env


def test_the_table_of_apps_has_those_that_ship() -> None:
    """Each with its tools."""
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (.*) ?\|$", PAGES["apps"], re.MULTILINE)
    shipped = {row.id: row.app.tools for row in apps.listed() if row.app is not None}
    assert shipped == {id: tuple(re.findall(r"`(\w+)`", tools)) for id, tools in rows if id in shipped}
    assert all(f"| `{feature.name}` |" in PAGES["apps"] for feature in packaged().feature)


def test_the_example_of_a_price_is_one() -> None:
    """It is read without a fault."""
    (block,) = re.findall(r"```toml\n(.*?)```", PAGES["usage"], re.DOTALL)
    assert ("deepseek-v4-pro*",) == read("prices.toml", block).price[0].models


@pytest.mark.parametrize("page", PAGES)
def test_the_python_runs_as_it_stands(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the referee, which refuses nothing; the columns of the log are those of the table."""
    (block,) = re.findall(r"```python\n(.*?)```", PAGES[page], re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with Referee() as referee:
        point_endpoints_at(referee, tmp_path / "configuration", monkeypatch)
        exec(compile(block, f"docs/{page}.md", "exec"), {"__name__": "guide"})
        assert {200} == {exchange.status for exchange in referee.requests}
    if page == "usage":
        cells = re.findall(r"^\| (`.*?`) \| ", PAGES["usage"], re.MULTILINE)
        told = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
        assert set(told) == set(json.loads((tmp_path / "usage.jsonl").read_text()))
