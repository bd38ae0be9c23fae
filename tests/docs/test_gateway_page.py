"""The page on the gateway: its table has every key of the configuration, its examples run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.docs.test_examples import ROOT
from tests.servers.gateway.harness.running import Running, running
from thinkback.cli.referee import referee_command
from thinkback.rules import load_rulebook
from thinkback.servers.gateway.config.reading import fields, read_config, wanted
from thinkback.servers.gateway.config.schema import Alias, Config, Upstream
from thinkback.servers.gateway.http.openapi import HEADERS
from thinkback.servers.gateway.http.origins import EXPOSED
from thinkback.servers.gateway.telemetry.metrics import FAMILIES
from thinkback_referee import Referee

PAGE = (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8")


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
    """Each is taken as it stands; that of the trial leads to the referee as it is started by itself."""
    texts = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    trial, own, reference, named, database = (read_config("page", text, None, load_rulebook()) for text in texts)

    assert {"fast", "slow"} == set(reference.models)
    assert ({"gemini-*", "claude-*-haiku*"}, {"anthropic": "anthropic"}) == (set(named.models), named.routing.defaults)
    assert "env:THINKBACK_DATABASE" == database.store.url
    assert "client" == own.upstreams[own.routing.defaults["anthropic"]].credentials
    with Referee() as referee:
        here = {name: referee.base_url(name).replace(referee.url, "http://127.0.0.1:8077") for name in trial.upstreams}
    assert here == {upstream.endpoint: upstream.base_url for upstream in trial.upstreams.values()}
    assert 8077 == next(option.default for option in referee_command.params if option.name == "port")


def test_every_measure_and_header_is_explained(tmp_path: Path) -> None:
    """The families of /metrics, and what web pages and clients may read of a response."""
    named = re.findall(r"`([a-z_-]+)`", "\n".join(re.findall(r"^\| (`.+?) \| .+ \|$", PAGE, re.MULTILINE)))
    ours = [name for name in EXPOSED.split(", ") if name.startswith("thinkback-")]

    assert [] == [name for name in (*(family.name for family in FAMILIES), *ours) if name not in named]
    assert set(ours) <= set(HEADERS)


def test_the_client_in_the_readme_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With nothing but what stands in its block, and a gateway at the usual port."""
    pytest.importorskip("openai")
    block = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-test-0123456789abcdef")
    with Referee() as referee, trial(referee, tmp_path) as house:
        assert ":8484/" in block
        exec(compile(block.replace(":8484/", f":{house.port}/"), "README.md", "exec"), {"__name__": "example"})
        assert [200] == [exchange.status for exchange in referee.requests]

    assert len(capsys.readouterr().out) > 10


def test_the_readme_shows_a_forgetful_client_as_it_fares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its request is refused by the provider and served by the gateway, with those headers; the ids differ."""
    (shown,) = re.findall(r"```\n(HTTP/1.1 400 .+?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    client = (ROOT / "examples" / "gateway" / "forgetful_client.py").read_text(encoding="utf-8")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-test-0123456789abcdef")
    with Referee() as referee, trial(referee, tmp_path) as house:
        code = client.replace("http://127.0.0.1:8077", referee.url).replace(":8484/", f":{house.port}/")
        exec(compile(code, "forgetful_client.py", "exec"), {})

    assert re.sub(r"\b[0-9a-f]{24}\b", "ID", shown) == re.sub(r"\b[0-9a-f]{24}\b", "ID", capsys.readouterr().out)


def test_the_forgetful_client_names_the_key_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gateway with keys refuses it: it ends with the variable to set."""
    client = (ROOT / "examples" / "gateway" / "forgetful_client.py").read_text(encoding="utf-8")
    monkeypatch.delenv("THINKBACK_GATEWAY_KEY", raising=False)
    with (
        Referee() as referee,
        running("thinkback.servers.gateway.running.wiring:open_behind", store={"path": str(tmp_path)}) as house,
    ):
        code = client.replace("http://127.0.0.1:8077", referee.url).replace(":8484/", f":{house.port}/")
        with pytest.raises(SystemExit, match="refused the key: set THINKBACK_GATEWAY_KEY"):
            exec(compile(code, "forgetful_client.py", "exec"), {})


def trial(referee: Referee, place: Path) -> AbstractContextManager[Running]:
    """A gateway with the referee as its provider."""
    return running(
        "thinkback.servers.gateway.running.wiring:open_behind",
        server={"no_auth": True},
        store={"path": str(place)},
        upstreams={
            name: {"endpoint": name, "base_url": referee.base_url("deepseek")} for name in ("deepseek", "referee")
        },
    )


@pytest.mark.parametrize(
    ("package", "shown"), [("openai", "complete"), ("anthropic", 'You said: "What is 12 times 12?".')]
)
def test_a_client_asks_as_the_page_says(
    package: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against the referee, which refuses what a forgetful client would send."""
    (code,) = [text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if f"import {package}" in text]
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-test-0123456789abcdef")
    with Referee() as referee, trial(referee, tmp_path) as house:
        exec(compile(code.replace("8484", str(house.port)), package, "exec"), {})

    assert shown == capsys.readouterr().out.strip()
