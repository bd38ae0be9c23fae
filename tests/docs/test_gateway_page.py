"""The page on the gateway: its table has every key of the configuration, its examples run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.gateway.running import running
from thinkback.gateway.config import Alias, Config, Upstream
from thinkback.gateway.reading import fields, read_config, wanted
from thinkback.referee import Referee
from thinkback.rules import load_rulebook

PAGE = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")


def keys() -> Iterator[tuple[str, str, str]]:
    """(key path, what it may be, default as the page writes it) of the whole configuration."""
    for part, shape in fields(Config).items():
        default = getattr(Config(), part)
        if isinstance(default, msgspec.Struct):
            for name, kind in fields(type(default)).items():
                yield f"{part}.{name}", wanted(kind), written(getattr(default, name))
        else:
            yield part, wanted(shape), written(default)


def written(default: Any) -> str:
    """A default as the page writes it."""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "none" if default in (None, "", (), {}) else f"`{default}`"


def test_the_table_has_every_key_with_its_kind_and_default() -> None:
    """In the order of the configuration, each with a meaning."""
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.+?) \| (.+?) \| .+ \|$", PAGE, re.MULTILINE)

    assert list(keys()) == rows


@pytest.mark.parametrize("shape", [Upstream, Alias], ids=["upstream", "alias"])
def test_tables_by_name_have_all_their_keys(shape: type[msgspec.Struct]) -> None:
    """Each key of an upstream and of an alias is explained."""
    rows = "\n".join(re.findall(r"^\| (`.+?) \| [^|]+ \|$", PAGE, re.MULTILINE))

    assert [] == [name for name in fields(shape) if f"`{name}`" not in rows]


def test_the_example_of_a_configuration_is_one() -> None:
    """It is taken as it stands."""
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)

    assert {"fast", "slow"} == set(read_config("page", text, None, load_rulebook()).models)


@pytest.mark.parametrize(
    ("package", "shown"), [("openai", "complete"), ("anthropic", 'You said: "What is 12 times 12?".')]
)
def test_a_client_asks_as_the_page_says(
    package: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against the referee, which refuses what a forgetful client would send."""
    (code,) = [text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if f"import {package}" in text]
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-test-0123456789abcdef")
    with (
        Referee() as referee,
        running(
            "thinkback.gateway.wiring:open_behind",
            server={"no_auth": True},
            store={"path": str(tmp_path)},
            upstreams={"deepseek": {"endpoint": "deepseek", "base_url": referee.base_url("deepseek")}},
        ) as house,
    ):
        exec(compile(code.replace("8484", str(house.port)), package, "exec"), {})

    assert shown == capsys.readouterr().out.strip()
